"""Encode contexts as the columns that the engine learns from.

The engine takes float32 and standardizes by itself. It receives the encoded columns of a `Schema`,
with NaN for a missing number, which it leaves out of the column's statistics. If all columns are
numbers, the encoding is ``x - center``: subtracting the center keeps the precision of columns with
large offsets (a year, a time stamp), and takes only two NumPy calls per row.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.errors import TableError
from hardwood.table import Schema, Table, encode_row
from hardwood.text.numbers import plural

LARGEST = 1e38  # slightly below the largest float32
_LARGEST_SQUARE = LARGEST**2
_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)


class Contexts:
    """Reads contexts of one schema.

    Parameters
    ----------
    schema
        The features. If all are numbers, their scales are dropped, as the engine has its own.
    takes_missing
        Whether values may be missing. Without a table that describes the features, NaN is an
        error.
    who
        Class name for messages.
    """

    def __init__(self, schema: Schema, *, takes_missing: bool, who: str) -> None:
        self.is_plain = schema.is_numeric and not schema.has_missing.any()
        self.schema = _unscaled(schema) if self.is_plain else schema
        self.takes_missing = takes_missing
        self.who = who
        self._plain_shape = (schema.n_features,) if self.is_plain else None
        self._center = self.schema.column_center
        self._quick = encode_row.RowEncoder(
            self.schema, takes_missing=takes_missing, largest=LARGEST
        )
        self._numeric_features = np.flatnonzero(self.schema.n_levels == 0)
        # Columns that hold NaN for missing numbers; indicators and 0/1 columns never do.
        self.value_columns = self.schema.first_column[self._numeric_features]

    def column_order(self) -> dict[str, Any]:
        """Return the options that tell the engine in which order prediction adds up columns.

        Numeric values come first, then missing flags of numbers, then the indicators of categories:
        the order in which the encoder lists those that are on.
        """
        schema = self.schema
        is_category = schema.n_levels[schema.column_feature] > 0
        is_value = np.zeros(schema.n_columns, dtype=bool)
        is_value[self.value_columns] = True
        if is_value.all():
            return {}
        parts = (is_value, ~is_value & ~is_category, is_category)
        order = np.concatenate([np.flatnonzero(part) for part in parts])
        return {"column_order": order.tolist(), "n_values": len(self.value_columns)}

    def row(self, x: Any) -> np.ndarray:
        """Return one context as (c,) float32.

        Parameters
        ----------
        x
            Numbers in the order of the features (array, list); or a mapping by their names, or a
            data frame of one row.

        Raises
        ------
        TableError
            If it does not fit the features; the message names the feature.
        """
        numbers = x if type(x) is np.ndarray and x.dtype == _DOUBLE else _as_doubles(x)
        # A small sum of squares means that no number is too large or NaN.
        if numbers.shape == self._plain_shape and numbers.dot(numbers) < _LARGEST_SQUARE:
            return (numbers - self._center).astype(_SINGLE)
        encoded = self._quick.encode(x)
        if encoded is not None:
            return encoded
        check_length(x, self.schema.n_features, self.who)
        return self.rows(as_table(x, self.schema.names), what="x")[0]

    def rows(self, X: Any, *, what: str = "X") -> np.ndarray:
        """Return contexts as (n, c) float32, C-contiguous.

        Parameters
        ----------
        X
            A table of any kind.
        what
            Name of the argument for messages.

        Raises
        ------
        TableError
            If it does not fit the features; the message names the column.
        """
        try:
            matrix = self.schema.read(X, who=self.who)
            dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
            return self._encoded(dense.astype(_DOUBLE, copy=False))
        except TableError as error:
            raise type(error)(f"{what}: {error}") from None

    def _encoded(self, matrix: np.ndarray) -> np.ndarray:
        self._check(matrix)
        if self.is_plain:
            return np.subtract(matrix, self._center).astype(_SINGLE, order="C")
        encoded: np.ndarray = self.schema.encoder.encode(np.ascontiguousarray(matrix))
        rows, features = np.nonzero(np.isnan(matrix[:, self._numeric_features]))
        encoded[rows, self.value_columns[features]] = np.nan
        return encoded

    def _check(self, matrix: np.ndarray) -> None:
        """Refuse numbers that are too large or infinite, and missing values unless allowed."""
        wrong = ~(np.abs(matrix) <= LARGEST)
        if self.takes_missing:
            wrong &= ~np.isnan(matrix)
        if not wrong.any():
            return
        row, j = (int(i) for i in np.argwhere(wrong)[0])
        found, name = matrix[row, j], self.schema.names[j]
        if np.isnan(found):
            raise TableError(
                f"feature {name!r} is missing (NaN) at row {row}. Expected numbers; for contexts "
                "with missing values, give features= a table with a few rows that has some."
            )
        raise TableError(
            f"feature {name!r} is {found:g} at row {row}. Expected finite numbers up to "
            f"{LARGEST:g} in size. Clip or rescale it."
        )


def first_contexts(
    X: Any, n_features: int | None, names: Sequence[str] | None, *, who: str, what: str = "X"
) -> Contexts:
    """Return the encoder for numeric contexts, from the first of them.

    The first row becomes the center. The values themselves are checked later, when they are read.

    Parameters
    ----------
    X
        A table of any kind.
    n_features, names
        Number and names of the features, if they were given; else those of the table.

    Raises
    ------
    TableError
        If it is not a table of numbers, or if its columns differ from those given.
    """
    try:
        table = Table.of(X, only=names)
        _check_numeric(table)
        names = table.names if names is None else names
        plain = Schema.numeric(n_features or len(names or ()) or table.n_features, names)
        first = plain.read(table, who=who)[:1]
        values = np.asarray(first if isinstance(first, np.ndarray) else first.toarray())[0]
    except TableError as error:
        raise type(error)(f"{what}: {error}") from None
    centers = np.where(np.abs(values) <= LARGEST, values, 0.0)
    features = tuple(
        dataclasses.replace(feature, center=float(center))
        for feature, center in zip(plain.features, centers, strict=True)
    )
    return Contexts(Schema(features, plain.named), takes_missing=False, who=who)


def _check_numeric(table: Table) -> None:
    for j, levels in enumerate(table.levels):
        if levels:
            raise TableError(
                f"{table.label(j)} holds text {levels[0]!r:.60}. For contexts that are not all "
                "numbers, give features= a table with a few rows."
            )


def check_length(x: Any, expected: int, who: str) -> None:
    """Refuse an array or list with the wrong number of entries."""
    is_row = x.ndim == 1 if isinstance(x, np.ndarray) else isinstance(x, list | tuple)
    if is_row and len(x) != expected:
        raise TableError(
            f"x has {plural(len(x), 'entry', 'entries')}, but {who} expects "
            f"{plural(expected, 'feature')}."
        )


def as_table(x: Any, names: Sequence[str]) -> Any:
    """Return a row of any kind as a table of one row."""
    shape: tuple[int, ...] = getattr(x, "shape", ())
    if len(shape) == 2 and not isinstance(x, np.ndarray):
        if shape[0] != 1:
            raise TableError(f"x must be one row, found a table of {shape[0]} rows.")
        return x
    return encode_row.as_table(x, names, who="decide")


def _as_doubles(x: Any) -> np.ndarray:
    """Return plain numbers as float64, and an empty array for anything else."""
    if type(x) is np.ndarray:
        return x.astype(_DOUBLE) if x.dtype.kind in "iuf" and x.ndim == 1 else _NOTHING
    if type(x) is not list and type(x) is not tuple:
        return _NOTHING
    try:
        return np.frombuffer(array("d", x))  # refuses text, which NumPy would convert
    except (TypeError, ValueError, OverflowError):
        return _NOTHING


_NOTHING = np.empty((0, 0))


def _unscaled(schema: Schema) -> Schema:
    features = (dataclasses.replace(feature, scale=1.0) for feature in schema.features)
    return Schema(tuple(features), schema.named)
