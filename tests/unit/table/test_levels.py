"""A level may be text in one table and a number in another: compared where that is safe."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hardwood.errors import TableError, TableWarning
from hardwood.table import Feature, Schema

nan = np.nan


def codes(levels, column) -> list[float]:
    schema = Schema((Feature("c", "categorical", levels=tuple(levels)),))
    return schema.read(pd.DataFrame({"c": column}))[:, 0].tolist()


@pytest.mark.parametrize(
    ("levels", "column", "expected"),
    [
        (["10", "9", "other"], [9, 10, 9], [1, 0, 1]),
        (["10", "9", "other"], [9.0, None, 10.0], [1, nan, 0]),
        (["10", "9", "other"], pd.array([9, None, 10], "Int64"), [1, nan, 0]),
        (["10", "9", "other"], pd.Categorical([9, None, 10]), [1, nan, 0]),
        (["10", "9", "other"], np.array([9, 10], np.uint8), [1, 0]),
        (["-1", "1.5", "other"], [1.5, -1.0], [1, 0]),
        (["-1", "1.5", "other"], np.array([1.5, -1], np.float16), [1, 0]),
        (["False", "True", "unknown"], [True, False], [1, 0]),
        (["false", "true", "unknown"], pd.array([True, None], "boolean"), [1, nan]),
        (["TRUE", "unknown"], [True, True], [0, 0]),
        (["True", "unknown"], pd.Categorical([True, None]), [0, nan]),
        ([1, 2, 5], ["5", "1", None], [2, 0, nan]),
        ([1.5, 2.0], ["1.5", "2"], [0, 1]),
        ([False, True], ["TRUE", "false"], [1, 0]),
    ],
    ids=str,
)
def test_levels_of_another_type_are_found(levels, column, expected):
    np.testing.assert_array_equal(codes(levels, column), expected)


def test_other_libraries_convert_alike():
    schema = Schema((Feature("c", "categorical", levels=("10", "9", "other")),))
    for frame in (
        pl.DataFrame({"c": [9, 10]}),
        pd.DataFrame({"c": [9, 10]}, dtype="int64[pyarrow]"),
    ):
        np.testing.assert_array_equal(schema.read(frame), [[1], [0]])
    np.testing.assert_array_equal(schema.read([[9], [10]]), [[1], [0]])


@pytest.mark.parametrize(
    ("levels", "column"),
    [
        (["10", "9", "other"], [9, 11]),
        (["true", "unknown"], [True, False]),
        ([1, 2, 5], ["1", "other"]),
        ([1, 2, 5], ["1", "02"]),
    ],
)
def test_those_that_are_not_found_are_reported(levels, column):
    with pytest.warns(TableWarning, match="column 'c' in 1 of 2 rows"):
        found = codes(levels, column)
    assert np.isnan(found).tolist() == [False, True]


@pytest.mark.parametrize(
    ("levels", "column", "words"),
    [
        (["u", "v"], [1, 2], "holds numbers such as 1, where the model learned text such as 'u'"),
        (["u", "v"], [True, False], "holds booleans such as 0, where the model learned text"),
        (["9", "10"], [True, False], "holds booleans"),
        (["02139", "10001"], [2139, 10001], "such as '02139'.*dtype=str"),
        (["1.50", "2"], [1.5, 2.0], "such as '1.50'.*dtype=str"),
        (["1e3", "2"], [1000, 2], "such as '1e3'.*dtype=str"),
        (["9007199254740993", "1"], [9007199254740993, 1], "such as '9007199254740993'"),
        (["1e400", "1"], [1, 2], "such as '1e400'"),
        (["1" * 5000, "1"], [1, 2], "such as '111.*dtype=str"),
        ([1, 2], ["1e400", "1" * 5000], "holds text such as '1"),
        ([1, 2], ["u", "v"], "holds text such as 'u', where the model learned numbers such as 1"),
        ([1, 2], ["01"], "holds text such as '01'"),
        ([False, True], ["yes", "no"], "holds text such as 'no'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*integers of")
def test_where_characters_would_be_lost_the_error_says_so(levels, column, words):
    with pytest.raises(TableError, match=f"column 'c' .*{words}"):
        codes(levels, column)
