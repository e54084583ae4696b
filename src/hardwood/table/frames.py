"""Read the columns of data frames of any library, through narwhals.

This module does not import pandas, polars or pyarrow; narwhals works with the user's objects.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import MissingExtraError, TableError, TableTypeError
from hardwood.table.columns import (
    Column,
    array_column,
    as_level,
    column_label,
    levels_column,
    sort_levels,
)
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


def open_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return a data frame wrapped by narwhals, or None if `X` is not a data frame.

    Raises
    ------
    TableError
        For a single column, a lazy frame, or duplicate names.
    MissingExtraError
        If `X` has only an Arrow interface and pyarrow is not installed.
    """
    from narwhals.exceptions import DuplicateError

    try:
        return _wrapped(X)
    except DuplicateError as error:
        raise TableError(f"{str(error).strip()}. Rename or drop columns.") from error


def _wrapped(X: Any) -> nw.DataFrame[Any] | None:
    import narwhals.stable.v1 as nw  # as slow to import as NumPy, and not needed for arrays

    frame = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame
    if isinstance(frame, nw.Series):
        raise TableError(
            "Expected a table, got a single column (a Series). "
            "Reshape your data: pass a data frame, such as X.to_frame()."
        )
    if hasattr(X, "__arrow_c_stream__"):
        if importlib.util.find_spec("pyarrow") is None:
            raise MissingExtraError(
                "pyarrow", extra="data", purpose=f"Reading an Arrow stream ({type(X).__name__})"
            )
        return nw.from_arrow(X, backend="pyarrow")
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise TableError(
            "Expected a table in memory, got a lazy frame. Call its .collect() method first."
        )
    return None


def frame_names(frame: nw.DataFrame[Any]) -> tuple[str, ...] | None:
    """Return the names of the columns; None if none of them is a string."""
    names = tuple(frame.columns)
    is_text = [isinstance(name, str) for name in names]
    if all(is_text):
        return names
    if any(is_text):
        found = sorted({type(name).__name__ for name in names})
        raise TableTypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {found} as feature name / column name types. "
            "Convert them all, for example with X.columns = X.columns.astype(str)."
        )
    return None


def frame_columns(
    frame: nw.DataFrame[Any], names: tuple[str, ...] | None, only: Sequence[str] | None
) -> Iterator[Column]:
    """Read the columns one at a time: those in `only`, in that order, or all.

    Other columns are not read, so that they may hold anything.
    """
    if only is None or names is None:
        for j, series in enumerate(frame.iter_columns()):
            yield _series_column(series, column_label(names, j))
        return
    given = set(names)
    absent = [name for name in only if name not in given]
    if absent:
        shown = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
        raise TableError(
            f"X lacks {plural(len(absent), 'column')} that the model was learned from: {shown}. "
            "X needs the column names of the training table, in any order."
        )
    for name in only:
        yield _series_column(frame.get_column(name), f"column {name!r}")


def _series_column(series: Any, label: str) -> Column:
    import narwhals.stable.v1 as nw

    dtype = series.dtype
    if dtype in (nw.Float32, nw.Float64):
        return Column(series.to_numpy())
    if dtype.is_numeric() or dtype == nw.Boolean:
        origin = "boolean" if dtype == nw.Boolean else "number"
        return Column(_numbers(series), origin=origin, has_integers=dtype.is_integer())
    if dtype == nw.String:
        return levels_column(series.to_list())
    if dtype in (nw.Categorical, nw.Enum):
        return _category_column(series)
    if dtype in (nw.Date, nw.Datetime):
        return Column(_numbers(series.dt.timestamp("us")) / 1e6, origin="date")
    if dtype == nw.Duration:
        return Column(_numbers(series.dt.total_microseconds()) / 1e6, origin="duration")
    if dtype in (nw.Object, nw.Time, nw.Unknown):
        return array_column(series.to_numpy(), label)
    raise TableTypeError(
        f"{label} holds values of type {dtype}: every entry given as the X argument must be "
        "a string or a number (or a date, or missing). "
        "Split the column into simple ones, or drop it."
    )


def _numbers(series: Any) -> np.ndarray:
    """Return integers, decimals or booleans, with NaN where missing."""
    import narwhals.stable.v1 as nw

    dtype = series.dtype
    if dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128):
        return series.cast(nw.Float64).to_numpy()
    if not series.null_count():
        return series.to_numpy()
    if dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    # Not by a cast: Arrow refuses to round large integers.
    values = series.fill_null(0).to_numpy().astype(np.float64)
    values[series.is_null().to_numpy()] = np.nan
    return values


def _category_column(series: Any) -> Column:
    """Encode a categorical column; unused levels are left out."""
    accessor: Any = getattr(series.to_native(), "cat", None)
    if not hasattr(accessor, "codes"):
        # polars and Arrow. Not `to_numpy`, which turns missing values of an Arrow dictionary into
        # a level.
        return levels_column(series.to_list())
    # pandas: the categories keep their types, and no value passes through Python.
    codes = np.asarray(accessor.codes, dtype=np.int64)  # -1 where missing
    used = np.bincount(codes + 1, minlength=len(accessor.categories) + 1)[1:] > 0
    found = [as_level(category) for category in accessor.categories]
    levels = sort_levels(level for level, is_used in zip(found, used, strict=True) if is_used)
    code = {level: i for i, level in enumerate(levels)}
    lookup = np.array([code.get(level, -1) for level in found] + [-1], dtype=np.int64)
    return Column(lookup[codes], levels)  # code -1 takes the last entry of `lookup`
