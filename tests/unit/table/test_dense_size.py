"""A table that does not fit into memory as dense numbers is refused before it is allocated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from estimators.every_estimator import runnable
from hardwood import (
    GreedyTreeClassifier,
    LatentTreeClassifier,
    LatentTreeClustering,
    TAORegressor,
    TreeClassifier,
    TreeRegressor,
)
from hardwood.learn import task as tasks
from hardwood.learn.losses import SquaredError
from hardwood.learn.task import Task
from hardwood.search import linear_search
from hardwood.selection.other_libraries import EncodedRegressor
from hardwood.table import Table, dense_size

SEARCH = {"max_trials": 1, "teacher": None, "time_limit": None}
DENSE = [
    GreedyTreeClassifier(),
    TAORegressor(),
    TreeClassifier(**SEARCH),
    TreeRegressor(**SEARCH),
    LatentTreeClassifier(max_epochs=1, max_depth=1),
    LatentTreeClustering(max_epochs=1, targets="all"),
]
"""Learners that hold all rows as dense numbers."""


def make_sparse() -> sparse.csr_array:
    return sparse.random_array((50, 30), density=0.2, format="csr", rng=1)


@pytest.mark.parametrize("estimator", runnable(DENSE), ids=str)
def test_a_sparse_table_that_cannot_be_dense_is_refused(estimator, monkeypatch):
    X, y = make_sparse(), np.arange(50) % 2
    estimator.fit(X, y)
    monkeypatch.setattr(dense_size, "total_memory", lambda: 2000.0)
    with pytest.raises(ValueError, match=r"GB for \d+ rows and \d+ columns, but this machine has"):
        estimator.fit(X, y)


def test_models_of_other_libraries_are_refused_too(monkeypatch):
    from sklearn.linear_model import Ridge

    X, y = make_sparse(), np.arange(50.0)
    EncodedRegressor(Ridge()).fit(X, y)
    monkeypatch.setattr(dense_size, "total_memory", lambda: 2000.0)
    with pytest.raises(ValueError, match="Ridge needs all values at once: .* 50 rows"):
        EncodedRegressor(Ridge()).fit(X, y)


@pytest.mark.parametrize("n_values", [1, 100, 2**22])
def test_rows_are_encoded_in_chunks(n_values, monkeypatch):
    monkeypatch.setattr(tasks, "_CHUNK_VALUES", n_values)
    X = make_sparse()
    y = np.arange(50.0)[:, None]
    found = [
        Task.of(Table.of(table), y, None, kind="regression", loss=SquaredError()).encoded(
            np.arange(50), dtype
        )
        for table in (X, np.asfortranarray(X.toarray()))
        for dtype in (np.float32, np.float64)
    ]
    assert [encoded.dtype.itemsize for encoded in found] == [4, 8, 4, 8]
    for encoded in found[1:]:
        np.testing.assert_array_equal(encoded, found[0])


@pytest.mark.parametrize("n_values", [1, 100])
def test_held_out_rows_are_measured_in_parts(n_values, monkeypatch):
    X, y = make_sparse(), np.arange(50) % 2

    def losses():
        points = TreeClassifier(**SEARCH, random_state=0).fit(X, y).frontier_.points
        return [point.loss for point in points]

    whole = losses()
    monkeypatch.setattr(linear_search, "_MOST_VALUES", n_values)
    assert losses() == pytest.approx(whole)


def test_memory_is_known_or_without_limit():
    assert dense_size.total_memory() > 1e6
