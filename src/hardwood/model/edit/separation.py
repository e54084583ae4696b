r"""Fewer terms for a split that parts its rows as before.

A split parts its rows by the sign of :math:`w \cdot x - t`. Of the rows alone, other weights and
thresholds may do as well: `Sides.gap` says between which thresholds given weights do, and
`fewest_terms` looks for few weights.

It removes terms one after the other, as backward elimination in regression does. When a term goes,
the others take over what they can of it: they change so that the scores change least, in the mean
square over the rows at the split. With the covariance :math:`G` of the columns and
:math:`H = G^{-1}`, removing the terms :math:`A` costs and leaves

.. math:: w_A^T H_{AA}^{-1} w_A, \qquad w - H_{\cdot A} H_{AA}^{-1} w_A

(B. Hassibi and D. Stork, *Second order derivatives for network pruning*, 1992, for one term), and
the inverse for those that are left is :math:`H - H_{\cdot A} H_{AA}^{-1} H_{A \cdot}`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardwood.model.edit.each_split import RowsAtSplit

_ROUNDING = 2.0**-24  # of one operation in float32
# So many terms are tried together first; fewer only if they cannot all go.
MOST_TOGETHER = 64
_MOST_FAILURES = 32  # in a row, of the least important terms alone: then the others must stay, too
# Few rows say little of how columns go together: this share of a made-up row per term says that
# they do not, with the variance of training.
_PRIOR_ROWS_PER_TERM = 0.1
_LEAST_VARIANCE = 1e-6  # of a column that was constant in training
_NARROW = 1e-9  # of a gap, relative to the scores: no short number would be in it
_RIDGE = 1e-10  # relative; columns may be sums of others


@dataclass(frozen=True)
class Gap:
    """Thresholds between ``low`` and ``high``, exclusive, and the weight of the rows they move."""

    low: float
    high: float
    moved: float


@dataclass(frozen=True, eq=False)
class Sides:
    """Rows and the sides they are to take.

    Parameters
    ----------
    weight
        (n,) what each counts.
    goes_right
        (n,) bool.
    caution
        What part of the largest possible error of the engine's sums a row must be away from the
        threshold by: at 1 none can be moved unseen.
    """

    weight: np.ndarray
    goes_right: np.ndarray
    caution: float

    def doubt(self, weights: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Return how far the engine's scores, in float32, may be off, (n,).

        ``norms`` (n,) are those of the rows in the columns that are weighed: of a sum, the sizes of
        the terms add up to at most the product of the norms, and so much is the threshold near it.
        """
        operations = 10 + weights.size / 16  # on the way of a term into the sum
        size = 2 * self.caution * _ROUNDING * operations * float(np.linalg.norm(weights))
        doubt: np.ndarray = size * norms
        return doubt

    def gap(self, scores: np.ndarray, doubt: np.ndarray) -> Gap:
        """Find the thresholds that move the least weight of rows; of several gaps the widest.

        A row stays on its side only where its score is further from the threshold than ``doubt``.
        Half of a side stays at least: a split that has two sides keeps them.
        """
        right = scores[self.goes_right] - doubt[self.goes_right]  # thresholds must be below
        left = scores[~self.goes_right] + doubt[~self.goes_right]  # or above
        least, most = right.min(initial=np.inf), left.max(initial=-np.inf)
        narrow = _NARROW * float(np.abs(scores).max(initial=0.0))
        if least - most > narrow:
            return Gap(float(most), float(least), 0.0)
        # Only rows between these two can be moved by a threshold between them.
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
        best = moved <= moved.min() + 1e-9 * self.weight.sum()  # sums of weights are rounded
        at = int(np.argmax(np.where(best, widths, -1.0)))
        return Gap(float(bounds[at]), float(bounds[at + 1]), float(moved[at]))

    def moved_by(self, scores: np.ndarray, doubt: np.ndarray, threshold: float) -> np.ndarray:
        """Tell which rows are not surely on their sides, (n,) bool."""
        ahead = np.where(self.goes_right, scores - threshold, threshold - scores)
        moved: np.ndarray = ahead <= doubt
        return moved


