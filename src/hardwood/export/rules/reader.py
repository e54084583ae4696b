"""Rules, read back from their text and applied to rows.

The grammar of a line, after ``if``, ``and`` or ``then``::

    condition = "never" | bounds | NAME "is" "missing" | NAME "is" "not" "missing"
              | NAME "is" ("one" | "none") "of" LABEL, LABEL, ... | sum (">=" | "<") number
    bounds    = (NAME relation number | number relation NAME relation number) ["or" "missing"]
    sum       = term (("+" | "-") term)*
    term      = number | number "*" NAME | number "*" "(" NAME ("+" | "-") number ")"
              | number "*" "(" NAME "is" LABEL ")"
    prediction = ["class" LABEL ","] what LABEL "=" sum, what LABEL "=" sum, ... ["; n = ..."]
    what      = "" | "p of" | "score of"

Names and text are JSON strings; ``missing`` is also a LABEL.
"""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

import numpy as np

from hardwood.errors import ExportError
from hardwood.export.plan import Plan, voted
from hardwood.export.probes import Probes
from hardwood.export.verify import Predictions, positions_of
from hardwood.model.engine import linked
from hardwood.text.numbers import plural

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*")
        |(?P<date>-?\d{4,}-\d\d-\d\d(?:[ ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)
        |(?P<number>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)
        |(?P<word>[a-z]+)
        |(?P<symbol><=|>=|[<>*+(),=;-]))""",
    re.VERBOSE,
)
_EPOCH = datetime.datetime(1970, 1, 1)
_UNITS = {"day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0}
_RELATIONS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
MISSING = object()


def read_predictions(probes: Probes, text: str) -> Predictions:
    """Read rules and return their predictions for the probes."""
    plan, rows = probes.plan, _Rows(probes)
    total = np.zeros((probes.n_rows, plan.model.n_outputs))
    leaves = np.full((probes.n_rows, len(plan.trees)), -1)
    rules, rows.averages = _sections(text, len(plan.trees))
    labels = np.full(probes.n_rows, -1)
    for t, of_tree in enumerate(rules):
        known: dict[str, np.ndarray] = {}  # most conditions occur in many rules
        times = np.zeros(probes.n_rows, int)
        of_leaf = np.zeros((probes.n_rows, plan.model.n_outputs))
        for leaf, lines in of_tree:
            satisfied = np.ones(probes.n_rows, bool)
            for line in lines[:-1]:
                if line not in known:
                    known[line] = _Line(line, rows).condition()
                satisfied &= known[line]
            times += satisfied
            leaves[satisfied, t] = leaf
            outputs, label = _Line(lines[-1], rows).prediction(plan.model.n_outputs)
            of_leaf[satisfied] = outputs[satisfied]
            labels[satisfied] = -1 if label is None else (plan.model.classes or ()).index(label)
        if (times != 1).any():
            raise ExportError(
                "the rules were not written: a row satisfies none of them, or several"
            )
        total += _tree_outputs(plan, t, of_leaf)
    outputs = plan.combined(total)
    positions = positions_of(plan, outputs)
    if len(rules) == 1 and (labels >= 0).all():
        positions = labels  # as the rules name them; rounded probabilities may tie
    return Predictions(outputs, positions, leaves)


def _tree_outputs(plan: Plan, t: int, of_leaf: np.ndarray) -> np.ndarray:
    tree = plan.trees[t]
    if tree.leaf_weights is not None:
        of_leaf = linked(of_leaf, tree.link, 1)
    return np.ldexp(voted(of_leaf, tree.vote), -plan.exponent)


def _sections(
    text: str, n_trees: int
) -> tuple[list[list[tuple[int, list[str]]]], dict[str, float]]:
    """Take rules apart: by tree the leaves with their lines; and the averages of numbers."""
    trees: list[list[tuple[int, list[str]]]] = [[]]
    averages: dict[str, float] = {}
    for line in text.split("\n"):
        if line.startswith("tree "):
            trees.append([])
        elif line.startswith("rule "):
            trees[-1].append((int(line.rpartition(" ")[2]), []))
        elif line.startswith("  ") and not trees[-1]:
            name, _, value = line.strip().rpartition(" = ")
            averages[json.loads(name)] = float(value)
        elif line.startswith("  "):
            trees[-1][-1][1].append(line.strip().split(" ", 1)[1])
    trees = [tree for tree in trees if tree]
    if len(trees) != n_trees:
        read = plural(len(trees), "tree")
        raise ExportError(f"the rules were not written: they were read back as {read}")
    return trees, averages


class _Rows:
    """The probes by names of features."""

    def __init__(self, probes: Probes) -> None:
        self.n_rows = probes.n_rows
        self.averages: dict[str, float] = {}
        self.numbers: dict[str, np.ndarray] = {}
        self.entries: dict[str, list[Any]] = {}
        self._levels = {f.name: set(f.levels) for f in probes.plan.schema.features}
        for feature, column in zip(probes.plan.schema.features, probes.raw_columns, strict=True):
            if feature.kind == "numeric":
                entries = [np.nan if x is None else x for x in column]
                self.numbers[feature.name] = np.array(entries, np.float64)
            self.entries[feature.name] = column

    def is_one(self, name: str, labels: list[Any]) -> np.ndarray:
        """Whether values are among labels; an unknown category counts as missing."""
        if name in self.numbers:
            return np.isnan(self.numbers[name])
        wanted = {label for label in labels if label is not MISSING}
        known, missing = self._levels[name], MISSING in labels
        return np.array(
            [entry in wanted if entry in known else missing for entry in self.entries[name]]
        )

    def present(self, name: str) -> np.ndarray:
        """Return numbers, with the mean in place of missing ones."""
        numbers = self.numbers[name]
        return np.where(np.isnan(numbers), self.averages[name], numbers)


class _Line:
    """One line, read token by token."""

    def __init__(self, line: str, rows: _Rows) -> None:
        self._rows = rows
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(line):
            match = _TOKEN.match(line, at)
            if match is None:
                raise ExportError(f"the rules were not written: cannot read {line[at:]!r:.80}")
            kind = str(match.lastgroup)
            self._tokens.append((kind, match.group(kind)))
            at = match.end()

    def _next(self) -> tuple[str, str]:
        return self._tokens.pop(0) if self._tokens else ("end", "")

    def _peek(self, place: int = 0) -> tuple[str, str]:
        return self._tokens[place] if place < len(self._tokens) else ("end", "")

    def _take(self, *words: str) -> bool:
        """Skip these words if they come next."""
        if [token for _, token in self._tokens[: len(words)]] != list(words):
            return False
        del self._tokens[: len(words)]
        return True

    # Conditions

    def condition(self) -> np.ndarray:
        """Return which rows satisfy the line."""
        if self._take("never"):
            return np.zeros(self._rows.n_rows, bool)
        if self._peek()[0] == "text" and self._peek(1)[1] == "is":
            return self._membership()
        if self._peek()[0] == "text" or self._peek(1)[1] in ("<", "<=") or self._is_quantity():
            return self._bounds()
        total = self._sum()
        relation = _RELATIONS[self._next()[1]]
        return relation(total, self._number())

    def _is_quantity(self) -> bool:
        return self._peek()[0] == "date" or self._peek(1)[1].rstrip("s") in _UNITS

    def _membership(self) -> np.ndarray:
        name = json.loads(self._next()[1])
        self._next()
        if self._take("not", "missing"):
            return ~self._rows.is_one(name, [MISSING])
        if self._take("missing"):
            return self._rows.is_one(name, [MISSING])
        negated = self._next()[1] == "none"
        self._next()
        labels = [self._label()]
        while self._take(","):
            labels.append(self._label())
        return self._rows.is_one(name, labels) != negated

    def _label(self) -> Any:
        _, token = self._next()
        if token == "missing":
            return MISSING
        return json.loads(token)  # integers stay exact, at any size

    def _bounds(self) -> np.ndarray:
        low = None
        if self._peek()[0] != "text":
            low, below = self._number(), self._next()[1]
        name = json.loads(self._next()[1])
        x = self._rows.numbers[name]
        with np.errstate(invalid="ignore"):
            inside = np.ones(len(x), bool) if low is None else _RELATIONS[below](low, x)
            relation = _RELATIONS[self._next()[1]]
            inside &= relation(x, self._number())
        return inside | np.isnan(x) if self._take("or", "missing") else inside & ~np.isnan(x)

    def _number(self) -> float:
        """Read a number, a date in seconds, or a duration in seconds."""
        kind, token = self._next()
        if kind == "date":
            moment = datetime.datetime.fromisoformat(_padded(token))
            return (moment - _EPOCH).total_seconds()
        unit = self._peek()[1].rstrip("s")
        if unit in _UNITS:
            self._next()
            return float(token) * _UNITS[unit]
        return float(token)

    # Sums

    def _sum(self) -> np.ndarray:
        total = self._term()
        while self._peek()[1] in ("+", "-"):
            sign = 1.0 if self._next()[1] == "+" else -1.0
            total = total + sign * self._term()
        return total

    def _term(self) -> np.ndarray:
        weight = float(self._next()[1])
        if not self._take("*"):
            return np.full(self._rows.n_rows, weight)
        if self._peek()[0] == "text":
            return weight * self._rows.present(json.loads(self._next()[1]))
        self._next()
        name = json.loads(self._next()[1])
        if self._take("is"):
            entries = self._rows.is_one(name, [self._label()]).astype(np.float64)
        else:
            sign = 1.0 if self._next()[1] == "+" else -1.0
            entries = self._rows.present(name) + sign * self._number()
        self._next()
        return weight * entries

    def prediction(self, n_outputs: int) -> tuple[np.ndarray, Any]:
        """Read the outputs or scores of a leaf, (r, k), and its class, or None."""
        label = None
        if self._take("class"):
            label = self._label()
            self._next()
        outputs = []
        while self._peek()[0] != "end" and not self._take(";"):
            self._take("p", "of")
            self._take("score", "of")
            self._label()
            self._next()
            outputs.append(self._sum())
            self._take(",")
        if len(outputs) != n_outputs:
            read = plural(len(outputs), "output")
            raise ExportError(f"the rules were not written: they were read back as {read}")
        return np.stack(outputs, axis=1), label


def _padded(date: str) -> str:
    """Complete a date for Python before 3.11, which reads three or six digits of a second."""
    head, point, fraction = date.partition(".")
    return f"{head}.{fraction:0<6}" if point else head
