"""Canonical rows: an order that depends only on the contents of a table, with equal rows merged.

A learner that draws batches sees rows in some order, so its tree would depend on how the file was
sorted, and a row of weight 2 would differ from the same row given twice. Canonical rows remove both
effects for every learner: rows are ordered by a hash of their contents, equal rows become one row
with the sum of their weights, and rows of weight zero are dropped. The table itself is not copied;
the result is an array of row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

Matrix: TypeAlias = Any
"""A table of numbers (n, p): an array of float32 or float64, or CSR (which SciPy does not type)."""
Levels: TypeAlias = Sequence[Sequence[Any] | None]

# Entries processed at once: a few small temporaries instead of copies of the table.
_BLOCK = 1 << 17


@dataclass(frozen=True)
class Rows:
    """Distinct rows of a table in canonical order.

    Attributes
    ----------
    index
        Row numbers (r,) int64; one for several equal rows.
    weight
        Summed weights (r,) float64, all > 0.
    repeats
        (q, 2) int64: pairs of a merged row and the row that represents it.
    """

    index: np.ndarray
    weight: np.ndarray
    repeats: np.ndarray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.index)


def canonical_rows(
    matrix: Matrix,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    levels: Levels | None = None,
    hash_rows: Callable[[Matrix, np.ndarray, np.ndarray, Levels | None], np.ndarray] | None = None,
) -> Rows:
    """Order the rows of (matrix, y) by contents and merge equal ones.

    Parameters
    ----------
    matrix
        (n, p) array of floats or CSR without duplicate entries. NaN equals NaN, -0.0 equals 0.0,
        and float32 equals float64 of the same value.
    y
        Targets (n, t); equal rows have equal targets, too.
    weight
        Weights (n,), finite and >= 0; one each by default.
    levels
        Per column, the sorted levels that its codes 0, 1, ... stand for; None for a numeric column.
        Rows are ordered by levels and not by codes, which change when a level is added.
    hash_rows
        The hash function; tests pass one that collides.

    Notes
    -----
    The result is the same, bit for bit, if rows are permuted, or if a row is repeated instead of
    having an integer weight. O(n p) to hash, O(n log n) to sort.
    """
    rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    hashes = (hash_rows or _hash_rows)(matrix, y, rows, levels)
    order = np.argsort(hashes)
    hashes = hashes[order]
    rows = order if weight is None else rows[order]  # all rows: avoids a copy
    is_repeat = _mark_repeats(matrix, y, rows, hashes)
    if weight is None:
        weight_of_row = np.broadcast_to(1.0, len(rows))  # takes no memory
    else:
        weight_of_row = np.asarray(weight, dtype=np.float64)[rows]
    starts = np.flatnonzero(~is_repeat)
    if len(starts) == len(rows):
        return Rows(rows, weight_of_row)
    # Weights are added in ascending order, so that the sum does not depend on the order of rows.
    group = np.cumsum(~is_repeat)
    by_weight = np.lexsort((weight_of_row, group))
    repeats = np.stack([rows[is_repeat], rows[starts][group[is_repeat] - 1]], axis=1)
    return Rows(rows[starts], np.add.reduceat(weight_of_row[by_weight], starts), repeats)


def _hash_rows(
    matrix: Matrix, y: np.ndarray, rows: np.ndarray, levels: Levels | None = None
) -> np.ndarray:
    """Hash every row to 64 bits: the sum over columns of (mixed bits) * (odd key of the column).

    Zeros add nothing, so a CSR table and the same table as a dense array have equal hashes.
    """
    keys = _column_keys(matrix.shape[1] + y.shape[1])
    x_keys, y_keys = keys[: matrix.shape[1]], keys[matrix.shape[1] :]
    hashes_of_levels = _hash_levels(levels or ())
    hashes = np.empty(len(rows), dtype=np.uint64)
    for part in _blocks(len(rows), matrix):
        chosen = rows[part]
        if sparse.issparse(matrix):
            hashes[part] = _hash_sparse_block(matrix, chosen, x_keys)
        else:
            hashes[part] = _hash_dense_block(matrix[chosen], x_keys, hashes_of_levels)
        hashes[part] += (_mix(_bits(y[chosen])) * y_keys).sum(axis=1, dtype=np.uint64)
    return hashes


def _hash_dense_block(
    block: np.ndarray, keys: np.ndarray, hashes_of_levels: dict[int, np.ndarray]
) -> np.ndarray:
    bits = _bits(block)
    for j, hashes in hashes_of_levels.items():
        present = ~np.isnan(block[:, j])
        bits[present, j] = hashes[block[present, j].astype(np.int64)]
    of_row: np.ndarray = (_mix(bits) * keys).sum(axis=1, dtype=np.uint64)
    return of_row


def _hash_levels(levels: Levels) -> dict[int, np.ndarray]:
    """Hash the levels of each categorical column to 64 bits, the same in every process."""
    return {
        j: np.array([_hash_level(level) for level in of_column], dtype=np.uint64)
        for j, of_column in enumerate(levels)
        if of_column is not None
    }


def _hash_level(level: Any) -> int:
    digest = blake2b(repr(level).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _hash_sparse_block(matrix: sparse.csr_array, rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
    block = matrix[rows]
    terms = _mix(_bits(block.data)) * keys[block.indices]
    sums = np.zeros(len(terms) + 1, dtype=np.uint64)
    np.cumsum(terms, out=sums[1:])
    of_row: np.ndarray = sums[block.indptr[1:]] - sums[block.indptr[:-1]]  # modulo 2^64, so exact
    return of_row


def _column_keys(n_columns: int) -> np.ndarray:
    """Return a fixed odd number per column."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    numbers = (np.arange(n_columns, dtype=np.uint64) + np.uint64(1)) * golden
    keys: np.ndarray = _mix(numbers) | np.uint64(1)
    return keys


