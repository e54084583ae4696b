"""Histograms of the scores at the splits of a tree, and of the targets at its leaves.

The bins of a split have the same width, and the threshold, score 0, is an edge between two bins, so
that no bin counts rows of both sides. The first and the last bin include everything beyond them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.routed_rows import RoutedRows
from hardwood.show.page.colors import Colors, colored_by, row_groups
from hardwood.show.page.packing import packed

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree
    from hardwood.show.page.rows import DataRows

N_BINS = 28
_SHADES = 255
_CLIPPED = (1.0, 99.0)  # percentiles at the ends of the bins, if there are enough rows
_ENOUGH = 50
_HUGE = 1e300  # keeps differences of scores finite


def histograms_of(tree: ObliqueTree, rows: DataRows, colors: Colors) -> dict[str, Any]:
    """Count rows at all nodes of a tree, by score and color.

    Returns
    -------
    histograms
        Packed arrays. ``width`` (m,) of the bins, and ``zero`` (m,) number of bins left of the
        threshold; ``counts`` (m, bins, groups) and ``leafCounts`` (L, groups) of rows; ``shades``
        (m, bins, s) mean color in each bin, from 0 (low) to 255 (high), if numbers determine the
        color; ``leafTargets`` (L, s, bins) rows by their target from low to high, for regression
        with known targets.
    """
    routed = RoutedRows.of(tree, rows.table)
    scores = _Scores(tree, rows.matrix[routed.row])
    groups = row_groups(colors, rows)[routed.row]
    numbers = None
    if colors.n_shades:
        numbers = colored_by(rows)[routed.row][:, : colors.n_shades]
    m = tree.n_splits
    width, zero = np.ones(m), np.zeros(m, dtype=np.int64)
    counts = np.zeros((m, N_BINS, colors.n_groups), dtype=np.int64)
    shades = np.zeros((m, N_BINS, colors.n_shades), dtype=np.int64)
    for i in range(m):
        here = routed.at(i)
        score = scores.at(i, here)
        n_left = _n_left(routed, i)
        width[i], zero[i] = _bins(score, n_left)
        bins = _bin_of(score, width[i], int(zero[i]), n_left)
        counts[i] = _table_of(bins, N_BINS, groups[here], colors.n_groups)
        if numbers is not None:
            shades[i] = _mean_shades(bins, numbers[here], colors)
    return {
        "width": packed(width),
        "zero": packed(zero),
        "counts": packed(counts),
        "shades": packed(shades) if colors.n_shades else None,
        "leafCounts": packed(_table_of(routed.leaf, tree.n_leaves, groups, colors.n_groups)),
        "leafTargets": _leaf_targets(tree, routed, numbers, colors),
    }


class _Scores:
    """Scores of rows at splits, in the tree's own units and in float64."""

    def __init__(self, tree: ObliqueTree, matrix: np.ndarray) -> None:
        self.columns = tree.schema.encoder.encode(np.ascontiguousarray(matrix))  # (n, c)
        self.weights = tree.weights * tree.schema.column_scale
        self.bias = tree.bias

    def at(self, split: int, rows: slice) -> np.ndarray:
        used = np.flatnonzero(self.weights[split])
        with np.errstate(over="ignore", invalid="ignore"):
            score = self.columns[rows][:, used].astype(np.float64) @ self.weights[split, used]
            return np.clip(np.nan_to_num(score + self.bias[split]), -_HUGE, _HUGE)


def _bins(score: np.ndarray, n_left: int) -> tuple[float, int]:
    """Return the width of the bins, and how many of them are left of the threshold."""
    if score.size == 0:
        return 1.0, N_BINS // 2
    low, high = np.percentile(score, _CLIPPED if score.size >= _ENOUGH else (0.0, 100.0))
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    if not low < high:  # all scores are 0
        return 1.0, N_BINS // 2
    at_least, at_most = int(n_left > 0), N_BINS - int(n_left < score.size)
    zero = min(max(round(N_BINS * low / (low - high)), at_least), at_most)
    return max(-low / max(zero, 1), high / max(N_BINS - zero, 1)), zero


def _n_left(routed: RoutedRows, split: int) -> int:
    """Return the number of rows that go left, which come first among the rows of a split."""
    left = int(routed.tree.children[split, 0])
    here = routed.at(left if left >= 0 else routed.tree.n_splits + ~left)
    return here.stop - here.start


def _bin_of(score: np.ndarray, width: float, zero: int, n_left: int) -> np.ndarray:
    """Return the bin of each row; the engine decides the side of the threshold."""
    bins = np.clip(np.floor(score / width), -zero, N_BINS - 1 - zero).astype(np.int64) + zero
    bins[:n_left] = np.minimum(bins[:n_left], max(zero - 1, 0))
    bins[n_left:] = np.maximum(bins[n_left:], min(zero, N_BINS - 1))
    return bins


def _table_of(row: np.ndarray, n_rows: int, column: np.ndarray, n_columns: int) -> np.ndarray:
    """Count pairs of small integers, (n_rows, n_columns)."""
    flat = np.bincount(row * n_columns + column, minlength=n_rows * n_columns)
    return flat.reshape(n_rows, n_columns)


def _mean_shades(bins: np.ndarray, numbers: np.ndarray, colors: Colors) -> np.ndarray:
    """Return the mean of each number in each bin, as a color from 0 to 255, (bins, s)."""
    count = np.maximum(np.bincount(bins, minlength=N_BINS), 1)
    sums = [np.bincount(bins, column, minlength=N_BINS) for column in numbers.T]
    share = colors.share(np.stack(sums, axis=1) / count[:, None])
    shades: np.ndarray = np.rint(_SHADES * share).astype(np.int64)
    return shades


def _leaf_targets(
    tree: ObliqueTree, routed: RoutedRows, numbers: np.ndarray | None, colors: Colors
) -> Any:
    """Return histograms of the true targets at each leaf, (L, s, bins)."""
    if numbers is None or not colors.are_true:
        return None
    bins = np.minimum(np.floor(colors.share(numbers) * N_BINS), N_BINS - 1).astype(np.int64)
    tables = [_table_of(routed.leaf, tree.n_leaves, column, N_BINS) for column in bins.T]
    return packed(np.stack(tables, axis=1))
