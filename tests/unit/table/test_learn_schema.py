"""`Schema.learn`: what a model stores about its training table."""

from __future__ import annotations

import datetime
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from hardwood.errors import TableError, TableWarning
from hardwood.learn.losses import SquaredError
from hardwood.learn.task import Task
from hardwood.table import Feature, Schema, Table

nan = np.nan


def learn(X, sample_weight=None) -> Schema:
    return Schema.learn(Table.of(X), sample_weight)


def test_a_mixed_table_gives_one_feature_per_column():
    frame = pd.DataFrame(
        {
            "mass": [1.0, 3.0, nan],
            "species": ["b", "a", "b"],
            "sex": ["m", None, "f"],
            "fixed": [7, 7, 7],
            "wild": [True, False, False],
        }
    )
    schema = learn(frame, [1, 1, 2])
    assert [replace(feature, spread=()) for feature in schema.features] == [
        Feature("mass", "numeric", center=2.0, scale=1.0, has_missing=True, origin="integer"),
        Feature("species", "categorical", levels=("a", "b")),
        Feature("sex", "categorical", levels=("f", "m"), has_missing=True),
        Feature("fixed", "numeric", center=7.0, scale=1.0, origin="integer"),
        Feature("wild", "numeric", center=0.25, scale=0.5, origin="boolean"),
    ]
    assert schema.named
    half, quarter = 0.5, 3**0.5 / 4  # standard deviations of 0/1 columns with this fraction of ones
    mass, species, sex = (1.0, half), (quarter, quarter), (half, quarter, quarter)
    expected = [*mass, *species, *sex, 0.0, quarter]
    np.testing.assert_allclose(schema.column_spread, expected, rtol=1e-15)


def test_levels_beyond_255_count_in_the_spread_of_the_missing_indicator():
    text = np.array([f"{i:04d}" for i in range(510)], dtype=object)[:, None]
    with pytest.warns(TableWarning):
        spread = learn(text).column_spread
    np.testing.assert_allclose(spread[-1], 0.5, rtol=1e-12)
    np.testing.assert_allclose(spread[:-1], np.sqrt(1 / 510 * (1 - 1 / 510)), rtol=1e-12)


DAY = datetime.datetime(2020, 1, 2)
HOUR = datetime.timedelta(hours=1)


@pytest.mark.parametrize(
    ("column", "origin"),
    [
        ([1, 2], "integer"),
        ([-3.0, 0.0], "integer"),
        ([1.0, None], "integer"),
        ([1.5, None], "number"),
        ([2.0**53, None], "number"),
        ([True, False], "boolean"),
        ([True, 2], "integer"),
        ([DAY, None], "date"),
        ([DAY.date(), DAY.date()], "date"),
        ([HOUR, None], "duration"),
        ([DAY.time(), None], "duration"),
    ],
)
def test_the_origin_of_a_numeric_column_is_stored(column, origin):
    def found(X):
        return learn(X).features[0].origin

    objects = np.array(column, dtype=object)[:, None]
    assert found(objects) == origin
    assert found(pd.DataFrame({"a": column})) == origin
    if column != [True, 2]:
        assert found(pl.DataFrame({"a": column})) == origin
        assert found(pa.table({"a": column})) == origin


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_fractions_of_rows_without_weight_do_not_count(form):
    X = form(np.array([[1.0, 0.0], [0.5, 2.5], [3.0, nan], [0.0, 4.0]]))
    whole = [feature.origin for feature in learn(X, [1, 0, 2, 1]).features]
    assert whole == ["integer", "integer"]
    assert [feature.origin for feature in learn(X).features] == ["number", "number"]


def test_one_fraction_in_many_rows_makes_a_number():
    X = np.arange(20_000.0)[:, None] * [1.0, 2.0]
    X[-1, 0] += 0.25
    assert [feature.origin for feature in learn(X).features] == ["number", "integer"]


@pytest.mark.parametrize("missing", [None, nan, np.float32(nan), pd.NA])
def test_objects_that_are_booleans_or_missing_are_booleans(missing):
    """So pandas reads a CSV column of True, False and empty cells."""
    for column in ([True, missing, False], [missing, np.True_, np.False_]):
        (feature,) = learn(pd.DataFrame({"b": pd.Series(column, dtype=object)})).features
        assert (feature.origin, feature.has_missing) == ("boolean", True)
    for column in ([True, missing, 2.5], [True, 0.5, missing]):
        (feature,) = learn(pd.DataFrame({"b": pd.Series(column, dtype=object)})).features
        assert feature.origin == "number"


def test_the_type_of_an_array_determines_the_origin():
    for dtype, origin in [
        ("?", "boolean"),
        ("i8", "integer"),
        ("f4", "integer"),
        ("M8[D]", "date"),
        ("m8[h]", "duration"),
    ]:
        assert learn(np.array([[0], [1]]).astype(dtype)).features[0].origin == origin


@pytest.mark.parametrize(
    ("deviation", "scale"),
    [(1.0, 1.0), (1.41, 1.0), (1.42, 2.0), (0.36, 0.5), (3e-9, 2.0**-28), (1.6e308, 2.0**1023)],
)
@pytest.mark.filterwarnings("ignore:.*near the limit of float64")
def test_the_scale_is_the_power_of_two_nearest_the_deviation(deviation, scale):
    (feature,) = learn([[-deviation], [deviation]]).features
    assert feature.scale == scale


