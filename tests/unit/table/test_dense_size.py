"""A table that does not fit into memory as dense numbers is refused before it is allocated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hardwood import GreedyTreeClassifier, TAORegressor
from hardwood.table import dense_size


@pytest.mark.parametrize("estimator", [GreedyTreeClassifier(), TAORegressor()], ids=str)
def test_a_sparse_table_that_cannot_be_dense_is_refused(estimator, monkeypatch):
    X = sparse.random(50, 30, density=0.2, format="csr", random_state=1)
    y = np.arange(50) % 2
    estimator.fit(X, y)
    monkeypatch.setattr(dense_size, "total_memory", lambda: 4000.0)
    with pytest.raises(ValueError, match=r"GB for \d+ rows and 30 columns, but this machine has"):
        estimator.fit(X, y)


def test_memory_is_known_or_without_limit():
    assert dense_size.total_memory() > 1e6
