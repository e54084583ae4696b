"""A forest equals its trees bit for bit, for every batch, dtype and thread count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from forests import make_forest, make_member
from hardwood import _native
from hardwood.model import ObliqueForest, ObliqueTree
from trees import make_rows, make_schema

WAYS = [
    ("classification", "mean"),
    ("classification", "vote"),
    ("multilabel", "mean"),
    ("multilabel", "vote"),
    ("regression", "mean"),
]
# Around whole vectors, the shapes that have code of their own, and beyond them.
WIDTHS = [1, 7, 8, 9, 16, 17, 24, 25, 40, 64, 65, 100, 200]
# A row alone, parts of a group, groups in turns, and more rows than a block has.
LENGTHS = [1, 7, 8, 23, 24, 25, 203, 4500]


def outputs(tree: ObliqueTree, X: object) -> np.ndarray:
    values = tree.predict(X) if tree.task == "regression" else tree.predict_proba(X)
    return values.reshape(-1, tree.n_outputs)


def votes(tree: ObliqueTree, X: object) -> np.ndarray:
    given = outputs(tree, X)
    if tree.task == "multilabel":
        return (given >= 0.5).astype(np.float64)
    return np.eye(tree.n_outputs)[given.argmax(axis=1)]


def by_hand(forest: ObliqueForest, X: object) -> np.ndarray:
    """Add up in the order of the trees, then divide."""
    says = votes if forest.combine == "vote" else outputs
    total = np.zeros((1, 1))
    for tree in forest.trees:
        total = total + says(tree, X)
    return total / forest.n_trees


def rows_for(rng: np.random.Generator, forest: ObliqueForest, n: int) -> np.ndarray:
    schema = forest.schema
    return rng.normal(size=(n, schema.n_features)) * schema.column_scale + schema.column_center


@pytest.mark.parametrize("n_features", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_rows_of_every_width(rng, n_features, dtype, missing):
    forest = make_forest(rng, sizes=(7, 25, 1, 0, 63), n_features=n_features)
    X = rows_for(rng, forest, 203).astype(dtype)
    X[rng.random(X.shape) < missing] = np.nan
    leaves = np.column_stack([tree.apply(X) for tree in forest.trees])
    np.testing.assert_array_equal(forest.apply(X), leaves)
    np.testing.assert_array_equal(forest.predict_proba(X), by_hand(forest, X))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("n_features", [8, 40])
def test_any_number_of_rows(rng, n, n_features):
    forest = make_forest(rng, sizes=(15, 9, 0), n_features=n_features, k=1, task="regression")
    X = rows_for(rng, forest, n)
    np.testing.assert_array_equal(forest.predict(X), by_hand(forest, X)[:, 0])
    np.testing.assert_array_equal(
        forest.apply(X), np.column_stack([tree.apply(X) for tree in forest.trees])
    )


@pytest.mark.parametrize("n_features", [4, 30])
@pytest.mark.parametrize(("task", "combine"), WAYS)
@pytest.mark.parametrize("linear", [(False,), (True,), (True, False)])
def test_every_kind_of_tree(rng, n_features, task, linear, combine):
    forest = make_forest(
        rng,
        sizes=(6, 3, 11, 0),
        n_features=n_features,
        task=task,
        linear=linear,
        combine=combine,
        mixed=True,
    )
    rows = make_rows(rng, forest.schema, 150)  # categories, and entries that are missing
    given = forest.predict(rows) if task == "regression" else forest.predict_proba(rows)
    np.testing.assert_array_equal(given, by_hand(forest, rows))


@pytest.mark.parametrize("linear", [(False,), (True,)])
@pytest.mark.parametrize("n_features", [6, 40])
def test_a_row_alone_is_answered_as_in_company(rng, linear, n_features):
    forest = make_forest(rng, sizes=(31, 8, 0), n_features=n_features, linear=linear)
    for dtype in (np.float32, np.float64):
        X = rows_for(rng, forest, 60).astype(dtype)
        X[::7, ::3] = np.nan
        together = forest.predict_proba(X)
        router, _ = forest._packed
        one = np.empty((len(X), forest.n_outputs))
        for x, out in zip(X, one, strict=True):
            router.answer_one(x, out)
        np.testing.assert_array_equal(one, together)
        alone = np.concatenate([forest.predict_proba(x[None, :]) for x in X])
        np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("linear", [(False,), (True,)])
def test_threads_change_nothing(rng, linear):
    forest = make_forest(rng, sizes=(40, 12, 3), n_features=6, linear=linear)
    X = rows_for(rng, forest, 9001)
    for ask in (forest.predict_proba, forest.apply):
        alone = ask(X, n_jobs=1)
        for n_jobs in (2, 3, 8, 500):
            np.testing.assert_array_equal(ask(X, n_jobs=n_jobs), alone)


def test_sparse_rows_are_answered_as_their_dense_form(rng):
    forest = make_forest(rng, sizes=(20, 7), n_features=30, linear=(False, True))
    X = sparse.random(3000, 30, density=0.2, format="csr", random_state=1)
    X.data[::17] = np.nan
    for dtype in (np.float32, np.float64):
        table = X.astype(dtype)
        np.testing.assert_array_equal(forest.apply(table), forest.apply(table.toarray()))
        np.testing.assert_array_equal(
            forest.predict_proba(table, n_jobs=2), forest.predict_proba(table.toarray())
        )


@pytest.mark.parametrize("row", [0, 11, 4000])
def test_infinity_is_reported_with_row_and_feature(rng, row):
    forest = make_forest(rng, sizes=(3, 3))
    X = rows_for(rng, forest, 4100)
    X[row, 2] = -np.inf
    router, _ = forest._packed
    for table in (X, X.astype(np.float32)):
        for ask in (router.answer, router.apply):
            with pytest.raises(ValueError, match=f"row {row}, feature 2"):
                ask(table, 2)


def packed(rng, *, k=2, n_splits=3, schema=None):
    schema = schema or make_schema(rng, 4)
    return make_member(rng, schema, n_splits, k=k)


def test_trees_that_do_not_fit_are_refused(rng):
    schema = make_schema(rng, 4)
    a, b = packed(rng, schema=schema), packed(rng, schema=schema, k=3)
    stranger = packed(rng)
    for routers, leaves, vote, words in [
        ([], [], "none", "at least one tree"),
        ([a._router], [a.values, a.values], "none", "leaves for each"),
        ([a._router, stranger._router], [a.values, stranger.values], "none", "different encoders"),
        ([a._router, b._router], [a.values, b.values], "none", "number of outputs"),
        ([a._router], [a.values[1:]], "none", "one leaf more"),
        ([a._router], [np.empty((4, 0))], "none", "at least one output"),
        ([a._router], [a.values], "ranked", "a vote is"),
    ]:
        with pytest.raises(ValueError, match=words):
            _native.ForestRouter(routers, leaves, vote)
    with pytest.raises(ValueError, match="must be Router objects"):
        _native.ForestRouter([a], [a.values], "none")


def test_the_packed_trees_outlive_their_owners(rng):
    forest = make_forest(rng, sizes=(9, 9), linear=(False, True))
    X = rows_for(rng, forest, 50)
    expected = forest.predict_proba(X)
    router, _ = forest._packed
    del forest
    np.testing.assert_array_equal(router.answer(X, 1), expected)


@pytest.mark.parametrize("n_threads", [0, -3, 2**31 - 1])
def test_numbers_of_threads_are_checked(rng, n_threads):
    forest = make_forest(rng)
    router, _ = forest._packed
    with pytest.raises(ValueError, match="n_threads must lie between 1 and 1024"):
        router.answer(rows_for(rng, forest, 30), n_threads)
