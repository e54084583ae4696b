"""A split as a condition on raw columns, exactly as the engine decides it where possible.

A split on one number is a threshold: the engine's decision is monotone in the column and changes at
one float32 value, which is found by bisection. Of the numbers that round to this float32 value, the
one with the fewest digits is the threshold, ``age >= 30``; all others are decided as in the engine.
Where no number of the column rounds to it, as float64 cannot resolve the distance from the center,
the first number that goes right is the threshold.
A split on the levels of one feature, or on a value being missing, has a few cases, each decided as
in the engine. Only a split on several features remains a weighted sum; in float64 it agrees with
the engine's float32 sum wherever that is not within rounding of zero (`rounding_bound`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hardwood.export.plan import LANES, LARGEST, Encoding, PlannedTree

_LARGEST_NUMBER = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Always:
    """The same side for every row."""

    right: bool


@dataclass(frozen=True)
class Threshold:
    """Right where ``x >= value`` (``relation`` is ``">="``) or ``x <= value``.

    A missing value goes right if ``missing_right`` is true.
    """

    feature: int
    relation: str
    value: float
    missing_right: bool


@dataclass(frozen=True)
class Missing:
    """Right where the value of a numeric feature is missing, or where it is not."""

    feature: int
    right_if_missing: bool


@dataclass(frozen=True)
class Levels:
    """Right for some levels of a feature, given by their positions, and perhaps missing values."""

    feature: int
    right: frozenset[int]
    missing_right: bool


@dataclass(frozen=True)
class LevelWeights:
    """Contributions of the levels of one feature to a sum, and of a missing or unseen value."""

    feature: int
    weights: tuple[float, ...]
    missing: float


@dataclass(frozen=True)
class Linear:
    """A weighted sum in raw units.

    Parameters
    ----------
    numbers
        ``(feature, weight, center)``: adds ``weight * (x - center)``, nothing where missing.
    flags
        ``(feature, weight)``: adds the weight where the value of a numeric feature is missing.
    levels
        Contributions of categorical features.
    constant
        Constant term. A split goes right where the sum is at least 0.
    """

    numbers: tuple[tuple[int, float, float], ...]
    flags: tuple[tuple[int, float], ...]
    levels: tuple[LevelWeights, ...]
    constant: float


Condition = Always | Threshold | Missing | Levels | Linear


def rounding_bound(encoding: Encoding) -> float:
    """Return the largest rounding error of a float32 score, relative to the sum of |terms|.

    A score is a sum of n/16 products in each of sixteen lanes, four folds, one term per feature
    with an indicator, and one rounding each of the value, the product and the sum with them.
    """
    per_lane = -(-encoding.n_values // LANES)
    n_flagged = len({item.feature for item in encoding.indicators})
    return (per_lane + n_flagged + 8) * 2.0**-24


def conditions_of(tree: PlannedTree, encoding: Encoding) -> list[Condition]:
    """Find the condition of every split of a tree."""
    conditions: list[Condition] = []
    singles: list[tuple[int, int]] = []  # splits on one number: the split and the value
    for i in range(tree.n_splits):
        features = _features_of(tree, encoding, i)
        if not features:
            conditions.append(Always(bool(tree.bias[i] >= 0)))
        elif len(features) > 1:
            conditions.append(_weighted_sum(tree, encoding, i))
        else:
            (feature,) = features
            value = encoding.value_of_feature.get(feature)
            if value is None:
                conditions.append(_level_condition(tree, encoding, i, feature))
                continue
            if tree.weights[i, value] != 0:
                singles.append((i, value))
            conditions.append(
                _missing_condition(bool(tree.bias[i] >= 0), tree, encoding, i, feature)
            )
    for i, condition in zip(
        (i for i, _ in singles), _thresholds(tree, encoding, singles), strict=True
    ):
        conditions[i] = condition
    return conditions


def sum_of(
    encoding: Encoding,
    weights: np.ndarray,
    indicators: np.ndarray,
    constant: float,
    *,
    exponent: int = 0,
) -> Linear:
    """Return the weighted sum of values (n,) and indicators (q,) in raw units.

    All terms are multiplied by two to the power of ``exponent``.
    """
    numbers = tuple(
        (
            int(encoding.numeric[j]),
            float(np.ldexp(np.float64(weights[j]), exponent) / encoding.scale[j]),
            float(encoding.center[j]),
        )
        for j in np.flatnonzero(weights).tolist()
    )
    raw = np.ldexp(indicators.astype(np.float64), exponent) + 0.0  # without -0.0
    flags, levels = [], []
    for feature in sorted({item.feature for item in encoding.indicators}):
        flag = float(raw[encoding.flag[feature]]) if feature in encoding.flag else 0.0
        first = encoding.first_level.get(feature)
        if first is None:
            flags += [(feature, flag)] if flag else []
            continue
        n_levels = len(encoding.schema.features[feature].levels)
        of_levels = tuple(raw[first : first + n_levels].tolist())
        if flag or any(of_levels):
            levels.append(LevelWeights(feature, of_levels, flag))
    total = float(np.ldexp(np.float64(constant), exponent))
    return Linear(numbers, tuple(flags), tuple(levels), total)


def leaf_sums(tree: PlannedTree, encoding: Encoding) -> list[list[Linear]]:
    """Return the scores of linear leaves in raw units, (L, k); an empty list if constant."""
    if tree.leaf_weights is None or tree.leaf_indicators is None:
        return []
    return [
        [
            sum_of(encoding, weights, indicators, float(value))
            for weights, indicators, value in zip(*of_leaf, strict=True)
        ]
        for of_leaf in zip(tree.leaf_weights, tree.leaf_indicators, tree.values, strict=True)
    ]


def _weighted_sum(tree: PlannedTree, encoding: Encoding, i: int) -> Linear:
    exponent = int(tree.exponents[i])
    bias = float(tree.bias[i])
    return sum_of(encoding, tree.weights[i], tree.indicators[i], bias, exponent=exponent)


def _features_of(tree: PlannedTree, encoding: Encoding, i: int) -> set[int]:
    numbers = {int(encoding.numeric[j]) for j in np.flatnonzero(tree.weights[i]).tolist()}
    flagged = np.flatnonzero(tree.indicators[i]).tolist()
    return numbers | {encoding.indicators[q].feature for q in flagged}


def _goes_right(tree: PlannedTree, i: int, indicator: int | None) -> bool:
    """Whether a row without numbers and with only this indicator on goes right.

    The sign of a sum of two float32 numbers is exact.
    """
    added = 0.0 if indicator is None else float(tree.indicators[i, indicator])
    return float(tree.bias[i]) + added >= 0


def _missing_condition(
    present_right: bool, tree: PlannedTree, encoding: Encoding, i: int, feature: int
) -> Condition:
    missing_right = _goes_right(tree, i, encoding.flag.get(feature))
    if missing_right == present_right:
        return Always(present_right)
    return Missing(feature, missing_right)


def _level_condition(tree: PlannedTree, encoding: Encoding, i: int, feature: int) -> Condition:
    first = encoding.first_level[feature]
    n_levels = len(encoding.schema.features[feature].levels)
    right = frozenset(level for level in range(n_levels) if _goes_right(tree, i, first + level))
    missing_right = _goes_right(tree, i, encoding.flag.get(feature))
    if len(right) == (n_levels if missing_right else 0):
        return Always(missing_right)
    return Levels(feature, right, missing_right)


def exact_splits(
    tree: PlannedTree, encoding: Encoding
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return splits for sums in float64 of the engine's float32 values.

    A split on one number weighs it by 1 or -1 and cuts it where the engine does, so that its sum
    has the engine's sign for every row. Others keep their weights.

    Returns
    -------
    weights, indicators, bias
        (m, n), (m, q), (m,) float64.
    """
    weights, indicators = tree.weights.astype(np.float64), tree.indicators.astype(np.float64)
    bias = tree.bias.astype(np.float64)
    singles = []
    for i in range(tree.n_splits):
        values = np.flatnonzero(tree.weights[i]).tolist()
        if len(values) == 1 and len(_features_of(tree, encoding, i)) == 1:
            singles.append((i, values[0]))
    if not singles:
        return weights, indicators, bias
    cuts, rising = value_cuts(tree, *np.array(singles).T)
    for (i, value), cut, is_rising in zip(singles, cuts.tolist(), rising.tolist(), strict=True):
        sign = 1.0 if is_rising else -1.0
        is_finite = np.isfinite(cut)
        weights[i, value] = sign if is_finite else 0.0
        bias[i] = -sign * cut if is_finite else -1.0  # beyond all values: no row goes right
        flag = encoding.flag.get(int(encoding.numeric[value]))
        if flag is not None:
            indicators[i, flag] = (1.0 if _goes_right(tree, i, flag) else -1.0) - bias[i]
    return weights, indicators, bias


