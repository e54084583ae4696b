"""Splits as readable conditions: ``0.8*petal_length - 1.1*sepal_width >= 2.3``.

The rules keep a condition from being misread:

- A condition always says when a row goes **right**. The most important term is positive; if that
  takes a change of sign, ``>=`` becomes ``<=``.
- The threshold is computed *after* weights are rounded and small terms are left out, so that the
  condition is exact for the average row. Its number of digits follows from the spread of the terms:
  ``time >= 1700000000.25`` keeps its digits.
- Terms that are left out are counted, and set to their center (numbers) or to 0 (indicators).
- A missing number counts as its center, the training mean. A split on one number that sends missing
  values elsewhere says so: ``age >= 30 or missing``, ``age >= 30 and not missing``.
- Dates and durations are written as such, ``joined >= 2019-01-22``; next to other terms, in units
  of time: ``0.87*(joined - 2019-01-22 in days) + 2*age >= 3``. ``digits=None`` writes seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hardwood.text.numbers import Digits, format_digits, format_quantity
from hardwood.text.terms import (
    MAX_TERMS,
    check_options,
    exact_sum,
    label_text,
    left_out_text,
    name_text,
    write_terms,
)

if TYPE_CHECKING:
    from hardwood.model.views import Branch, Split, Term

    Label = str | int | float | bool
    Option = tuple[str, Label | None]


@dataclass(frozen=True)
class Axis:
    """The left side of a condition as a number: a score s is at ``threshold + factor * s``.

    ``origin`` is what the number represents, see `hardwood.table.Feature`.
    """

    threshold: float = 0.0
    factor: float = 1.0
    origin: str = "number"


@dataclass(frozen=True)
class Phrase:
    """The parts of a condition: signed terms, the number left out, relation and right side.

    ``axis`` has the units of the left side, and the right side as a number. A condition without a
    relation compares nothing but the score, with 0.
    """

    terms: tuple[str, ...]
    n_left_out: int = 0
    relation: str = ""
    threshold: str = ""
    axis: Axis = Axis()

    def line(self) -> str:
        """Return the condition as one line."""
        words = [" ".join(self.terms)]
        if self.n_left_out:
            words.append(left_out_text(self.n_left_out))
        if self.relation:
            words.append(f"{self.relation} {self.threshold}")
        return " ".join(words)


def condition(
    split: Split | Branch, *, max_terms: int | None = MAX_TERMS, digits: Digits = "auto"
) -> str:
    """Return the condition under which a row goes right at ``split``.

    Parameters
    ----------
    split
        The split.
    max_terms
        Number of terms to show, the most important first; ``None`` shows all.
    digits
        Significant digits of numbers; "auto": all of short numbers, three of others. ``None``
        writes numbers in full, and dates as seconds.
    """
    return phrase(split, max_terms=max_terms, digits=digits).line()


def phrase(split: Split | Branch, *, max_terms: int | None, digits: Digits) -> Phrase:
    """Return the condition of a split in parts; see :func:`condition`."""
    check_options(max_terms, digits)
    terms = split.terms
    if not terms:
        return Phrase((_certainty(split.bias >= 0),))
    if len({term.feature for term in terms}) == 1 and all(term.kind != "number" for term in terms):
        return Phrase((_membership(split, max_terms),))
    if sorted((term.feature, term.kind) for term in terms) == [
        (terms[0].feature, "missing"),
        (terms[0].feature, "number"),
    ]:
        return _with_missing(split, digits)
    return _inequality(split, terms, max_terms, digits)


def _inequality(
    split: Split | Branch, terms: tuple[Term, ...], max_terms: int | None, digits: Digits
) -> Phrase:
    if len(terms) == 1:
        return _bound(split, terms[0], digits)
    shown = terms[:max_terms]
    sign = math.copysign(1.0, shown[0].weight)
    written = write_terms(split.tree.schema, shown, digits, sign=sign)
    right_side = exact_sum([*(term.at_center for term in written), -sign * split.bias])
    spread = math.hypot(*(term.importance for term in shown))
    return Phrase(
        terms=(written[0].text, *map(str, written[1:])),
        n_left_out=len(terms) - len(shown),
        relation=_relation(shown[0]),
        threshold=format_digits(right_side, digits, spread=spread),
        axis=Axis(right_side, sign),
    )


def _bound(split: Split | Branch, term: Term, digits: Digits) -> Phrase:
    """Write w x >= t as x >= t / w, which is most readable."""
    threshold = exact_sum([term.center, -split.bias / term.weight])
    spread = float(split.tree.schema.column_spread[term.column])
    origin = split.tree.schema.features[term.feature].origin
    text = format_quantity(
        threshold, origin, digits, spread=spread, toward=math.copysign(1, term.weight)
    )
    axis = Axis(threshold, 1.0 / term.weight, origin)
    return Phrase((name_text(term.name),), 0, _relation(term), text, axis)


def _relation(first: Term) -> str:
    return ">=" if first.weight > 0 else "<="


def _with_missing(split: Split | Branch, digits: Digits) -> Phrase:
    """Return the condition of a split on one number and its missing indicator."""
    number_term, flag = sorted(split.terms, key=lambda term: term.kind == "missing")
    words = "or missing" if split.bias + flag.weight >= 0 else "and not missing"
    bound = _bound(split, number_term, digits)
    return replace(bound, threshold=f"{bound.threshold} {words}")


def _membership(split: Split | Branch, max_levels: int | None) -> str:
    """Return the condition of a split on the levels and the missing indicator of one feature."""
    feature = split.tree.schema.features[split.terms[0].feature]
    weights: dict[Option, float] = {(term.kind, term.level): term.weight for term in split.terms}
    options: list[Option] = [("level", level) for level in feature.levels] or [("level", None)]
    options.append(("missing", None))
    goes_right = [split.bias + weights.get(option, 0.0) >= 0 for option in options]
    if len(set(goes_right)) == 1:
        return _certainty(goes_right[0])
    name = name_text(feature.name)
    if not feature.levels:  # a numeric feature of which only the missing indicator is used
        return f"{name} is {'missing' if goes_right[-1] else 'not missing'}"
    yes, no = (
        [
            "missing" if kind == "missing" else label_text(level)
            for (kind, level), right in zip(options, goes_right, strict=True)
            if right is side
        ]
        for side in (True, False)
    )
    # The shorter list is more readable, and "not" includes every other value, missing or not.
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
    # "missing" matters more than any one level: it is the last item, and always shown.
    kept = items[: limit - 1] + items[-1:] if items[-1] == "missing" else items[:limit]
    return f"{', '.join(kept)} (+ {len(items) - len(kept)} more left out)"


def _certainty(always: bool) -> str:
    return "always" if always else "never"
