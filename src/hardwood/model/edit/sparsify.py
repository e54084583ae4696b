"""Shorter splits: weights that no given row needs become exactly zero.

Learning leaves small weights everywhere unless a penalty removes them, and splits that were learned
as products of layers have no zeros at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.model.edit.each_split import (
    Changed,
    RowsAtSplit,
    change_each_split,
    check_tolerance,
    share_elsewhere,
)
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.routed_rows import RoutedRows

# Of a sum in float32: rounding of products, weights and sums, twice over.
_ROUNDING = 2.0**-23
# So many terms are tried together first; alone only if they cannot all go.
_GROUP = 64


@dataclass(frozen=True, eq=False)
class Sparsified:
    """A tree with shorter splits, and what was changed.

    Attributes
    ----------
    tree
        The same splits and leaves, with fewer weights.
    n_removed
        How many weights of the splits have become zero.
    n_weights
        How many were not zero before.
    share_moved
        Share of the given rows, by weight, that reach another leaf than before.
    """

    tree: ObliqueTree
    n_removed: int
    n_weights: int
    share_moved: float

    def __str__(self) -> str:
        return (
            f"{self.n_removed:,} of {self.n_weights:,} weights removed; "
            f"{self.share_moved:.2%} of the rows reach another leaf"
        )


def sparsify(
    tree: ObliqueTree, X: Any, *, tolerance: float = 0.0, sample_weight: Any = None
) -> Sparsified:
    """Set weights of the splits to zero as long as given rows keep their ways.

    In each split the terms are tried from the least important up, importance being the weight times
    the column's deviation; several at once, then fewer where these cannot all go. Terms go if the
    rows at the split, but for a share that the tolerance allows, are still sent to the same sides
    with the means over these rows in their place (which join the bias). The most important term of
    a split always stays, and a split that no row reaches stays as it is.

    Parameters
    ----------
    tree
        The tree.
    X
        A table, as for ``predict``. The more rows, the fewer surprises on others.
    tolerance
        Share of the rows, by weight, that may reach another leaf than before, in [0, 1).
    sample_weight
        (n,) what each row counts; None: 1. Rows of weight 0 are as if absent.

    Notes
    -----
    A row may be moved by any of the splits on its way, h of them in the mean. Each split may spend
    the share tolerance / h of its rows, and what those before it have not spent. For c columns the
    time is O(n h c log c) at most; the encoded rows of one split are in memory at a time, four
    bytes per column.
    """
    check_tolerance(tolerance)
    rows = RoutedRows.of(tree, X, sample_weight)
    at_splits = rows.counts[: tree.n_splits]
    allowances = at_splits * (tolerance * rows.counts[0] / max(at_splits.sum(), rows.counts[0]))
    spent = 0.0

    def shorten(at: RowsAtSplit) -> Changed:
        nonlocal spent
        changed = _shortened(tree, at, float(allowances[: at.split + 1].sum()) - spent)
        spent += float(at.weight[changed[2]].sum())
        return changed

    shorter = change_each_split(rows, X, shorten)
    n_weights = int(np.count_nonzero(tree.weights))
    return Sparsified(
        shorter,
        n_removed=n_weights - int(np.count_nonzero(shorter.weights)),
        n_weights=n_weights,
        share_moved=share_elsewhere(rows, X, shorter),
    )


def _shortened(tree: ObliqueTree, at: RowsAtSplit, allowance: float) -> Changed:
    """Remove terms from a split as long as no more of its rows are moved, by weight, than allowed.

    Notes
    -----
    The engine adds up in float32, here it is float64. A row whose score is so small that the two
    may differ in its sign counts as moved by any change: no row is moved unseen.
    """
    weights, bias = tree.weights[at.split].copy(), float(tree.bias[at.split])
    used = np.flatnonzero(weights)
    importance = np.abs(weights[used]) * tree.schema.column_spread[used]
    used = used[np.argsort(importance, kind="stable")]
    terms = _Terms(at, used, (weights * tree.schema.column_scale)[used])
    groups = [(i, min(i + _GROUP, used.size)) for i in range(0, used.size, _GROUP)]
    score = bias + sum(terms.sum_of(*group) for group in groups)
    doubt = (abs(bias) + sum(terms.size_of(*group) for group in groups)) * (
        _ROUNDING * (8 + weights.size / 16)
    )
    sign = np.where(at.goes_right, 1.0, -1.0)
    moved = np.zeros(len(at), dtype=bool)
    to_try = [(i, min(i + _GROUP, used.size - 1)) for i in range(0, used.size - 1, _GROUP)][::-1]
    while to_try:
        first, last = to_try.pop()
        shorter = score + (terms.means[first:last].sum() - terms.sum_of(first, last))
        leaves = sign * shorter <= doubt
        if at.weight[leaves].sum() <= allowance:
            score, moved = shorter, leaves
            weights[used[first:last]] = 0.0
            bias += float(terms.means[first:last].sum())
        elif last - first > 1:
            middle = (first + last) // 2
            to_try += [(middle, last), (first, middle)]
    return weights, bias, moved


class _Terms:
    """The terms of a split for some rows, the least important first, in float64 a few at a time."""

    def __init__(self, at: RowsAtSplit, used: np.ndarray, of_column: np.ndarray) -> None:
        self._columns = np.ascontiguousarray(at.columns.T[used])  # (t, n)
        self._weights = of_column
        share = at.weight / at.weight.sum()
        means = [np.empty(0)]
        for i in range(0, len(used), _GROUP):
            means.append(self._columns[i : i + _GROUP].astype(np.float64) @ share)
        self.means = of_column * np.concatenate(means)

    def sum_of(self, first: int, last: int) -> np.ndarray:
        """Return what the terms from ``first`` to before ``last`` add up to, (n,)."""
        sums: np.ndarray = self._weights[first:last] @ self._columns[first:last].astype(np.float64)
        return sums

    def size_of(self, first: int, last: int) -> np.ndarray:
        """Return a bound of the size of these sums, and of what their means add up to, (n,)."""
        columns = np.abs(self._columns[first:last]).astype(np.float64)
        sizes: np.ndarray = np.abs(self._weights[first:last]) @ columns
        return sizes + np.abs(self.means[first:last]).sum()
