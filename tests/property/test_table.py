"""Properties of tables that hold for any content."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hardwood.errors import TableError
from hardwood.table import Schema, Table
from reference.encode import encode

NUMBERS = st.floats(-1e300, 1e300, allow_subnormal=False) | st.none()
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3) | st.none()
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=3)


@st.composite
def mixed_tables(draw):
    """Generate columns of numbers, text and booleans by name, each with at least one value."""
    n = draw(st.integers(1, 6))
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    values = {}
    for name in names:
        entries = draw(st.sampled_from([NUMBERS, TEXTS, st.booleans()]))
        column = st.lists(entries, min_size=n, max_size=n)
        values[name] = draw(column.filter(lambda c: any(entry is not None for entry in c)))
    return values


few = settings(max_examples=60, deadline=None)


@few
@given(mixed_tables())
def test_every_library_gives_the_same_schema_and_the_same_matrix(values):
    frames = [pd.DataFrame(values), pl.DataFrame(values), pa.table(values)]
    tables = [Table.of(frame) for frame in frames]
    schemas = [Schema.learn(table) for table in tables]
    assert schemas[0] == schemas[1] == schemas[2]
    for schema, table, frame in zip(schemas, tables, frames, strict=True):
        np.testing.assert_array_equal(schema.read(frame), tables[0].matrix)
        np.testing.assert_array_equal(schema.read(table), tables[0].matrix)


@few
@given(mixed_tables(), st.randoms(use_true_random=False))
def test_the_order_of_columns_in_a_frame_does_not_matter(values, random):
    schema = Schema.learn(Table.of(pd.DataFrame(values)))
    shuffled = list(values)
    random.shuffle(shuffled)
    again = schema.read(pd.DataFrame({name: values[name] for name in shuffled}))
    np.testing.assert_array_equal(again, schema.read(pd.DataFrame(values)))


@few
@given(mixed_tables())
def test_a_schema_survives_json(values):
    schema = Schema.learn(Table.of(pl.DataFrame(values)))
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@few
@given(mixed_tables())
def test_training_rows_have_one_indicator_and_finite_values(values):
    schema = Schema.learn(Table.of(pl.DataFrame(values)))
    columns = encode(schema, schema.read(pl.DataFrame(values)))
    assert np.isfinite(columns).all()
    for j, feature in enumerate(schema.features):
        own = columns[:, schema.column_feature == j]
        if feature.kind == "categorical":
            np.testing.assert_array_equal(own.sum(axis=1), 1)
        else:
            # An entry lies within sqrt(n) deviations of the mean; the scale within sqrt(2) of one.
            assert np.abs(own[:, 0]).max() <= 1.001 * np.sqrt(2 * len(own))


@few
@given(mixed_tables(), st.data())
def test_repeated_rows_are_equivalent_to_weights(values, data):
    frame = pd.DataFrame(values)
    weight = data.draw(st.lists(st.integers(0, 3), min_size=len(frame), max_size=len(frame)))
    repeated = frame.loc[np.repeat(np.arange(len(frame)), weight)].reset_index(drop=True)
    try:
        one = Schema.learn(Table.of(frame), weight)
    except TableError:  # no row, or no entry of a column, has a positive weight
        is_bare = repeated.isna().all()
        assert is_bare.any() or not len(repeated)
        return
    other = Schema.learn(Table.of(frame.iloc[np.repeat(np.arange(len(frame)), weight)]))
    for a, b in zip(one.features, other.features, strict=True):
        assert (a.name, a.kind, a.levels, a.has_missing) == (
            b.name,
            b.kind,
            b.levels,
            b.has_missing,
        )
        assert abs(a.center - b.center) <= 1e-9 * max(a.scale, b.scale) + 1e-15 * abs(a.center)
        assert abs(a.scale / b.scale - 1) <= 1e-9


@few
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements=st.floats(-1000, 1000, width=32) | st.just(0.0),
    )
)
def test_sparse_and_dense_agree(X):
    dense, sparse = Schema.learn(Table.of(X)), Schema.learn(Table.of(sp.csr_matrix(X)))
    for a, b in zip(dense.features, sparse.features, strict=True):
        assert abs(a.center - b.center) <= 1e-12 * max(1.0, abs(a.center))
        assert abs(a.scale - b.scale) <= 1e-9 * a.scale


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["named", "features", "name", "kind", "levels", "center", "scale"]),
            inner,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(JSON, st.sampled_from(["named", "features", "feature", "name", "kind", "levels", "scale"]))
def test_any_json_gives_a_schema_or_a_value_error(content, place):
    whole = {
        "named": True,
        "features": [{"name": "a", "kind": "categorical", "has_missing": False, "levels": ["x"]}],
    }
    if place in whole:
        whole[place] = content
    elif place == "feature":
        whole["features"].append(content)
    else:
        whole["features"][0][place] = content
    try:
        schema = Schema.from_dict(whole)
    except ValueError:
        return
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
