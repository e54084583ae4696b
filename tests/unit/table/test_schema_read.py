"""`Schema.read`: a later table becomes the matrix that the model expects, or an error."""

from __future__ import annotations

import timeit

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from hardwood.errors import TableError, TableTypeError, TableWarning
from hardwood.table import Feature, Schema, Table

nan = np.nan
NUMERIC = Schema.numeric(3, ["a", "b", "c"])
MIXED = Schema(
    (
        Feature("mass", "numeric", center=2.0, scale=3.0),
        Feature("kind", "categorical", levels=("u", "v", "w")),
        Feature("grade", "categorical", levels=(1, 2, 5)),
    )
)


# Arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_plain_array_is_returned_as_it_is(dtype):
    X = np.ones((4, 3), dtype)
    X.flags.writeable = False
    assert NUMERIC.read(X) is X


def test_a_plain_array_is_read_in_two_microseconds():
    X = np.ones((1, 3))
    assert min(timeit.repeat(lambda: NUMERIC.read(X), number=2000, repeat=5)) / 2000 < 2e-6


def test_other_arrays_are_converted():
    X = np.arange(6.0).reshape(2, 3)
    for other in (
        np.asfortranarray(X),
        X.astype(int),
        X.tolist(),
        X.astype(object),
        X.astype(">f8"),
    ):
        matrix = NUMERIC.read(other)
        assert matrix.flags.c_contiguous
        assert matrix.dtype == np.float64
        np.testing.assert_array_equal(matrix, X)


def test_an_unaligned_array_is_copied():
    X = np.frombuffer(b"\0" + np.arange(6.0).tobytes(), np.uint8)[1:].view(np.float64)
    matrix = NUMERIC.read(X.reshape(2, 3))
    assert matrix.flags.aligned
    np.testing.assert_array_equal(matrix, [[0, 1, 2], [3, 4, 5]])


def test_nan_is_accepted_and_infinity_is_not():
    np.testing.assert_array_equal(NUMERIC.read([[1, nan, None]]), [[1, nan, nan]])
    with pytest.raises(TableError, match=r"infinity \(inf at row 0\)"):
        NUMERIC.read([[1, 2, np.inf]])


@pytest.mark.parametrize("make", [np.ones, sp.csr_matrix, lambda shape: np.ones(shape).tolist()])
def test_a_wrong_width_has_the_message_of_scikit_learn(make):
    with pytest.raises(
        TableError, match="X has 4 features, but Tree is expecting 3 features as input"
    ):
        NUMERIC.read(make((2, 4)), who="Tree")


def test_anything_but_a_table_is_refused_at_prediction_too():
    with pytest.raises(TableError, match="Reshape your data"):
        NUMERIC.read(np.ones(3))
    with pytest.raises(TableError, match=r"0 sample\(s\)"):
        NUMERIC.read(np.ones((0, 3)))


def test_arrays_of_objects_are_read_by_position():
    X = np.array([[1.5, "w", 5], [None, None, None]], dtype=object)
    np.testing.assert_array_equal(MIXED.read(X), [[1.5, 2, 2], [nan, nan, nan]])


def test_sparse_stays_sparse():
    X = sp.coo_matrix(np.eye(3, dtype=np.float32))
    matrix = NUMERIC.read(X)
    assert matrix.format == "csr"
    assert matrix.dtype == np.float32
    with pytest.raises(TableError, match="column 'kind' is categorical"):
        MIXED.read(X)


# Data frames


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_are_read_by_name_in_any_order_ignoring_other_columns(make):
    frame = make({"grade": [5, 1], "extra": ["q", "q"], "kind": ["w", "u"], "mass": [1.0, 2.0]})
    np.testing.assert_array_equal(MIXED.read(frame), [[1, 2, 2], [2, 0, 0]])


def test_other_columns_may_hold_anything():
    frame = pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0], "junk": [{"x": object()}]})
    np.testing.assert_array_equal(NUMERIC.read(frame), [[1, 2, 3]])


def test_an_absent_column_is_named():
    with pytest.raises(TableError, match="lacks 1 column that .*: 'b'"):
        NUMERIC.read(pd.DataFrame({"a": [1.0], "c": [1.0], "x": [1.0]}))


def test_a_frame_without_names_is_read_by_position():
    np.testing.assert_array_equal(NUMERIC.read(pd.DataFrame([[1, 2, 3]])), [[1, 2, 3]])


def test_a_model_of_an_array_reads_frames_by_position():
    schema = Schema.numeric(2)
    np.testing.assert_array_equal(schema.read(pd.DataFrame({"q": [1], "p": [2]})), [[1, 2]])
    with pytest.raises(TableError, match="X has 3 features, but ObliqueTree is expecting 2"):
        schema.read(pd.DataFrame({"x1": [1], "x0": [2], "z": [3]}))


