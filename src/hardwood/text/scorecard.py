"""Linear leaves as scorecards: a line for every number and every set of levels.

The largest effect comes first. Levels of one feature with the same weight are one line, as in
``+ (0.8 if color is one of red, blue)``. A single sum has its weights per standard deviation, too;
several sums are the columns of a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardwood.text.numbers import Digits, format_digits
from hardwood.text.terms import WrittenTerm, exact_sum, label_text, measure_of, name_text, rounded

if TYPE_CHECKING:
    from hardwood.model.views import Term
    from hardwood.table import Schema

_MOST_COLUMNS = 8  # of a table
_INDENT = "    "
_GAP = "  "
_EFFECT_DIGITS = 3
_EFFECTS = "per standard deviation"


@dataclass(frozen=True)
class Entry:
    """What a number or a condition adds to one or several sums.

    Attributes
    ----------
    words
        The number in the units of the text, or the condition ``color is one of red, blue``.
    is_number
        Whether the weights are multiplied by it.
    weights
        (k,) of the sums, rounded.
    center
        Its value for the average row.
    deviation
        Its standard deviation.
    has_effects
        Whether its weights are shown per standard deviation: it is a number with a known one.
    """

    words: str
    is_number: bool
    weights: tuple[float, ...]
    center: float
    deviation: float
    has_effects: bool = False

    @property
    def importance(self) -> float:
        """How much the sums change over one standard deviation."""
        return self.deviation * math.hypot(*self.weights)

    def term(self, digits: Digits, sum_: int = 0) -> WrittenTerm:
        """Return it as the term of a sum."""
        weight = self.weights[sum_]
        size = format_digits(abs(weight), digits)
        if not self.is_number:
            text = f"({size} if {self.words})"
        else:
            text = self.words if size == "1" else f"{size}*{self.words}"
        effect = weight * self.deviation if self.has_effects else None
        return WrittenTerm("-" if weight < 0 else "+", text, weight * self.center, effect)


def grouped_entries(
    schema: Schema, sums: Sequence[Sequence[Term]], digits: Digits
) -> list[list[Entry]]:
    """Return the entries of sums, those of one feature's levels together, the largest first."""
    weights: dict[int, list[float]] = {}
    terms: dict[int, Term] = {}
    for i, of_sum in enumerate(sums):
        for term in of_sum:
            terms[term.column] = term
            weights.setdefault(term.column, [0.0] * len(sums))[i] = term.weight
    groups: dict[tuple[str, int], list[int]] = {}
    for j in sorted(terms):
        feature = terms[j].feature
        is_level = bool(schema.features[feature].levels)
        groups.setdefault(("levels", feature) if is_level else ("column", j), []).append(j)
    found = [
        _level_entries(schema, [(terms[j], weights[j]) for j in columns], digits)
        if kind == "levels"
        else [_column_entry(schema, terms[columns[0]], weights[columns[0]], digits)]
        for (kind, _), columns in groups.items()
    ]
    return sorted(found, key=lambda group: -math.hypot(*(entry.importance for entry in group)))


def _column_entry(schema: Schema, term: Term, weights: list[float], digits: Digits) -> Entry:
    measure = measure_of(schema, term, digits)
    deviation = float(schema.column_spread[term.column]) / measure.unit
    shown = tuple(rounded(weight * measure.unit, digits) for weight in weights)
    if term.kind != "number":
        return Entry(f"{measure.name} is missing", False, shown, 0.0, deviation)
    center = (term.center - measure.zero) / measure.unit
    is_known = bool(schema.features[term.feature].spread)
    return Entry(measure.name, True, shown, center, deviation, is_known)


def _level_entries(
    schema: Schema, terms: Sequence[tuple[Term, list[float]]], digits: Digits
) -> list[Entry]:
    """Return the entries of the levels of one feature, a single one for equal weights."""
    alike: dict[tuple[float, ...], list[Term]] = {}
    for term, exact in terms:
        alike.setdefault(tuple(rounded(weight, digits) for weight in exact), []).append(term)
    name = name_text(terms[0][0].name)
    entries = []
    for weights, levels in alike.items():
        labels = ["missing" if t.kind == "missing" else label_text(t.level) for t in levels]
        words = labels[0] if len(labels) == 1 else f"one of {', '.join(labels)}"
        deviation = math.hypot(*(float(schema.column_spread[term.column]) for term in levels))
        entries.append(Entry(f"{name} is {words}", False, weights, 0.0, deviation))
    return sorted(entries, key=lambda entry: -entry.importance)


def constant_text(value: float, entries: Sequence[Entry], digits: Digits, sum_: int = 0) -> str:
    """Write the constant of a sum, given the value of the sum for the average row."""
    constant = exact_sum([value, *(-entry.weights[sum_] * entry.center for entry in entries)])
    spread = math.hypot(*(entry.weights[sum_] * entry.deviation for entry in entries))
    return format_digits(constant, digits, spread=spread if spread > 0 else math.inf)


# Lines


def sum_lines(head: str, constant: str, terms: Sequence[WrittenTerm], end: str) -> list[str]:
    """Write a sum with one term per line, and the effects of numbers beside their weights."""
    texts = ["  " + constant, *map(str, terms)]
    width = max(len(text) for text in [head.removeprefix(_INDENT), *texts])
    effects = ["", *(_effect_text(term.effect) for term in terms)]
    if not any(effects):
        return [head, *(_INDENT + text for text in texts), *([end] if end else [])]
    lines = [f"{head:<{width + len(_INDENT)}}{_GAP}{_EFFECTS}"]
    for text, effect in zip(texts, effects, strict=True):
        line = f"{_INDENT}{text:<{width}}{_GAP}{effect:>{len(_EFFECTS)}}"
        lines.append(line.rstrip())
    return [*lines, end] if end else lines


def _effect_text(effect: float | None) -> str:
    if effect is None:
        return ""
    return f"{'-' if effect < 0 else '+'}{format_digits(abs(effect), _EFFECT_DIGITS)}"


def table_lines(
    head: str,
    names: Sequence[str],
    values: Sequence[float],
    entries: Sequence[Entry],
    digits: Digits,
) -> list[str]:
    """Write several sums as a table: a column for each, a row for the constant and each entry."""
    lines: list[str] = []
    for first in range(0, len(names), _MOST_COLUMNS):
        columns = range(first, min(first + _MOST_COLUMNS, len(names)))
        rows = [[head, *(names[i] for i in columns)]]
        rows.append(["constant", *(constant_text(values[i], entries, digits, i) for i in columns)])
        for entry in entries:
            cells = [_weight_text(entry.weights[i], digits) for i in columns]
            rows.append([entry.words, *cells])
        lines += _aligned(rows)
    return lines


def _weight_text(weight: float, digits: Digits) -> str:
    return format_digits(weight, digits) if weight else ""


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append(_GAP.join([f"{first:<{widths[0]}}", *cells]).rstrip())
    return lines
