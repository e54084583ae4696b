r"""Weighted mean and standard deviation of every column, and the weight of every level.

Missing values and rows of weight zero are ignored. A column is first mapped to [-1, 1] by the
middle of its range and half its width,

.. math:: z = (x - \mathrm{mid}) / \mathrm{half}, \qquad
          \bar x = \mathrm{mid} + \mathrm{half}\, \bar z, \qquad
          s_x = \mathrm{half} \sqrt{\textstyle\sum_i w_i (z_i - \bar z)^2 / \sum_i w_i},

so that neither a large offset (1.7e9 ± 1) nor a large value (1e300, whose square exceeds float64)
reduces the accuracy. This takes three passes over the rows, in chunks. Sums are computed row by row
and not by BLAS, whose order of summation depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardwood.table.table import row_chunks

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_TINY = float(np.finfo(np.float64).tiny)  # 1 / scale must be finite
_CHUNK_ENTRIES = 2**18
_EXACT = 2.0**53  # float64 holds every integer below it


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of each column over the rows of positive weight."""

    mean: np.ndarray  # (p,)
    """Weighted mean; meaningless if `is_empty`."""
    deviation: np.ndarray  # (p,)
    """Weighted standard deviation, positive; 1 if the column is constant or empty."""
    is_constant: np.ndarray  # (p,) bool
    """All values are equal, or there is none."""
    present: np.ndarray  # (p,)
    """Total weight of the values that are not missing."""
    has_missing: np.ndarray  # (p,) bool
    """At least one value is missing."""
    is_empty: np.ndarray  # (p,) bool
    """All values are missing."""
    is_whole: np.ndarray  # (p,) bool
    """All values are whole numbers that float64 can count."""


def column_statistics(
    matrix: np.ndarray | csr_matrix, weight: np.ndarray, rows: np.ndarray | None = None
) -> Statistics:
    """Compute the statistics of the columns of a matrix of finite values and NaN.

    Parameters
    ----------
    matrix
        (n, p), dense or CSR; values that CSR does not store are zeros.
    weight
        (r,) at least 0, at least one positive, none above about 1e300 / r.
    rows
        (r,) the rows to use, in the order of summation; None for all rows in their order.
    """
    if isinstance(matrix, np.ndarray):
        return _dense_statistics(matrix, weight, rows)
    return _sparse_statistics(matrix if rows is None else matrix[rows], weight)


