r"""Find a split with fewer terms that separates its rows as before.

A split separates its rows by the sign of :math:`w \cdot x - t`. Other weights and thresholds may
separate the same rows: `Sides.gap` finds the thresholds for given weights, and `fewest_terms` finds
a split with few weights.

It removes terms one after the other, like backward elimination in regression. When a term is
removed, the other weights are adjusted to minimize the mean squared change of the scores over the
rows at the split. With the covariance :math:`G` of the columns and
:math:`H = G^{-1}`, the change and the new weights after removing the terms :math:`A` are

.. math:: w_A^T H_{AA}^{-1} w_A, \qquad w - H_{\cdot A} H_{AA}^{-1} w_A

(B. Hassibi and D. Stork, *Second order derivatives for network pruning*, 1992, for one term), and
the inverse for the remaining terms is :math:`H - H_{\cdot A} H_{AA}^{-1} H_{A \cdot}`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardwood.model.edit.each_split import RowsAtSplit

_ROUNDING = 2.0**-24  # rounding error of one operation in float32
# Fractions of the maximum error of float32 sums, to try in turn; it is rarely needed in full.
CAUTIONS = (1 / 16, 1.0)
# Number of terms to try together first; fewer if not all of them can be removed.
MOST_TOGETHER = 64
_MOST_FAILURES = 32  # failures in a row with the least important terms: then all others stay, too
# With few rows the covariance is unreliable: it is shrunk towards the training variances, with the
# weight of this fraction of a row per term.
_PRIOR_ROWS_PER_TERM = 0.1
_LEAST_VARIANCE = 1e-6  # variance of a column that was constant in training
_NARROW = 1e-9  # minimum gap relative to the scores; smaller gaps hold no short number
_RIDGE = 1e-10  # relative; columns may be linearly dependent


@dataclass(frozen=True)
class Gap:
    """Thresholds between ``low`` and ``high``, exclusive, and the weight of the rows that move."""

    low: float
    high: float
    moved: float


@dataclass(frozen=True, eq=False)
class Sides:
    """Rows and their sides.

    Parameters
    ----------
    weight
        (n,) row weights.
    goes_right
        (n,) bool.
    caution
        Minimum distance of a row from the threshold, as a fraction of the maximum error of the
        engine's sums: with 1, rounding cannot move any row.
    """

    weight: np.ndarray
    goes_right: np.ndarray
    caution: float

    def doubt(self, weights: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Return the maximum error of the engine's float32 scores, (n,).

        ``norms`` (n,) are the norms of the rows in the columns used: the absolute terms of a sum
        add up to at most the product of the norms.
        """
        operations = 10 + weights.size / 16  # operations for each term of the sum
        size = 2 * self.caution * _ROUNDING * operations * float(np.linalg.norm(weights))
        doubt: np.ndarray = size * norms
        return doubt

    def gap(self, scores: np.ndarray, doubt: np.ndarray) -> Gap:
        """Find the thresholds that move the smallest weight of rows; on ties the widest gap.

        A row keeps its side only if its score is further from the threshold than ``doubt``. At
        least half of each side stays, so that a split with two sides keeps both.
        """
        right = scores[self.goes_right] - doubt[self.goes_right]  # thresholds must be below
        left = scores[~self.goes_right] + doubt[~self.goes_right]  # or above
        least, most = right.min(initial=np.inf), left.max(initial=-np.inf)
        narrow = _NARROW * float(np.abs(scores).max(initial=0.0))
        if least - most > narrow:
            return Gap(float(most), float(least), 0.0)
        # A threshold between these two can move only the rows between them.
        near_right, near_left = right <= most, left >= least
        ends = np.concatenate([right[near_right], left[near_left]])
        order = np.argsort(ends, kind="stable")
        weight_right, weight_left = self.weight[self.goes_right], self.weight[~self.goes_right]
        of_right = np.concatenate([weight_right[near_right], np.zeros(near_left.sum())])[order]
        of_left = np.concatenate([np.zeros(near_right.sum()), weight_left[near_left]])[order]
        moved_right = np.concatenate([[0.0], np.cumsum(of_right)])
        moved_left = np.concatenate([np.cumsum(of_left[::-1])[::-1], [0.0]])
        below, above = left[~near_left].max(initial=-np.inf), right[~near_right].min(initial=np.inf)
        bounds = np.concatenate([[below], ends[order], [above]])
        widths = np.diff(bounds)
        moved = moved_right + moved_left
        moved[widths <= narrow] = np.inf
        moved[moved_right > weight_right.sum() / 2] = np.inf
        moved[moved_left > weight_left.sum() / 2] = np.inf
        best = (
            moved <= moved.min() + 1e-9 * self.weight.sum()
        )  # tolerance for rounding of summed weights
        at = int(np.argmax(np.where(best, widths, -1.0)))
        return Gap(float(bounds[at]), float(bounds[at + 1]), float(moved[at]))

    def moved_by(self, scores: np.ndarray, doubt: np.ndarray, threshold: float) -> np.ndarray:
        """Return which rows may change sides, (n,) bool."""
        ahead = np.where(self.goes_right, scores - threshold, threshold - scores)
        moved: np.ndarray = ahead <= doubt
        return moved


