r"""Linear leaves fitted to their rows: ridge regression, or Newton steps for other losses.

A leaf predicts :math:`f(x) = \theta + A x`, and minimizes over its rows

.. math:: \sum_n w_n L(y_n, f(x_n)) + \rho L(\bar y, f(0)) + \frac\lambda2 \|A\|^2

Outputs are fitted separately, each to a parabola with the slope and about the curvature of the
loss. A step is halved until the sum decreases, so it never increases. For the squared loss, one
step reaches the minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hardwood.learn.leaves.constant import LeafRows, Prior, rows_by_leaf
from hardwood.learn.leaves.quasi_newton import descended
from hardwood.learn.losses import (
    AbsoluteError,
    CrossEntropy,
    Huber,
    Loss,
    Poisson,
    Quantile,
    SquaredError,
)

_MAX_STEPS = 10
_MAX_HALVINGS = 12
_WORTH_A_STEP = 1e-4  # of the objective
_LEAST_CURVATURE = 1e-4  # relative to the largest at a leaf
_MANY_PRODUCTS = 10_000_000  # of entries, in a Newton step
_KINK = 1e-3  # of losses with a kink: residuals closer than this count as this far away


@dataclass(frozen=True)
class LinearLeaves:
    """Scores (L, k) and weights (L, k, c), float64."""

    scores: np.ndarray
    weights: np.ndarray


def linear_leaves(
    loss: Loss,
    rows: LeafRows,
    columns: Callable[[np.ndarray], np.ndarray],
    old: LinearLeaves,
    prior: Prior,
    l2: float,
) -> LinearLeaves:
    """Fit all leaves, starting from their current values.

    Parameters
    ----------
    loss
        Any of the engine's.
    rows
        The rows to fit.
    columns
        A function from indices of `rows` to encoded rows (r, c).
    old
        The start; leaves without weight keep it.
    prior
        Pseudo-rows of each leaf, with the mean target and the mean of all columns.
    l2
        The penalty.
    """
    scores, weights = old.scores.copy(), old.weights.copy()
    for leaf, at in enumerate(rows_by_leaf(rows.leaf, rows.n_leaves)):
        at = at[rows.weight[at] > 0]
        if len(at) == 0:
            continue
        fit = LeafFit(loss, columns(at), rows.target[at], rows.weight[at], prior, l2)
        found = fit.from_start(np.hstack([weights[leaf], scores[leaf][:, None]]))
        weights[leaf], scores[leaf] = found[:, :-1], found[:, -1]
    return LinearLeaves(scores, weights)


class LeafFit:
    """The problem of one leaf; points are [A | theta], (k, c + 1).

    With a `center` (k, c), the penalty is on the distance of A from it instead of from zero. An
    `offset` (r, k) is added to the scores of the rows.
    """

    def __init__(
        self,
        loss: Loss,
        X: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        prior: Prior,
        l2: float,
        center: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> None:
        ones = np.ones((len(X), 1))
        self._loss, self._prior, self._l2 = loss, prior, l2
        self._X = np.hstack([X.astype(np.float64), ones])  # (r, c + 1)
        self._target, self._weight = target, weight
        self._center = center
        self._offset = offset

    def _scores(self, P: np.ndarray) -> np.ndarray:
        scores: np.ndarray = self._X @ P.T
        return scores if self._offset is None else scores + self._offset

    def from_start(self, P: np.ndarray) -> np.ndarray:
        """Return the minimum, or a point at which steps are hardly worth it."""
        if self._is_large:
            size = self.curvature(P)[1].sum(axis=0)
            hessian = self.hessians(P, is_shared=True)[0]
            return descended(self._value_and_slope, P, hessian, size / size.mean())
        value = self.value(P)
        for _ in range(_MAX_STEPS):
            step = self._newton(P) - P
            for _ in range(_MAX_HALVINGS):
                next_value = self.value(P + step)
                if next_value < value:
                    break
                step = 0.5 * step
            else:
                return P
            P, gained, value = P + step, value - next_value, next_value
            if isinstance(self._loss, SquaredError) or gained <= _WORTH_A_STEP * abs(value):
                return P
        return P

    @property
    def _is_large(self) -> bool:
        """Whether Newton steps, output by output, take longer than quasi-Newton steps."""
        n_outputs = len(self._prior.target)
        n_products = self._X.size * self._X.shape[1] * n_outputs
        is_class = isinstance(self._loss, CrossEntropy)
        return is_class and n_outputs > 2 and n_products > _MANY_PRODUCTS

    def _value_and_slope(self, P: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective for classes, and its slope by each coefficient."""
        X, w, offset = self._with_prior()
        target = self._targets_by_class
        f = P @ X.T + offset.T  # (k, r): sums over classes are faster than over (r, k)
        top = f.max(axis=0)
        p = np.exp(f - top)
        total = p.sum(axis=0)
        value = w @ (top + np.log(total) - (target * f).sum(axis=0))
        p /= total
        slope = ((p - target) * w) @ X
        off_center = self._off_center(P)
        slope[:, :-1] += self._l2 * off_center
        return float(value + 0.5 * self._l2 * (off_center**2).sum()), slope

    @cached_property
    def _targets_by_class(self) -> np.ndarray:
        return np.ascontiguousarray(self._all_targets().T)

    def value(self, P: np.ndarray) -> float:
        """Return the objective."""
        rows = self._weight @ row_losses(self._loss, self._scores(P), self._target)
        of_prior = 0.0
        if self._prior.n_rows > 0:
            of_prior = self._prior.n_rows * _prior_value(self._loss, P[:, -1], self._prior)
        return float(rows + of_prior + 0.5 * self._l2 * (self._off_center(P) ** 2).sum())

    def _off_center(self, P: np.ndarray) -> np.ndarray:
        """Return A less the center."""
        return P[:, :-1] if self._center is None else P[:, :-1] - self._center

    def curvature(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted slope and curvature of each row's loss by each output, (r, k)."""
        slope, curvature = _slopes(self._loss, self._scores(P), self._row_targets())
        return slope * self._weight[:, None], curvature * self._weight[:, None]

    def hessians(self, P: np.ndarray, is_shared: bool) -> np.ndarray:
        """Return the curvature of the objective at P, output by output, or their mean as one."""
        _, curvature = self.curvature(P)
        if is_shared:
            curvature = curvature.mean(axis=1, keepdims=True)
        n_columns = self._X.shape[1]
        found = np.empty((curvature.shape[1], n_columns, n_columns))
        for o, h in enumerate(curvature.T):
            found[o] = (self._X * h[:, None]).T @ self._X
        least = 1e-9 * np.trace(found, axis1=1, axis2=2) + 1e-30
        penalty = np.full((len(found), n_columns), self._l2) + least[:, None]
        penalty[:, -1] = least
        found[:, np.arange(n_columns), np.arange(n_columns)] += penalty
        return found

    def _newton(self, P: np.ndarray) -> np.ndarray:
        """Return the minimum of the parabolas at P, output by output."""
        X, w, offset = self._with_prior()
        f = X @ P.T + offset
        slope, curvature = _slopes(self._loss, f, self._all_targets())
        h = np.maximum(curvature, _LEAST_CURVATURE * curvature.max())
        found = np.empty_like(P)
        for o in range(len(P)):
            z = f[:, o] - offset[:, o % offset.shape[1]] - slope[:, o] / h[:, o]
            if self._center is None:
                found[o] = _weighted_ridge(X, z, w * h[:, o], self._l2)
                continue
            shift = np.append(self._center[o], 0.0)
            found[o] = shift + _weighted_ridge(X, z - X @ shift, w * h[:, o], self._l2)
        return found

    def _with_prior(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the columns, weights and offsets of the rows and the prior."""
        offset = np.zeros((len(self._X), 1)) if self._offset is None else self._offset
        if self._prior.n_rows == 0:
            return self._X, self._weight, offset
        center = np.zeros((1, self._X.shape[1]))
        center[0, -1] = 1.0
        of_prior = np.zeros((1, offset.shape[1]))
        weight = np.append(self._weight, self._prior.n_rows)
        return np.vstack([self._X, center]), weight, np.vstack([offset, of_prior])

    def _row_targets(self) -> np.ndarray:
        """Targets of the rows; classes as shares (r, k)."""
        if isinstance(self._loss, CrossEntropy):
            return np.eye(len(self._prior.target))[self._target[:, 0].astype(np.int64)]
        return self._target

    def _all_targets(self) -> np.ndarray:
        """Targets of the rows and the prior."""
        target = self._row_targets()
        return target if self._prior.n_rows == 0 else np.vstack([target, self._prior.target])


def _weighted_ridge(X: np.ndarray, z: np.ndarray, h: np.ndarray, l2: float) -> np.ndarray:
    """Minimize sum h (X q - z)^2 + l2 |q|^2 over q, whose last entry, the bias, is free."""
    least = 1e-9 * float(h.sum()) + 1e-30
    penalty = np.full(X.shape[1], max(l2, least))
    penalty[-1] = least
    if len(X) >= X.shape[1]:
        gram = (X * h[:, None]).T @ X
        gram[np.diag_indices_from(gram)] += penalty
        primal: np.ndarray = np.linalg.solve(gram, X.T @ (h * z))
        return primal
    # One equation per row: q = D^-1 X^T (X D^-1 X^T + H^-1)^-1 z
    scaled = X / penalty
    kernel = scaled @ X.T
    kernel[np.diag_indices_from(kernel)] += 1.0 / h
    dual: np.ndarray = scaled.T @ np.linalg.solve(kernel, z)
    return dual


def row_losses(loss: Loss, f: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Loss of each row (r,); definitions as in ``tests/reference/losses.py``."""
    if isinstance(loss, CrossEntropy):
        top = f.max(axis=1)
        log_sum = top + np.log(np.exp(f - top[:, None]).sum(axis=1))
        values: np.ndarray = log_sum - f[np.arange(len(f)), target[:, 0].astype(np.int64)]
        return values
    values = _elementwise(loss, f, target)[0]
    return np.asarray(values.mean(axis=1))


def _prior_value(loss: Loss, f: np.ndarray, prior: Prior) -> float:
    if isinstance(loss, CrossEntropy):
        top = f.max()
        return float(top + np.log(np.exp(f - top).sum()) - prior.target @ f)
    return float(_elementwise(loss, f[None], prior.target[None])[0].mean())


def _slopes(loss: Loss, f: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First derivatives by each output, and curvatures > 0 to go with them, (r, k)."""
    if isinstance(loss, CrossEntropy):
        p = loss.link(f)
        return p - target, np.maximum(p * (1.0 - p), 1e-6)
    _, slope, curvature = _elementwise(loss, f, target)
    k = f.shape[1]
    return slope / k, curvature / k


def _elementwise(
    loss: Loss, f: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, slope and curvature of each entry."""
    r = f - y
    size = np.abs(r)
    if isinstance(loss, SquaredError):
        return r**2, 2.0 * r, np.full_like(r, 2.0)
    if isinstance(loss, Huber):
        inside = size <= loss.delta
        value = np.where(inside, 0.5 * r**2, loss.delta * (size - 0.5 * loss.delta))
        return value, np.clip(r, -loss.delta, loss.delta), loss.delta / np.maximum(size, loss.delta)
    if isinstance(loss, AbsoluteError | Quantile):
        level = loss.level if isinstance(loss, Quantile) else 0.5
        factor = 1.0 if isinstance(loss, Quantile) else 2.0
        slope = np.where(r < 0, -level, 1.0 - level)
        return factor * slope * r, factor * slope, 0.5 * factor / np.maximum(size, _KINK)
    if isinstance(loss, Poisson):
        mean = np.exp(np.minimum(f, 50.0))
        return mean - y * f, mean - y, mean
    p = 0.5 + 0.5 * np.tanh(0.5 * f)  # logistic, of one score or of several labels
    value = np.logaddexp(0.0, f) - y * f
    return value, p - y, np.maximum(p * (1.0 - p), 1e-6)
