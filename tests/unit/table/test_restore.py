"""A matrix converted back to the kind of table that the user has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from hardwood.table import Schema, Table
from hardwood.table.restore import table_like

FRAME = pd.DataFrame(
    {
        "whole": [1, 2, 3, 4],
        "text": ["x", "y", None, "x"],
        "level": pd.Categorical(["u", "v", "u", None], categories=["v", "u", "w"]),
        "flag": [True, False, True, True],
        "day": pd.to_datetime(["2020-01-01", "2021-01-01", None, "2022-05-05"]),
        "real": [1.5, None, 2.0, 3.0],
        "span": pd.to_timedelta([1, 2, 3, None], unit="h"),
    }
)


def read(table):
    schema = Schema.learn(Table.of(table))
    return schema, schema.read(table)


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME),
        np.array([[1, "a"], [2, "b"], [None, "a"]], dtype=object),
        [[1, "a"], [2.0, "b"]],
        np.arange(6.0).reshape(3, 2),
    ],
    ids=["pandas", "polars", "arrow", "objects", "list", "array"],
)
def test_a_restored_table_reads_as_the_same_matrix(table):
    schema, matrix = read(table)
    written = table_like(table, schema, matrix)
    assert isinstance(written, np.ndarray if isinstance(table, list) else type(table))
    assert np.array_equal(schema.read(written), matrix, equal_nan=True)


def test_numbers_become_floats_and_other_columns_keep_their_type():
    schema, matrix = read(FRAME)
    matrix = matrix.copy()
    matrix[:, 0] += 0.5
    written = table_like(FRAME, schema, matrix)
    assert written["whole"].tolist() == [1.5, 2.5, 3.5, 4.5]
    assert written["level"].dtype == FRAME["level"].dtype
    assert written["flag"].dtype == bool
    assert written["day"].dtype.kind == "M"
    assert written["level"].isna().tolist() == [False, False, False, True]


def test_a_sparse_matrix_is_returned_as_it_is():
    table = sparse.csr_matrix(np.eye(3))
    schema, matrix = read(table)
    assert table_like(table, schema, matrix) is matrix
