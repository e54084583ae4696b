r"""Constant leaves fitted to their rows.

Each leaf minimizes the loss of its rows, exactly or at least without increasing it, so refitting
never makes a tree worse. All computations are in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hardwood.learn.losses import (
    AbsoluteError,
    CrossEntropy,
    Huber,
    LabelwiseLogistic,
    Logistic,
    Loss,
    Misclassification,
    Poisson,
    Quantile,
    SquaredError,
)

_HUBER_STEPS = 50


@dataclass(frozen=True)
class LeafRows:
    """Rows and the leaves they reach.

    Attributes
    ----------
    leaf, n_leaves
        (n,) indices of leaves, and the number of leaves.
    target
        (n, t) float64, in the units of the loss.
    weight
        (n,) float64.
    """

    leaf: np.ndarray
    n_leaves: int
    target: np.ndarray
    weight: np.ndarray

    def sums(self, of_rows: np.ndarray) -> np.ndarray:
        """Return weighted sums (L, k) of (n, k) over the rows of each leaf."""
        columns = [
            np.bincount(self.leaf, self.weight * column, minlength=self.n_leaves)
            for column in of_rows.T
        ]
        return np.stack(columns, axis=1)

    @property
    def totals(self) -> np.ndarray:
        """The total weight at each leaf, (L, 1)."""
        return np.bincount(self.leaf, self.weight, minlength=self.n_leaves)[:, None]


@dataclass(frozen=True)
class Prior:
    """Pseudo-rows with the mean target, added to every leaf.

    Attributes
    ----------
    n_rows
        Their weight; 0 for none.
    target
        (k,) the mean target; for classes, their shares.
    """

    n_rows: float
    target: np.ndarray


def rows_by_leaf(leaf: np.ndarray, n_leaves: int) -> list[np.ndarray]:
    """Return the indices of the rows at each leaf, in order."""
    order = np.argsort(leaf, kind="stable")
    return np.split(order, np.cumsum(np.bincount(leaf, minlength=n_leaves))[:-1])


def mean_target(loss: Loss, rows: LeafRows, n_outputs: int) -> np.ndarray:
    """Return the weighted mean target (k,) of all rows; for classes, their shares."""
    target = _one_hot(rows, n_outputs) if isinstance(loss, CrossEntropy) else rows.target
    mean: np.ndarray = rows.weight @ target / rows.weight.sum()
    return mean


def constant_leaves(loss: Loss, rows: LeafRows, old: np.ndarray, prior: Prior) -> np.ndarray:
    """Fit the constants of all leaves.

    Parameters
    ----------
    loss
        Any of the engine's, or `Misclassification`.
    rows
        The rows to fit.
    old
        (L, k) scores; leaves without weight keep them.
    prior
        The pseudo-rows of each leaf.

    Returns
    -------
    scores
        (L, k) float64, which minimize the loss of each leaf, or at least do not increase it.
    """
    fitted = _FITS[type(loss)](loss, rows, old, prior)
    return np.where(rows.totals > 0, fitted, old)


def class_counts(rows: LeafRows, n_classes: int) -> np.ndarray:
    """Weight of each class at each leaf, (L, k)."""
    return rows.sums(_one_hot(rows, n_classes))


def class_shares(rows: LeafRows, n_classes: int, prior: Prior) -> np.ndarray:
    """Shares of the classes (L, k) at each leaf; uniform where there is nothing."""
    sums = class_counts(rows, n_classes) + prior.n_rows * prior.target
    total = sums.sum(axis=1, keepdims=True)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), 1.0 / n_classes)


def _one_hot(rows: LeafRows, n_classes: int) -> np.ndarray:
    hot: np.ndarray = np.eye(n_classes)[rows.target[:, 0].astype(np.int64)]
    return hot


def _means(rows: LeafRows, prior: Prior) -> np.ndarray:
    total = rows.totals + prior.n_rows
    sums = rows.sums(rows.target) + prior.n_rows * prior.target
    return sums / np.where(total > 0, total, 1.0)


def _mean_leaves(loss: Loss, rows: LeafRows, old: np.ndarray, prior: Prior) -> np.ndarray:
    """Means: scores are what the link makes them of."""
    return _means(rows, prior)


def _linked_mean_leaves(loss: Loss, rows: LeafRows, old: np.ndarray, prior: Prior) -> np.ndarray:
    return loss.scores(_means(rows, prior))


def _logistic_leaves(loss: Loss, rows: LeafRows, old: np.ndarray, prior: Prior) -> np.ndarray:
    p = _means(rows, prior)
    return loss.scores(np.hstack([1.0 - p, p]))


def _class_leaves(loss: Loss, rows: LeafRows, old: np.ndarray, prior: Prior) -> np.ndarray:
    return loss.scores(class_shares(rows, old.shape[1], prior))


def _quantile_leaves(loss: Loss, rows: LeafRows, old: np.ndarray, prior: Prior) -> np.ndarray:
    level = loss.level if isinstance(loss, Quantile) else 0.5
    fitted = old.astype(np.float64)
    for leaf, at in enumerate(rows_by_leaf(rows.leaf, rows.n_leaves)):
        for o in range(old.shape[1]):
            y = np.append(rows.target[at, o], prior.target[o])
            w = np.append(rows.weight[at], prior.n_rows)
            fitted[leaf, o] = _weighted_quantile(y, w, level)
    return fitted


def _weighted_quantile(y: np.ndarray, weight: np.ndarray, level: float) -> float:
    """Return a weighted quantile: the midpoint if an interval of numbers is optimal."""
    order = np.argsort(y, kind="stable")
    up_to = np.cumsum(weight[order])
    wanted = level * up_to[-1]
    last = len(y) - 1
    low = min(int(np.searchsorted(up_to, wanted, side="left")), last)
    high = min(int(np.searchsorted(up_to, wanted, side="right")), last)
    return float(0.5 * (y[order[low]] + y[order[high]]))


def _huber_leaves(loss: Loss, rows: LeafRows, old: np.ndarray, prior: Prior) -> np.ndarray:
    """Fit by iteratively reweighted means, which decrease the loss at each step."""
    assert isinstance(loss, Huber)
    fitted = old.astype(np.float64)
    for _ in range(_HUBER_STEPS):
        size = np.abs(rows.target - fitted[rows.leaf])
        h = loss.delta / np.maximum(size, loss.delta)
        of_prior = np.abs(prior.target - fitted)
        h0 = prior.n_rows * loss.delta / np.maximum(of_prior, loss.delta)
        total = rows.sums(h) + h0
        step = (rows.sums(h * rows.target) + h0 * prior.target) / np.where(total > 0, total, 1.0)
        fitted = np.where(total > 0, step, fitted)
    return fitted


_FITS: dict[type[Loss], Callable[[Loss, LeafRows, np.ndarray, Prior], np.ndarray]] = {
    SquaredError: _mean_leaves,
    AbsoluteError: _quantile_leaves,
    Quantile: _quantile_leaves,
    Huber: _huber_leaves,
    Poisson: _linked_mean_leaves,
    LabelwiseLogistic: _linked_mean_leaves,
    Logistic: _logistic_leaves,
    CrossEntropy: _class_leaves,
    Misclassification: _class_leaves,  # the largest share is the label
}
