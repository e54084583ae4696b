"""Turn the matrix of a schema's model into a table of the kind that the user has."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.table.frames import open_frame

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from hardwood.table.feature import Feature
    from hardwood.table.schema import Schema


def table_like(like: Any, schema: Schema, matrix: np.ndarray | csr_matrix) -> Any:
    """Convert rows to a table of a given kind, the inverse of `Schema.read`.

    Parameters
    ----------
    like
        The table that the schema was learned from.
    schema
        The schema.
    matrix
        (n, p) as `Schema.read` returns it.

    Returns
    -------
    table
        A sparse matrix stays sparse. A data frame of the same library and with the names of `like`,
        if that is one; numbers are floats, and other columns have the type they have in `like`.
        Otherwise an array: of floats if all columns are numeric, else of objects.
    """
    if not isinstance(matrix, np.ndarray):
        return matrix
    frame = None if isinstance(like, np.ndarray | list | tuple) else open_frame(like)
    if frame is not None:
        return _frame_like(like, frame, schema, matrix)
    return matrix if schema.is_numeric else entries_of(schema, matrix)


def entries_of(schema: Schema, matrix: np.ndarray) -> np.ndarray:
    """Return rows (n, p) as objects: numbers, levels, dates, and None for missing values."""
    rows = np.empty(matrix.shape, dtype=object)
    for j in range(schema.n_features):
        rows[:, j] = _entries(schema, matrix, j)
    return rows


def _entries(schema: Schema, matrix: np.ndarray, j: int) -> list[Any]:
    """Return a column as Python values, with None for missing ones."""
    entry = _entry_from(schema.features[j])
    return [None if value != value else entry(value) for value in matrix[:, j].tolist()]


def entry_of(feature: Feature, value: float) -> Any:
    """Return one value as in the user's table; None if it is missing (NaN)."""
    return None if value != value else _entry_from(feature)(value)


def _entry_from(feature: Feature) -> Callable[[float], Any]:
    """Return what turns a number of the matrix into the user's value."""
    levels = feature.levels
    return (lambda code: levels[int(code)]) if levels else _ENTRIES.get(feature.origin, float)


def _integer(value: float) -> int | float:
    """Return an integer; a later table may hold fractions where the training table had none."""
    return int(value) if value.is_integer() else value


def _date(seconds: float) -> datetime.datetime | float:
    """Return a date; seconds beyond the calendar stay a number."""
    try:
        return _EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return seconds


def _duration(seconds: float) -> datetime.timedelta | float:
    try:
        return datetime.timedelta(seconds=seconds)
    except OverflowError:
        return seconds


_EPOCH = datetime.datetime(1970, 1, 1)
_ENTRIES: dict[str, Callable[[float], Any]] = {
    "integer": _integer,
    "boolean": bool,
    "date": _date,
    "duration": _duration,
}


def _frame_like(like: Any, frame: Any, schema: Schema, matrix: np.ndarray) -> Any:
    import narwhals.stable.v1 as nw

    columns = []
    for j, (name, feature) in enumerate(zip(frame.columns, schema.features, strict=True)):
        is_categorical = feature.kind == "categorical"
        values = _entries(schema, matrix, j) if is_categorical else _numbers(matrix[:, j], feature)
        series = nw.new_series(name, values, backend=frame.implementation)
        if is_categorical or feature.origin not in ("number", "integer"):
            series = _cast(series, frame.schema[name], like, name)
        columns.append(series.to_frame())
    return nw.concat(columns, how="horizontal").to_native()


def _numbers(column: np.ndarray, feature: Feature) -> np.ndarray:
    """Return numbers as floats, and seconds as dates or durations."""
    if feature.origin not in ("date", "duration"):
        return np.asarray(column, dtype=np.float64)
    kind = "datetime64[us]" if feature.origin == "date" else "timedelta64[us]"
    values = np.where(np.isnan(column), 0.0, column * 1e6).astype(np.int64).astype(kind)
    values[np.isnan(column)] = np.array("NaT", kind)
    return values


def _cast(series: Any, dtype: Any, like: Any, name: str) -> Any:
    """Convert a column to its type in the user's table; in pandas, with the same categories."""
    import narwhals.stable.v1 as nw

    native = series.to_native()
    if hasattr(native, "astype") and hasattr(like, "iloc"):
        return nw.from_native(native.astype(like[name].dtype), series_only=True)
    return series.cast(dtype)
