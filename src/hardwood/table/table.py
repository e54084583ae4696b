"""Any table -> one matrix, with the names and the levels that were found in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableError, TableTypeError
from hardwood.table.columns import (
    Column,
    array_column,
    array_in_seconds,
    array_origin,
    column_label,
)
from hardwood.table.feature import Level, is_level
from hardwood.table.frames import frame_columns, frame_names, open_frame

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""The types a matrix may have; native byte order."""

_CHUNK_ROWS = 4096
_CHUNK_ENTRIES = 2**19


@dataclass(frozen=True, eq=False)
class Table:
    """A table that was read and checked, before a model's schema exists.

    Made by `Table.of`. Read-only by contract: `matrix` may be the user's own array.

    Parameters
    ----------
    matrix
        (n, p) C-contiguous float32 or float64, or CSR of one of them. Numeric columns hold
        numbers, categorical ones the position of the entry in `levels`; NaN is a missing entry. No
        infinities. Entries that a sparse matrix does not store are zeros.
    levels
        Per column: None for a numeric column, else the sorted levels that occur in it.
    names
        Names of the columns; None where the input has none.
    origins
        Per column, what its numbers were (`hardwood.table.feature.ORIGINS`); None where all are
        plain numbers.
    """

    matrix: np.ndarray | csr_matrix
    levels: tuple[tuple[Level, ...] | None, ...]
    names: tuple[str, ...] | None = None
    origins: tuple[str, ...] | None = None

    @classmethod
    def of(cls, X: Any, *, only: Sequence[str] | None = None) -> Table:
        """Read a table of any supported kind.

        Parameters
        ----------
        X
            NumPy array (also of objects), SciPy sparse matrix or array, pandas, polars or Arrow
            data frame, any object with ``__arrow_c_stream__``, or a list of rows. A C-contiguous
            float32 or float64 array is not copied.
        only
            Names of the columns to read from a data frame with names, in this order; by default
            all.

        Returns
        -------
        table
            Booleans are 0 and 1; dates and durations are seconds; text, categorical and enum
            columns are categorical. The matrix is float64 where a column needs it (integers,
            float64, dates), else float32.

        Raises
        ------
        TableError
            For what no model can use: no rows or columns, infinities, complex numbers, names that
            occur twice, not two dimensions.
        TableTypeError
            For a column of values that are neither numbers nor text nor dates, or that mixes them.
        """
        if isinstance(X, cls):
            return X
        if isinstance(X, np.ndarray):
            return cls._of_array(X)
        # What is no SciPy matrix need not wait for SciPy's import; what is one has imported it.
        sparse = sys.modules.get("scipy.sparse")
        if sparse is not None and sparse.issparse(X):
            return cls._of_sparse(X)
        if not isinstance(X, list | tuple):
            frame = open_frame(X)
            if frame is not None:
                _check_shape(frame.shape)
                names = frame_names(frame)
                columns = frame_columns(frame, names, only)
                names = tuple(only) if only is not None and names is not None else names
                return cls._of_columns(columns, len(frame), names)
        return cls._of_array(_as_array(X))

    @classmethod
    def _of_array(cls, X: np.ndarray) -> Table:
        _check_shape(X.shape)
        if isinstance(X, np.ma.MaskedArray):
            X = _fill_masked(X)
        X = np.asarray(X)  # np.matrix and other subclasses index in their own ways
        if X.dtype.kind == "c":
            raise TableError(f"Complex data not supported: X is of type {X.dtype}.")
        if X.dtype.kind in "biufmM":
            p = X.shape[1]
            origins = (array_origin(X.dtype),) * p
            return cls(_as_float_matrix(X), (None,) * p, origins=origins)._checked()
        columns = (array_column(X[:, j], column_label(None, j)) for j in range(X.shape[1]))
        return cls._of_columns(columns, X.shape[0], None)

    @classmethod
    def _of_columns(
        cls, columns: Iterator[Column], n_rows: int, names: tuple[str, ...] | None
    ) -> Table:
        read = list(columns)  # float columns are still views of the user's memory here
        dtype = np.result_type(np.float32, *(column.dtype for column in read))
        matrix = np.empty((n_rows, len(read)), dtype)
        for j, column in enumerate(read):
            column.write_to(matrix[:, j])
        levels = tuple(column.levels for column in read)
        return cls(matrix, levels, names, tuple(column.origin for column in read))._checked()

    @classmethod
    def _of_sparse(cls, X: Any) -> Table:
        _check_shape(X.shape)
        if X.dtype.kind == "c":
            raise TableError(f"Complex data not supported: X is of type {X.dtype}.")
        return cls(_as_csr(X), (None,) * X.shape[1])._checked()

    def _checked(self) -> Table:
        self._check_finite()
        for j, levels in enumerate(self.levels):
            for level in levels or ():
                if not is_level(level):
                    raise TableError(f"{self.label(j)} has {level!r} as a level. Make it missing.")
        return self

    def _check_finite(self) -> None:
        if isinstance(self.matrix, np.ndarray):
            for first, rows in row_chunks(self.matrix):
                if np.isinf(rows).any():
                    i, j = np.argwhere(np.isinf(rows))[0]
                    raise self._infinity(first + int(i), int(j), rows[i, j])
        elif np.isinf(self.matrix.data).any():
            k = int(np.flatnonzero(np.isinf(self.matrix.data))[0])
            i = int(np.searchsorted(self.matrix.indptr, k, side="right")) - 1
            raise self._infinity(i, int(self.matrix.indices[k]), self.matrix.data[k])

    def _infinity(self, i: int, j: int, value: float) -> TableError:
        return TableError(
            f"{self.label(j)} holds infinity ({value} at row {i}). Expected finite numbers; "
            "NaN or None marks a missing entry. Replace or clip such values."
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.levels)

    def take_columns(self, order: Sequence[int]) -> Table:
        """Return some of the columns, in this order."""
        taken = self.matrix[:, list(order)]
        matrix = np.ascontiguousarray(taken) if isinstance(taken, np.ndarray) else taken
        names = None if self.names is None else tuple(self.names[j] for j in order)
        levels = tuple(self.levels[j] for j in order)
        return Table(matrix, levels, names, tuple(self.origin(j) for j in order))

    def origin(self, j: int) -> str:
        """Say what the numbers of column `j` were."""
        return "number" if self.origins is None else self.origins[j]

    def label(self, j: int) -> str:
        """How messages call column `j`."""
        return column_label(self.names, j)


