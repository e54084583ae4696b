"""Shorter splits: set weights to exactly zero if no given row needs them.

Without a penalty, training leaves small weights everywhere, and splits learned as products of
layers have no zeros at all.
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
from hardwood.text.numbers import plural

# Rounding error of float32 sums: of products, weights and sums, with a factor of two.
_ROUNDING = 2.0**-23
# Number of terms to try together first; fewer if not all of them can be removed.
_GROUP = 64


@dataclass(frozen=True, eq=False)
class Sparsified:
    """A tree with shorter splits, and the changes.

    Attributes
    ----------
    tree
        The same splits and leaves, with fewer weights.
    n_removed
        Number of split weights set to zero.
    n_weights
        Number of nonzero split weights before.
    share_moved
        Fraction of the given rows, by weight, that reach another leaf than before.
    """

    tree: ObliqueTree
    n_removed: int
    n_weights: int
    share_moved: float

    def __str__(self) -> str:
        return (
            f"{self.n_removed:,} of {plural(self.n_weights, 'weight', form=',')} removed; "
            f"{self.share_moved:.2%} of the rows reach another leaf"
        )


def sparsify(
    tree: ObliqueTree, X: Any, *, tolerance: float = 0.0, sample_weight: Any = None
) -> Sparsified:
    """Set weights of the splits to zero as long as given rows keep their paths.

    In each split, terms are tried in order of importance (the weight times the standard deviation
    of the column), the least important first; several at once, then fewer if not all of them can be
    removed. A term is replaced by its average over the rows at the split, which is added to the
    bias, if these rows, except for the fraction that the tolerance allows, keep their sides. The
    most important term of a split always stays, and a split that no row reaches does not change.

    Parameters
    ----------
    tree
        The tree.
    X
        A table, as for ``predict``. With more rows, fewer other rows change their path.
    tolerance
        Fraction of the rows, by weight, that may reach another leaf than before, in [0, 1).
    sample_weight
        (n,) row weights; None for equal weights. Rows of weight 0 are ignored.

    Notes
    -----
    Any split on a row's path may move it, h splits on average. Each split may move the fraction
    tolerance / h of its rows, and what earlier splits have not used. For c columns, this takes at
    most O(n h c log c); the memory holds the encoded rows of one split at a time, four bytes per
    column.
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
    """Remove terms from a split as long as its moved rows stay within the allowed weight.

    Notes
    -----
    The engine sums in float32, this function in float64. A row whose score is so small that the two
    may differ in sign counts as moved by any change.
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
    """The terms of a split for some rows, the least important first, computed in float64."""

    def __init__(self, at: RowsAtSplit, used: np.ndarray, of_column: np.ndarray) -> None:
        self._columns = np.ascontiguousarray(at.columns.T[used])  # (t, n)
        self._weights = of_column
        share = at.weight / at.weight.sum()
        means = [np.empty(0)]
        for i in range(0, len(used), _GROUP):
            means.append(self._columns[i : i + _GROUP].astype(np.float64) @ share)
        self.means = of_column * np.concatenate(means)

    def sum_of(self, first: int, last: int) -> np.ndarray:
        """Return the sum of the terms from ``first`` to before ``last``, (n,)."""
        sums: np.ndarray = self._weights[first:last] @ self._columns[first:last].astype(np.float64)
        return sums

    def size_of(self, first: int, last: int) -> np.ndarray:
        """Return a bound on the absolute value of these sums, including their means, (n,)."""
        columns = np.abs(self._columns[first:last]).astype(np.float64)
        sizes: np.ndarray = np.abs(self._weights[first:last]) @ columns
        return sizes + np.abs(self.means[first:last]).sum()
