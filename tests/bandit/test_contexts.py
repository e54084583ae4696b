"""Contexts: every form of a row is encoded as the same columns, missing values included."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rounds import small_bandit

from hardwood.bandit.contexts import Contexts, first_contexts
from hardwood.errors import TableError, TableWarning
from hardwood.table import Schema, Table

MIXED = pd.DataFrame(
    {
        "age": [20.0, 35.0, np.nan, 51.0],
        "town": pd.Categorical(["Ulm", "Bonn", "Ulm", None]),
        "paid": [True, False, True, True],
        "visits": [3, 1, 4, 1],
    }
)
SCHEMA = Schema.learn(Table.of(MIXED))


def reader_of(table):
    schema = Schema.learn(Table.of(table))
    return Contexts(schema, takes_missing=True, who="DGTBandit")


ENTRIES = {
    "age": st.none() | st.floats(-1e30, 1e30) | st.integers(-1000, 1000) | st.just(float("nan")),
    "town": st.none() | st.sampled_from(["Ulm", "Bonn", "Kiel", ""]),
    "paid": st.none() | st.booleans() | st.sampled_from([0, 1, 0.0, 1.0]),
    "visits": st.none() | st.integers(-5, 2**40) | st.floats(-1e10, 1e10),
}


@pytest.mark.filterwarnings("ignore:levels that the model did not learn")
@given(row=st.fixed_dictionaries(ENTRIES))
def test_a_row_is_read_as_a_table_of_one_row(row):
    entries = [row[name] for name in SCHEMA.names]
    reader = reader_of(MIXED)
    expected = reader.rows([entries])[0]
    assert expected.dtype == np.float32
    for form in (row, entries, tuple(entries), {"more": 1, **row}):
        np.testing.assert_array_equal(reader.row(form), expected)


def test_a_level_that_the_learner_does_not_know_is_reported():
    row = {"age": 20.0, "town": "Kiel", "paid": True, "visits": 3}
    for form in (row, list(row.values()), pd.DataFrame([row])):
        with pytest.warns(TableWarning, match="missing: column 'town'$"):
            reader_of(MIXED).row(form)


NUMERIC = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [10.0, 20.0, 40.0]})


@given(row=st.tuples(*[st.floats(-1e30, 1e30) | st.just(float("nan"))] * 2))
def test_arrays_with_missing_values_are_read_as_a_table_of_one_row(row):
    reader = reader_of(NUMERIC)
    expected = reader.rows(np.array([row]))[0]
    for form in (np.array(row), list(row), {"b": row[1], "a": row[0]}):
        np.testing.assert_array_equal(reader.row(form), expected)


def test_columns_are_the_encoders_but_for_missing_numbers():
    reader = reader_of(MIXED)
    encoded, schema = reader.rows(MIXED), reader.schema
    expected = schema.encoder.encode(np.ascontiguousarray(schema.read(MIXED), np.float64))
    names = list(schema.column_names)
    assert np.isnan(encoded[2, names.index("age")])
    assert np.isnan(encoded).sum() == 1
    np.testing.assert_array_equal(np.nan_to_num(encoded, nan=0.0), expected)
    assert encoded[2, names.index("age is missing")] == 1
    assert encoded[3, names.index("town is missing")] == 1


def test_forms_of_one_row():
    reader = reader_of(MIXED)
    rows = reader.rows(MIXED)
    for i in range(4):
        for form in (MIXED.iloc[i], MIXED.iloc[[i]], pl.from_pandas(MIXED)[i]):
            np.testing.assert_array_equal(reader.row(form), rows[i])
    with pytest.raises(TableError, match="one row, found a table of 4"):
        reader.row(MIXED)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"age": 1.0}, "no value for 'town'"),
        ({"age": "old", "town": "Ulm", "paid": True, "visits": 1}, "x: .*'age'.*text 'old'"),
        ({"age": 1.0, "town": 3, "paid": True, "visits": 1}, "x: .*'town' holds numbers"),
        ({"age": np.inf, "town": "Ulm", "paid": True, "visits": 1}, "x: .*'age'|x: .*infinity"),
        ({"age": 1e39, "town": "Ulm", "paid": True, "visits": 1}, "x: feature 'age' is 1e.39"),
        ({"age": 10**400, "town": "Ulm", "paid": True, "visits": 1}, "x: .*too large"),
        ([1.0, "Ulm", True], "x has 3 entries"),
        ({"age": [1.0], "town": "Ulm", "paid": True, "visits": 1}, "x: "),
    ],
)
def test_rows_that_do_not_fit_a_table(row, words):
    reader = reader_of(MIXED)
    with pytest.raises(TableError, match=words):
        reader.row(row)


def test_dates_are_read():
    table = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-01-03"]), "n": [1.0, 2.0]})
    reader = reader_of(table)
    row = {"day": datetime.datetime(2024, 1, 3), "n": 2.0}
    np.testing.assert_array_equal(reader.row(row), reader.rows(table)[1])


NUMBERS = st.floats(-1e6, 1e6) | st.integers(-100, 100)


@given(first=st.tuples(NUMBERS, NUMBERS), row=st.tuples(NUMBERS, NUMBERS))
def test_numeric_rows_are_differences_from_the_first(first, row):
    reader = first_contexts([list(first)], None, None, who="DGTBandit")
    expected = (np.array(row, float) - np.array(first, float)).astype(np.float32)
    for form in (list(row), row, np.array(row, float)):
        np.testing.assert_array_equal(reader.row(form), expected)
    np.testing.assert_array_equal(reader.rows([list(row)] * 3), [expected] * 3)


def test_float32_and_integers_are_read_as_numbers(rng):
    X = rng.normal(size=(5, 3))
    reader = first_contexts(X, None, None, who="DGTBandit")
    single = X.astype(np.float32)
    np.testing.assert_array_equal(reader.row(single[1]), reader.row(single[1].astype(float)))
    np.testing.assert_array_equal(reader.rows(single)[1], reader.row(single[1]))
    whole = np.array([1, 2, 3])
    np.testing.assert_array_equal(reader.row(whole), reader.row(whole.astype(float)))
    np.testing.assert_array_equal(reader.row(X[::-1][1]), reader.rows(X)[3])  # not contiguous
    np.testing.assert_array_equal(reader.row(np.asfortranarray(X)[2]), reader.rows(X)[2])


def test_names_come_from_features_a_mapping_or_a_frame():
    by_list = small_bandit(features=["a", "b"])
    by_list.decide({"b": 2.0, "a": 1.0})
    by_mapping = small_bandit()
    by_mapping.decide({"a": 1.0, "b": 2.0})
    by_frame = small_bandit()
    by_frame.replay(pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 4.0]}), [0, 1])
    by_array = small_bandit(features=2)
    by_array.decide([1.0, 2.0])
    for bandit in (by_list, by_mapping, by_frame):
        assert bandit.feature_names_ == ("a", "b")
        assert bandit.tree_.feature_names == ("a", "b")
        np.testing.assert_array_equal(
            bandit.action_values(pd.DataFrame({"b": [5.0], "a": [6.0]})),
            bandit.action_values([[6.0, 5.0]]),
        )
    assert by_array.feature_names_ == ("x0", "x1")


def test_text_needs_a_table_of_examples():
    with pytest.raises(TableError, match="x: .*'red'.* give features= a table"):
        small_bandit().decide(["red", 1.0])
    with pytest.raises(TableError, match=r"X: column 'color' holds text 'red'.*features="):
        small_bandit().replay(pd.DataFrame({"color": ["red", "red"]}), [0, 1])


@pytest.mark.parametrize("of", [lambda t: t, lambda t: reader_of(t).schema, pl.from_pandas])
def test_a_table_or_its_schema_says_what_features_are(of):
    bandit = small_bandit(features=of(MIXED))
    table = MIXED.iloc[np.arange(60) % 4].reset_index(drop=True)
    y = np.arange(60) % 4 % 3
    bandit.replay(table, y)
    np.testing.assert_array_equal(bandit.tree_.predict(MIXED), bandit.action_values(MIXED))
    assert bandit.tree_.schema.column_names == SCHEMA.column_names
    unseen = [{"age": None, "town": "Kiel", "paid": None, "visits": None}]
    frame = pd.DataFrame(unseen)
    with pytest.warns(TableWarning, match="column 'town'"):
        np.testing.assert_array_equal(bandit.tree_.predict(frame), bandit.action_values(frame))


def test_a_missing_number_counts_as_the_mean_of_the_examples(rng):
    """Even if the examples had no missing values and there is no missing indicator."""
    table = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    bandit = small_bandit(features=table)
    X = rng.normal(size=(100, 2)) + 5.0
    bandit.replay(X, (X[:, 0] > 5).astype(int))
    mean = np.array([0.5, 0.5])
    np.testing.assert_array_equal(bandit.tree_.schema.column_center, mean)
    gaps = np.array([[np.nan, 4.0], [6.0, np.nan], [np.nan, np.nan]])
    filled = np.where(np.isnan(gaps), mean, gaps)
    np.testing.assert_array_equal(bandit.action_values(gaps), bandit.action_values(filled))
    np.testing.assert_array_equal(bandit.tree_.predict(gaps), bandit.action_values(gaps))


def test_sparse_contexts_are_read():
    from scipy import sparse

    X = np.eye(4)
    dense, thin = small_bandit(), small_bandit()
    assert dense.replay(X, [0, 1, 2, 0]).action.tolist() == (
        thin.replay(sparse.csr_matrix(X), [0, 1, 2, 0]).action.tolist()
    )
