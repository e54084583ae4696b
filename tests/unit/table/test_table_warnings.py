"""Values that would change their meaning without a word: a warning names the column."""

from __future__ import annotations

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from hardwood.errors import TableError, TableWarning
from hardwood.table import Feature, Schema, Table

nan = np.nan
LONG = 2**53 + 1


def learned_from(**columns) -> Schema:
    return Schema.learn(Table.of(pd.DataFrame(columns)))


# Integers that float64 rounds


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, LONG], [2, 3]]),
        np.array([[1, -LONG], [2, 3]]),
        np.array([[1, LONG], [2, 3]], np.uint64),
        np.array([[1.5, LONG], [2, None]], dtype=object),
        [[1.5, LONG], [2.0, 2**70]],
        sp.csr_array(np.array([[1, LONG], [2, 3]])),
        pd.DataFrame({"x0": [1.0, 2.0], "x1": [LONG, 3]}),
        pd.DataFrame({"x0": [1.0, 2.0], "x1": pd.array([LONG, None], "Int64")}),
        pd.DataFrame({"x0": [1.0, 2.0], "x1": pd.array([LONG, None], "int64[pyarrow]")}),
        pl.DataFrame({"x0": [1.0, 2.0], "x1": [LONG, None]}),
        pl.DataFrame({"x0": [1.0, 2.0], "x1": pl.Series([LONG, None], dtype=pl.Int128)}),
        pa.table({"x0": [1.0, 2.0], "x1": [LONG, None]}),
    ],
    ids=lambda X: type(X).__name__,
)
def test_integers_that_lose_digits_are_named(X):
    with pytest.warns(TableWarning, match=r"^column ('x1'|1 .*) holds integers .*2\^53") as caught:
        Table.of(X)
    assert len(caught) == 1


@pytest.mark.parametrize(
    "X",
    [
        np.array([[2**53 - 1, 1 - 2**53]]),
        np.array([[1e17, -1e30]]),
        np.array([[2**31 - 1]], np.int32),
        [[1, True, None]],
        pd.DataFrame({"a": pd.date_range("2024", periods=2), "b": ["9007199254740993"] * 2}),
    ],
)
def test_other_large_numbers_are_not(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Table.of(X)


def test_many_columns_make_one_warning():
    with pytest.warns(TableWarning, match="column 4 .*, 995 more hold integers") as caught:
        Table.of(np.full((2, 1000), LONG))
    assert len(caught) == 1


# Numbers near the limit


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, pd.DataFrame, np.ndarray.tolist])
@pytest.mark.parametrize("value", [1.7976931348623157e308, -1.7e308])
def test_numbers_near_the_limit_are_named(make, value):
    with pytest.warns(TableWarning, match=r"column 1 .* holds up to 1\.[78]e\+308 .* float64"):
        Table.of(make(np.array([[1.0, value], [nan, 2.0]])))


def test_the_limit_of_a_float32_table_is_its_own():
    X = np.array([[3.4e38, 1e30]], np.float32)
    with pytest.warns(TableWarning, match=r"column 0 .* holds up to 3\.4e\+38 .* float32"):
        Table.of(X)
    Table.of(X.astype(np.float64))


# Dates and durations