def _bits(values: np.ndarray) -> np.ndarray:
    """Return the bits of the values as float64, with a single zero and a single NaN."""
    values = np.asarray(values, dtype=np.float64) + 0.0  # a new array; -0.0 + 0.0 = 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


def _mix(bits: np.ndarray) -> np.ndarray:
    """Spread every bit over all 64 (the finalizer of MurmurHash3); 0 stays 0."""
    bits = bits ^ (bits >> np.uint64(33))
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xC4CEB9FE1A85EC53)
    bits ^= bits >> np.uint64(33)
    return bits


def _mark_repeats(
    matrix: Matrix, y: np.ndarray, rows: np.ndarray, hashes: np.ndarray
) -> np.ndarray:
    """Return which rows equal the row before; sort ``rows`` exactly where hashes collide."""
    is_repeat = np.zeros(len(rows), dtype=bool)
    suspects = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    for part in _blocks(len(suspects), matrix):
        after = suspects[part]
        is_repeat[after] = _equal_rows(matrix, y, rows[after - 1], rows[after])
    for start, stop in _colliding_runs(hashes, suspects[~is_repeat[suspects]]):
        bits = _row_bits(matrix, y, rows[start:stop])
        order = np.lexsort(bits.T[::-1])
        rows[start:stop], bits = rows[start:stop][order], bits[order]
        is_repeat[start + 1 : stop] = (bits[1:] == bits[:-1]).all(axis=1)
    return is_repeat


def _colliding_runs(hashes: np.ndarray, unequal: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the runs of equal hashes that hold different rows."""
    for value in np.unique(hashes[unequal]):
        yield (
            int(np.searchsorted(hashes, value, side="left")),
            int(np.searchsorted(hashes, value, side="right")),
        )


def _equal_rows(matrix: Matrix, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    is_equal: np.ndarray
    if not sparse.issparse(matrix):
        is_equal = (_row_bits(matrix, y, a) == _row_bits(matrix, y, b)).all(axis=1)
        return is_equal
    is_equal = (_bits(y[a]) == _bits(y[b])).all(axis=1)
    first, second = _without_zeros(matrix[a]), _without_zeros(matrix[b])
    is_equal &= np.diff(first.indptr) == np.diff(second.indptr)
    first, second = first[is_equal], second[is_equal]  # as many entries in each pair of rows
    differs = (first.indices != second.indices) | (_bits(first.data) != _bits(second.data))
    n_different = np.concatenate([[0], np.cumsum(differs)])
    is_equal[is_equal] = n_different[first.indptr[1:]] == n_different[first.indptr[:-1]]
    return is_equal


def _without_zeros(block: Matrix) -> Matrix:
    """Return rows of a CSR table without stored zeros; ``block`` is changed."""
    block.eliminate_zeros()
    return block


def _row_bits(matrix: Matrix, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    block = matrix[rows]
    dense = block.toarray() if sparse.issparse(block) else block
    return np.hstack([_bits(dense), _bits(y[rows])])


def _blocks(n_rows: int, matrix: Matrix) -> Iterator[slice]:
    n_entries = matrix.nnz if sparse.issparse(matrix) else matrix.size
    size = max(1, _BLOCK * matrix.shape[0] // max(1, n_entries))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