def row_chunks(
    matrix: np.ndarray, rows: np.ndarray | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield successive rows, or those that `rows` lists, with the place of their first.

    Temporaries made of one chunk stay small, whatever the size of the table.
    """
    step = max(1, min(_CHUNK_ROWS, _CHUNK_ENTRIES // matrix.shape[1]))
    for first in range(0, matrix.shape[0] if rows is None else len(rows), step):
        yield (
            first,
            matrix[slice(first, first + step) if rows is None else rows[first : first + step]],
        )


def _check_shape(shape: tuple[int, ...]) -> None:
    """Refuse what is not a table, in scikit-learn's words where it has some."""
    if len(shape) < 2:
        found = "1D array" if shape else "a scalar"
        raise TableError(
            f"Expected a 2D array (rows by columns), got {found} instead. "
            "Reshape your data either using X.reshape(-1, 1) if it has a single feature "
            "or X.reshape(1, -1) if it is a single row."
        )
    if len(shape) > 2:
        raise TableError(
            f"Found array with dim {len(shape)}, expected 2 (rows by columns). Reshape your data, "
            "for example with X.reshape(len(X), -1)."
        )
    for size, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if size == 0:
            raise TableError(
                f"Found array with 0 {what} (shape={tuple(shape)}) "
                "while a minimum of 1 is required."
            )


def _as_array(X: Any) -> np.ndarray:
    """Return rows, or what else NumPy can read, as an array that keeps numbers apart from text."""
    try:
        array = np.asarray(X)
        if array.dtype.kind in "US" and array.ndim:
            array = np.array(X, dtype=object)  # NumPy writes [[1, "a"]] as text throughout
    except (ValueError, TypeError, RuntimeError) as error:
        raise TableError(
            f"Cannot read a {type(X).__name__} as a table ({error}). "
            "Expected rows of equal length, a 2D array or a data frame."
        ) from error
    if array.ndim == 0:
        raise TableError(
            f"Expected a table, got a {type(X).__name__}. "
            "Reshape your data: pass a 2D array, a data frame or a list of rows."
        )
    return array


def _as_float_matrix(X: np.ndarray) -> np.ndarray:
    if X.dtype.kind in "mM":
        return np.ascontiguousarray(array_in_seconds(X))
    dtype = np.result_type(np.float32, Column(X[:, 0]).dtype)
    with np.errstate(
        over="ignore"
    ):  # a longdouble beyond float64 becomes infinity, which is then reported
        return np.require(X, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def _fill_masked(X: np.ma.MaskedArray) -> np.ndarray:
    """Turn masked entries into missing ones."""
    is_number = X.dtype.kind in "biufc"
    values = np.array(X.data, np.result_type(X.dtype, np.float64) if is_number else object)
    values[np.ma.getmaskarray(X)] = np.nan if is_number else None
    return values


def _as_csr(X: Any) -> csr_matrix:
    """Return canonical CSR of float32 or float64; what need not change is shared.

    Indices are in range, sorted, not repeated, and int32 where they fit.
    """
    from scipy.sparse import csr_matrix

    if X.dtype.kind not in "biuf":
        raise TableTypeError(f"A sparse matrix of type {X.dtype} holds no numbers; convert it.")
    csr = X.tocsr()
    with np.errstate(over="ignore"):
        data = np.require(csr.data, Column(csr.data).dtype, ["C_CONTIGUOUS", "ALIGNED"])
    fits = max(*csr.shape, len(data)) <= np.iinfo(np.int32).max
    index = np.int32 if fits else np.int64
    for indices in (csr.indices, csr.indptr):
        if len(indices) and not 0 <= indices.min() <= indices.max() <= np.iinfo(index).max:
            raise TableError("A damaged sparse matrix: an index is out of range.")
    own = csr_matrix(
        csr.shape, dtype=data.dtype
    )  # shares arrays, leaves the user's object as it is
    own.data = data
    own.indices = np.require(csr.indices, index, ["C_CONTIGUOUS", "ALIGNED"])
    own.indptr = np.require(csr.indptr, index, ["C_CONTIGUOUS", "ALIGNED"])
    try:
        own.check_format(full_check=True)  # the engine trusts these indices
    except ValueError as error:
        raise TableError(f"A damaged sparse matrix: {error}.") from error
    if not own.has_canonical_format:
        own = own.copy()
        own.sum_duplicates()
    return own