@dataclass(frozen=True, eq=False)
class Separation:
    """Terms that part rows.

    Attributes
    ----------
    used
        (t,) the columns that are weighed.
    weights
        (t,) in units of `Schema.column_scale`.
    values
        (n, t) float64, the columns.
    moved
        Weight of the rows that the best threshold moves.
    mean
        Mean over the rows of the scores, without the bias, that the split had.
    """

    used: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    moved: float
    mean: float


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
        (c,) of the split, in units of `Schema.column_scale`.
    variance
        (c,) of the columns in training, in these units.
    sides
        The sides of the rows.
    price
        How much weight of rows may be moved for each term that goes.
    most_moved
        And how much in all.

    Returns
    -------
    separation
        With at least one term; as it was where none can go.

    Notes
    -----
    O(n t^2) for t terms at most; (n, t) float64 are in memory.
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
    """Terms of which some have gone, and what the others would take over from each."""

    def __init__(self, weights: np.ndarray, values: np.ndarray, H: np.ndarray) -> None:
        self.weights = weights  # (t,), 0 of those that have gone
        self.left = np.arange(weights.size)
        self.is_stuck = np.zeros(weights.size, dtype=bool)
        self._values = values  # (n, t)
        self._H = H  # inverse covariance of those that are left
        self._squares = np.einsum("ij,ij->i", values, values)

    @property
    def norms(self) -> np.ndarray:
        """(n,) of the rows in the columns that are left."""
        norms: np.ndarray = np.sqrt(np.maximum(self._squares, 0.0))
        return norms

    def next_to_go(self, size: int) -> np.ndarray:
        """Return the least important terms, at most so many; one always stays."""
        costs = self.weights[self.left] ** 2 / np.diag(self._H)
        costs[self.is_stuck[self.left]] = np.inf
        size = min(size, int(np.isfinite(costs).sum()), self.left.size - 1)
        return np.sort(self.left[np.argsort(costs, kind="stable")[:size]])

    def weights_without(self, group: np.ndarray) -> np.ndarray:
        """Weights (t,) of the others, as they are after a group has gone."""
        goes, to_others = self._shares(group)
        weights = self.weights.copy()
        weights[self.left[~goes]] -= to_others @ weights[group]
        weights[group] = 0.0
        return weights

    def remove(self, group: np.ndarray) -> None:
        """Let a group go."""
        goes, to_others = self._shares(group)
        self.weights = self.weights_without(group)
        self._H = self._H[np.ix_(~goes, ~goes)] - to_others @ self._H[np.ix_(goes, ~goes)]
        self.left = self.left[~goes]
        self._squares -= (self._values[:, group] ** 2).sum(axis=1)

    def _shares(self, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of those left are in a group, and what of them each other takes over, (t - g, g).

        ``group`` is in increasing order.
        """
        goes = np.isin(self.left, group)
        H = self._H[goes]
        to_others: np.ndarray = np.linalg.solve(H[:, goes], H[:, ~goes]).T
        return goes, to_others


def _inverse_covariance(
    values: np.ndarray, share: np.ndarray, means: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Inverse covariance of columns (n, t) over weighted rows, together with made-up ones."""
    n_rows = 1 / float(share @ share)
    n_made_up = _PRIOR_ROWS_PER_TERM * variance.size
    of_rows = (values * share[:, None]).T @ values - np.outer(means, means)
    prior = np.diag(np.maximum(variance, _LEAST_VARIANCE))
    covariance = (n_rows * of_rows + n_made_up * prior) / (n_rows + n_made_up)
    deviation = np.sqrt(np.diag(covariance))  # divided by, lest columns of all sizes be one matrix
    correlation = covariance / np.outer(deviation, deviation)
    correlation[np.diag_indices(variance.size)] += _RIDGE
    inverse: np.ndarray = np.linalg.inv(correlation) / np.outer(deviation, deviation)
    return inverse
