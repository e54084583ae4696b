"""Trees of a search have short numbers, and so have the means of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from hardwood.learn.losses import SquaredError
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search import rounded
from hardwood.search.rounded import with_short_means, with_short_numbers
from hardwood.table import Table
from hardwood.text.numbers import n_digits


def task_of(X: Any, y: Any) -> Task:
    target = np.asarray(y, dtype=float)[:, None]
    return Task.of(Table.of(X), target, kind="regression", loss=SquaredError())


def means_of(X: Any) -> list[float]:
    task = with_short_means(task_of(X, np.arange(len(X))))
    return [feature.center for feature in task.schema.features]


def test_means_are_rounded_to_three_digits_of_the_standard_deviation():
    rng = np.random.default_rng(0)
    x = rng.normal(1234.5678, 20.0, 200)
    dates = pd.Timestamp("2019-01-22 10:11:12") + pd.to_timedelta(
        rng.uniform(0, 900, 200), unit="D"
    )
    mean, date, constant = means_of(pd.DataFrame({"x": x, "date": dates, "same": 0.123456789}))
    assert mean == round(x.mean(), 1)
    assert date % 86400 == 0
    assert constant == 0.123456789


def test_float32_tables_keep_means_that_no_missing_number_needs():
    x = np.random.default_rng(0).normal(1234.5678, 20.0, (200, 2)).astype(np.float32)
    x[::9, 1] = np.nan
    kept, short = means_of(x)
    assert kept == float(np.float32(kept))
    assert n_digits(kept) > n_digits(short) == 5


@pytest.mark.parametrize("container", [np.asarray, csr_matrix])
def test_the_rows_of_a_task_keep_their_leaves(container):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3))
    task = with_short_means(task_of(container(X), X[:, 0] + rng.normal(size=500)))
    tree = ObliqueTree.of(
        [[0.654321, 0, 0]],
        bias=[0.0123456],
        values=[0.987654, -0.0123456],
        leaf_weights=[[1 / 3, 1 / 7, 0], [1 / 9, 0, 1 / 11]],
        schema=task.schema,
    )
    short = with_short_numbers(tree, task)
    np.testing.assert_array_equal(short.apply(X), tree.apply(X))
    assert max(map(n_digits, short.leaf_weights.ravel().tolist())) <= 4


def test_large_tables_are_rounded_on_some_rows(monkeypatch):
    given = []
    monkeypatch.setattr(rounded, "_MOST_ROWS", 100)
    monkeypatch.setattr(rounded, "_LEAST_ROWS", 100)
    monkeypatch.setattr(rounded, "short_numbers", lambda tree, X, y, w: given.append((X, y, w)))
    task = task_of(np.arange(1000.0)[:, None], np.arange(1000.0))
    with_short_numbers(None, task)
    ((X, y, w),) = given
    assert X.n_rows == len(y) == len(w) == 100
    assert y.min() == 0
    assert y.max() == 999
    monkeypatch.setattr(rounded, "_MOST_ENTRIES", 50)
    with_short_numbers(None, task)  # too few
    assert len(given) == 1
    monkeypatch.setattr(rounded, "_LEAST_ROWS", 50)
    with_short_numbers(None, task)
    assert given[1][0].n_rows == 50