# Thresholds by bisection


def _thresholds(
    tree: PlannedTree, encoding: Encoding, singles: list[tuple[int, int]]
) -> list[Condition]:
    """Return the conditions of the splits that weigh one number each: ``(split, value)``."""
    if not singles:
        return []
    splits, values = np.array(singles).T
    cuts, rising = value_cuts(tree, splits, values)
    first, last = _cut_entries(encoding, values, cuts)
    conditions: list[Condition] = []
    for i, value, cut, is_rising, low, high in zip(
        splits.tolist(), values.tolist(), cuts, rising, first, last, strict=True
    ):
        feature = int(encoding.numeric[value])
        outermost = float(low) if is_rising else float(high)  # of the numbers that go right
        everything = -_LARGEST_NUMBER if is_rising else _LARGEST_NUMBER
        if outermost == everything or np.isinf(outermost):  # every number, or none, goes right
            present_right = outermost == everything
            conditions.append(_missing_condition(present_right, tree, encoding, i, feature))
            continue
        # Beyond the largest value all numbers have it, so that one in their midst is no threshold.
        is_rounded = low <= high and abs(cut) < LARGEST
        near = _nominal(tree, encoding, i, value)
        entry = shortest_between(float(low), float(high), near) if is_rounded else outermost
        missing_right = _goes_right(tree, i, encoding.flag.get(feature))
        conditions.append(Threshold(feature, ">=" if is_rising else "<=", entry, missing_right))
    return conditions


