r"""How much each feature matters to a model: its share of the variance of the predictions.

The predictions of a tree differ between training rows. With n_v training rows at node v and their
mean prediction :math:`\bar f_v`, split s accounts for

.. math:: D_s = \sum_{\text{branch } v} n_v (\bar f_v - \bar f_s)^2

of the sum of their squared deviations. Where leaves hold class frequencies or means, that is by how
much the split decreases the Gini impurity or the squared error, and the importances of an
axis-aligned tree are those of scikit-learn. An oblique split divides :math:`D_s` among its columns
by their shares of the variance of its score, :math:`w_j^2 \sigma_j^2` for column j.

A linear leaf l with slope :math:`A_{lj}` adds :math:`n_l A_{lj}^2 \sigma_{lj}^2` for column j, with
the standard deviation of the column among the rows of the leaf. Where the branches of a split have
different slopes, the split gets half of the part that their common slope does not explain.

What a model does not store is taken as follows. Columns are uncorrelated, and normal where their
spread among the rows of a linear leaf is needed. Without counts, the branches of a split get the
same number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from hardwood.model.paths import child_nodes, parents_of, sums_of

if TYPE_CHECKING:
    from hardwood.model.kinds.policy_tree import PolicyTree
    from hardwood.model.kinds.tree import ObliqueTree
    from hardwood.table import Schema

_NORMAL = NormalDist()
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Explained:
    """What importances depend on, of one tree.

    Attributes
    ----------
    schema
        The features and their columns.
    parents
        (N,) parent of each node; parents come before their children.
    leaves
        (L,) the nodes that are leaves.
    rows
        (L,) number of training rows at each leaf, or any multiple of it.
    shares
        (N, c) shares of the columns in the variance of each split's score; 0 at leaves.
    values
        (L, k) mean predictions of the rows of each leaf.
    slopes
        (L, k, c) how much predictions change over one standard deviation of a column among these
        rows; None for constant leaves.
    """

    schema: Schema
    parents: np.ndarray
    leaves: np.ndarray
    rows: np.ndarray
    shares: np.ndarray
    values: np.ndarray
    slopes: np.ndarray | None = None

    @classmethod
    def of_tree(cls, tree: ObliqueTree) -> Explained:
        """Read an oblique tree; the predictions of linear leaves are their scores."""
        m, parents = tree.n_splits, parents_of(tree.children)
        rows = _even(parents)[m:] if tree.counts is None else tree.counts[m:]
        shares = np.zeros((len(parents), tree.schema.n_columns))
        shares[:m] = _variance_shares(tree.weights[:, None] * tree.schema.column_spread)
        leaves = np.arange(m, len(parents))
        found = cls(tree.schema, parents, leaves, rows, shares, tree.values)
        if tree.leaf_weights is None:
            return found
        slopes = tree.leaf_weights * tree.schema.column_spread  # (L, k, c)
        center, spread = _columns_at_leaves(tree, rows)
        values = tree.values + np.einsum("lkc,lc->lk", slopes, center)
        found = replace(found, values=values, slopes=slopes * spread[:, None])
        return found.relative() if tree.link == "softmax" else found

    @classmethod
    def of_policy(cls, tree: PolicyTree) -> Explained:
        """Read a policy tree: what matters at a split are the differences between its branches."""
        parents, inner = tree.parents, tree.split_nodes
        rows = (_even(parents) if tree.counts is None else tree.counts)[tree.leaf_nodes]
        shares = np.zeros((tree.n_nodes, tree.schema.n_columns))
        for node in inner.tolist():
            branches = tree.weights[list(tree.children(node))] * tree.schema.column_spread
            shares[node] = _variance_shares((branches - branches.mean(axis=0))[None])[0]
        return cls(tree.schema, parents, tree.leaf_nodes, rows, shares, tree.values)

    def relative(self) -> Explained:
        """Compare outputs with their mean: a softmax ignores what all scores have in common."""
        values = self.values - self.values.mean(axis=1, keepdims=True)
        if self.slopes is None:
            return replace(self, values=values)
        return replace(
            self, values=values, slopes=self.slopes - self.slopes.mean(axis=1, keepdims=True)
        )


def importances(trees: Iterable[Explained], task: str, *, is_sum: bool) -> np.ndarray:
    """Return the share of each feature in the variance of the predictions, (p,).

    Parameters
    ----------
    trees
        The trees of a model.
    task
        Its task. All targets of a regression count the same, whatever their units.
    is_sum
        Whether predictions are sums over trees: a tree then counts by the variance it accounts
        for. Otherwise all trees count the same.

    Returns
    -------
    shares
        They sum to 1; all are 0 if the predictions do not vary.
    """
    parts, sizes = zip(*map(_variances, trees), strict=True)
    if is_sum:
        factors = (np.array(sizes) / max(*sizes, _TINY)) ** 2
        parts = (np.tensordot(factors, parts, axes=1),)
    total = np.sum([_shares(part, by_output=task == "regression") for part in parts], axis=0)
    return total / max(total.sum(), _TINY)


def _shares(variances: np.ndarray, *, by_output: bool) -> np.ndarray:
    """Return the shares (p,) of variances (k, p): of each output's, or of the sum of all."""
    if by_output:
        variances = variances / np.maximum(variances.sum(axis=1, keepdims=True), _TINY)
    of_features = variances.sum(axis=0)
    return of_features / max(of_features.sum(), _TINY)


