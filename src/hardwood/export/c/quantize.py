"""A model in integers: the values of a row, the weights of splits, and the outputs of leaves.

A number becomes ``q = round((x - zero) / step)``, at most 127 or 32767 in size. A split's weights,
times the steps, are divided by the split's own scale and rounded; its score is a sum in 32-bit
integers that cannot overflow. An indicator that is on counts as a value of 128 or 32768. The
threshold is then placed so that the most rows take the same side as in the library; among equals,
the one closest to the rounded threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hardwood.errors import ExportError
from hardwood.export.plan import LARGEST, Plan, PlannedTree
from hardwood.export.probes import Probes

_SUM_LIMIT = 2**30 - 1  # for the terms of a score; the constant may be as large again
_DEFAULT_RANGE = {8: 4.0, 16: 16.0}  # in standard deviations, if no rows are given
_SHARES = (1.0, 0.9999, 0.999, 0.99)  # of the rows whose numbers stay within their range
_SCALES = np.linspace(1.0, 0.5, 51)  # relative to the largest scale of a split's weights
_MAX_ROWS = 20_000  # for placing thresholds
_LARGEST_RANGE = 1e150  # products of two ranges are finite
_MAX_TREES = 2**15 - 1  # this many leaf values of 16 bits fit into a sum of 32


@dataclass(frozen=True, eq=False)
class Grid:
    """How values are quantized to integers.

    Parameters
    ----------
    bits
        8 or 16.
    zero, step
        (n,) float64 for the numeric values, in raw units.
    missing
        (n,) the integer for a missing number: that of its center.
    """

    bits: int
    zero: np.ndarray
    step: np.ndarray
    missing: np.ndarray

    @property
    def largest(self) -> int:
        """The largest integer of a value, 127 or 32767."""
        return int(2 ** (self.bits - 1) - 1)

    @property
    def one(self) -> int:
        """The integer for an indicator that is on, 128 or 32768."""
        return self.largest + 1

    def quantized(self, numbers: np.ndarray) -> np.ndarray:
        """(r, n) int64 of raw numbers (r, n); NaN becomes ``missing``."""
        with np.errstate(invalid="ignore", over="ignore"):
            q = np.floor((numbers - self.zero) / self.step + 0.5)
        q = np.clip(q, -self.largest, self.largest)
        return np.where(np.isnan(numbers), self.missing, q).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Sums:
    """Integer sums ``bias + weights . values + one * indicators that are on``, (s,) of them.

    ``scale`` converts each sum to a real number.
    """

    weights: np.ndarray  # (s, n)
    indicators: np.ndarray  # (s, q)
    bias: np.ndarray  # (s,)
    scale: np.ndarray  # (s,)


@dataclass(frozen=True, eq=False)
class Quantized:
    """A model in integers.

    Parameters
    ----------
    splits
        The splits of all trees, one after the other.
    leaf_values
        (L, k) integers of constant leaves; None where leaves are linear.
    leaf_sums
        The outputs of all linear leaves of one tree, (L * k) sums; None where they are constant.
    offset, scale
        (k,) an output is ``offset + scale * sum over the trees``, before the model's link. Linear
        have their own scales.
    """

    plan: Plan
    grid: Grid
    splits: Sums
    leaf_values: np.ndarray | None
    leaf_sums: Sums | None
    offset: np.ndarray
    scale: np.ndarray


def quantized(plan: Plan, bits: int, probes: Probes) -> Quantized:
    """Quantize a model; given rows determine the ranges of the columns.

    Raises
    ------
    ExportError
        If the model has no integer form.
    """
    _check(plan, bits)
    rows = TypicalRows(plan, probes)
    shares = _SHARES if probes.are_given and plan.encoding.n_values else (1.0,)
    candidates = []
    for share in shares:
        grid = _grid(plan, bits, rows.numbers if probes.are_given else None, share)
        splits, n_wrong = _quantized_splits(plan, grid, rows)
        candidates.append((n_wrong, grid, splits))
    _, grid, splits = min(candidates, key=lambda candidate: candidate[0])
    if plan.model.has_linear_leaves:
        sums = _quantized_leaves(plan, grid)
        k = plan.model.n_outputs
        return Quantized(plan, grid, splits, None, sums, np.zeros(k), np.ones(k))
    values, offset, scale = _quantized_values(plan, bits)
    return Quantized(plan, grid, splits, values, None, offset, scale)


def _check(plan: Plan, bits: int) -> None:
    if plan.model.has_linear_leaves and len(plan.trees) > 1:
        raise ExportError(
            "a forest with linear leaves has no integer form, because each of its leaves has its "
            "own scale. Use precision='float32', or constant leaves."
        )
    largest = 2 ** (bits - 1) - 1
    for feature in plan.schema.features:
        if len(feature.levels) > largest:
            raise ExportError(
                f"feature {feature.name!r:.80} has {len(feature.levels)} categories, more than the "
                f"{largest} that int{bits} holds. Use precision='int16' or 'float32'."
            )
    if len(plan.trees) > _MAX_TREES:
        raise ExportError(f"{len(plan.trees)} trees are too many for sums of 32 bits")
    size = max(float(np.abs(tree.values).max(initial=0.0)) for tree in plan.trees)
    if plan.exponent or size > LARGEST:
        raise ExportError(
            f"leaf values of {size:.3g} have no integer form, whose predictions are float32; use "
            "precision='float32', whose leaves are float64."
        )


class TypicalRows:
    """A sample of typical rows for placing thresholds: numbers, indicators, and their paths."""

    def __init__(self, plan: Plan, probes: Probes) -> None:
        n = min(probes.n_typical, _MAX_ROWS)
        self.numbers = probes.matrix[:n][:, plan.encoding.numeric]
        self.on = plan.encoding.encode(probes.matrix[:n])[1]
        self.leaves = probes.leaves[:n]
        self.plan = plan

    @cached_property
    def sides(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each split of all trees, the rows that reach it, and whether they go right."""
        sides = []
        for t, tree in enumerate(self.plan.trees):
            below = _leaves_below(tree)
            for i in range(tree.n_splits):
                left, right = (np.isin(self.leaves[:, t], side) for side in below[i])
                rows = np.flatnonzero(left | right)
                sides.append((rows, right[rows]))
        return sides