DAYS = pd.date_range("2024-01-01", periods=3)
WAITS = pd.to_timedelta([1, 2, 3], "h")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_dates_as_integers_of_another_unit_are_refused(unit, make):
    schema = learned_from(day=DAYS)
    ticks = DAYS.to_numpy().astype(f"M8[{unit}]").astype(np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # of the size of nanoseconds
        with pytest.raises(TableError, match="'day' holds the number 1.* at row 2.*to_datetime"):
            schema.read(make({"day": ticks}))
        with pytest.raises(TableError, match="'day' holds the number"):
            schema.read(ticks[:, None])


@pytest.mark.parametrize(
    ("learned", "given", "words"),
    [
        (DAYS, [20240101, 20240102], r"numbers, where .* dates: .* \(around 2024-01-02\)"),
        (DAYS, [19723.0, nan], "numbers, where the model learned dates"),
        (DAYS, [2024, 2025], "numbers, where the model learned dates"),
        (DAYS, [True, False], "numbers, where the model learned dates"),
        (DAYS, WAITS, "durations, where the model learned dates"),
        (WAITS, WAITS.to_numpy().astype(np.int64), "numbers, where .* durations: .*2 hours"),
        (WAITS, DAYS, "dates, where the model learned durations"),
        ([1.0, 2.0], DAYS, "dates, where the model learned numbers"),
        ([True, False], WAITS, "durations, where the model learned numbers"),
    ],
)
def test_another_unit_is_named(learned, given, words):
    schema = learned_from(b=learned)
    with pytest.warns(TableWarning, match=f"column 'b' holds {words}"):
        schema.read(pd.DataFrame({"b": given}))


def test_seconds_are_dates_and_durations():
    """Results of this package hold dates in seconds, and can be predicted again."""
    schema = learned_from(day=DAYS, wait=WAITS, kind=["u", "v", "u"])
    matrix = schema.read(pd.DataFrame({"day": DAYS, "wait": WAITS, "kind": "u"}))
    rows = pd.DataFrame(matrix[:, :2], columns=["day", "wait"]).assign(kind="u")
    np.testing.assert_array_equal(schema.read(rows), matrix)


def test_a_column_without_values_has_any_unit():
    schema = learned_from(day=DAYS, wait=WAITS, number=[1.0, 2.0, 3.0])
    for empty in ([nan, nan], pd.array([None, None], "Int64"), pd.to_datetime([None, None])):
        matrix = schema.read(pd.DataFrame(dict.fromkeys(schema.names, empty)))
        assert np.isnan(matrix).all()


# Levels


def many_levels(n_columns: int) -> tuple[Schema, pd.DataFrame]:
    names = [f"c{i}" for i in range(n_columns)]
    schema = learned_from(**{name: ["a", "b", None] for name in names})
    return schema, pd.DataFrame({name: ["a", None, "new", "new", "newer"] for name in names})


def test_unknown_levels_are_counted_with_the_most_frequent_as_example():
    schema, frame = many_levels(1)
    with pytest.warns(TableWarning) as caught:
        schema.read(frame)
    (warning,) = caught
    assert str(warning.message) == (
        "levels that the model did not learn count as missing: "
        "column 'c0' in 3 of 5 rows (2 levels, such as 'new')"
    )
    assert warning.filename == __file__


def test_columns_share_a_warning_that_shows_the_worst():
    schema, frame = many_levels(20)
    frame["c7"] = "new"
    with pytest.warns(TableWarning, match="missing: column 'c7' in 5 of 5.*and 12 more") as caught:
        schema.read(frame)
    assert len(caught) == 1


def test_a_loop_over_rows_repeats_one_message():
    """Python shows a repeated message only once, so that a loop does not fill the screen."""
    schema = learned_from(c=["a", "b"], d=["a", "b"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for i in range(1000):
            schema.read([[f"new {i}", "a"]])
    assert [str(warning.message) for warning in caught] == [
        "levels that the model did not learn count as missing: column 'c'"
    ]


def test_missing_values_and_known_levels_do_not_warn():
    schema = learned_from(c=["a", "b", "c"], n=pd.Categorical([1, 2, 3]))
    for c in (["a", None], [None, nan], pd.Categorical(["b", None], categories=["b", "new"])):
        schema.read(pd.DataFrame({"c": c, "n": [1.0, nan]}))
    part = schema.as_table(schema.read(pd.DataFrame({"c": ["a", "b"], "n": [1, 2]}))[:1])
    np.testing.assert_array_equal(schema.read(part), [[0, 0]])


def test_rows_of_another_table_warn_of_their_own_levels_only():
    schema = learned_from(c=["a", "b"])
    table = Table.of(pd.DataFrame({"c": ["a", "new", "b"]}))
    known = Table(table.matrix[[0, 2]], table.levels, table.names)
    np.testing.assert_array_equal(schema.read(known), [[0], [1]])


# Numbers that a few other entries make text

NUMBERS = [f"{i / 8}" for i in range(20)]


@pytest.mark.parametrize("others", [["?"], ["oops", "-"], ["n. a.", None]])
def test_a_text_column_of_numbers_and_a_few_mistakes_is_named(others):
    with pytest.warns(TableWarning, match="column 'x' is text and not numbers.* such as '.+'"):
        learned_from(x=[*NUMBERS, *others])


@pytest.mark.parametrize(
    "levels", [NUMBERS, ["1", "2", "3", "X"], [*NUMBERS, *"abcde"], list("abcdefghijklmn")]
)
def test_numbers_as_text_and_categories_are_not(levels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned_from(x=levels)


# Text where numbers were learned


@pytest.mark.parametrize(
    ("learned", "column", "bad"),
    [
        ([1.0, 2.0], ["1.5", None, "-2e3", "oops", "worse"], "'oops' at row 3"),
        ([1.0, 2.0], ["1.5", "2"], "'1.5' at row 0"),
        ([True, False], ["true", "False", "yes"], "'yes' at row 2"),
        (DAYS, ["2024-01-01", None, "31.12.2024"], "'31.12.2024' at row 2"),
        (DAYS, ["2024-01-01 10:00", "2024-02-30"], "'2024-02-30' at row 1"),
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_entry_that_is_wrong_is_quoted(learned, column, bad, make):
    schema = learned_from(x=learned)
    with pytest.raises(TableError, match=f"column 'x' holds the text {bad}"):
        schema.read(make({"x": column}))


def test_a_feature_without_dates_stays_silent_on_dates_as_levels():
    schema = Schema((Feature("day", "categorical", levels=("2024-01-01", "other")),))
    with pytest.raises(TableError, match="column 'day' holds dates such as .* learned text"):
        schema.read(pd.DataFrame({"day": [dt.date(2024, 1, 1)]}))
