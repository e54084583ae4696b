"""Read one column of any kind as numbers, or as codes of levels.

A column of Python objects is numeric if it holds numbers, booleans and missing values, and
categorical if it holds text and missing values. Dates, durations and times of day become seconds.
Anything else, or a mixture, is an error that names the column.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from typing import Any, NoReturn

import numpy as np

from hardwood.errors import TableError, TableTypeError
from hardwood.table.feature import Level
from hardwood.table.levels import is_number_text

_EXACT_CODES = 2**24  # float32 holds every integer below it
_EPOCH = datetime.datetime(1970, 1, 1)
# The first that fits: NumPy counts timedelta64 among the integers, and bool_ not among the numbers.
_KIND_OF_TYPE = (
    ("date", (datetime.date, np.datetime64)),
    ("duration", (datetime.timedelta, np.timedelta64)),
    ("time of day", (datetime.time,)),
    ("text", (str,)),
    ("number", (numbers.Real, Decimal, np.bool_)),
    ("complex number", (numbers.Complex,)),
)


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one column.

    Parameters
    ----------
    values
        Numeric: real numbers of any type, NaN where missing. Categorical: integer codes into
        `levels`, -1 where missing.
    levels
        The sorted levels found; None for a numeric column.
    origin
        What the numbers represent, one of `hardwood.table.feature.ORIGINS`.
    has_integers
        Whether some of the numbers were integers of 64 bits or more, which floats may not hold.
    """

    values: np.ndarray  # (n,)
    levels: tuple[Level, ...] | None = None
    origin: str = "number"
    has_integers: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """The float type that holds the column: float64 for integers and dates."""
        if self.levels is None:
            kind = self.values.dtype.kind
            single = kind == "b" or (kind == "f" and self.values.dtype.itemsize <= 4)
        else:
            single = len(self.levels) <= _EXACT_CODES
        return np.dtype(np.float32 if single else np.float64)

    def write_to(self, out: np.ndarray) -> None:
        """Write the values into a float vector; missing ones become NaN."""
        with np.errstate(
            over="ignore"
        ):  # a longdouble beyond float64 becomes infinity, which is then reported
            out[:] = self.values
        if self.levels is not None:
            out[self.values < 0] = np.nan


def column_label(names: Sequence[str] | None, j: int) -> str:
    """Return what error messages call a column: its name or its position."""
    return f"column {j} (counting from 0)" if names is None else f"column {names[j]!r}"


def array_column(values: np.ndarray, label: str) -> Column:
    """Read one column given as a vector of any type."""
    kind = values.dtype.kind
    if kind in "biuf":
        integers = has_long_integers(values.dtype)
        return Column(values, origin=array_origin(values.dtype), has_integers=integers)
    if kind in "mM":
        return Column(array_in_seconds(values), origin=array_origin(values.dtype))
    if kind == "c":
        raise TableError(f"Complex data not supported: {label} is of type {values.dtype}.")
    if kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    return objects_column(values.astype(object).tolist(), label)


def array_origin(dtype: np.dtype[Any]) -> str:
    """Return what the values of a NumPy array represent, by its type."""
    return {"b": "boolean", "M": "date", "m": "duration"}.get(dtype.kind, "number")


def has_long_integers(dtype: np.dtype[Any]) -> bool:
    """Whether a type holds integers that a float64 may not hold."""
    return dtype.kind in "iu" and dtype.itemsize == 8


def objects_column(values: Sequence[Any], label: str) -> Column:
    """Read a column of Python objects by the rule at the top of this file."""
    types = {t: _kind(t) for t in set(map(type, values))}
    kinds = set(types.values()) - {"missing"}
    if not kinds <= {"number"}:
        kinds = _single_kind(values, types, kinds, label)
    if kinds == {"text"}:
        return levels_column(values)
    if kinds == {"number"} or not kinds:
        number_types = [t for t, kind in types.items() if kind == "number"]
        return Column(
            _numbers(values, types, label),
            origin="boolean" if _are_booleans(values, number_types) else "number",
            has_integers=any(issubclass(t, numbers.Integral) for t in number_types),
        )
    # A time of day is the duration since midnight.
    return Column(_seconds(values, types), origin="date" if kinds == {"date"} else "duration")


def _are_booleans(values: Sequence[Any], number_types: Sequence[type]) -> bool:
    """Whether all numbers are booleans or NaN: so pandas reads true, false and empty cells."""
    others = set(number_types) - {bool, np.bool_}
    if len(others) == len(number_types):
        return False
    return not others or all(v != v for v in values if type(v) in others)


