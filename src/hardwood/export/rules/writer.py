"""A model as rules: one for each leaf, in the units of the table.

The text is for people, but has a grammar: names are quoted as in JSON, every condition says whether
a missing value satisfies it, and `hardwood.export.rules.reader` reads it back, which is how it is
checked.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

from hardwood import __version__
from hardwood.export.conditions import Linear, conditions_of, leaf_sums
from hardwood.export.exported import ExportedText, check_path, exported
from hardwood.export.expressions import joined
from hardwood.export.names import comment, quoted
from hardwood.export.plan import Plan, plan_of
from hardwood.export.probes import Probes
from hardwood.export.rules.paths import LeafPath, Numbers, check_size, leaf_paths
from hardwood.export.rules.reader import read_predictions
from hardwood.export.verify import FLOAT_VALUES, Check, measured, verified
from hardwood.model import ObliqueTree
from hardwood.show.text import count_text
from hardwood.table.feature import Level
from hardwood.text.numbers import format_digits, format_quantity, plural
from hardwood.text.terms import exact_sum

_FAR = 1e4  # centers this many standard deviations from 0 are subtracted within a sum


def to_rules(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    digits: int | None = None,
    data: Any = None,
) -> ExportedText:
    r"""Write a model as if/then rules, one per leaf; each row satisfies exactly one per tree.

    Parameters
    ----------
    model
        An ObliqueTree or ObliqueForest.
    path
        File to write; None only returns the text.
    digits
        Significant digits of weights and thresholds. None writes them in full, and the rules then
        predict exactly what the library predicts. With fewer digits, rows near a split may move;
        ``check`` says how many. Dates are then written as dates.
    data
        A table to check the export on. By default, rows are simulated from the schema.

    Returns
    -------
    text
        The rules; ``text.check`` says how they were checked.

    Raises
    ------
    ExportError
        If the rules would repeat too many conditions, as those of a tree that is a thousand splits
        deep; or if the rules, read back from the text, predict differently from the library.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> tree = ObliqueTree.of([[1.0, 0.0]], thresholds=[0.5], values=[1.5, 2.5],
    ...                       feature_names=["a", "b"], target_names="price")
    >>> print(to_rules(tree).split("\n\n", 1)[1])  # doctest: +NORMALIZE_WHITESPACE
    rule 1: leaf 0
      if "a" < 0.5 or missing
      then "price" = 1.5
    <BLANKLINE>
    rule 2: leaf 1
      if "a" >= 0.5
      then "price" = 2.5
    """
    if digits is not None and digits < 1:
        raise ValueError(f"digits must be at least 1, or None for all; got {digits}")
    check_path(path, "model.txt")
    plan = plan_of(model)
    check_size(plan)
    text = _RulesWriter(plan, digits).text()
    return exported(ExportedText(text), _check(Probes.of(plan, data), text, digits), path)


def _check(probes: Probes, text: str, digits: int | None) -> Check:
    probes = probes.thinned(probes.plan.model.n_splits)
    found = read_predictions(probes, text)
    method = "read back from the text"
    if digits is not None:
        return measured(probes, found, target="rules", method=f"{method}, of {digits} digits")
    return verified(probes, found, target="rules", method=method, precision=FLOAT_VALUES)


class _RulesWriter:
    """Writes rules, and collects the numbers whose means the text must list."""

    def __init__(self, plan: Plan, digits: int | None) -> None:
        self.plan, self.digits = plan, digits
        self.names = [quoted(name) for name in plan.schema.names]
        self.averages: set[int] = set()
        self.inequalities: dict[tuple[Linear, bool], str] = {}  # each stands in many rules
        model = plan.model
        self.trees = (model,) if isinstance(model, ObliqueTree) else model.trees

    def text(self) -> str:
        sections = []
        for t in range(len(self.plan.trees)):
            head = f"tree {t + 1}\n\n" if self.plan.is_forest else ""
            sections.append(head + "\n".join(self._rules(t)))
        return self._top() + "\n".join(sections)

    def _top(self) -> str:
        plan = self.plan
        lines = [
            comment(plan.summary, 400),
            f"Exported by hardwood {__version__}. Every row satisfies exactly one rule"
            + (" of each tree." if plan.is_forest else "."),
            "A missing value satisfies a condition only where the condition says so. A category",
            "that was not seen in training counts as missing.",
            *_how_to_combine(plan),
        ]
        if any(feature.origin in ("date", "duration") for feature in plan.schema.features):
            lines.append("Dates are seconds since 1970-01-01 (UTC) unless written as dates.")
        if self.digits is not None:
            lines.append(
                f"Numbers have {plural(self.digits, 'digit')}: rows near a split may move."
            )
        text = "".join(f"# {line}\n" for line in lines)
        if self.averages:
            text += "\nIn sums a missing number counts as its mean:\n"
            for j in sorted(self.averages):
                text += (
                    f"  {self.names[j]} = {format_digits(plan.schema.features[j].center, None)}\n"
                )
        return text + "\n"

    # Paths

    def _rules(self, t: int) -> list[str]:
        planned, tree = self.plan.trees[t], self.trees[t]
        conditions = conditions_of(planned, self.plan.encoding)
        sums = leaf_sums(planned, self.plan.encoding)
        paths = leaf_paths(conditions, planned.children, planned.root, self.plan.schema)
        rules = []
        for i, (leaf, path) in enumerate(paths):
            lines = self._condition_lines(path)
            words = [f"{'if' if k == 0 else 'and'} {line}" for k, line in enumerate(lines)]
            words.append(f"then {self._prediction(tree, leaf, sums)}")
            rules.append("".join([f"rule {i + 1}: leaf {leaf}\n", *(f"  {w}\n" for w in words)]))
        return rules

    def _condition_lines(self, path: LeafPath) -> list[str]:
        if path.never:
            return ["never"]
        lines = [self._number(j, numbers) for j, numbers in sorted(path.numbers.items())]
        lines += [self._levels(j, *allowed) for j, allowed in sorted(path.levels.items())]
        lines += [self._inequality(linear, right) for linear, right in path.sums]
        return [line for line in lines if line]

    def _number(self, j: int, numbers: Numbers) -> str:
        name = self.names[j]
        if not numbers.present:
            return f"{name} is missing"
        low = self._bound(j, numbers.low), "<=" if numbers.low_in else "<"
        high = self._bound(j, numbers.high), "<=" if numbers.high_in else "<"
        if math.isfinite(numbers.low) and math.isfinite(numbers.high):
            words = f"{low[0]} {low[1]} {name} {high[1]} {high[0]}"
        elif math.isfinite(numbers.low):
            words = f"{name} {'>=' if numbers.low_in else '>'} {low[0]}"
        elif math.isfinite(numbers.high):
            words = f"{name} {high[1]} {high[0]}"
        else:
            return "" if numbers.missing else f"{name} is not missing"
        return f"{words} or missing" if numbers.missing else words

    def _bound(self, j: int, value: float) -> str:
        schema = self.plan.schema
        spread = float(schema.column_spread[schema.first_column[j]])
        # Rounded to the nearest on both sides, so that both are the same number.
        return format_quantity(value, schema.features[j].origin, self.digits, spread=spread)

    def _levels(self, j: int, allowed: set[int], missing: bool) -> str:
        levels = self.plan.schema.features[j].levels
        yes = [_label(level) for i, level in enumerate(levels) if i in allowed]
        no = [_label(level) for i, level in enumerate(levels) if i not in allowed]
        (yes if missing else no).append("missing")
        if not no:
            return ""
        if len(yes) <= len(no):
            return f"{self.names[j]} is one of {', '.join(yes)}"
        return f"{self.names[j]} is none of {', '.join(no)}"

    # Sums

    def _inequality(self, linear: Linear, right: bool) -> str:
        if (linear, right) not in self.inequalities:
            self.inequalities[linear, right] = self._written(linear, right)
        return self.inequalities[linear, right]

    def _written(self, linear: Linear, right: bool) -> str:
        terms = self._terms(linear)
        sign = math.copysign(1.0, terms[0].weight)  # the first, the most important, is positive
        total = exact_sum([*(sign * term.at_center for term in terms), -sign * linear.constant])
        spread = math.hypot(*(term.importance for term in terms))
        threshold = format_digits(total, self.digits, spread=spread)
        relation = {True: (">=", "<="), False: ("<", ">")}[right][sign < 0]
        return f"{joined([term.text(sign) for term in terms])} {relation} {threshold}"

    def _terms(self, linear: Linear) -> list[_Term]:
        """Terms of a sum, the most important first."""
        schema, terms = self.plan.schema, []
        for j, weight, center in linear.numbers:
            self.averages.add(j)
            spread = float(schema.column_spread[schema.first_column[j]])
            zero = center if abs(center) > _FAR * spread else 0.0
            rounded = self._rounded(weight)
            name = _shifted(self.names[j], zero)
            terms.append(_Term(rounded, name, abs(weight) * spread, rounded * (center - zero)))
        for j, weight in linear.flags:
            terms.append(self._indicator(j, "missing", weight, int(schema.flag_column[j])))
        for item in linear.levels:
            j, first = item.feature, int(schema.first_column[item.feature])
            for i, (level, weight) in enumerate(
                zip(schema.features[j].levels, item.weights, strict=True)
            ):
                terms += [self._indicator(j, _label(level), weight, first + i)] if weight else []
            if item.missing:
                flag = int(schema.flag_column[j])
                terms.append(self._indicator(j, "missing", item.missing, flag))
        return sorted(terms, key=lambda term: -term.importance)

    def _indicator(self, j: int, label: str, weight: float, column: int) -> _Term:
        importance = abs(weight) * float(self.plan.schema.column_spread[column])
        return _Term(self._rounded(weight), f"({self.names[j]} is {label})", importance, 0.0)

    def _rounded(self, weight: float) -> float:
        rounded = float(format_digits(weight, self.digits))
        return rounded if math.isfinite(rounded) else weight

    # Leaves

    def _prediction(self, tree: ObliqueTree, leaf: int, sums: list[list[Linear]]) -> str:
        """Write the prediction of a leaf; ``sums`` are the scores of linear leaves."""
        counts = tree.counts
        n = "" if counts is None else f"; n = {count_text(float(counts[tree.n_splits + leaf]))}"
        if sums:
            outputs = [self._formula(linear) for linear in sums[leaf]]
            what = "" if tree.task == "regression" and tree.link == "identity" else "score of "
        else:
            outputs = [format_digits(value, self.digits) for value in tree.values[leaf].tolist()]
            what = "p of " if tree.task != "regression" else ""
        names = self._output_names(tree)
        parts = [f"{what}{name} = {text}" for name, text in zip(names, outputs, strict=True)]
        if tree.leaf_weights is None and tree.classes is not None:
            position = int(tree.class_positions(tree.values[leaf]))
            parts.insert(0, f"class {_label(tree.classes[position])}")
        return ", ".join(parts) + n

    def _output_names(self, tree: ObliqueTree) -> list[str]:
        if tree.classes is not None:
            return [_label(label) for label in tree.classes]
        if self.plan.model.classes is not None:  # scores of classes, to be added
            return [_label(label) for label in self.plan.model.classes]
        return [quoted(name) for name in self.plan.output_names]

    def _formula(self, linear: Linear) -> str:
        terms = self._terms(linear)
        constant = exact_sum([linear.constant, *(-term.at_center for term in terms)])
        spread = math.hypot(*(term.importance for term in terms)) if terms else math.inf
        texts = [term.text(1.0) for term in terms]
        if constant or not terms:
            texts.insert(0, format_digits(constant, self.digits, spread=spread))
        return joined(texts)


@dataclass(frozen=True)
class _Term:
    """A term of a sum, its standard deviation, and its value where a number is at its center."""

    weight: float
    name: str
    importance: float
    at_center: float

    def text(self, sign: float) -> str:
        return f"{format_digits(sign * self.weight, None)}*{self.name}"


def _how_to_combine(plan: Plan) -> list[str]:
    lines = []
    links = {tree.link for tree in plan.trees if tree.leaf_weights is not None} - {"identity"}
    if links:
        lines.append(f"Apply the {' or '.join(sorted(links))} function to the scores of a leaf.")
    if not plan.is_forest:
        return lines
    if plan.trees[0].vote != "none":
        return [*lines, "The trees vote for their predictions; the output is the share of votes."]
    if plan.divisor > 1:
        return [*lines, "The output is the mean of the trees' outputs."]
    link = "" if plan.link == "identity" else f"the {plan.link} of "
    return [*lines, f"The output is {link}the sum of the trees' outputs."]


def _shifted(name: str, zero: float) -> str:
    if zero == 0:
        return name
    return f"({name} {'-' if zero > 0 else '+'} {format_digits(abs(zero), None)})"


def _label(level: Level) -> str:
    if isinstance(level, str):
        return quoted(level)
    if isinstance(level, bool):
        return "true" if level else "false"
    return repr(level)
