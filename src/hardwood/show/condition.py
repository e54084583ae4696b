"""A split as a person reads it: ``0.8*petal_length - 1.1*sepal_width >= 2.3``.

The words are chosen so that they do not mislead:

- A condition always says when a row goes **right**. It is sign-normalised: its most important term
  is positive, and ``>=`` becomes ``<=`` where that takes a change of sign.
- The threshold is computed *after* the weights were rounded and the small terms left out, so that
  the shown condition is exact for the average row, and is written with as many digits as the spread
  of the terms asks for: ``time >= 1700000000.25`` keeps its digits.
- Terms left out are counted, and stand at their centre (numbers) or absent (levels, flags).
- A missing number stands at its centre, its training mean.
- Dates and durations read as such, ``joined >= 2019-01-22``, and count in days (or hours, minutes,
  seconds, by their spread) where they are one term of several:
  ``0.87*(joined - 2019-01-22 in days) + 2*age >= 3``. ``digits=None`` writes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardwood.show.numbers import date_text, number, quantity, time_unit

if TYPE_CHECKING:
    from hardwood.model.split import Split, Term

    Label = str | int | float | bool
    Option = tuple[str, Label | None]

_NOISE = 1e-14  # a sum this small beside its terms is what rounding left of zero
_NEEDS_QUOTES = ("*", "+", "<", ">", "=", " - ", " if ", " is ", ",", '"')


@dataclass(frozen=True)
class Phrase:
    """The parts of a condition: signed terms, how many were left out, relation and right side."""

    terms: tuple[str, ...]
    n_left_out: int = 0
    relation: str = ""
    threshold: str = ""

    def line(self) -> str:
        """Put the condition on one line."""
        words = [" ".join(self.terms)]
        if self.n_left_out:
            words.append(self.left_out())
        if self.relation:
            words.append(f"{self.relation} {self.threshold}")
        return " ".join(words)

    def left_out(self) -> str:
        """Say how many terms are not shown."""
        return f"(+ {self.n_left_out} smaller term{'s' if self.n_left_out > 1 else ''} left out)"


def condition(split: Split, *, max_terms: int | None = 4, digits: int | None = 3) -> str:
    """Write when a row goes right at ``split``.

    Parameters
    ----------
    split
        The split.
    max_terms
        How many terms to show, the most important first; ``None`` shows all.
    digits
        Significant digits of weights; ``None`` writes every number in full, dates in seconds.
    """
    return phrase(split, max_terms=max_terms, digits=digits).line()


def phrase(split: Split, *, max_terms: int | None, digits: int | None) -> Phrase:
    """Find the words for a split; see :func:`condition`."""
    if max_terms is not None and max_terms < 1:
        raise ValueError(f"max_terms must be at least 1, or None for all; got {max_terms}")
    if digits is not None and digits < 1:
        raise ValueError(f"digits must be at least 1, or None for all; got {digits}")
    terms = split.terms
    if not terms:
        return Phrase((_certainty(split.bias >= 0),))
    if len({term.feature for term in terms}) == 1 and all(term.kind != "number" for term in terms):
        return Phrase((_membership(split, max_terms),))
    return _inequality(split, terms, max_terms, digits)


def _inequality(
    split: Split, terms: tuple[Term, ...], max_terms: int | None, digits: int | None
) -> Phrase:
    shown = terms[:max_terms]
    sign = math.copysign(1.0, shown[0].weight)
    relation = ">=" if sign > 0 else "<="
    if len(terms) == 1:  # w x >= t reads best as x >= t / w
        term = terms[0]
        threshold = _sum([term.center, -split.bias / term.weight])
        spread = float(split.tree.schema.column_spread[term.column])
        origin = split.tree.schema.features[term.feature].origin
        right_side = quantity(threshold, origin, digits, spread=spread, toward=sign)
        return Phrase((name_text(term.name),), 0, relation, right_side)
    measures = [_measure(split, term, digits) for term in shown]
    weights = [
        _rounded(sign * term.weight * measure.unit, digits)
        for term, measure in zip(shown, measures, strict=True)
    ]
    centers = [
        weight * ((term.center - measure.zero) / measure.unit)
        for weight, term, measure in zip(weights, shown, measures, strict=True)
    ]
    spread = math.hypot(*(term.importance for term in shown))
    return Phrase(
        terms=tuple(
            _term(weight, term, measure.name, first=i == 0, digits=digits)
            for i, (weight, term, measure) in enumerate(zip(weights, shown, measures, strict=True))
        ),
        n_left_out=len(terms) - len(shown),
        relation=relation,
        threshold=number(_sum([*centers, -sign * split.bias]), digits, spread=spread),
    )


@dataclass(frozen=True)
class _Measure:
    """How a term of several is written: as ``name``, which is ``(x - zero) / unit``."""

    name: str
    zero: float = 0.0
    unit: float = 1.0


def _measure(split: Split, term: Term, digits: int | None) -> _Measure:
    name = name_text(term.name)
    origin = split.tree.schema.features[term.feature].origin
    if term.kind != "number" or digits is None or origin not in ("date", "duration"):
        return _Measure(name)
    unit_name, unit = time_unit(float(split.tree.schema.column_spread[term.column]))
    if origin == "duration":
        return _Measure(f"({name} in {unit_name}s)", unit=unit)
    zero = round(term.center / unit) * unit
    date = date_text(zero)
    if date is None:
        return _Measure(name)
    return _Measure(f"({name} - {date} in {unit_name}s)", zero, unit)


def _sum(items: list[float]) -> float:
    try:
        total = math.fsum(items)
    except (OverflowError, ValueError):  # beyond float64, or infinity less infinity
        return float(sum(items))
    return 0.0 if abs(total) < _NOISE * max(map(abs, items)) else total


def _term(weight: float, term: Term, name: str, *, first: bool, digits: int | None) -> str:
    size = number(abs(weight), digits)
    if term.kind == "number":
        text = name if size == "1" else f"{size}*{name}"
    else:
        what = "missing" if term.kind == "missing" else label_text(term.level)
        text = f"({size} if {name} is {what})"
    if first:
        return text
    return f"{'-' if weight < 0 else '+'} {text}"


def _membership(split: Split, max_levels: int | None) -> str:
    """Words for a split on the levels and the missing flag of one feature alone."""
    feature = split.tree.schema.features[split.terms[0].feature]
    weights: dict[Option, float] = {(term.kind, term.level): term.weight for term in split.terms}
    options: list[Option] = [("level", level) for level in feature.levels] or [("level", None)]
    options.append(("missing", None))
    goes_right = [split.bias + weights.get(option, 0.0) >= 0 for option in options]
    if len(set(goes_right)) == 1:
        return _certainty(goes_right[0])
    name = name_text(feature.name)
    if not feature.levels:  # a number, of which only being missing counts
        return f"{name} is {'missing' if goes_right[-1] else 'not missing'}"
    yes, no = (
        [
            "missing" if kind == "missing" else label_text(level)
            for (kind, level), right in zip(options, goes_right, strict=True)
            if right is side
        ]
        for side in (True, False)
    )
    # The shorter list reads better, and "not" speaks of every other value, missing or not.
    if len(yes) <= len(no):
        return (
            f"{name} is {yes[0]}" if len(yes) == 1 else f"{name} is one of {_list(yes, max_levels)}"
        )
    return (
        f"{name} is not {no[0]}" if len(no) == 1 else f"{name} is none of {_list(no, max_levels)}"
    )


def _list(items: list[str], limit: int | None) -> str:
    if limit is None or len(items) <= limit:
        return ", ".join(items)
    # Whether "missing" is in the list matters more than any one level: it is last, and kept.
    kept = items[: limit - 1] + items[-1:] if items[-1] == "missing" else items[:limit]
    return f"{', '.join(kept)} (+ {len(items) - len(kept)} more left out)"


def _certainty(always: bool) -> str:
    return "always" if always else "never"


def _rounded(value: float, digits: int | None) -> float:
    rounded = float(number(value, digits))
    return rounded if math.isfinite(rounded) else value  # 1.797e308 rounds up to infinity


def name_text(name: str) -> str:
    """Write a feature name on one line; in quotes where it could be read as part of a formula."""
    text = _printable(name)
    unclear = not text or text != text.strip() or any(mark in text for mark in _NEEDS_QUOTES)
    return f'"{text}"' if unclear else text


def label_text(label: Label | None) -> str:
    """Write a level or class on one line; text that could mislead is put in quotes."""
    if not isinstance(label, str):
        return str(label)
    text = _printable(label)
    unclear = not text or text != text.strip() or "," in text or text == "missing"
    return f'"{text}"' if unclear else text


def _printable(text: str) -> str:
    return "".join(_escaped(text))


def _escaped(text: str) -> Iterable[str]:
    for character in text:
        yield character if character.isprintable() else character.encode("unicode_escape").decode()
