"""Means and differences of scores over folds, with intervals that know that folds overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean over folds and what it may be in truth, at 95 %.

    Examples
    --------
    >>> Interval(0.5, 0.4, 0.6).excludes_zero
    True
    """

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether chance is no likely reason for the sign."""
        return self.low > 0 or self.high < 0


def interval(values: np.ndarray, n_train: float, n_test: float) -> Interval:
    """Return the mean of values over folds, one each, with its interval.

    Parameters
    ----------
    values
        (k,) scores of a model, or differences between two models on the same folds.
    n_train, n_test
        Rows that teach and that score, in the mean.

    Notes
    -----
    Folds share most of the rows that teach, so their scores vary less than those of new tables
    would. As Nadeau and Bengio (2003) have it, the variance of the mean is taken as
    ``(1/k + n_test/n_train)`` times that of the values, in place of ``1/k`` times; quantiles are
    Student's with k - 1 degrees of freedom. Of a single fold there is no interval (NaN).
    """
    k, mean = len(values), float(np.mean(values))
    if k < 2:
        return Interval(mean, np.nan, np.nan)
    spread = float(np.var(values, ddof=1)) * (1 / k + n_test / n_train)
    reach = float(stdtrit(k - 1, (1 + CONFIDENCE) / 2)) * float(np.sqrt(spread))
    return Interval(mean, mean - reach, mean + reach)