def _leaves_below(tree: PlannedTree) -> list[tuple[list[int], list[int]]]:
    """For each split, the leaves on its left and on its right."""
    below: list[tuple[list[int], list[int]]] = [([], []) for _ in range(tree.n_splits)]
    for i in range(tree.n_splits - 1, -1, -1):  # parents come before their children
        for side, child in enumerate(tree.children[i].tolist()):
            below[i][side].extend([~child] if child < 0 else [*below[child][0], *below[child][1]])
    return below


# Values


def _grid(plan: Plan, bits: int, numbers: np.ndarray | None, share: float) -> Grid:
    """Choose the quantization; ``numbers`` (r, n) are those of given rows."""
    encoding = plan.encoding
    columns = encoding.value_columns
    spread, scale = plan.schema.column_spread[columns], plan.schema.column_scale[columns]
    zero, spread = encoding.center.copy(), np.where(spread > 0, spread, scale)
    _check_ranges(plan, zero, spread)
    reach, largest = _DEFAULT_RANGE[bits] * spread, 2 ** (bits - 1) - 1
    step = reach / largest
    for j in range(encoding.n_values if numbers is not None else 0):
        assert numbers is not None
        known = numbers[:, j][~np.isnan(numbers[:, j])]
        if not len(known):
            continue
        low, high = np.quantile(known, [(1 - share) / 2, (1 + share) / 2])
        zero[j], step[j] = (low + high) / 2, max((high - low) / 2, 1e-6 * reach[j]) / largest
        half = (np.ceil(high) - np.floor(low) + 1) // 2
        if (known == np.rint(known)).all() and 0 < half <= largest:
            # Integers stay exact: the step is such that they are multiples of it.
            zero[j], step[j] = np.floor(low) + half, 1.0 / (largest // half)
    missing = np.clip(np.floor((encoding.center - zero) / step + 0.5), -largest, largest)
    return Grid(bits, zero, step, missing.astype(np.int64))


def _check_ranges(plan: Plan, center: np.ndarray, spread: np.ndarray) -> None:
    """Refuse columns whose integers could not be computed without overflow."""
    for j in np.flatnonzero((np.abs(center) > _LARGEST_RANGE) | (spread > _LARGEST_RANGE)):
        feature = plan.schema.features[plan.encoding.numeric[j]]
        raise ExportError(
            f"feature {feature.name!r:.80} has a mean of {center[j]:.3g} and a standard deviation "
            f"of {spread[j]:.3g}; integers are for columns within {_LARGEST_RANGE:g}. Divide the "
            "column by a constant before learning, or use precision='float32'."
        )


# Splits


def _quantized_splits(plan: Plan, grid: Grid, rows: TypicalRows) -> tuple[Sums, int]:
    """Quantize all splits; also return how many rows take the wrong side, summed over splits."""
    weights = np.concatenate([tree.weights for tree in plan.trees])
    indicators = np.concatenate([tree.indicators for tree in plan.trees])
    bias = np.concatenate([tree.bias for tree in plan.trees])
    sums = _sums(plan, grid, weights, indicators, bias, rows)
    entries, n_wrong, placed = grid.quantized(rows.numbers), 0, sums.bias.copy()
    for i, (reached, right) in enumerate(rows.sides):
        score = entries[reached] @ sums.weights[i] + grid.one * (
            rows.on[reached].astype(np.int64) @ sums.indicators[i]
        )
        placed[i], wrong = _placed(score, right, int(sums.bias[i]))
        n_wrong += wrong
    limit = _reach(plan, grid, sums.weights, sums.indicators) + 1
    placed = np.clip(placed, -limit, limit)  # beyond this, all rows take one side
    return Sums(sums.weights, sums.indicators, placed, sums.scale), n_wrong


def _placed(score: np.ndarray, right: np.ndarray, nominal: int) -> tuple[int, int]:
    """Place the constant of a split: right is ``score + constant >= 0``.

    Returns the constant, and the number of rows that take the wrong side with it.
    """
    if len(score) == 0:
        return nominal, 0
    order = np.argsort(score, kind="stable")
    ranked, to_right = score[order], right[order]
    # Cut c sends rows from rank c on right: rights before it and lefts after it are wrong.
    wrong = np.concatenate([[0], np.cumsum(to_right)]) + np.concatenate(
        [np.cumsum((~to_right)[::-1])[::-1], [0]]
    )
    is_cut = np.concatenate([[True], ranked[1:] != ranked[:-1], [True]])
    low = np.concatenate([[ranked[0] - 2**31], ranked]) + 1  # the smallest threshold of each cut
    high = np.concatenate([ranked, [ranked[-1] + 2**31]])  # and the greatest
    threshold = np.clip(-nominal, low, high)
    cost = np.where(is_cut, wrong, len(score) + 1)
    best = np.flatnonzero(cost == cost.min())
    chosen = best[np.argmin(np.abs(threshold[best] + nominal))]
    return -int(threshold[chosen]), int(cost[chosen])


def _sums(
    plan: Plan,
    grid: Grid,
    weights: np.ndarray,
    indicators: np.ndarray,
    constant: np.ndarray,
    rows: TypicalRows | None = None,
    groups: np.ndarray | None = None,
) -> Sums:
    """Quantize weighted sums; those of one group (the outputs of a leaf) share a scale."""
    encoding = plan.encoding
    per_raw = weights.astype(np.float64) / encoding.scale
    real = np.concatenate([per_raw * grid.step, indicators.astype(np.float64) / grid.one], axis=1)
    constant = constant.astype(np.float64) + per_raw @ (grid.zero - encoding.center)
    scale = _coarsest(plan, grid, real)
    if groups is None:
        importance = _importance(grid, rows, real.shape[1])
        scale = np.array([_best_scale(r, s, importance) for r, s in zip(real, scale, strict=True)])
    else:
        scale = np.maximum(scale, np.abs(constant) / 2**29)
        scale = np.array([scale[groups == group].max() for group in groups])
    scale = np.where(scale > 0, scale, 1.0)
    whole = np.rint(real / scale[:, None]).astype(np.int64)
    bias = np.clip(np.rint(constant / scale), -(2**31) + 1, 2**31 - 1).astype(np.int64)
    n = encoding.n_values
    return Sums(whole[:, :n], whole[:, n:], bias, scale)


def _coarsest(plan: Plan, grid: Grid, real: np.ndarray) -> np.ndarray:
    """(s,) the smallest scales with which weights fit their type and sums fit theirs; 0: any."""
    size = np.abs(real)
    fits_type = size.max(axis=1, initial=0.0) / grid.largest
    n = plan.encoding.n_values
    total = _reach(plan, grid, size[:, :n], size[:, n:])
    # Rounding may add a half for each term.
    room = _SUM_LIMIT - grid.one * real.shape[1]
    if room <= 0:
        raise ExportError(f"{real.shape[1]} columns are too many for sums of 32 bits")
    return np.maximum(fits_type, total / room)


def _reach(plan: Plan, grid: Grid, weights: np.ndarray, indicators: np.ndarray) -> np.ndarray:
    """(s,) the largest size of sums without their constants: one indicator a feature is on."""
    reach = grid.one * np.abs(weights).sum(axis=1)
    features = np.array([item.feature for item in plan.encoding.indicators])
    for feature in np.unique(features):
        reach = reach + grid.one * np.abs(indicators[:, features == feature]).max(axis=1)
    return reach


def _importance(grid: Grid, rows: TypicalRows | None, n_columns: int) -> np.ndarray:
    """(c,) how much an error of a weight matters: the standard deviation of its column."""
    if rows is None or not len(rows.numbers):
        return np.ones(n_columns)
    entries = grid.quantized(rows.numbers).std(axis=0)
    importance: np.ndarray = np.concatenate([entries, grid.one * rows.on.std(axis=0)])
    return importance + 1e-3 * grid.largest


def _best_scale(real: np.ndarray, least: float, importance: np.ndarray) -> float:
    """Choose the scale, not below ``least``, that rounding to multiples of it changes least."""
    if not real.any():
        return least
    scales = least / _SCALES
    ratio = real / scales[:, None]  # (51, c)
    error = (np.square((ratio - np.rint(ratio)) * importance)).sum(axis=1) * np.square(scales)
    return float(scales[int(error.argmin())])


# Leaves


def _quantized_leaves(plan: Plan, grid: Grid) -> Sums:
    (tree,) = plan.trees
    assert tree.leaf_weights is not None
    assert tree.leaf_indicators is not None
    s = tree.n_leaves * plan.model.n_outputs
    return _sums(
        plan,
        grid,
        tree.leaf_weights.reshape(s, -1),
        tree.leaf_indicators.reshape(s, -1),
        tree.values.reshape(s),
        groups=np.repeat(np.arange(tree.n_leaves), plan.model.n_outputs),
    )


def _quantized_values(plan: Plan, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers of constant leaves (L, k), and offset and scale (k,) of their sums."""
    values = np.concatenate([tree.values for tree in plan.trees])
    k, n_trees = plan.model.n_outputs, len(plan.trees)
    if plan.model.task != "regression" and plan.link == "identity":  # probabilities or votes
        votes = plan.trees[0].vote != "none"
        most = 1 if votes else 2**bits - 1
        scale = np.full(k, 1.0 / (most * plan.divisor))
        return np.floor(values * most + 0.5).astype(np.int64), np.zeros(k), scale
    if plan.link in ("softmax", "logistic"):  # scores, whose differences or signs count
        unit = max(float(np.abs(values).max()), 1e-300) / 32767
        return np.rint(values / unit).astype(np.int64), np.zeros(k), np.full(k, unit)
    low, high = values.min(axis=0), values.max(axis=0)
    middle = low / 2 + high / 2
    step = np.where(high > low, (high / 2 - low / 2) / 32767, 1.0)
    whole = np.rint((values - middle) / step).astype(np.int64)
    return whole, middle * (n_trees / plan.divisor), step / plan.divisor