@dataclass(frozen=True, eq=False)
class Separation:
    """Terms that separate rows.

    Attributes
    ----------
    used
        (t,) the columns used.
    weights
        (t,) in units of `Schema.column_scale`.
    values
        (n, t) float64, the columns.
    moved
        Weight of the rows that the best threshold moves.
    mean
        Mean original score of the rows, without the bias.
    """

    used: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    moved: float
    mean: float


def all_terms(at: RowsAtSplit, weights: np.ndarray) -> Separation:
    """Return a split with all its terms, (c,) weights in units of `Schema.column_scale`."""
    used = np.flatnonzero(weights)
    values = at.columns[:, used].astype(np.float64)
    mean = float((at.weight / at.weight.sum()) @ values @ weights[used])
    return Separation(used, weights[used], values, 0.0, mean)


def fewest_terms(
    at: RowsAtSplit,
    weights: np.ndarray,
    variance: np.ndarray,
    sides: Sides,
    *,
    price: float,
    most_moved: float,
) -> Separation:
    """Remove terms from a split.

    Parameters
    ----------
    at
        The rows.
    weights
        (c,) weights of the split, in units of `Schema.column_scale`.
    variance
        (c,) training variances of the columns, in these units.
    sides
        The sides of the rows.
    price
        Weight of rows that may move per removed term.
    most_moved
        Maximum weight of rows that may move in total.

    Returns
    -------
    separation
        With at least one term; unchanged if none can be removed.

    Notes
    -----
    At most O(n t^2) for t terms; the memory holds (n, t) float64.
    """
    used = np.flatnonzero(weights)
    values = at.columns[:, used].astype(np.float64)
    share = at.weight / at.weight.sum()
    means = share @ values
    terms = _Terms(weights[used], values, _inverse_covariance(values, share, means, variance[used]))
    moved, size, n_failures = 0.0, MOST_TOGETHER, 0
    while n_failures < _MOST_FAILURES and (group := terms.next_to_go(size)).size:
        size = group.size
        fewer = terms.weights_without(group)
        found = sides.gap(values @ fewer, sides.doubt(fewer[fewer != 0], terms.norms)).moved
        if found <= min(moved + price * size, most_moved):
            terms.remove(group)
            moved, n_failures = found, 0
        elif size > 1:
            size //= 2
        else:
            terms.is_stuck[group] = True
            n_failures += 1
    left = terms.left
    mean = float(means @ weights[used])
    return Separation(used[left], terms.weights[left], values[:, left], moved, mean)


class _Terms:
    """The remaining terms, and how the others would change if each was removed."""

    def __init__(self, weights: np.ndarray, values: np.ndarray, H: np.ndarray) -> None:
        self.weights = weights  # (t,), 0 for removed terms
        self.left = np.arange(weights.size)
        self.is_stuck = np.zeros(weights.size, dtype=bool)
        self._values = values  # (n, t)
        self._H = H  # inverse covariance of the remaining terms
        self._squares = np.einsum("ij,ij->i", values, values)

    @property
    def norms(self) -> np.ndarray:
        """(n,) norms of the rows in the remaining columns."""
        norms: np.ndarray = np.sqrt(np.maximum(self._squares, 0.0))
        return norms

    def next_to_go(self, size: int) -> np.ndarray:
        """Return the least important terms, at most this many; one always stays."""
        costs = self.weights[self.left] ** 2 / np.diag(self._H)
        costs[self.is_stuck[self.left]] = np.inf
        size = min(size, int(np.isfinite(costs).sum()), self.left.size - 1)
        return np.sort(self.left[np.argsort(costs, kind="stable")[:size]])

    def weights_without(self, group: np.ndarray) -> np.ndarray:
        """Return the weights (t,) after removing a group."""
        goes, to_others = self._shares(group)
        weights = self.weights.copy()
        weights[self.left[~goes]] -= to_others @ weights[group]
        weights[group] = 0.0
        return weights

    def remove(self, group: np.ndarray) -> None:
        """Remove a group."""
        goes, to_others = self._shares(group)
        self.weights = self.weights_without(group)
        self._H = self._H[np.ix_(~goes, ~goes)] - to_others @ self._H[np.ix_(goes, ~goes)]
        self.left = self.left[~goes]
        self._squares -= (self._values[:, group] ** 2).sum(axis=1)

    def _shares(self, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which remaining terms are in a group, and the adjustment factors (t - g, g).

        ``group`` is in increasing order.
        """
        goes = np.isin(self.left, group)
        H = self._H[goes]
        to_others: np.ndarray = np.linalg.solve(H[:, goes], H[:, ~goes]).T
        return goes, to_others


def _inverse_covariance(
    values: np.ndarray, share: np.ndarray, means: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Return the inverse of the shrunk covariance of columns (n, t) over weighted rows."""
    n_rows = 1 / float(share @ share)
    n_prior = _PRIOR_ROWS_PER_TERM * variance.size
    of_rows = (values * share[:, None]).T @ values - np.outer(means, means)
    prior = np.diag(np.maximum(variance, _LEAST_VARIANCE))
    covariance = (n_rows * of_rows + n_prior * prior) / (n_rows + n_prior)
    deviation = np.sqrt(np.diag(covariance))  # standardized, the matrix is well-conditioned
    correlation = covariance / np.outer(deviation, deviation)
    correlation[np.diag_indices(variance.size)] += _RIDGE
    inverse: np.ndarray = np.linalg.inv(correlation) / np.outer(deviation, deviation)
    return inverse
