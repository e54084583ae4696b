"""Read a table of any kind as one matrix, with its column names and levels."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableError, TableTypeError, warn_about_table
from hardwood.table.columns import (
    Column,
    array_column,
    array_in_seconds,
    array_origin,
    column_label,
    has_long_integers,
)
from hardwood.table.feature import Level, is_level
from hardwood.table.frames import frame_columns, frame_names, open_frame

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""The types that a matrix can have, in native byte order."""

_ROUNDED = 2**53  # float64 holds every integer below it
_NEAR_LIMIT = {dtype: float(np.finfo(dtype).max) / 10 for dtype in FLOATS}
_MAX_LABELS = 5  # columns named in a message
_CHUNK_ROWS = 4096
_CHUNK_ENTRIES = 2**19


@dataclass(frozen=True, eq=False)
class Table:
    """A table that was read and checked, before there is a schema.

    Created by `Table.of`. Do not modify `matrix`: it may be the user's own array.

    Parameters
    ----------
    matrix
        (n, p) C-contiguous float32 or float64, or CSR of one of them. Numeric columns hold
        numbers, categorical columns positions in `levels`; NaN is a missing value. No infinities.
        Values that a sparse matrix does not store are zeros.
    levels
        Per column: None for a numeric column, else the sorted levels that occur in it.
    names
        Names of the columns; None if the input has none.
    origins
        Per column, what its numbers represent (`hardwood.table.feature.ORIGINS`); None if all are
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
            A NumPy array (also of objects), a SciPy sparse matrix or array, a pandas, polars or
            Arrow data frame, any object with ``__arrow_c_stream__``, or a list of rows. A
            C-contiguous float32 or float64 array is not copied.
        only
            Names of the columns to read from a data frame, in this order; by default all.

        Returns
        -------
        table
            Booleans are 0 and 1; dates and durations are seconds; text, categorical and enum
            columns are categorical. The matrix is float64 if a column needs it (integers, float64,
            dates), else float32.

        Raises
        ------
        TableError
            For tables without rows or columns, infinities, complex numbers, duplicate names, and
            anything that does not have two dimensions.
        TableTypeError
            For a column of values that are neither numbers nor text nor dates, or that mixes them.
        """
        if isinstance(X, cls):
            return X
        if isinstance(X, np.ndarray):
            return cls._of_array(X)
        # Avoids importing SciPy: a SciPy matrix has imported it.
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
        X = np.asarray(X)  # np.matrix and other subclasses index differently
        if X.dtype.kind == "c":
            raise TableError(f"Complex data not supported: X is of type {X.dtype}.")
        if X.dtype.kind in "biufmM":
            p = X.shape[1]
            origins = (array_origin(X.dtype),) * p
            integers = range(p) if has_long_integers(X.dtype) else ()
            return cls(_as_float_matrix(X), (None,) * p, origins=origins)._checked(integers)
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
        integers = [j for j, column in enumerate(read) if column.has_integers]
        origins = tuple(column.origin for column in read)
        return cls(matrix, levels, names, origins)._checked(integers)

    @classmethod
    def _of_sparse(cls, X: Any) -> Table:
        _check_shape(X.shape)
        if X.dtype.kind == "c":
            raise TableError(f"Complex data not supported: X is of type {X.dtype}.")
        integers = range(X.shape[1]) if has_long_integers(X.dtype) else ()
        return cls(_as_csr(X), (None,) * X.shape[1])._checked(integers)

    def _checked(self, integers: Sequence[int]) -> Table:
        """Refuse infinities and levels that files cannot hold; warn of numbers that lose digits.

        ``integers`` are the columns that were integers of 64 bits.
        """
        self._check_sizes(integers)
        for j, levels in enumerate(self.levels):
            for level in levels or ():
                if not is_level(level):
                    raise TableError(
                        f"{self.label(j)} has the level {level!r}. Replace it by a missing value."
                    )
        return self

    def _check_sizes(self, integers: Sequence[int]) -> None:
        limit = _NEAR_LIMIT[self.matrix.dtype]
        if not self._has_any_of(_ROUNDED if len(integers) else limit):
            return
        largest = self._largest()  # (p,)
        if np.isinf(largest).any():
            raise self._infinity()
        near = np.flatnonzero(largest >= limit).tolist()
        rounded = [j for j in integers if largest[j] >= _ROUNDED]
        if len(near):
            warn_about_table(
                f"{self._labels(near)} up to {largest[near].max():.3g} in size, near the limit of "
                f"{self.matrix.dtype}: beside such numbers, all others look equal. If they mark "
                "missing values, replace them by NaN"
            )
        if rounded:
            warn_about_table(
                f"{self._labels(rounded)} integers of {_ROUNDED} (2^53) or more in size, which "
                "float64 rounds: neighbors look equal. Drop a column of identifiers, and convert "
                "nanoseconds to dates"
            )

    def _has_any_of(self, size: float) -> bool:
        """Whether any number is at least this far from zero."""
        if not isinstance(self.matrix, np.ndarray):
            return bool((np.abs(self.matrix.data) >= size).any())
        return any((np.abs(rows) >= size).any() for _, rows in row_chunks(self.matrix))

    def _largest(self) -> np.ndarray:
        """Return the largest absolute value of each column, (p,); 0 where all are missing."""
        largest = np.zeros(self.n_features, self.matrix.dtype)
        if not isinstance(self.matrix, np.ndarray):
            np.fmax.at(largest, self.matrix.indices, np.abs(self.matrix.data))
            return largest
        for _, rows in row_chunks(self.matrix):
            np.fmax(largest, np.fmax.reduce(np.abs(rows)), out=largest)
        return largest

    def _labels(self, columns: Sequence[int]) -> str:
        """Name columns as the subject of a sentence that says what they hold."""
        names = [self.label(j) for j in columns[:_MAX_LABELS]]
        more = len(columns) - len(names)
        names += [f"{more} more"] if more else []
        return f"{', '.join(names)} {'holds' if len(columns) == 1 else 'hold'}"

    def _infinity(self) -> TableError:
        """Return the error for the first infinity."""
        if isinstance(self.matrix, np.ndarray):
            chunks = row_chunks(self.matrix)
            first, rows = next((k, rows) for k, rows in chunks if np.isinf(rows).any())
            i, j = (int(place) for place in np.argwhere(np.isinf(rows))[0])
            i, value = first + i, rows[i, j]
        else:
            k = int(np.flatnonzero(np.isinf(self.matrix.data))[0])
            i = int(np.searchsorted(self.matrix.indptr, k, side="right")) - 1
            j, value = int(self.matrix.indices[k]), self.matrix.data[k]
        return TableError(
            f"{self.label(j)} holds infinity ({value} at row {i}). Expected finite numbers; "
            "NaN or None marks a missing value. Replace or clip infinite values."
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
        """Return what the numbers of column `j` represent."""
        return "number" if self.origins is None else self.origins[j]

    def label(self, j: int) -> str:
        """Return what error messages call column `j`."""
        return column_label(self.names, j)


def row_chunks(
    matrix: np.ndarray, rows: np.ndarray | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield chunks of successive rows, or of those in `rows`, with the position of the first.

    Temporaries for one chunk stay small for tables of any size.
    """
    step = max(1, min(_CHUNK_ROWS, _CHUNK_ENTRIES // matrix.shape[1]))
    for first in range(0, matrix.shape[0] if rows is None else len(rows), step):
        yield (
            first,
            matrix[slice(first, first + step) if rows is None else rows[first : first + step]],
        )


def _check_shape(shape: tuple[int, ...]) -> None:
    """Refuse anything but a table, with the messages that scikit-learn's checks expect."""
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
    """Convert rows, or what else NumPy can read, to an array; numbers do not become text."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        raise TableError(
            "Expected rows of values, got a list of mappings. Pass a data frame, for example "
            "pandas.DataFrame(X)."
        )
    try:
        array = np.asarray(X)
        if array.dtype.kind in "US" and array.ndim:
            array = np.array(X, dtype=object)  # NumPy converts [[1, "a"]] to text
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
    """Turn masked values into missing ones."""
    is_number = X.dtype.kind in "biufc"
    values = np.array(X.data, np.result_type(X.dtype, np.float64) if is_number else object)
    values[np.ma.getmaskarray(X)] = np.nan if is_number else None
    return values


def _as_csr(X: Any) -> csr_matrix:
    """Return canonical CSR of float32 or float64, sharing memory where possible.

    Indices are in range, sorted, unique, and int32 if they fit.
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
    )  # shares arrays without changing the user's object
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
