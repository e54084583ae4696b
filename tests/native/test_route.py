"""Routing and linear leaves equal the NumPy reference, for every batch, dtype and thread count."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from hardwood import _native
from hardwood.model import ObliqueTree
from hardwood.table import Feature, Schema
from reference.encode import encode
from reference.route import answer, route
from trees import make_rows, make_tree


def dyadic_tree(rng: np.random.Generator, n_splits: int, n_features: int) -> ObliqueTree:
    """Return a tree whose scores are exact in float32 for dyadic rows, so that ties are exact."""
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
def test_leaves_equal_the_reference(rng, n_features, dtype, missing):
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


def outputs_of(tree: ObliqueTree, X: np.ndarray | sparse.csr_matrix, n_threads: int = 1):
    return tree._router.answer(tree._leaf_models, X, n_threads)


def outputs_by_hand(tree: ObliqueTree, X: np.ndarray | sparse.csr_matrix, leaves: np.ndarray):
    """Return the reference outputs at the engine's leaves, and the sum of absolute terms."""
    # Rows meet a tree unscaled: what is rounded to float32 is x - center.
    features = (dataclasses.replace(feature, scale=1.0) for feature in tree.schema.features)
    columns = encode(Schema(tuple(features)), X).astype(np.float64)
    terms = np.abs(tree.leaf_weights[leaves] * columns[:, None, :]).sum(axis=2)  # (n, k)
    exact = answer(tree.values, tree.leaf_weights, tree.link, leaves, columns)
    return exact, terms + np.abs(tree.values[leaves])


CASES = [
    ("regression", "identity"),
    ("regression", "exp"),
    ("classification", "softmax"),
    ("multilabel", "logistic"),
]


@pytest.mark.parametrize(("task", "link"), CASES)
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("n_features", [1, 4, 8, 13, 33])
@pytest.mark.parametrize("mixed", [False, True])
def test_answers_of_linear_leaves_equal_the_reference(rng, task, link, k, n_features, mixed):
    """Up to float64 sums: the reference is given the same float32 values."""
    tree = make_tree(
        rng, n_splits=12, n_features=n_features, k=k, task=task, mixed=mixed, linear=True, link=link
    )
    rows = tree.schema.read(make_rows(rng, tree.schema, 77))  # some missing
    tables = [rows, rows.astype(np.float32)]
    if not mixed:
        tables.append(np.where(np.isnan(rows), tree.schema.column_center, rows))
    for X in tables:
        leaves = tree._router.apply(X)
        expected, size = outputs_by_hand(tree, X, leaves)
        error = np.abs(outputs_of(tree, X) - expected)
        # A score's error is that of some sums in float64; a probability's is no larger.
        room = 1e-14 * (1 + size) * (expected if link == "exp" else 1)
        assert (error <= room).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_alone_is_answered_as_in_company_and_by_any_number_of_threads(rng, dtype):
    tree = make_tree(rng, n_splits=30, n_features=9, task="classification", linear=True)
    X = rng.normal(size=(40_000, 9)) * tree.schema.column_scale + tree.schema.column_center
    X = X.astype(dtype)
    X[rng.random(X.shape) < 0.01] = np.nan
    together = outputs_of(tree, X)
    np.testing.assert_array_equal(outputs_of(tree, X, n_threads=3), together)
    np.testing.assert_array_equal(outputs_of(tree, X[3:]), together[3:])
    for i in range(300):
        np.testing.assert_array_equal(tree._output_of(X[i]), together[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_are_answered_as_their_dense_form(rng, dtype):
    tree = make_tree(rng, n_splits=20, n_features=30, task="regression", linear=True)
    X = sparse.random(500, 30, density=0.2, format="csr", random_state=1, dtype=dtype)
    X.data[::17] = np.nan
    for threads in (1, 2):
        found = outputs_of(tree, tree.schema.read(X), threads)
        np.testing.assert_array_equal(found, outputs_of(tree, X.toarray()))


def test_missing_entries_of_one_block_do_not_linger_in_the_next():
    """Blocks with missing entries list their indicators; those without must find an empty list."""
    schema = Schema((Feature("x", "numeric", has_missing=True),))
    tree = ObliqueTree.of(
        [[1.0, 0.0]], bias=[0], values=[0.0, 0.0], leaf_weights=[[1.0, 100.0]] * 2, schema=schema
    )
    X = np.arange(24.0)[:, None]
    X[:8] = np.nan
    expected = np.where(np.isnan(X), 100.0, X)
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(outputs_of(tree, X.astype(dtype)), expected)


def test_a_large_offset_costs_no_accuracy():
    """Dates in seconds with a signal below one second: centers are subtracted first."""
    schema = Schema((Feature("time", "numeric", center=1.7e9, scale=1.0), Feature("x", "numeric")))
    tree = ObliqueTree.of(
        np.zeros((0, 2)), bias=[], values=[0.25], leaf_weights=[[3.0, 1e-3]], schema=schema
    )
    shift = np.array([-1.0, 0.0, 0.125, 1 / 3])
    X = np.column_stack([1.7e9 + shift, [0.0, 1.0, 2.0, 3.0]])
    exact = 0.25 + 3 * (X[:, 0] - 1.7e9) + 1e-3 * X[:, 1]
    np.testing.assert_allclose(tree.predict(X), exact, rtol=1e-7)


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60])
def test_extreme_scales_stay_in_the_rows(rng, scale):
    schema = Schema((Feature("x", "numeric", center=0.0, scale=scale),))
    tree = ObliqueTree.of(
        [[1 / scale]], bias=[0], values=[1.0, 2.0], leaf_weights=[[3 / scale]] * 2, schema=schema
    )
    x = rng.normal(size=50)
    expected = np.where(x >= 0, 2.0, 1.0) + 3 * x
    np.testing.assert_allclose(tree.predict((x * scale)[:, None]), expected, rtol=1e-6)


def test_wide_rows_are_answered_one_by_one(rng):
    """Rows of more than 512 values do not fit into the stack buffer."""
    tree = make_tree(rng, n_splits=3, n_features=700, task="regression", k=2, linear=True)
    X = rng.normal(size=(9, 700)) + tree.schema.column_center
    together = outputs_of(tree, X)
    for x, expected in zip(X, together, strict=True):
        np.testing.assert_array_equal(tree._output_of(x), expected)


def test_leaf_models_that_do_not_fit_are_refused(rng):
    tree = make_tree(rng, n_splits=2, n_features=2, linear=True)
    encoder, values, A = tree.schema.encoder, tree.values, tree.leaf_weights
    for arguments, words in (
        ((encoder, values[:2], A, "softmax"), "values and leaf weights differ"),
        ((encoder, values, A[:, :, :1].copy(), "softmax"), "do not match the schema's columns"),
        ((encoder, values, A, "probit"), "link must be identity, exp, softmax or logistic"),
    ):
        with pytest.raises(ValueError, match=words):
            _native.LeafModels(*arguments)
    X = np.zeros((1, 2))
    with pytest.raises(ValueError, match="one leaf more"):
        tree._router.answer(_native.LeafModels(encoder, values[:2], A[:2], "softmax"), X)
    with pytest.raises(ValueError, match="another size"):
        tree._router.answer_one(tree._leaf_models, X[0], np.empty(2))
    other = make_tree(rng, n_splits=2, n_features=2, linear=True)
    with pytest.raises(ValueError, match="different encoders"):
        tree._router.answer(other._leaf_models, X)
