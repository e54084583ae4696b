"""Routing equals its NumPy twin, whatever the batch, dtype and threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hardwood import _native
from hardwood.model import ObliqueTree
from hardwood.reference.encode import encode
from hardwood.reference.route import route
from trees import make_tree


def dyadic_tree(rng: np.random.Generator, n_splits: int, n_features: int) -> ObliqueTree:
    """A tree whose scores are exact in float32 for dyadic rows, so that ties at 0 are real ties."""
    tree = make_tree(rng, n_splits=n_splits, n_features=n_features)
    weights = rng.integers(-8, 9, size=(n_splits, n_features)) / 8
    return ObliqueTree.of(
        weights,
        thresholds=rng.integers(-8, 9, size=n_splits) / 8,
        children=tree.children,
        values=tree.values,
        classes=tree.classes,
    )


def by_hand(tree: ObliqueTree, X: np.ndarray) -> np.ndarray:
    columns = encode(tree.schema, X).astype(np.float64) * tree.schema.column_scale
    return route(tree.weights, tree.bias, tree.children, columns)


@pytest.mark.parametrize("n_features", [1, 7, 8, 9, 16, 17, 33, 54, 64, 65, 100, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [False, True])
def test_leaves_equal_the_twin(rng, n_features, dtype, missing):
    tree = dyadic_tree(rng, n_splits=25, n_features=n_features)
    X = (rng.integers(-8, 9, size=(203, n_features)) / 4).astype(dtype)
    if missing:
        X[rng.random(X.shape) < 0.02] = np.nan
    np.testing.assert_array_equal(tree.apply(X), by_hand(tree, X))


@pytest.mark.parametrize("n_splits", [0, 1, 2, 7, 60])
def test_a_row_alone_reaches_the_leaf_it_reaches_in_company(rng, n_splits):
    tree = make_tree(rng, n_splits=n_splits, n_features=13)
    X = (rng.normal(size=(301, 13)) * tree.schema.column_scale + tree.schema.column_center).astype(
        np.float32
    )
    together = tree.apply(X)
    alone = [tree.apply(X[i : i + 1])[0] for i in range(len(X))]
    one = [tree._router.apply_one(x) for x in X]
    shifted = np.concatenate([tree.apply(X[:5]), tree.apply(X[5:])])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, one)
    np.testing.assert_array_equal(together, shifted)


def test_threads_do_not_change_leaves(rng):
    tree = make_tree(rng, n_splits=40, n_features=6)
    X = rng.normal(size=(70_000, 6)) * 100
    np.testing.assert_array_equal(tree.apply(X, n_jobs=1), tree.apply(X, n_jobs=3))


def test_sparse_rows_reach_the_leaves_of_their_dense_form(rng):
    tree = make_tree(rng, n_splits=20, n_features=30)
    X = sparse.random(500, 30, density=0.2, format="csr", random_state=1)
    X.data[::17] = np.nan
    np.testing.assert_array_equal(tree.apply(X), tree.apply(X.toarray()))


def test_infinity_is_reported_with_row_and_feature(rng):
    tree = make_tree(rng, n_splits=3, n_features=4)
    X = np.zeros((20, 4))
    X[11, 2] = -np.inf
    for table in (X, X.astype(np.float32)):
        with pytest.raises(ValueError, match="row 11, feature 2"):
            tree._router.apply(table)


def test_children_that_leave_the_tree_are_refused(rng):
    encoder = make_tree(rng, n_splits=1, n_features=2).schema.encoder
    weights, bias = np.zeros((2, 2)), np.zeros(2)
    for children in ([[1, -1], [-2, 5]], [[1, -1], [0, -2]], [[1, -1], [-2, -9]]):
        with pytest.raises(ValueError, match="child"):
            _native.Router(encoder, weights, bias, np.array(children, np.int32), 3)