def _variances(tree: Explained) -> tuple[np.ndarray, float]:
    """Return the variance of each output by feature, (k, p), in units of the second result squared.

    The unit is the largest number of the tree, whose square might be infinite. Values are compared
    with those of the first leaf, so that equal leaves have a variance of exactly 0.
    """
    slopes = np.zeros(0) if tree.slopes is None else tree.slopes
    tree = replace(tree, rows=tree.rows / max(tree.rows.max(), _TINY))
    size = max(np.abs(tree.values).max(), np.abs(slopes).max(initial=0.0), _TINY)
    by_node = _between(tree, tree.values / size - tree.values[0] / size)  # (N, k)
    by_column = np.zeros((tree.values.shape[1], tree.schema.n_columns))
    if tree.slopes is not None:
        slopes = slopes / size
        apart = _between(tree, slopes) / 2  # (N, k, c)
        by_node = by_node + apart.sum(axis=2)
        by_column = np.tensordot(tree.rows, slopes**2, axes=1) - apart.sum(axis=0)
    by_column = by_column + by_node.T @ tree.shares
    return np.add.reduceat(by_column, tree.schema.first_column, axis=1), float(size)


def _between(tree: Explained, at_leaves: np.ndarray) -> np.ndarray:
    """Return the variance between the branches of each node, (N, ...), of values at leaves."""
    parents = tree.parents
    rows = np.zeros(len(parents))
    sums = np.zeros((len(parents), *at_leaves.shape[1:]))
    weight = np.expand_dims(tree.rows, tuple(range(1, at_leaves.ndim)))
    rows[tree.leaves], sums[tree.leaves] = tree.rows, weight * at_leaves
    for node in range(len(parents) - 1, 0, -1):
        rows[parents[node]] += rows[node]
        sums[parents[node]] += sums[node]
    rows = np.expand_dims(rows, tuple(range(1, at_leaves.ndim)))
    means = sums / np.maximum(rows, _TINY)
    between = np.zeros_like(means)
    above = parents[1:]
    np.add.at(between, above, rows[1:] * (means[1:] - means[above]) ** 2)
    return between


def _variance_shares(weights: np.ndarray) -> np.ndarray:
    """Return shares (m, c) of columns in the variance of sums with weights (m, b, c) per spread."""
    largest = np.abs(weights).max(axis=(1, 2), keepdims=True)
    squares = ((weights / np.maximum(largest, _TINY)) ** 2).sum(axis=1)
    shares: np.ndarray = squares / np.maximum(squares.sum(axis=1, keepdims=True), _TINY)
    return shares


def _even(parents: np.ndarray) -> np.ndarray:
    """Return the share of the rows at each node if all branches of a split get the same."""
    n_children = np.bincount(parents[1:], minlength=len(parents))
    share = np.ones(len(parents))
    for node in range(1, len(parents)):
        share[node] = share[parents[node]] / n_children[parents[node]]
    return share


def _columns_at_leaves(tree: ObliqueTree, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimate the mean and standard deviation of columns at leaves, (L, c), relative to all rows.

    Columns are taken as normal and uncorrelated at every node. The rows of a branch are those whose
    score is above, or below, a quantile.
    """
    counts = sums_of(tree.children, rows)
    mean = np.zeros((len(counts), tree.schema.n_columns))
    variance = np.ones_like(mean)
    weights = tree.weights * tree.schema.column_spread
    weights = weights / np.maximum(np.abs(weights).max(axis=1, keepdims=True), _TINY)
    for i, branches in enumerate(child_nodes(tree.children)):
        covariance = variance[i] * weights[i]
        deviation = np.sqrt(weights[i] @ covariance)
        pull = covariance / max(deviation, _TINY)  # of a standard deviation of the score
        for branch, side in zip(branches, (-1.0, 1.0), strict=True):
            shift, shrink = _upper_part(counts[branch] / max(counts[i], _TINY))
            mean[branch] = mean[i] + side * shift * pull
            variance[branch] = variance[i] - shrink * pull**2
    return mean[tree.n_splits :], np.sqrt(np.maximum(variance[tree.n_splits :], 0.0))


def _upper_part(share: float) -> tuple[float, float]:
    """Return mean and 1 - variance of a standard normal number that is among its largest."""
    if not 0 < share < 1:
        return 0.0, 0.0
    cut = _NORMAL.inv_cdf(share)  # numbers above -cut
    mean = _NORMAL.pdf(cut) / share
    return mean, mean * (mean + cut)
