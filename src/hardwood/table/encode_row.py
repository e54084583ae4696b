"""Convert one row, in any form: to a table of one row, or directly to encoded columns.

`RowEncoder` takes a few microseconds. Its result is that of `Schema.read` and the encoder on a
table of one row. It handles only plain numbers, text and missing values; everything else, and every
error, is left to them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardwood.errors import TableError, TableTypeError
from hardwood.table.feature import Feature
from hardwood.table.schema import Schema

_PLAIN_ORIGINS = ("number", "integer", "boolean")


def as_table(x: Any, names: Sequence[str], *, who: str = "predict_one") -> Any:
    """Return a table with one row.

    Parameters
    ----------
    x
        A 1-D array, a sequence in the order of the features, or a mapping by their names.
    names
        Names of the features.
    who
        The method named in error messages.

    Raises
    ------
    TableError, TableTypeError
        If `x` is not a row, or a mapping without one of the names.
    """
    if hasattr(x, "keys"):  # a mapping, or a pandas Series
        return [[_entry(x, name) for name in names]]
    if isinstance(x, np.ndarray):
        if x.ndim != 1:
            raise TableError(
                f"{who} takes one row, found an array of shape {x.shape}. "
                "Use predict for several rows, or pass one of them, such as X[0]"
            )
        return x[None, :]
    if isinstance(x, str | bytes) or not hasattr(x, "__iter__"):
        raise TableTypeError(
            f"{who} takes a row (array, list or mapping of names), found {x!r:.80}"
        )
    return [list(x)]


def _entry(row: Any, name: str) -> Any:
    try:
        return row[name]
    except KeyError:
        raise TableError(
            f"the row has no value for {name!r}, which the model needs. It has: "
            f"{', '.join(repr(key) for key in list(row.keys())[:20])}. "
            "Pass every feature, and None or NaN for a missing value."
        ) from None


class RowEncoder:
    """Encodes rows of one schema, if they hold only plain values.

    Parameters
    ----------
    schema
        The features.
    takes_missing
        Whether values may be missing; otherwise such rows are left to `Schema.read`.
    largest
        Rows with larger numbers are left to `Schema.read`, too.
    """

    def __init__(self, schema: Schema, *, takes_missing: bool, largest: float) -> None:
        self._names = schema.names
        self._n_columns = schema.n_columns
        self._largest = largest
        self._features = [
            _Entry(feature, first, flag, takes_missing)
            for feature, first, flag in zip(
                schema.features,
                schema.first_column.tolist(),
                schema.flag_column.tolist(),
                strict=True,
            )
        ]

    def encode(self, x: Any) -> np.ndarray | None:
        """Encode a mapping, list or array as (c,) float32; return None if a value is not plain.

        A missing number is NaN in its value column.
        """
        entries = self._entries(x)
        if entries is None:
            return None
        columns = [0.0] * self._n_columns
        for entry, feature in zip(entries, self._features, strict=True):
            if not feature.write(entry, columns, self._largest):
                return None
        return np.array(columns, np.float32)

    def _entries(self, x: Any) -> Any:
        """Return the values in the order of the features; None if some are missing or extra."""
        if type(x) is dict or isinstance(x, Mapping):
            try:
                return [x[name] for name in self._names]
            except KeyError:
                return None
        if type(x) is np.ndarray and x.ndim == 1 and x.dtype.kind in "biuf":
            x = x.tolist()
        return x if type(x) in (list, tuple) and len(x) == len(self._names) else None


class _Entry:
    """Encodes the value of one feature."""

    def __init__(self, feature: Feature, first: int, flag: int, takes_missing: bool) -> None:
        self._first, self._flag = first, flag
        self._takes_missing = takes_missing
        self._center, self._factor = feature.center, 1.0 / feature.scale
        self._is_number = feature.kind == "numeric" and feature.origin in _PLAIN_ORIGINS
        levels = feature.levels
        are_text = bool(levels) and all(type(level) is str for level in levels)
        self._column = {level: first + i for i, level in enumerate(levels)} if are_text else {}

    def write(self, entry: Any, columns: list[float], largest: float) -> bool:
        """Write a value to its columns; return False if it is not a plain value."""
        kind = type(entry)
        if kind is float or kind is int or kind is bool:
            if self._is_number and -largest <= entry <= largest:
                value = (entry - self._center) * self._factor
                columns[self._first] = value
                return -largest <= value <= largest
            if entry == entry:
                return False
        elif kind is str and self._column:
            column = self._column.get(entry)
            if column is None:
                return False  # an unknown level: `Schema.read` warns of it
            columns[column] = 1.0
            return True
        elif entry is not None:
            return False
        return self._write_missing(columns)

    def _write_missing(self, columns: list[float]) -> bool:
        if not (self._takes_missing and (self._is_number or self._column)):
            return False
        if self._is_number:
            columns[self._first] = math.nan
        if self._flag >= 0:
            columns[self._flag] = 1.0
        return True
