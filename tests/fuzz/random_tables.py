"""Random tables as messy as people's, by seed: columns, containers, targets and weights."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

Random = np.random.Generator

N_ROWS = (1, 2, 3, 5, 5, 12, 12, 30, 30, 60, 60, 60, 60, 60, 150, 80)
N_COLUMNS = (0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 8, 8, 15, 20)
WORDS = (
    *("red", "green", "a, b", "", " ", "NA", "nan", "None", "missing", "0", "1", "-1.5", "1e5"),
    *("true", "False", "é", "\N{EVERGREEN TREE}", 'say "so"', "it's", "</script><b>", "x\ny", "\0"),
    *("a" * 300, "{}", "%s", "\\", "12 cm", "$5", "10%", "1,000", "2019-01-22", "x" * 3),
)
HALF_A_CHARACTER = "\ud800"
HUGE = (1e300, -1e300, 1.7e308, 5e-324, 1e-300, 2.0**53, -(2.0**63), 1e38, 3.5e38, 1e-45)
UNUSUAL = (None, np.nan, pd.NaT, True, 0, -0.0, 7, 2.5, "7", "x", 10**30, 1e300)


@dataclass(frozen=True)
class Case:
    """A table of some container, targets of all kinds, and weights."""

    X: Any
    container: str
    classes: Any
    numbers: Any
    weight: np.ndarray | None


# --- columns ------------------------------------------------------------------------------------


def _with_gaps(rng: Random, values: Any, gap: Any = None) -> Any:
    """Replace some values by a gap, in half of the columns."""
    share = rng.choice([0.0, 0.0, 0.3, 1.0], p=[0.3, 0.2, 0.49, 0.01])
    values = np.asarray(values, dtype=object)
    values[rng.random(len(values)) < share] = gap
    return values


def _numbers(rng: Random, n: int) -> Any:
    x = rng.normal(rng.choice([0.0, 100.0, 1e9]), rng.choice([1.0, 1e-6, 1e6]), n)
    x[rng.random(n) < rng.choice([0.0, 0.3])] = np.nan
    return x.astype(rng.choice(["f8", "f4", "f8", "f8"]))


def _huge_numbers(rng: Random, n: int) -> Any:
    x = rng.choice([*HUGE, 0.0, 1.0], n)
    return np.where(rng.random(n) < 0.2, np.nan, x) if rng.random() < 0.5 else x


def _near_numbers(rng: Random, n: int) -> Any:
    """Neighboring floats: their differences are at the limit of what float64 resolves."""
    center = rng.choice([1.0, 0.1, 1e9, -135802.4679, 1e-200])
    return center + rng.integers(-3, 4, n) * np.spacing(center)


def _integers(rng: Random, n: int) -> Any:
    kind = rng.choice(["i1", "u1", "i2", "i4", "i8", "u8"])
    limits = np.iinfo(kind)
    if rng.random() < 0.3:
        return rng.integers(limits.min, limits.max, n, dtype=kind, endpoint=True)
    return rng.integers(0, rng.choice([2, 5, 100]), n).astype(kind)


def _constant(rng: Random, n: int) -> Any:
    return _with_gaps(rng, [UNUSUAL[rng.integers(len(UNUSUAL))]] * n)


def _booleans(rng: Random, n: int) -> Any:
    x = rng.random(n) < rng.random()
    return x if rng.random() < 0.5 else _with_gaps(rng, x)


def _words(rng: Random, n: int) -> Any:
    known = rng.choice(np.array(WORDS, dtype=object), rng.integers(1, 9))
    return _with_gaps(rng, rng.choice(known, n), rng.choice(np.array([None, np.nan], object)))


def _many_words(rng: Random, n: int) -> Any:
    return _with_gaps(rng, [f"id {i}" for i in rng.permutation(n)])


def _anything(rng: Random, n: int) -> Any:
    return np.array([UNUSUAL[i] for i in rng.integers(len(UNUSUAL), size=n)], dtype=object)


def _categories(rng: Random, n: int) -> Any:
    levels = [WORDS[i] for i in rng.choice(len(WORDS), rng.integers(1, 6), replace=False)]
    if rng.random() < 0.4:
        levels = sorted({*rng.integers(-3, 50, 5).tolist()})
    codes = rng.integers(-1, len(levels), n)  # -1 is missing; some levels may not occur
    return pd.Categorical.from_codes(codes, levels, ordered=bool(rng.random() < 0.5))


def _dates(rng: Random, n: int) -> Any:
    unit = rng.choice(["s", "ms", "us", "ns", "D"])
    days = rng.integers(-30_000 if unit != "ns" else 0, 60_000, n)
    dates = np.datetime64("1970-01-01") + days.astype("m8[D]")
    dates = dates.astype(f"M8[{unit}]")
    dates[rng.random(n) < rng.choice([0.0, 0.2])] = "NaT"
    return dates


def _zoned_dates(rng: Random, n: int) -> Any:
    return (
        pd.Series(_dates(rng, n).astype("M8[s]")).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    )


def _durations(rng: Random, n: int) -> Any:
    x = rng.integers(-(10**6), 10**6, n).astype("m8[s]")
    x[rng.random(n) < rng.choice([0.0, 0.2])] = "NaT"
    return x


def _python_dates(rng: Random, n: int) -> Any:
    days = rng.integers(1, 3_000_000, n).tolist()
    return _with_gaps(rng, [datetime.date.fromordinal(day) for day in days])


def _times(rng: Random, n: int) -> Any:
    return _with_gaps(rng, [datetime.time(hour, 30) for hour in rng.integers(0, 24, n).tolist()])


def _units(rng: Random, n: int) -> Any:
    form = rng.choice(["{} cm", "{}kg", "$ {},000.50", "{}%", "{}°", "<{}", "{}.5 m/s", "#{}"])
    return _with_gaps(rng, [form.format(i) for i in rng.integers(1, 99, n)])


def _decimals(rng: Random, n: int) -> Any:
    return _with_gaps(rng, [Decimal(int(i)) / 100 for i in rng.integers(-999, 999, n)])


def _nullable(rng: Random, n: int) -> Any:
    values = _with_gaps(rng, rng.integers(0, 9, n).tolist(), pd.NA)
    return pd.array(values, dtype=str(rng.choice(["Int64", "Float32", "UInt8"])))


def _refused(rng: Random, n: int) -> Any:
    strange = (np.inf, 1 + 2j, [1], {"a": 1}, object, b"\xff", float)
    values = np.empty(n, dtype=object)
    values[:] = [1.0] * n
    values[rng.integers(n)] = strange[rng.integers(len(strange))]
    return values


COLUMNS: tuple[Callable[[Random, int], Any], ...] = (
    *(_numbers, _numbers, _numbers, _integers, _words, _words, _categories, _booleans),
    *(_huge_numbers, _near_numbers, _constant, _many_words, _anything, _dates, _zoned_dates),
    *(_durations, _python_dates, _times, _units, _decimals, _nullable),
)


def _column(rng: Random, n: int) -> Any:
    if rng.random() < 0.01:
        return _refused(rng, n)
    return COLUMNS[rng.integers(len(COLUMNS))](rng, n)


# --- containers ---------------------------------------------------------------------------------


def _frame(rng: Random, n: int, p: int) -> pd.DataFrame:
    frame = pd.DataFrame({j: pd.Series(_column(rng, n)) for j in range(p)}, index=range(n))
    kind = rng.random()
    if kind < 0.6:
        frame.columns = [f"c{j}" for j in range(p)]
    elif kind < 0.85 and p <= len(WORDS):
        frame.columns = [WORDS[i] for i in rng.choice(len(WORDS), p, replace=False)]
    elif kind < 0.88:  # now and then the same one twice
        frame.columns = [WORDS[i] for i in rng.integers(len(WORDS), size=p)]
    if rng.random() < 0.2:
        frame.index = rng.permutation(n) * 10
    return frame


def _numeric(rng: Random, n: int, p: int) -> np.ndarray:
    columns = (_numbers, _integers, _huge_numbers, _near_numbers)
    parts = [columns[rng.integers(len(columns))](rng, n) for _ in range(p)]
    return np.stack([part.astype("f8") for part in parts], axis=1) if p else np.empty((n, 0))


def _array(rng: Random, n: int, p: int) -> Any:
    x = _numeric(rng, n, p)
    form = rng.integers(5)
    if form == 0:
        return np.asfortranarray(x)
    if form == 1:
        return x[::-1]
    if form == 2:
        return np.clip(np.nan_to_num(x), -9, 9).astype(rng.choice(["i4", "i8", "?", "f4", "f2"]))
    return x.tolist() if form == 3 else x


def _objects(rng: Random, n: int, p: int) -> Any:
    x = _frame(rng, n, p).to_numpy(dtype=object, copy=True)
    if x.size and rng.random() < 0.1:
        x[rng.integers(n), rng.integers(p)] = HALF_A_CHARACTER
    return x


def _sparse(rng: Random, n: int, p: int) -> Any:
    x = np.where(rng.random((n, p)) < 0.7, 0.0, rng.normal(size=(n, p)))
    form = rng.choice(["csr", "csc", "coo", "dok"])
    kind = sparse.csr_array if rng.random() < 0.5 else sparse.csr_matrix
    return kind(x).asformat(form)


def _arrow(rng: Random, n: int, p: int) -> Any:
    frame = _frame(rng, n, p)
    columns = [_arrow_column(frame.iloc[:, j]) for j in range(p)]
    return pa.Table.from_arrays(columns, [str(name) for name in frame.columns])


def _arrow_column(values: pd.Series) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError):  # of several types: as text, then
        return pa.array([None if entry is None else str(entry) for entry in values])


def _polars(rng: Random, n: int, p: int) -> Any:
    table = _arrow(rng, n, p)
    if find_spec("polars") is None or len({*table.column_names}) < p:  # it takes no name twice
        return table
    import polars

    return polars.from_arrow(table)


CONTAINERS: dict[str, Callable[[Random, int, int], Any]] = {
    "pandas": _frame,
    "array": _array,
    "objects": _objects,
    "sparse": _sparse,
    "arrow": _arrow,
    "polars": _polars,
}


# --- targets and weights ------------------------------------------------------------------------


def _classes(rng: Random, n: int) -> Any:
    kind = rng.integers(30)
    k = int(rng.choice([1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 7, min(n, 25)]))
    codes = rng.integers(0, k, n)
    words = [word for word in WORDS if "\0" not in word]
    if kind == 0:
        words[-1] = HALF_A_CHARACTER
    if kind == 1:
        return np.array([UNUSUAL[i % len(UNUSUAL)] for i in codes], dtype=object)
    if kind < 5:  # several labels
        return (rng.random((n, rng.integers(1, 4))) < 0.4).astype(rng.choice(["i8", "?", "f8"]))
    if kind < 8:
        return codes.astype(rng.choice(["f8", "u1", "i8"]))
    if kind < 11:
        return pd.Categorical.from_codes(codes, [f"level {i}" for i in range(k)])
    if kind < 14:
        return pd.Series([words[i % len(words)] for i in codes], index=np.arange(n) * 3)
    if kind < 16:
        return codes[:, None]
    if kind < 18:
        return codes.astype("i8") * 2**40
    if kind < 20:
        return rng.random(n) < 0.5
    return np.array([words[-1 - i % len(words)] for i in codes], dtype=object)


def _targets(rng: Random, n: int) -> Any:
    y = rng.normal(size=n)
    kind = rng.integers(30)
    if kind == 0:
        return np.where(rng.random(n) < 0.1, np.nan, y)
    if kind < 5:
        return rng.normal(size=(n, rng.integers(1, 4)))
    if kind < 7:
        return np.full(n, rng.choice([0.0, 3.0, 1e300]))
    if kind < 10:
        return y * rng.choice([1e300, 1e-300, 1e30, 1e-30])
    if kind < 13:
        return y + rng.choice([1e9, -1e15])
    if kind < 16:
        return rng.integers(0, 9, n)
    if kind < 18:
        return rng.choice(HUGE, n)
    if kind < 20:
        return pd.Series(y, index=np.arange(n)[::-1], name="y")
    return np.exp(3 * y)


def _weights(rng: Random, n: int) -> np.ndarray | None:
    kind = rng.integers(30)
    if kind == 0:
        return rng.choice([0.0, 1.0, -1.0, np.nan], n, p=[0.5, 0.4, 0.05, 0.05])
    if kind < 4:
        return rng.random(n)
    if kind < 7:
        return rng.integers(0, 3, n).astype("f8")
    return rng.choice([1e-30, 1.0, 1e30], n) if kind < 10 else None


def make_case(rng: Random) -> Case:
    """Return a random table with targets."""
    n, p = int(rng.choice(N_ROWS)), int(rng.choice(N_COLUMNS))
    container = str(rng.choice([*CONTAINERS]))
    X = CONTAINERS[container](rng, n, p)
    return Case(X, container, _classes(rng, n), _targets(rng, n), _weights(rng, n))


def some_rows(rng: Random, X: Any, n: int) -> Any:
    """Return some rows of a table, of the same container."""
    length = X.shape[0] if hasattr(X, "shape") else len(X)
    rows = rng.integers(length, size=n)
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    if isinstance(X, pa.Table):
        return X.take(rows)
    if isinstance(X, list):
        return [X[i] for i in rows.tolist()]
    return X.tocsr()[rows] if sparse.issparse(X) else X[rows]