def mean_of_rows(values: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the weighted mean of rows (n, k) of finite values, whose sum may exceed float64."""
    exponent = np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]
    mean = np.average(np.ldexp(values, -exponent), axis=0, weights=weight)  # of numbers below 1
    below_one = np.nextafter(1.0, 0.0)
    result: np.ndarray = np.ldexp(np.clip(mean, -below_one, below_one), exponent)
    return result


def level_weights(
    column: np.ndarray, weight: np.ndarray, n_levels: int, rows: np.ndarray | None = None
) -> np.ndarray:
    """Return the total weight of each level of a column of codes (NaN is missing)."""
    totals = np.zeros(n_levels)
    for first, x in row_chunks(column[:, None], rows):
        codes = x[:, 0]
        present = ~np.isnan(codes)
        w = weight[first : first + len(codes)][present]
        totals += np.bincount(codes[present].astype(np.int64), w, minlength=n_levels)
    return totals


def _dense_statistics(
    matrix: np.ndarray, weight: np.ndarray, rows: np.ndarray | None
) -> Statistics:
    p = matrix.shape[1]
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    n_used, n_present, is_whole = 0, np.zeros(p, np.int64), np.ones(p, dtype=bool)
    for x, _ in _used_rows(matrix, weight, rows):
        is_whole[is_whole] = _are_whole(x if is_whole.all() else x[:, is_whole]).all(axis=0)
        low = np.fmin(low, np.fmin.reduce(x, axis=0))  # fmin and fmax ignore NaN
        high = np.fmax(high, np.fmax.reduce(x, axis=0))
        n_used += len(x)
        n_present += len(x) - np.count_nonzero(np.isnan(x), axis=0)
    middle, half = _middle_and_half(low, high)

    total, first_moment = np.zeros(p), np.zeros(p)
    for x, w in _used_rows(matrix, weight, rows):
        z, w = _mapped(x, w, middle, half)
        total += w.sum(axis=0)
        first_moment += (w * z).sum(axis=0)
    z_mean = first_moment / np.where(total > 0, total, 1.0)

    second_moment = np.zeros(p)
    for x, w in _used_rows(matrix, weight, rows):
        z, w = _mapped(x, w, middle, half)
        z -= z_mean
        second_moment += (w * z * z).sum(axis=0)
    return _statistics(low, high, total, z_mean, second_moment, n_present, n_used, is_whole)


def _are_whole(x: np.ndarray) -> np.ndarray:
    return (np.rint(x) == x) & (np.abs(x) < _EXACT) | np.isnan(x)


def _used_rows(
    matrix: np.ndarray, weight: np.ndarray, rows: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for first, x in row_chunks(matrix, rows):
        w = weight[first : first + len(x)]
        used = w > 0
        if used.all():
            yield x, w
        elif used.any():
            yield x[used], w[used]


def _mapped(
    x: np.ndarray, w: np.ndarray, middle: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Map values to [-1, 1], with a weight each; missing ones get weight 0."""
    z = np.subtract(x, middle, dtype=np.float64)
    z /= half
    missing = np.isnan(z)
    z[missing] = 0.0
    return z, np.where(missing, 0.0, w[:, None])


def _middle_and_half(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle and half the width of each range, without overflow.

    Half is 1 if the range is a point; both are finite if it is empty.
    """
    is_empty = low > high
    low, high = np.where(is_empty, 0.0, low), np.where(is_empty, 0.0, high)
    middle = np.where(low == high, low, low / 2 + high / 2)
    half = high / 2 - low / 2
    return middle, np.where(half > 0, half, 1.0)


def _statistics(
    low: np.ndarray,
    high: np.ndarray,
    total: np.ndarray,
    z_mean: np.ndarray,
    second_moment: np.ndarray,
    n_present: np.ndarray,
    n_used: int,
    is_whole: np.ndarray,
) -> Statistics:
    middle, half = _middle_and_half(low, high)
    mean = middle + half * z_mean
    deviation = half * np.sqrt(second_moment / np.where(total > 0, total, 1.0))
    is_constant = ~(deviation > 0)
    deviation = np.where(is_constant, 1.0, np.maximum(deviation, _TINY))
    has_missing, is_empty = n_present < n_used, n_present == 0
    return Statistics(mean, deviation, is_constant, total, has_missing, is_empty, is_whole)


def _sparse_statistics(matrix: csr_matrix, weight: np.ndarray) -> Statistics:
    """Compute the same from the stored values, with one term per column for the other zeros.

    The weight of those zeros is a difference of sums, so its error is about 1e-16 of the total
    weight: that of a single zero with 1e-12 of the total weight has four correct digits.
    """
    p = matrix.shape[1]
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    n_used, total_used = int(np.count_nonzero(weight > 0)), weight.sum()
    n_stored, n_present = np.zeros(p, np.int64), np.zeros(p, np.int64)
    is_whole = np.ones(p, dtype=bool)
    total_stored, total_present = np.zeros(p), np.zeros(p)
    for x, j, w in _stored_entries(matrix, weight):
        np.fmin.at(low, j, x)
        np.fmax.at(high, j, x)
        present = ~np.isnan(x)
        is_whole[j[~_are_whole(x)]] = False
        n_stored += np.bincount(j, minlength=p)
        n_present += np.bincount(j[present], minlength=p)
        total_stored += np.bincount(j, w, minlength=p)
        total_present += np.bincount(j[present], w[present], minlength=p)
    n_zeros = n_used - n_stored
    # If every row is stored, the difference of sums is a rounding error.
    w_zeros = np.where(n_zeros > 0, np.maximum(total_used - total_stored, 0.0), 0.0)
    low = np.where(n_zeros > 0, np.fmin(low, 0.0), low)
    high = np.where(n_zeros > 0, np.fmax(high, 0.0), high)
    middle, half = _middle_and_half(low, high)
    z_zero = np.where(n_zeros > 0, -middle, 0.0) / half

    total = total_present + w_zeros
    first_moment = w_zeros * z_zero
    for x, j, w in _stored_entries(matrix, weight, skip_missing=True):
        first_moment += np.bincount(j, w * ((x - middle[j]) / half[j]), minlength=p)
    z_mean = first_moment / np.where(total > 0, total, 1.0)
    second_moment = w_zeros * (z_zero - z_mean) ** 2
    for x, j, w in _stored_entries(matrix, weight, skip_missing=True):
        z = (x - middle[j]) / half[j] - z_mean[j]
        second_moment += np.bincount(j, w * z * z, minlength=p)
    n_present += n_zeros
    return _statistics(low, high, total, z_mean, second_moment, n_present, n_used, is_whole)


def _stored_entries(
    matrix: csr_matrix, weight: np.ndarray, skip_missing: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (value, column, weight) of stored values with positive weight, in chunks."""
    # A chunk takes time for all columns besides its entries, so it has at least one entry per
    # column.
    step = max(_CHUNK_ENTRIES, matrix.shape[1])
    for first in range(0, matrix.nnz, step):
        entries = np.arange(first, min(first + step, matrix.nnz))
        rows = np.searchsorted(matrix.indptr, entries, side="right") - 1
        x, j, w = matrix.data[entries].astype(np.float64), matrix.indices[entries], weight[rows]
        used = (w > 0) & ~np.isnan(x) if skip_missing else w > 0
        yield x[used], j[used], w[used]