def test_a_table_that_was_read_is_read_again_without_a_copy():
    table = Table.of(pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]}))
    schema = Schema.learn(table)
    assert schema.read(table) is table.matrix


def test_a_table_that_was_read_is_not_modified():
    table = Table.of(pd.DataFrame({"grade": [2, 1], "kind": ["w", "u"], "mass": [0.5, 1.0]}))
    before = table.matrix.copy()
    np.testing.assert_array_equal(MIXED.read(table), [[0.5, 2, 1], [1, 0, 0]])
    np.testing.assert_array_equal(table.matrix, before)
    with pytest.raises(TableError, match="lacks the column 'mass'"):
        MIXED.read(Table.of(pd.DataFrame({"grade": [2], "kind": ["w"]})))


# Levels


@pytest.mark.parametrize(
    "column",
    [
        ["w", "new", None, "u"],
        pd.Categorical(["w", "new", None, "u"], categories=["new", "w", "unused", "u"]),
        pd.array(["w", "new", None, "u"], dtype="string"),
    ],
)
def test_unseen_levels_are_missing_and_counted(column):
    frame = pd.DataFrame({"mass": 1.0, "kind": column, "grade": 1})
    with pytest.warns(TableWarning, match=r"column 'kind' in 1 of 4 rows \('new'\)$"):
        matrix = MIXED.read(frame)
    np.testing.assert_array_equal(matrix[:, 1], [2, nan, nan, 0])


@pytest.mark.parametrize(
    "column",
    [
        [5, 3, 1],
        [5.0, 1.5, 1.0],
        np.array([5, 0, 1], np.int8),
        pd.Categorical([5, 3, 1]),
        pd.Categorical([5.0, 3.0, 1.0]),
    ],
)
def test_levels_that_are_numbers_are_found_by_value(column):
    frame = pd.DataFrame({"mass": 1.0, "kind": "u", "grade": column})
    with pytest.warns(TableWarning, match=r"column 'grade' in 1 of 3 rows \((0|1\.5|3)\)$"):
        matrix = MIXED.read(frame)
    np.testing.assert_array_equal(matrix[:, 2], [2, nan, 0])


def test_boolean_levels_are_found_in_a_boolean_column():
    schema = Schema.learn(Table.of(pd.DataFrame({"b": pd.Categorical([True, False])})))
    assert schema.features[0].levels == (False, True)
    frame = pd.DataFrame({"b": [True, False, True]})
    np.testing.assert_array_equal(schema.read(frame), [[1], [0], [1]])


def test_a_column_of_missing_values_matches_every_feature():
    for empty in ([nan, nan], [None, None], pd.array([None, None], dtype="string")):
        frame = pd.DataFrame({"mass": empty, "kind": empty, "grade": empty})
        assert np.isnan(MIXED.read(frame)).all()
    assert np.isnan(MIXED.read(pl.DataFrame({name: [None] for name in MIXED.names}))).all()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"mass": [None, "3.5"]}, r"column 'mass' holds the text '3.5' at row 1.*numbers"),
        ({"kind": [1, 2]}, "column 'kind' holds numbers such as 1.*text such as 'u'"),
        ({"kind": pd.Categorical([1, 2])}, "column 'kind' holds numbers"),
        ({"grade": ["a", "b"]}, "column 'grade' holds text such as 'a'.*numbers such as 1"),
        ({"mass": [1.0, np.inf]}, "column 'mass' holds infinity"),
    ],
)
def test_the_error_for_text_instead_of_numbers_names_the_column(values, words):
    frame = pd.DataFrame({"mass": 1.0, "kind": "u", "grade": [1, 1], **values})
    with pytest.raises(TableError, match=words):
        MIXED.read(frame)


def test_a_column_that_mixes_kinds_is_refused_with_value_and_row():
    frame = pd.DataFrame({"mass": [1.0, "oops"], "kind": "u", "grade": 1})
    with pytest.raises(TableTypeError, match="column 'mass' mixes .*'oops', row 1"):
        MIXED.read(frame)


def test_numeric_categories_become_numbers_without_rounding():
    frame = pd.DataFrame({"a": pd.Categorical([2**24 + 1, None]), "b": np.float32(1), "c": True})
    matrix = NUMERIC.read(frame.astype({"b": np.float32}))
    np.testing.assert_array_equal(matrix, [[2**24 + 1, 1, 1], [nan, 1, 1]])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "learned from dates.*pandas.to_datetime"),
        (pd.to_timedelta([1, 2], "D"), "learned from durations.*pandas.to_timedelta"),
        ([True, False], "learned from true and false"),
        ([1, 2], "learned from numbers"),
    ],
)
def test_the_error_for_text_says_what_was_learned(column, words):
    schema = Schema.learn(Table.of(pd.DataFrame({"joined": column})))
    with pytest.raises(TableError, match=f"'joined' holds the text '2020-05-01' at row 0.*{words}"):
        schema.read(pd.DataFrame({"joined": ["2020-05-01"]}))
