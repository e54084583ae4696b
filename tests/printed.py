"""Predict with nothing but the text of an oblique tree, as a reader with a pencil would."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hardwood.model import ObliqueTree
from hardwood.text.terms import label_text, name_text

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
SECONDS = {"day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0}
EFFECTS = "  per standard deviation"


class Printed:
    """A tree, read from its text. Of the model, only the names and the table's reader are used."""

    def __init__(self, tree: ObliqueTree, **options: Any) -> None:
        self.tree = tree
        features = tree.schema.features
        self.column = {name_text(feature.name): j for j, feature in enumerate(features)}
        self.name = "|".join(map(re.escape, sorted(self.column, key=len, reverse=True)))
        body, _, notes = tree.to_text(**options).split("\n\n", 1)[1].partition("\n\n")
        self.lines = body.rstrip("\n").split("\n")
        found = re.search(r"A missing number counts as its mean: (.*)\.$", notes, re.MULTILINE)
        self.means = self._means(found[1]) if found else {}
        self.matrix = np.zeros((0, len(features)))

    def _means(self, text: str) -> dict[int, float]:
        listed = re.findall(rf"({self.name}) as (.*?)(?=, (?:{self.name}) as |$)", text)
        return {self.column[name]: quantity(value) for name, value in listed}

    def outputs(self, X: Any) -> np.ndarray:
        """Return the outputs (n, k); NaN where the text does not give them."""
        self.matrix = np.asarray(self.tree.schema.read(X), dtype=np.float64)
        out = np.full((len(self.matrix), self.tree.n_outputs), np.nan)
        self._node(0, 0, np.arange(len(self.matrix)), out)
        return out

    def _node(self, at: int, depth: int, rows: np.ndarray, out: np.ndarray) -> int:
        """Predict rows with the node that begins at a line; return the line after it."""
        indent = "|   " * depth
        here = self.lines[at].removeprefix(indent)
        if here.startswith("if ") and here.endswith(":"):
            right = self._holds(here[3:-1], rows)
            at = self._node(at + 1, depth + 1, rows[right], out)
            assert self.lines[at] == f"{indent}else:"
            return self._node(at + 1, depth + 1, rows[~right], out)
        end = at
        while end < len(self.lines) and self.lines[end].startswith(indent):
            if self.lines[end] == f"{indent[4:]}else:":
                break
            end += 1
        self._leaf([line.removeprefix(indent) for line in self.lines[at:end]], rows, out)
        return end

    # Columns

    def _known(self, column: int, rows: np.ndarray) -> np.ndarray:
        """Return numbers, with missing ones at their means."""
        values = self.matrix[rows, column]
        gone = np.isnan(values)
        assert not gone.any() or column in self.means, "the text does not say what missing means"
        return np.where(gone, self.means.get(column, np.nan), values)

    def _measured(self, words: str, rows: np.ndarray) -> np.ndarray:
        """Return what the name of a number in a sum stands for."""
        if words in self.column:
            return self._known(self.column[words], rows)
        found = re.fullmatch(rf"\(({self.name})(?: - (.*?))? in (\w+)s\)", words)
        assert found, words
        name, zero, unit = found.groups()
        seconds = self._known(self.column[name], rows) - (quantity(zero) if zero else 0.0)
        return seconds / SECONDS[unit]

    def _is_one_of(self, words: str, rows: np.ndarray) -> np.ndarray:
        """Whether ``color is one of red, blue`` or ``age is missing`` holds."""
        name, no, listed = re.fullmatch(
            rf"({self.name}) is (not |none of |)(?:one of )?(.*)", words, re.DOTALL
        ).groups()
        j = self.column[name]
        codes, levels = self.matrix[rows, j], self.tree.schema.features[j].levels
        found = np.zeros(len(rows), dtype=bool)
        rest = listed
        for place, label in [(None, "missing"), *enumerate(map(label_text, levels))]:
            pattern = rf"(?:^|(?<=, )){re.escape(label)}(?:, |$)"
            if re.search(pattern, listed):
                found |= np.isnan(codes) if place is None else codes == place
                rest = re.sub(pattern, "", rest)
        assert rest == "", listed
        return ~found if no else found

    # Conditions and sums

    def _holds(self, words: str, rows: np.ndarray) -> np.ndarray:
        if words in ("always", "never"):
            return np.full(len(rows), words == "always")
        found = re.fullmatch(r"(.*) (>=|<=) (.*?)( or missing| and not missing)?", words, re.DOTALL)
        if not found:
            return self._is_one_of(words, rows)
        left, relation, right, missing = found.groups()
        values = self.matrix[rows, self.column[left]] if missing else self._sum(left, rows)
        bound = quantity(right)
        holds = values >= bound if relation == ">=" else values <= bound
        if missing:
            holds = np.where(np.isnan(values), missing == " or missing", holds)
        return holds

    def _sum(self, text: str, rows: np.ndarray) -> np.ndarray:
        """Evaluate ``-0.5 + 2*rooms - (0.3 if color is red)``."""
        measured = rf"\((?:{self.name})(?: - [-\d: .]+)? in \w+s\)|{self.name}"
        labels = "|".join(
            re.escape(label)
            for feature in self.tree.schema.features
            for label in sorted(map(label_text, feature.levels), key=len, reverse=True)
        )
        one = rf"(?:missing|{labels})" if labels else "missing"
        held = rf"(?:{self.name}) is (?:one of )?{one}(?:, {one})*"
        term = re.compile(
            rf"\s*([+-]?)\s*(?:\(({NUMBER}) if ({held})\)|(?:({NUMBER})\*)?({measured})|({NUMBER}))"
            r"(?= [+-] |\s*$)"
        )
        total, place = np.zeros(len(rows)), 0
        while place < len(text):
            found = term.match(text, place)
            assert found, text[place:]
            sign, size, condition, factor, name, constant = found.groups()
            if condition:
                value = float(size) * self._is_one_of(condition, rows)
            elif name:
                value = (float(factor) if factor else 1.0) * self._measured(name, rows)
            else:
                value = float(constant)
            total = total - value if sign == "-" else total + value
            place = found.end()
        return total

    # Leaves

    def _leaf(self, lines: list[str], rows: np.ndarray, out: np.ndarray) -> None:
        lines[0] = re.sub(r" \(n = [\d.e]+\)$", "", lines[0])
        if not self.tree.has_linear_leaves or len(self.tree.classes or "ab") == 1:
            return self._constants(lines[0], rows, out)
        scores = self._scores(lines, rows)
        if scores.shape[1] < self.tree.n_outputs:  # the probability of the second of two classes
            scores = np.column_stack([1 - scores, scores])
        elif self.tree.link == "softmax":
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores /= scores.sum(axis=1, keepdims=True)
        out[rows] = scores
        return None

    def _scores(self, lines: list[str], rows: np.ndarray) -> np.ndarray:
        is_table = len(lines) > 1 and lines[1].startswith("constant ")
        if is_table:
            return self._table(lines, rows)
        if len(lines) > 1 and lines[1].startswith("    "):
            lines = [self._joined(lines)]
        return np.column_stack([self._equation(line, rows) for line in lines])

    def _joined(self, lines: list[str]) -> str:
        """Return a scorecard as one equation, without its weights per deviation."""
        width = lines[0].find(EFFECTS)
        texts = [line[:width].rstrip() if width >= 0 else line for line in lines]
        return " ".join(text.strip() for text in texts).replace("( ", "(").replace(" )", ")")

    def _equation(self, line: str, rows: np.ndarray) -> np.ndarray:
        right = re.sub(r"^(?:p\(.*?\)|score of .*?|value|.*?) = (?=\S)", "", line, flags=re.DOTALL)
        found = re.fullmatch(r"(logistic|exp)\((.*)\)", right, re.DOTALL)
        score = self._sum(found[2] if found else right, rows)
        return linked(score, found[1] if found else "")

    def _table(self, lines: list[str], rows: np.ndarray) -> np.ndarray:
        """Evaluate the columns of a table; wide tables are in several parts."""
        heads = [i for i, line in enumerate(lines) if line.startswith(HEADS)]
        parts = []
        for first, last in zip(heads, [*heads[1:], len(lines)], strict=True):
            constants = re.split(r"\s{2,}", lines[first + 1])[1:]
            ends = [m.end() for m in re.finditer(NUMBER + r"(?=\s|$)", lines[first + 1])]
            scores = np.tile(np.array(constants, dtype=float), (len(rows), 1))
            for line in lines[first + 2 : last]:
                words, values = self._row(line, rows)
                for column, end in enumerate(ends):
                    cell = re.search(rf"({NUMBER})$", line[:end])
                    if cell and cell.start() >= len(words) and len(line) >= end:
                        scores[:, column] += float(cell[1]) * values
            function = {"logistic of": "logistic", "exp of": "exp"}
            name = next((f for head, f in function.items() if lines[first].startswith(head)), "")
            parts.append(linked(scores, name))
        return np.hstack(parts)

    def _row(self, line: str, rows: np.ndarray) -> tuple[str, np.ndarray]:
        words = re.split(r"\s{2,}", line)[0]
        is_condition = re.match(rf"(?:{self.name}) is ", words)
        evaluate: Callable[..., np.ndarray] = self._is_one_of if is_condition else self._measured
        return words, evaluate(words, rows).astype(float)

    def _constants(self, line: str, rows: np.ndarray, out: np.ndarray) -> None:
        if self.tree.classes is not None:
            label, p = re.fullmatch(
                rf"(?:class|.* =) (.*) \(p = ({NUMBER}).*\)", line, re.DOTALL
            ).groups()
            out[rows, list(map(label_text, self.tree.classes)).index(label)] = float(p)
        elif self.tree.task == "multilabel":
            names = map(name_text, self.tree.target_names or map(str, range(self.tree.n_outputs)))
            for i, name in enumerate(names):
                found = re.search(rf"(?:^| ){re.escape(name)} \(p = ({NUMBER})\)", line)
                if found:
                    out[rows, i] = float(found[1])
        else:
            values = [float(text) for text in re.findall(rf"(?:^|= |, )({NUMBER})(?=, |$)", line)]
            out[rows[:, None], np.arange(len(values))] = values


HEADS = ("score of", "logistic of", "exp of", "target")


def linked(score: np.ndarray, function: str) -> np.ndarray:
    links = {"logistic": lambda s: 1 / (1 + np.exp(-s)), "exp": np.exp}
    return links.get(function, partial(np.add, 0.0))(score)


def quantity(text: str) -> float:
    """Read a number, a duration in seconds, or a date in seconds since 1970."""
    if re.fullmatch(NUMBER, text):
        return float(text)
    duration = re.fullmatch(rf"({NUMBER}) (\w+?)s?", text)
    if duration:
        return float(duration[1]) * SECONDS[duration[2]]
    date = datetime.datetime.fromisoformat(text)
    return (date - datetime.datetime(1970, 1, 1)).total_seconds()