def _nominal(tree: PlannedTree, encoding: Encoding, i: int, value: int) -> float:
    """Return the threshold of a split on one number in exact arithmetic."""
    with np.errstate(over="ignore"):
        distance = np.float64(tree.bias[i]) / np.float64(tree.weights[i, value])
        return float(encoding.center[value] - distance * encoding.scale[value])


def _cut_entries(
    encoding: Encoding, values: np.ndarray, cuts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(s,) the first number whose value is the cut or more, the last whose value is it or less.

    They are infinite if there is none, and the last is below the first if no value is the cut.
    """
    center, inverse = encoding.center[values], encoding.inverse_scale[values]

    def value_of(x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            value = np.clip((x - center) * inverse, -LARGEST, LARGEST)
        return value.astype(np.float32)

    first = _least(lambda x: value_of(x) >= cuts, len(cuts), np.float64)
    last = -_least(lambda x: value_of(-x) <= cuts, len(cuts), np.float64)
    return first, last


def shortest_between(low: float, high: float, near: float) -> float:
    """Round ``near`` to the fewest digits that keep it between two numbers, inclusive."""
    near = min(max(near, low), high)
    if low <= 0 <= high:
        return 0.0
    rounded = (float(f"{near:.{digits}e}") for digits in range(17))  # the last is `near`
    return next(number for number in rounded if low <= number <= high)


def value_cuts(
    tree: PlannedTree, splits: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the engine cuts the float32 value of a split on one number.

    Returns
    -------
    cuts, rising
        (s,) float32: right is ``value >= cut`` where ``rising`` and ``value <= cut`` elsewhere.
        Infinity where no value goes right; the smallest or largest value where all do.
    """
    weights = tree.weights[splits, values].astype(np.float64)
    bias = tree.bias[splits].astype(np.float64)
    rising = weights > 0
    in_first_lane = values % LANES == 0

    def goes_right(value: np.ndarray) -> np.ndarray:
        # A product of float32 numbers is exact in float64. In the lane of the bias it is added
        # before it is rounded, which keeps the sign; in others it is rounded first.
        product = np.abs(weights) * value.astype(np.float64)
        rounded = product.astype(np.float32).astype(np.float64)
        return np.where(in_first_lane, product, rounded) + bias >= 0

    least = _least(goes_right, len(splits), np.float32)
    return np.where(rising, least, -least), rising


def _least(goes_right: Callable[[np.ndarray], np.ndarray], size: int, kind: type) -> np.ndarray:
    """Return the smallest finite number for which a rising predicate holds; infinity if none does.

    If it holds for all of them, the smallest number, ``-finfo(kind).max``.
    """
    bits = np.int64 if kind is np.float64 else np.int32
    largest = int(np.array(np.finfo(kind).max, kind).view(bits))
    low = np.full(size, -largest - 1, np.int64)  # taken not to hold
    high = np.full(size, largest + 1, np.int64)  # taken to hold
    for _ in range(8 * np.dtype(kind).itemsize + 2):
        middle = low // 2 + high // 2 + (low % 2 + high % 2) // 2
        inside = (middle > low) & (middle < high)
        right = goes_right(_float_of(np.where(inside, middle, 0), kind, bits))
        high = np.where(inside & right, middle, high)
        low = np.where(inside & ~right, middle, low)
    found = _float_of(np.clip(high, -largest, largest), kind, bits)
    return np.where(high > largest, np.array(np.inf, kind), found)


def _float_of(rank: np.ndarray, kind: type, bits: type) -> np.ndarray:
    """Return the float of each rank: 0 is 0, 1 the smallest positive number, -1 its negative."""
    size = np.abs(rank).astype(bits).view(kind)
    return np.where(rank < 0, -size, size)
