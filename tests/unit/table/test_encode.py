"""The encoding of a table: the reference, and the engine, which agrees bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from hardwood.table import Feature, Schema
from reference.encode import encode

nan = np.nan
MIXED = Schema(
    (
        Feature("time", "numeric", center=1.7e9, scale=2.0, has_missing=True),
        Feature("kind", "categorical", levels=("a", "b", "c"), has_missing=True),
        Feature("tone", "categorical", levels=("x", "y")),
        Feature("plain", "numeric"),
    )
)
ROWS = np.array([[1.7e9 + 1, 1, 0, 3], [nan, nan, nan, nan], [1.7e9 - 3, 2, 1, -1]])
COLUMNS = [
    [0.5, 0, 0, 1, 0, 0, 1, 0, 3],
    [0, 1, 0, 0, 0, 1, 0, 0, 0],
    [-1.5, 0, 0, 0, 1, 0, 0, 1, -1],
]


def engine(schema, matrix):
    pytest.importorskip("hardwood._native", reason="the engine is not built")
    return schema.encoder.encode(matrix)


@pytest.fixture(params=[encode, engine])
def encoder(request):
    return request.param


def test_values_and_indicators(encoder):
    columns = encoder(MIXED, ROWS)
    assert columns.dtype == np.float32
    np.testing.assert_array_equal(columns, COLUMNS)


def test_a_code_without_a_level_is_a_missing_value(encoder):
    for code in (3.0, -1.0, 1e6):
        columns = encoder(MIXED, np.array([[1.7e9, code, 0, 0]]))
        np.testing.assert_array_equal(columns, [[0, 0, 0, 0, 0, 1, 1, 0, 0]])


def test_a_large_offset_keeps_its_signal(encoder):
    schema = Schema((Feature("t", "numeric", center=1.7e9, scale=1.0),))
    columns = encoder(schema, 1.7e9 + np.array([[-1.0], [0.25], [1.0]]))
    np.testing.assert_array_equal(columns, [[-1], [0.25], [1]])


def test_values_beyond_float32_become_its_largest(encoder):
    schema = Schema((Feature("x", "numeric", scale=1e-10),))
    columns = encoder(schema, np.array([[1e30], [-1e30], [1e300], [1e308], [1e10]]))
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(
        columns.ravel(), np.float32([largest, -largest, largest, largest, 1e20])
    )


def test_sparse_zeros_are_zeros_and_not_missing():
    schema = Schema((Feature("x", "numeric", center=2.0, scale=4.0, has_missing=True),))
    matrix = sp.csr_matrix(np.array([[0.0], [nan], [6.0]]))
    np.testing.assert_array_equal(encode(schema, matrix), [[-0.5, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_engine_equals_the_reference_bit_for_bit(dtype):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=20).astype(np.float32).tolist()
    scales = (2.0 ** rng.integers(-8, 8, 20)).tolist()  # as they are learned
    features = tuple(
        Feature(f"n{j}", "numeric", center=c, scale=s, has_missing=bool(j % 2))
        for j, (c, s) in enumerate(zip(centers, scales, strict=True))
    )
    schema = Schema((*features, *MIXED.features[1:3]))
    matrix = rng.normal(size=(200, 22)).astype(dtype) * 10
    matrix[:, 20:] = rng.integers(0, 2, (200, 2))
    matrix[rng.random(matrix.shape) < 0.1] = nan
    np.testing.assert_array_equal(engine(schema, matrix), encode(schema, matrix))
