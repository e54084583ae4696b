"""Confidence intervals of a metric: Wilson's for a share, the bootstrap for all others.

All metrics are functions of one weight per row. A bootstrap resample is then another vector of
weights (how often each row was drawn), and sample weights cost nothing extra. Rows with the same
target, prediction and weight are counted together: a tree makes few distinct predictions, so that a
resample of a million rows is one draw from a multinomial distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

LEVEL = 0.95
Z = 1.959963984540054  # quantile of the normal distribution for LEVEL
_MAX_RESAMPLES = 1000
_MIN_RESAMPLES = 200
_MAX_DRAWS = 2e8  # rows times resamples: a few seconds
_MIN_ALIKE = 4  # rows per kind from which it is faster to count them together

Metric = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Score:
    """The value of a metric with its interval; NaN where the metric is not defined."""

    name: str
    value: float
    low: float
    high: float
    method: str


@dataclass(frozen=True, eq=False)
class Kinds:
    """Rows grouped by everything that a metric depends on.

    Attributes
    ----------
    first
        (c,) position of one row of each kind.
    count
        (c,) number of rows of each kind.
    weight
        (c,) weight of one row of each kind.
    """

    first: np.ndarray
    count: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, weight: np.ndarray, *columns: np.ndarray) -> Kinds:
        """Group rows, (n,) or (n, k) each; every row is its own kind where few are the same."""
        n = len(weight)
        number = np.zeros(n, dtype=np.int64)
        for column in (weight, *columns):
            for one in column.reshape(n, -1).T:
                number = _refined(number, one)
                if number.max() * _MIN_ALIKE >= n:
                    return cls(np.arange(n), np.ones(n, dtype=np.int64), weight)
        _, first, count = np.unique(number, return_index=True, return_counts=True)
        return cls(first, count, weight[first])

    @property
    def n_rows(self) -> int:
        """Number of rows of all kinds."""
        return int(self.count.sum())

    @property
    def total(self) -> np.ndarray:
        """(c,) total weight of the rows of each kind."""
        return self.count * self.weight

    def resample(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a bootstrap resample of the rows: (c,) their weight by kind."""
        n = self.n_rows
        if n == len(self.count):
            drawn = np.bincount(rng.integers(0, n, n), minlength=n)
        else:
            drawn = rng.multinomial(n, self.count / n)
        return drawn * self.weight


def _refined(number: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Divide kinds of rows by the values of a further column; kinds are numbered from 0."""
    levels, place = np.unique(column, return_inverse=True)
    if levels.size == 1:
        return number
    return np.unique(number * levels.size + place, return_inverse=True)[1]


def generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from a seed or a generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "random_state must be an integer >= 0 or a numpy.random.Generator, got "
            f"{random_state!r:.80}"
        ) from None


def n_resamples(n_rows: int) -> int:
    """Return the number of bootstrap resamples for a table of ``n_rows``."""
    return int(np.clip(_MAX_DRAWS // max(n_rows, 1), _MIN_RESAMPLES, _MAX_RESAMPLES))


def bootstrap(metrics: Mapping[str, Metric], kinds: Kinds, rng: np.random.Generator) -> list[Score]:
    """Compute metrics with intervals from the quantiles of bootstrap resamples."""
    draws = np.empty((n_resamples(kinds.n_rows), len(metrics)))
    for draw in draws:
        weight = kinds.resample(rng)
        draw[:] = [metric(weight) for metric in metrics.values()] if weight.any() else np.nan
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    scores = []
    for (name, metric), column in zip(metrics.items(), draws.T, strict=True):
        defined = column[np.isfinite(column)]
        low, high = np.quantile(defined, tails) if defined.size else (np.nan, np.nan)
        value = metric(kinds.total)
        if not np.isfinite(value):  # then its resamples say nothing
            low = high = np.nan
        scores.append(Score(name, value, float(low), float(high), "bootstrap"))
    return scores


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval of a share observed in an effective number of rows."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    reach = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return float(min(low, share)), float(max(high, share))


def effective_rows(weight: np.ndarray) -> float:
    """Return the effective number of rows (Kish): equally weighted rows with the same variance."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def wilson_score(name: str, is_right: np.ndarray, weight: np.ndarray) -> Score:
    """Return a share with Wilson's interval, from (n,) of 0 and 1."""
    value = float(weight @ is_right / weight.sum())
    return Score(name, value, *wilson(value, effective_rows(weight)), "Wilson")