def levels_column(values: Iterable[Any]) -> Column:
    """Encode a column by its distinct values; None, NaN and the like are missing."""
    values = list(values)
    distinct = set(values)
    present = {t for t in set(map(type, distinct)) if _kind(t) != "missing"}
    found = {value: as_level(value) for value in distinct if type(value) in present}
    levels = sort_levels(level for level in found.values() if level == level)
    code = {level: i for i, level in enumerate(levels)}
    code_of_value = {value: code.get(level, -1) for value, level in found.items()}
    codes = map(code_of_value.get, values, repeat(-1))
    return Column(np.fromiter(codes, np.int64, len(values)), levels)


def as_level(value: Any) -> Level:
    """Return a level as a Python value; types that JSON does not have become text."""
    if isinstance(value, np.generic):
        value = value.item()
    for plain in (str, bool, int, float):
        if isinstance(value, plain):
            return plain(value)
    return str(value)


def sort_levels(levels: Iterable[Level]) -> tuple[Level, ...]:
    """Sort levels, independent of row order: numbers by value, then text by code point."""
    return tuple(sorted(set(levels), key=lambda level: (isinstance(level, str), level)))


def _kind(kind_of: type) -> str:
    # By name, because pandas is not imported here. NaT would count as a datetime otherwise.
    if kind_of is type(None) or kind_of.__name__ in ("NAType", "NaTType"):
        return "missing"
    return next((kind for kind, types in _KIND_OF_TYPE if issubclass(kind_of, types)), "other")


def _single_kind(
    values: Sequence[Any], types: dict[type, str], kinds: set[str], label: str
) -> set[str]:
    """Check that a column holds one kind of value; NaN is allowed in all."""
    for strange in ("other", "complex number"):
        if strange in kinds:
            _refuse(values, types, strange, label)
    if "number" in kinds:
        numbers_found = (v for v in values if types[type(v)] == "number")
        if all(v != v for v in numbers_found):
            kinds = kinds - {"number"}
    if len(kinds) > 1:
        places = [_first(values, types, kind) for kind in sorted(kinds)]
        shown = " and ".join(f"a {kind} ({values[i]!r}, row {i})" for kind, i in places)
        raise TableTypeError(
            f"{label} mixes types of values: {shown}. Expected only numbers or only text; "
            "convert the column to one of them."
        )
    return kinds


def _first(values: Sequence[Any], types: dict[type, str], kind: str) -> tuple[str, int]:
    """Return the kind and the first row of an entry of it, rather "oops" than "1.5"."""
    # A NaN among text is a missing entry, not the number to show.
    rows = [
        i for i, v in enumerate(values) if types[type(v)] == kind and (kind != "number" or v == v)
    ]
    if kind == "text":
        return kind, next((i for i in rows if not is_number_text(values[i])), rows[0])
    return kind, rows[0]


def _refuse(values: Sequence[Any], types: dict[type, str], kind: str, label: str) -> NoReturn:
    _, i = _first(values, types, kind)
    if kind == "complex number":
        raise TableError(f"Complex data not supported: {label} holds {values[i]!r} at row {i}.")
    raise TableTypeError(
        f"{label} holds a {type(values[i]).__name__} at row {i}: every entry given as the X "
        "argument must be a string or a number (or a date, or missing). "
        "Split the column into simple ones, or drop it."
    )


def _numbers(values: Sequence[Any], types: dict[type, str], label: str) -> np.ndarray:
    if "missing" in types.values():
        values = [None if types[type(v)] == "missing" else v for v in values]
    try:
        return np.array(values, dtype=object).astype(np.float64)  # None becomes NaN
    except OverflowError as error:
        raise TableError(
            f"{label} holds an integer too large for a float64. Expected numbers below 1.8e308."
        ) from error


def _seconds(values: Sequence[Any], types: dict[type, str]) -> np.ndarray:
    present = {"date", "duration", "time of day"}
    seconds = (_in_seconds(v) if types[type(v)] in present else np.nan for v in values)
    return np.fromiter(seconds, np.float64, len(values))


def _in_seconds(value: Any) -> float:
    """Return seconds: since 1970 (in UTC if no zone is given), of a duration, or since midnight."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return float(array_in_seconds(np.asarray(value)))
    if isinstance(value, datetime.time):
        value = datetime.timedelta(
            hours=value.hour,
            minutes=value.minute,
            seconds=value.second,
            microseconds=value.microsecond,
        )
    elif isinstance(value, datetime.datetime):
        zone = value.utcoffset() or datetime.timedelta(0)
        value = value.replace(tzinfo=None) - _EPOCH - zone
    elif isinstance(value, datetime.date):
        value = datetime.datetime(value.year, value.month, value.day) - _EPOCH
    return float(value.total_seconds())


def array_in_seconds(values: np.ndarray) -> np.ndarray:
    """Return NumPy's dates (since 1970) or durations as float64 seconds, NaN where missing."""
    if values.dtype.kind == "M":
        values = values - np.datetime64(0, "s")
    return np.asarray(values / np.timedelta64(1, "s"))
