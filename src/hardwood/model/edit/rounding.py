"""Round a split to short numbers, so that the printed split is exactly the model.

The first term has the weight 1 in the units of the printed split, ``length - 0.5*width >= 2.3``, so
that there is one number less to read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hardwood.model.edit.separation import Gap, Separation, Sides
from hardwood.model.views import Term, terms_of
from hardwood.text.numbers import DATE_STEPS, n_digits, time_unit
from hardwood.text.terms import Measure, exact_sum, measure_of

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree

_MAX_DIGITS = 15  # digits that every float64 preserves
_MORE_TRIES = 2  # tries with more digits than needed: the threshold may become shorter
_SMALLEST_EXPONENT = -300


@dataclass(frozen=True, eq=False)
class ShortSplit:
    """A split with short numbers.

    Attributes
    ----------
    weights, bias
        (c,) weights and the bias, in raw units.
    moved
        (n,) bool, the rows at the split that it may send to the other side.
    digits
        Significant digits of its longest number; 0 without numbers.
    n_digits
        Significant digits of all its numbers together.
    """

    weights: np.ndarray
    bias: float
    moved: np.ndarray
    digits: int
    n_digits: int


def short_split(
    tree: ObliqueTree, separation: Separation, sides: Sides, *, most_moved: float, mean: float
) -> ShortSplit | None:
    """Round the terms of a split to short numbers.

    Parameters
    ----------
    tree
        The tree.
    separation
        The terms, and their columns for the rows at the split.
    sides
        The sides of these rows.
    most_moved
        Maximum weight of rows that may change sides.
    mean
        Mean original score of these rows, in the units of the terms: the threshold stays close to
        the original one.

    Returns
    -------
    split
        None if no rounded numbers separate the rows.
    """
    raw = np.zeros(tree.schema.n_columns)
    raw[separation.used] = separation.weights / tree.schema.column_scale[separation.used]
    terms = terms_of(tree, raw) if np.isfinite(raw).all() else ()
    if not terms:
        return None
    if len({term.feature for term in terms}) == 1:
        if all(term.kind != "number" for term in terms):
            return _membership(tree, separation, sides, most_moved, mean)
        if len(terms) > 1:
            return _with_missing(tree, terms, separation, sides, most_moved, mean)
    return _Rounding(tree, terms, separation, sides, most_moved, mean).shortest()


class _Rounding:
    """The terms of a split in the order and the units of the printed split."""

    def __init__(
        self,
        tree: ObliqueTree,
        terms: tuple[Term, ...],
        separation: Separation,
        sides: Sides,
        most_moved: float,
        mean: float,
    ) -> None:
        self.schema, self.terms, self.sides, self.most_moved = tree.schema, terms, sides, most_moved
        self.columns = [term.column for term in terms]
        self.values = separation.values[:, np.searchsorted(separation.used, self.columns)]  # (n, t)
        self.norms = np.linalg.norm(self.values, axis=1)
        # A single term is printed without its weight.
        measures = [measure_of(self.schema, term, digits=1) for term in terms]
        measures = measures if len(terms) > 1 else [Measure(terms[0].name)]
        self.units = np.array([measure.unit for measure in measures])
        self.factors = self.schema.column_scale[self.columns] / self.units  # of encoded columns
        pairs = zip(terms, measures, strict=True)
        self.centers = [(term.center - measure.zero) / measure.unit for term, measure in pairs]
        shown = np.array([term.weight for term in terms]) * self.units
        self.shown = shown / abs(shown[0])  # (t,) weights in the units of the printed split
        spread = self.schema.column_spread[self.columns] / self.units
        with np.errstate(divide="ignore", invalid="ignore"):
            self.limits = (
                spread[0] / spread
            )  # limits that keep the first term the most important one
        self.mean = mean / abs(shown[0])
        self.share = sides.weight / sides.weight.sum()

    def shortest(self) -> ShortSplit | None:
        """Try 1, 2, 3, ... digits for all weights, then fewer for each, the last terms first."""
        best: ShortSplit | None = None
        weights: list[float] = []
        for d in range(1, _MAX_DIGITS + 1):
            tried = [self.rounded(i, d) for i in range(len(self.terms))]
            found = self.written(tried, self.scores(tried))
            if _is_shorter(found, best):
                best, weights, digits = found, tried, d
            if weights and d >= digits + _MORE_TRIES:
                break
        scores = self.scores(weights) if weights else None
        for i in range(len(weights) - 1, 0, -1):
            for d in range(1, n_digits(weights[i])):
                weight = self.rounded(i, d)
                tried = [*weights[:i], weight, *weights[i + 1 :]]
                change = self.factors[i] * (weight - weights[i])
                changed = scores + change * self.values[:, i]
                found = self.written(tried, changed)
                if _is_shorter(found, best):
                    best, weights, scores = found, tried, changed
                    break
        return best

    def rounded(self, i: int, digits: int) -> float:
        """Round a weight; toward zero if it would exceed that of the first term."""
        weight = float(self.shown[i])
        rounded = float(f"{weight:.{digits - 1}e}")
        if not abs(rounded) > self.limits[i]:
            return rounded
        exponent = math.floor(math.log10(abs(weight))) - digits + 1
        whole = math.floor(abs(weight) / float(f"1e{exponent}"))
        return math.copysign(float(f"{whole}e{exponent}"), weight)

    def scores(self, shown: Sequence[float]) -> np.ndarray:
        """Return the scores of the rows without the bias, (n,), from rounded weights."""
        scores: np.ndarray = self.values @ (self.factors * shown)
        return scores

    def written(self, shown: Sequence[float], scores: np.ndarray) -> ShortSplit | None:
        """Choose the threshold for weights; None if they do not separate the rows."""
        doubt = self.sides.doubt(self.factors * shown, self.norms)
        gap = self.sides.gap(scores, doubt)
        if not gap.moved <= self.most_moved:
            return None
        near = float(self.share @ scores) - self.mean
        at_center = [w * center for w, center in zip(shown, self.centers, strict=True)]
        found = self.threshold(_middle_half(gap, near, scores), near, at_center, shown[0])
        if found is None or not gap.low < -found[0] < gap.high:  # too close for float64
            return None
        lengths = [n_digits(weight) for weight in shown[1:]] + [found[1]]
        weights = np.zeros(self.schema.n_columns)
        weights[self.columns] = np.array(shown) / self.units
        moved = self.sides.moved_by(scores, doubt, -found[0])
        return ShortSplit(weights, found[0], moved, max(lengths), sum(lengths))

    def threshold(
        self, ends: tuple[float, float], near: float, at_center: list[float], sign: float
    ) -> tuple[float, int] | None:
        """Choose the threshold between two scores; return bias and digits."""
        shift = exact_sum(at_center)
        low, high = sorted(sign * (shift + end) for end in ends)
        chosen = self.right_side(low, high, sign * (shift + near))
        if chosen is None:
            return None
        return exact_sum([*at_center, -sign * chosen[0]]), chosen[1]

    def right_side(self, low: float, high: float, near: float) -> tuple[float, int] | None:
        """Find the shortest number, date or duration between two, and its number of digits."""
        origin = self.schema.features[self.terms[0].feature].origin
        spread = float(self.schema.column_spread[self.columns[0]])
        if len(self.terms) > 1 or origin not in ("date", "duration"):
            return _with_digits(short_number(low, high, near), 1.0)
        if origin == "duration":
            unit = time_unit(max(abs(near), spread))[1]
            return _with_digits(short_number(low / unit, high / unit, near / unit), unit)
        for step in DATE_STEPS:
            for whole in _whole_numbers(low / step, high / step, near / step):
                if low < whole * step < high:
                    more = math.ceil(math.log10(max(spread, step) / step))
                    return whole * step, 1 + max(0, more)
        return None


def _membership(
    tree: ObliqueTree, separation: Separation, sides: Sides, most_moved: float, mean: float
) -> ShortSplit | None:
    """Set the weights of a feature's levels to 1 or -1 if they go to another side than the rest.

    Such a split is printed without numbers. Other rows go where the terms send them.
    """
    scores = separation.values @ separation.weights
    gap = sides.gap(scores, np.zeros_like(scores))
    if gap.moved > most_moved:
        return None
    near = float((sides.weight / sides.weight.sum()) @ scores) - mean
    low, high = _middle_half(gap, near, scores)
    threshold = min(max(near, low), high)
    weights = np.zeros(tree.schema.n_columns)
    weights[separation.used] = separation.weights
    feature = tree.columns[separation.used[0]].feature
    options = [j for j, c in enumerate(tree.columns) if c.feature == feature and c.kind != "number"]
    goes_right = weights[options] >= threshold
    is_usual = threshold <= 0  # the side of rows with all indicators 0
    if tree.schema.features[feature].levels and tree.schema.has_missing[feature]:  # no such rows
        is_usual = bool(goes_right.mean() > 0.5)
    weights[:] = 0.0
    weights[options] = goes_right.astype(np.float64) - is_usual
    moved = (scores >= threshold) != sides.goes_right
    return ShortSplit(weights, 0.5 if is_usual else -0.5, moved, 0, 0)


def _with_missing(
    tree: ObliqueTree,
    terms: tuple[Term, ...],
    separation: Separation,
    sides: Sides,
    most_moved: float,
    mean: float,
) -> ShortSplit | None:
    """Round the bound of a split on a number; missing values go to the side they went to.

    The weight of the missing indicator is not printed. It puts missing values one standard
    deviation from the threshold.
    """
    number, flag = sorted(terms, key=lambda term: term.kind == "missing")
    at_flag = int(np.searchsorted(separation.used, flag.column))
    scores = separation.values @ separation.weights
    bias = mean - float((sides.weight / sides.weight.sum()) @ scores)
    right_if_missing = bias + float(separation.weights[at_flag]) >= 0
    is_missing = separation.values[:, at_flag] > 0
    moved = is_missing & (sides.goes_right != right_if_missing)
    most_moved -= float(sides.weight[moved].sum())
    present = ~is_missing
    if most_moved < 0 or not present.any():
        return None
    known = Sides(sides.weight[present], sides.goes_right[present], sides.caution)
    mean = bias + float((known.weight / known.weight.sum()) @ scores[present])
    of_known = replace(separation, values=separation.values[present])
    found = _Rounding(tree, (number,), of_known, known, most_moved, mean).shortest()
    if found is None:
        return None
    distance = float(tree.schema.column_spread[number.column]) or 1.0
    weights = found.weights.copy()
    weights[flag.column] = (distance if right_if_missing else -distance) - found.bias
    moved[present] = found.moved
    return replace(found, weights=weights, moved=moved)


def short_number(low: float, high: float, near: float) -> float | None:
    """Find the number with the fewest digits between two; on ties the one closest to a third.

    None if there is no float64 between them.
    """
    largest = max(abs(low), abs(high))
    if not 0 < largest < math.inf:
        return None
    top = math.floor(math.log10(largest)) + 1
    for exponent in range(top, max(top - _MAX_DIGITS - 1, _SMALLEST_EXPONENT), -1):
        step = float(f"1e{exponent}")
        for whole in _whole_numbers(low / step, high / step, near / step):
            if low < (number := float(f"{whole}e{exponent}")) < high:
                return number
    return None


def _whole_numbers(low: float, high: float, near: float) -> tuple[int, int, int]:
    """Return candidates for the integer between two numbers that is closest to a third."""
    whole = min(max(round(near), math.floor(low)), math.ceil(high))
    return whole, whole + 1, whole - 1


def _with_digits(number: float | None, unit: float) -> tuple[float, int] | None:
    return None if number is None else (number * unit, n_digits(number))


def _middle_half(gap: Gap, near: float, scores: np.ndarray) -> tuple[float, float]:
    """Return the middle half of a gap; if it is open, that of a finite part."""
    reach = float(scores.std()) or 1.0
    low = gap.low if math.isfinite(gap.low) else min(gap.high, near) - reach
    high = gap.high if math.isfinite(gap.high) else max(gap.low, near) + reach
    return low + (high - low) / 4, high - (high - low) / 4


def _is_shorter(found: ShortSplit | None, best: ShortSplit | None) -> bool:
    return found is not None and (best is None or found.n_digits < best.n_digits)
