"""The terms of a weighted sum as text: ``0.8*petal_length``, ``(0.4 if species is Adelie)``.

Next to other terms, dates and durations are measured in days (or hours, minutes or seconds,
depending on their spread): ``0.87*(joined - 2019-01-22 in days)``. ``digits=None`` writes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardwood.text.numbers import (
    Digits,
    format_date,
    format_digits,
    n_digits,
    plural,
    printable,
    time_unit,
)

if TYPE_CHECKING:
    from hardwood.model.views import Term
    from hardwood.table import Schema

    Label = str | int | float | bool

MAX_TERMS = 12
"""Terms of a split that are shown by default, the most important first."""

_NOISE = 1e-14  # relative to the largest term of a sum, what is at most a rounding error
_MOST_DIGITS = 12  # of a sum that is taken to be a short number
_NEEDS_QUOTES = ("*", "+", "<", ">", "=", " - ", " if ", " is ", ",", '"')


@dataclass(frozen=True)
class WrittenTerm:
    """One term of a sum.

    Attributes
    ----------
    sign
        ``+`` or ``-``.
    text
        The rest.
    at_center
        Its value for the average row.
    effect
        The change of the sum over one standard deviation of a number; None if unknown.
    """

    sign: str
    text: str
    at_center: float
    effect: float | None = None

    def __str__(self) -> str:
        return f"{self.sign} {self.text}"


def write_terms(
    schema: Schema, terms: Sequence[Term], digits: Digits, *, sign: float = 1.0
) -> list[WrittenTerm]:
    """Format terms, all multiplied by ``sign``, with weights of ``digits`` significant digits."""
    written = []
    for term in terms:
        measure = measure_of(schema, term, digits)
        weight = rounded(sign * term.weight * measure.unit, digits)
        at_center = weight * ((term.center - measure.zero) / measure.unit)
        text = _text(abs(weight), term, measure.name, digits)
        written.append(WrittenTerm("-" if weight < 0 else "+", text, at_center))
    return written


def check_options(max_terms: int | None, digits: Digits) -> None:
    """Check that both options are at least 1."""
    for name, value in (("max_terms", max_terms), ("digits", None if digits == "auto" else digits)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, or None for all; got {value}")


def left_out_text(n: int) -> str:
    """Return how many terms are not shown."""
    return f"(+ {plural(n, 'smaller term')} left out)"


def exact_sum(items: list[float]) -> float:
    """Return the exact sum; if it is a short number but for rounding errors, that number."""
    try:
        total = math.fsum(items)
    except (OverflowError, ValueError):  # beyond float64, or infinity minus infinity
        return float(sum(items))
    noise = _NOISE * max(map(abs, items), default=0.0)
    if abs(total) < noise:
        return 0.0
    if noise == 0 or not math.isfinite(total):
        return total
    short = round(total, math.floor(-math.log10(noise)))
    return short if n_digits(short) <= _MOST_DIGITS else total


@dataclass(frozen=True)
class Measure:
    """How a term next to others is written: as ``name``, which means ``(x - zero) / unit``."""

    name: str
    zero: float = 0.0
    unit: float = 1.0


def measure_of(schema: Schema, term: Term, digits: Digits) -> Measure:
    """Return how a term next to others is written."""
    name = name_text(term.name)
    origin = schema.features[term.feature].origin
    if term.kind != "number" or digits is None or origin not in ("date", "duration"):
        return Measure(name)
    unit_name, unit = time_unit(float(schema.column_spread[term.column]))
    if origin == "duration":
        return Measure(f"({name} in {unit_name}s)", unit=unit)
    zero = round(term.center / unit) * unit
    date = format_date(zero)
    if date is None:
        return Measure(name)
    return Measure(f"({name} - {date} in {unit_name}s)", zero, unit)


def _text(size: float, term: Term, name: str, digits: Digits) -> str:
    words = format_digits(size, digits)
    if term.kind == "number":
        return name if words == "1" else f"{words}*{name}"
    what = "missing" if term.kind == "missing" else label_text(term.level)
    return f"({words} if {name} is {what})"


def rounded(value: float, digits: Digits) -> float:
    """Return a number as it is written."""
    written = float(format_digits(value, digits))
    return written if math.isfinite(written) else value  # 1.797e308 rounds up to infinity


def name_text(name: str) -> str:
    """Return a feature name as one line, in quotes if it could be read as part of a formula."""
    text = printable(name)
    unclear = not text or text != text.strip() or any(mark in text for mark in _NEEDS_QUOTES)
    return f'"{text}"' if unclear else text


def label_text(label: Label | None) -> str:
    """Return a level or class as one line, in quotes if it could be misread."""
    if not isinstance(label, str):
        return str(label)
    text = printable(label)
    unclear = not text or text != text.strip() or "," in text or text == "missing"
    return f'"{text}"' if unclear else text
