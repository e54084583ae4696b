"""The scores of a soft ensemble equal its definition, for every batch, dtype and thread count."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import sparse

from ensembles import ACTIVATIONS, make_ensemble, scores_by_hand
from forests import make_forest
from hardwood import _native
from hardwood.model import TreeEnsemble
from reference import tel
from reference.route import LINKS
from trees import columns_of, make_rows, make_schema

# Around whole vectors of eight numbers, and beyond.
WIDTHS = [1, 7, 8, 9, 16, 25, 64, 100]
# A row alone, parts of a vector of rows, and more rows than a block has.
LENGTHS = [1, 7, 8, 9, 16, 203, 2500]


def rows_for(rng: np.random.Generator, ensemble: TreeEnsemble, n: int) -> np.ndarray:
    schema = ensemble.schema
    return rng.normal(size=(n, schema.n_features)) * schema.column_scale + schema.column_center


def scores(ensemble: TreeEnsemble, X: np.ndarray, n_threads: int = 1) -> np.ndarray:
    return ensemble._router.scores(X, n_threads)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("gamma", [1e-4, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("depth", [1, 2, 5, 8])
def test_scores_are_those_of_the_definition(rng, activation, gamma, depth):
    ensemble = make_ensemble(rng, depth=depth, gamma=gamma, activation=activation, k=2)
    X = rows_for(rng, ensemble, 300)
    t = tel.scores(columns_of(ensemble, X), ensemble.weights, ensemble.bias)
    # A float32 score is off by 1e-6 or so, which a narrow band makes much of.
    far = (np.abs(np.abs(t) - gamma / 2) > 1e-5 * (np.abs(t) + 1)).all(axis=(1, 2))
    assert far.mean() > 0.5
    expected = scores_by_hand(ensemble, X)
    np.testing.assert_allclose(
        scores(ensemble, X)[far], expected[far], atol=3e-6 * (1 + 1 / gamma) * depth
    )
    expected = tel.reachable_leaves(
        columns_of(ensemble, X), ensemble.weights, ensemble.bias, gamma, activation
    )
    np.testing.assert_array_equal(ensemble.reachable_leaves(X)[far], expected[far])


@pytest.mark.parametrize("n_features", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_every_width(rng, n_features, dtype):
    ensemble = make_ensemble(rng, n_features=n_features, gamma=3.0)
    X = rows_for(rng, ensemble, 50).astype(dtype)
    X[rng.random(X.shape) < 0.05] = np.nan
    np.testing.assert_allclose(scores(ensemble, X), scores_by_hand(ensemble, X), atol=1e-4)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("n_features", [3, 8])
def test_categories_and_missing_entries(rng, activation, n_features):
    ensemble = make_ensemble(rng, n_features=n_features, mixed=True, activation=activation)
    rows = make_rows(rng, ensemble.schema, 200)
    by_hand = scores_by_hand(ensemble, rows)
    expected = np.stack([LINKS[ensemble.link](row) for row in by_hand])
    np.testing.assert_allclose(ensemble.predict_proba(rows), expected, atol=1e-5)


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("link", [None, "exp"])
def test_links(rng, task, link):
    link = link if task == "regression" else None
    ensemble = make_ensemble(rng, task=task, link=link)
    X = rows_for(rng, ensemble, 100)
    by_hand = scores_by_hand(ensemble, X)
    expected = np.stack([LINKS[ensemble.link](row) for row in by_hand])
    given = ensemble.predict(X) if task == "regression" else ensemble.predict_proba(X)
    np.testing.assert_allclose(given, expected, rtol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("n_features", [5, 40])
@pytest.mark.parametrize("gamma", [0.3, 5.0])
def test_a_row_alone_is_answered_as_in_company(rng, activation, n_features, gamma):
    ensemble = make_ensemble(
        rng, n_features=n_features, depth=5, activation=activation, gamma=gamma
    )
    for dtype in (np.float32, np.float64):
        X = rows_for(rng, ensemble, 203).astype(dtype)
        X[::7, ::3] = np.nan
        together = scores(ensemble, X)
        one = np.full((len(X), ensemble.n_outputs), np.nan)
        for x, out in zip(X, one, strict=True):
            ensemble._router.scores_one(x, out)
        np.testing.assert_array_equal(one, together)
        for n in LENGTHS:
            np.testing.assert_array_equal(scores(ensemble, X[:n]), together[:n])


@pytest.mark.parametrize("n", LENGTHS)
def test_threads_change_nothing(rng, n):
    ensemble = make_ensemble(rng, depth=4)
    X = rows_for(rng, ensemble, n)
    for ask in (ensemble.predict_proba, ensemble.reachable_leaves):
        alone = ask(X, n_jobs=1)
        for n_jobs in (2, 3, 500):
            np.testing.assert_array_equal(ask(X, n_jobs=n_jobs), alone)
    with pytest.raises(ValueError, match="n_threads"):
        scores(ensemble, X, 0)


def test_sparse_rows_are_answered_as_their_dense_form(rng):
    ensemble = make_ensemble(rng, n_features=30)
    X = sparse.random(700, 30, density=0.2, format="csr", random_state=1)
    X.data[::17] = np.nan
    for dtype in (np.float32, np.float64):
        table = X.astype(dtype)
        dense = table.toarray()
        np.testing.assert_array_equal(
            ensemble.predict_proba(table, n_jobs=2), ensemble.predict_proba(dense)
        )
        np.testing.assert_array_equal(
            ensemble.reachable_leaves(table), ensemble.reachable_leaves(dense)
        )


def test_no_rows(rng):
    ensemble = make_ensemble(rng)
    router = ensemble._router
    assert router.scores(np.empty((0, 4)), 2).shape == (0, 3)
    assert router.reachable(np.empty((0, 4)), 2).shape == (0, 3)


@pytest.mark.parametrize("row", [0, 11, 2000])
def test_infinity_is_reported_with_row_and_feature(rng, row):
    ensemble = make_ensemble(rng)
    X = rows_for(rng, ensemble, 2100)
    X[row, 2] = -np.inf
    for table in (X, X.astype(np.float32)):
        for ask in (ensemble._router.scores, ensemble._router.reachable):
            with pytest.raises(ValueError, match=f"row {row}, feature 2"):
                ask(table, 2)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("size", [1e18, 1e30, 1e300])
def test_rows_however_far_out_have_finite_scores(rng, activation, size):
    """Entries of both signs whose float32 products would add up to infinity minus infinity."""
    ensemble = make_ensemble(rng, activation=activation, gamma=1e-4, n_features=9)
    X = rng.choice([-size, size, 0.0], size=(200, 9))
    given = scores(ensemble, X)
    assert np.isfinite(given).all()
    # Every row arrives somewhere, whole: its scores are those of one leaf of each tree.
    if activation != "logistic":
        assert (ensemble.reachable_leaves(X) >= 1).all()
        bounds = np.abs(ensemble.values).max(axis=1).sum(axis=0)
        assert (np.abs(given) <= bounds).all()


@pytest.mark.parametrize("size", [1e20, 1e30, 1e300])
def test_rows_far_out_go_where_their_nearest_kin_go(rng, size):
    """Entries are clipped at 2^64 scales from the center, so sums still have a sign in float32."""
    ensemble = make_ensemble(rng, n_features=9, depth=5)
    schema = ensemble.schema
    X = rng.choice([-size, size, 0.0], size=(200, 9))
    units = np.clip((X - schema.column_center) / schema.column_scale, -(2.0**64), 2.0**64)
    kin = schema.column_center + units * schema.column_scale
    np.testing.assert_allclose(scores(ensemble, X), scores_by_hand(ensemble, kin), atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("gamma", [0.3, 5.0])
def test_what_arrives_at_leaves(rng, activation, gamma):
    ensemble = make_ensemble(rng, depth=4, gamma=gamma, activation=activation)
    X = rows_for(rng, ensemble, 2500)
    weight = rng.random(2500)
    P = tel.leaf_probabilities(
        tel.scores(columns_of(ensemble, X), ensemble.weights, ensemble.bias), gamma, activation
    )
    given = ensemble._router.leaf_weights(X, weight)
    np.testing.assert_allclose(given, np.einsum("ntl,n->tl", P, weight), rtol=1e-4, atol=1e-3)
    parts = (slice(0, 1201), slice(1201, None))
    in_parts = sum(ensemble._router.leaf_weights(X[part], weight[part]) for part in parts)
    np.testing.assert_allclose(in_parts, given, rtol=1e-12)
    table = sparse.csr_matrix(X)
    np.testing.assert_array_equal(ensemble._router.leaf_weights(table, weight), given)
    with pytest.raises(ValueError, match="one weight per row"):
        ensemble._router.leaf_weights(X, weight[1:])


def test_large_and_small_scales_are_no_matter(rng):
    """Units of 1e-15 and 1e15 side by side, beyond the range of float32 weights."""
    ensemble = make_ensemble(rng, n_features=3)
    factor = np.array([2.0**-60, 1.0, 2.0**60])
    content = ensemble.schema.to_dict()
    for feature, f in zip(content["features"], factor.tolist(), strict=True):
        for name in ("center", "scale", "spread"):
            if isinstance(feature.get(name), float):
                feature[name] *= f
    schema = type(ensemble.schema).from_dict(content)
    other = ensemble.replace(schema=schema, weights=ensemble.weights / factor)
    X = rows_for(rng, ensemble, 100)
    np.testing.assert_allclose(scores(other, X * factor), scores(ensemble, X), atol=1e-5)


def test_it_costs_what_is_reached():
    """Trees of 4096 leaves of which a row reaches one: work grows with depth, not leaves."""
    rng = np.random.default_rng(0)

    def seconds(depth: int, gamma: float) -> float:
        ensemble = make_ensemble(rng, depth=depth, n_trees=2, gamma=gamma, counts=False)
        X = rows_for(rng, ensemble, 2000)
        scores(ensemble, X)
        times = []
        for _ in range(5):
            start = time.thread_time()  # of this thread, however busy the machine is
            scores(ensemble, X)
            times.append(time.thread_time() - start)
        return min(times)

    # 1024 times the leaves, 6 times the depth; some slack for caches.
    assert seconds(12, 1e-3) < 60 * seconds(2, 1e-3)
    assert seconds(12, 1e-3) < seconds(12, 1e3) / 10  # all leaves reached


def test_what_does_not_fit_is_refused(rng):
    encoder = make_schema(rng, 4).encoder
    W, b, O = np.zeros((2, 3, 4)), np.zeros((2, 3)), np.zeros((2, 4, 1))
    for arguments, words in [
        ((W[:0], b[:0], O[:0], 1.0, "logistic"), "at least one tree"),
        ((W[:, :2], b[:, :2], O[:, :3], 1.0, "logistic"), "perfect trees"),
        ((W[:, :0], b[:, :0], O[:, :1], 1.0, "logistic"), "perfect trees"),
        ((W[:, :, :3].copy(), b, O, 1.0, "logistic"), "the schema's columns"),
        ((W, b[:1], O, 1.0, "logistic"), "weights and bias differ"),
        ((W, b, O[:, :3], 1.0, "logistic"), "weights and values differ"),
        ((W, b, O[:, :, :0], 1.0, "logistic"), "weights and values differ"),
        ((W, b, O, 0.0, "logistic"), "gamma must be positive"),
        ((W, b, O, float("nan"), "logistic"), "gamma must be positive"),
        ((W, b, O, 1.0, "relu"), "relu"),
    ]:
        arrays = [np.ascontiguousarray(part) for part in arguments[:3]]
        with pytest.raises(ValueError, match=words):
            _native.SoftRouter(encoder, *arrays, *arguments[3:])
    router = _native.SoftRouter(encoder, W, b, O, 1.0, "logistic")
    with pytest.raises(ValueError, match="3 features, expected 4"):
        router.scores(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="another size"):
        router.scores_one(np.zeros(4), np.zeros(2))


def test_the_packed_trees_outlive_their_owner(rng):
    ensemble = make_ensemble(rng)
    X = rows_for(rng, ensemble, 50)
    expected = scores(ensemble, X)
    router = ensemble._router
    del ensemble
    np.testing.assert_array_equal(router.scores(X, 1), expected)


# Sums of hard trees, and links


@pytest.mark.parametrize("linear", [(False,), (True, False)])
def test_a_forest_adds_up_in_the_order_of_its_trees(rng, linear):
    forest = make_forest(rng, sizes=(6, 3, 0, 11), task="regression", linear=linear, mixed=True)
    total = forest.replace(combine="sum")
    rows = make_rows(rng, forest.schema, 150)
    expected = np.zeros((150, forest.n_outputs))
    for tree in forest.trees:
        expected = expected + tree.predict(rows)
    np.testing.assert_array_equal(total.predict(rows), expected)
    np.testing.assert_array_equal(total.predict(rows, n_jobs=3), expected)


@pytest.mark.parametrize("link", sorted(LINKS))
@pytest.mark.parametrize("n", [1, 5, 9000])
def test_links_of_rows(rng, link, n):
    given = rng.normal(size=(n, 3)) * 10
    linked = given.copy()
    _native.apply_link(linked, link, 2)
    expected = np.stack([LINKS[link](row) for row in given])
    np.testing.assert_allclose(linked, expected, rtol=1e-12, atol=1e-15)
    alone = given[n // 2 : n // 2 + 1].copy()
    _native.apply_link(alone, link)
    np.testing.assert_array_equal(alone, linked[n // 2 : n // 2 + 1])


def test_links_of_extreme_scores_are_finite():
    scores = np.array([[1e308, -1e308], [-800.0, 800.0]])
    for link in ("softmax", "logistic"):
        linked = scores.copy()
        _native.apply_link(linked, link)
        assert np.isfinite(linked).all()
    with pytest.raises(ValueError, match="link must be"):
        _native.apply_link(scores, "probit")
    _native.apply_link(np.empty((0, 3)), "softmax")