def test_the_center_of_a_float32_table_is_a_float32():
    X = np.array([[0.1], [0.7], [0.3]])
    single, double = learn(X.astype(np.float32)), learn(X)
    assert single.features[0].center == float(np.float32(single.features[0].center))
    assert double.features[0].center == pytest.approx(X.mean(), rel=1e-15)
    assert double.features[0].center != float(np.float32(double.features[0].center))


def test_the_columns_of_an_array_get_default_names():
    schema = learn(np.eye(2))
    assert schema.names == ("x0", "x1")
    assert not schema.named


def test_rows_of_weight_zero_are_ignored():
    frame = pd.DataFrame({"x": [1.0, 5.0, nan, 9.0], "c": ["a", "b", None, "z"]})
    assert learn(frame, [1, 1, 0, 0]) == learn(frame[:2])
    assert learn(frame, [1, 1, 0, 0]).features[1].levels == ("a", "b")


def test_one_row_is_a_constant_table():
    assert learn([[3.5]]).features == (Feature("x0", "numeric", center=3.5, spread=(0.0,)),)


def test_the_order_of_rows_does_not_change_levels():
    text = np.array(["é", "z", "B", "a", "10", "9"], dtype=object)[:, None]
    assert learn(text) == learn(text[::-1])
    assert learn(text).features[0].levels == ("10", "9", "B", "a", "z", "é")


def test_the_255_levels_with_the_largest_weight_are_kept():
    text = np.array([f"{i:04d}" for i in range(1000)], dtype=object)[:, None]
    weight = np.ones(1000)
    weight[[999, 500]] = 2.0
    with pytest.warns(TableWarning, match="column 0 .* has 1000 levels; the 255.* dates") as caught:
        schema = learn(text, weight)
    assert caught[0].filename == __file__
    (feature,) = schema.features
    expected = [f"{i:04d}" for i in range(253)] + ["0500", "0999"]
    assert feature.levels == tuple(expected)
    assert feature.has_missing
    with pytest.warns(TableWarning, match=r"column 'x0' in 745 of 1000 rows \(745 levels, such as"):
        codes = schema.read(text)[:, 0]
    assert np.isnan(codes).sum() == 745
    np.testing.assert_array_equal(schema.read(text, is_training=True)[:, 0], codes)
    assert codes[999] == 254


def test_a_warning_points_to_the_line_outside_of_the_package():
    table = Table.of(pd.DataFrame({"id": [f"{i:03d}" for i in range(300)]}))
    with pytest.warns(TableWarning, match="'id' has 300 levels") as caught:
        Task.of(table, np.arange(300.0)[:, None], kind="regression", loss=SquaredError())
    assert caught[0].filename == __file__


def test_255_levels_of_positive_weight_do_not_warn():
    text = np.array([f"{i:04d}" for i in range(300)], dtype=object)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (feature,) = learn(text, np.arange(300) < 255).features
    assert len(feature.levels) == 255
    assert not feature.has_missing


def test_a_column_of_identifiers_keeps_255_levels_and_an_indicator():
    frame = pd.DataFrame({"id": np.arange(200_000).astype(str)})
    with pytest.warns(TableWarning, match="column 'id' has 200000 levels"):
        assert learn(frame).n_columns == 256


def test_sparse_and_dense_tables_give_the_same_schema():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 4)) < 0.7, 0.0, rng.normal(size=(50, 4)) + 3)
    X[3, 1] = nan
    w = rng.random(50)
    for one, other in zip(learn(X, w).features, learn(sp.csc_matrix(X), w).features, strict=True):
        assert one.center == pytest.approx(other.center, rel=1e-13)
        assert one.scale == pytest.approx(other.scale, rel=1e-13)
        assert one.has_missing == other.has_missing
        np.testing.assert_allclose(one.spread, other.spread, rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-300, 5e-324, 1.0, 1e300])
def test_the_scale_of_weights_does_not_matter(factor):
    X = [[1.0], [2.0], [4.0]]
    assert learn(X, np.array([1, 0, 3]) * factor) == learn(X, [1, 0, 3])


@pytest.mark.parametrize(
    ("X", "name"),
    [
        (pd.DataFrame({"a": [1.0, 2.0], "b": [nan, nan]}), "column 'b'"),
        (pd.DataFrame({"a": ["x", "y"], "b": [None, None]}), "column 'b'"),
        (pd.DataFrame({"b": pd.array([None, None], "string")}), "column 'b'"),
        (pd.DataFrame({"b": pd.Categorical([None, None], categories=["u"])}), "column 'b'"),
        (sp.csr_matrix(np.array([[1.0, nan], [0, nan]])), "column 1"),
        (np.array([[1.0, nan], [0, nan]], np.float32), "column 1"),
    ],
)
def test_the_error_for_a_column_without_values_names_it(X, name):
    with pytest.raises(TableError, match=f"{name}.* has no values"):
        learn(X)


def test_a_column_without_values_of_positive_weight_is_refused():
    with pytest.raises(TableError, match="column 0 .*has no values.*positive weight"):
        learn([[nan], [1.0]], [1, 0])


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0], "shape"),
        (-2.0, "number >= 0"),
        ([[1.0], [1.0]], "shape"),
        ([1.0, -1.0], "-1.0 at row 1"),
        ([nan, 1.0], r"NaN \(first at row 0"),
        ([1.0, np.inf], r"infinity \(first at row 1"),
        ([0, 0], "at least one non-zero"),
    ],
)
def test_invalid_weights_are_refused(weight, words):
    with pytest.raises(TableError, match=words):
        learn([[1.0], [2.0]], weight)
