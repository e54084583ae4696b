"""Leaves that are linear in the columns: every task, starts, categories, gaps, penalties."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import hardwood
from hardwood import DGTClassifier, DGTRegressor
from hardwood.learn.losses import CrossEntropy

LINEAR = {"leaves": "linear", "max_depth": 1, "random_state": 0}
STILL = {"max_epochs": 1, "learning_rate": 1e-9, "random_state": 1}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, size=(600, 2))


def saddle(X):
    """Linear on either side of x0 = 0, and not so over all."""
    return X[:, 0] * X[:, 1]


# For each task: what is to be learned, by which estimator, with which link.
TASKS = {
    "number": (lambda X: 3 * np.abs(X[:, 0]) + X[:, 1], DGTRegressor, {}, "identity"),
    "numbers": (
        lambda X: np.column_stack([100 * np.abs(X[:, 0]), 2 * X[:, 1] + 5]),
        DGTRegressor,
        {},
        "identity",
    ),
    "count": (
        lambda X: np.random.default_rng(1).poisson(np.exp(3 + 2 * np.abs(X[:, 0]))),
        DGTRegressor,
        {"loss": "poisson"},
        "exp",
    ),
    "two classes": (lambda X: saddle(X) > 0, DGTClassifier, {}, "softmax"),
    "four classes": (
        lambda X: np.array(list("abcd"))[np.digitize(saddle(X), [-0.2, 0, 0.2])],
        DGTClassifier,
        {},
        "softmax",
    ),
    "labels": (
        lambda X: np.column_stack([saddle(X) > 0, X[:, 0] > X[:, 1]]),
        DGTClassifier,
        {},
        "logistic",
    ),
}


@pytest.fixture(params=TASKS)
def task(request, X):
    target, Estimator, options, link = TASKS[request.param]
    return Estimator, options, target(X), link


def test_they_fit_what_constant_leaves_cannot(task, X):
    Estimator, options, y, link = task
    model = Estimator(**LINEAR, **options).fit(X, y)
    constant = Estimator(max_depth=1, random_state=0, **options).fit(X, y)
    assert model.tree_.has_linear_leaves
    assert model.tree_.link == link
    assert not constant.tree_.has_linear_leaves
    assert model.score(X, y) > constant.score(X, y) + 0.1
    assert model.score(X, y) > 0.75


def test_answers_are_those_of_the_tree_as_saved_and_as_pickled(task, X, tmp_path):
    Estimator, options, y, _ = task
    model = Estimator(max_epochs=5, **LINEAR, **options).fit(X, y)
    model.save(tmp_path / "m.hardwood")
    for copy in (
        hardwood.load(tmp_path / "m.hardwood"),
        pickle.loads(pickle.dumps(model)),
        model.tree_,
    ):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        if hasattr(model, "predict_proba"):
            np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_a_start_is_where_learning_begins(task, X):
    """From rows whose means and spreads differ, so that leaves must be shifted and scaled."""
    Estimator, options, y, _ = task
    first = Estimator(max_epochs=40, **LINEAR, **options).fit(X, y)
    other = np.flatnonzero(X[:, 1] > -0.5)
    again = Estimator(leaves="linear", max_depth=2, init=first, **STILL, **options)
    again.fit(X[other], y[other])
    ask = "predict_proba" if hasattr(first, "predict_proba") else "predict"
    expected = getattr(first, ask)(X)
    found = getattr(again, ask)(X)
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_constant_leaves_may_become_linear(task, X):
    Estimator, options, y, _ = task
    first = Estimator(max_depth=1, max_epochs=40, random_state=0, **options).fit(X, y)
    still = Estimator(leaves="linear", max_depth=1, init=first, **STILL, **options).fit(X, y)
    np.testing.assert_array_equal(still.apply(X), first.apply(X))
    ask = "predict_proba" if hasattr(first, "predict_proba") else "predict"
    np.testing.assert_allclose(getattr(still, ask)(X), getattr(first, ask)(X), rtol=1e-4, atol=1e-4)
    more = Estimator(init=first, **LINEAR, **options).fit(X, y)
    assert more.score(X, y) > first.score(X, y)


def test_two_classes_with_a_score_each_go_on_with_their_difference(X):
    y = saddle(X) > 0
    first = DGTClassifier(loss=CrossEntropy(), max_epochs=40, **LINEAR).fit(X, y)
    assert (first.tree_.leaf_weights[:, 0] != 0).any()
    again = DGTClassifier(leaves="linear", max_depth=1, init=first, **STILL).fit(X, y)
    assert (again.tree_.leaf_weights[:, 0] == 0).all()
    np.testing.assert_allclose(again.predict_proba(X), first.predict_proba(X), atol=1e-4)


def test_linear_leaves_do_not_become_constant(X):
    first = DGTRegressor(max_epochs=3, **LINEAR).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="init has linear leaves. Use leaves='linear'"):
        DGTRegressor(max_depth=1, init=first).fit(X, X[:, 0])


def test_a_plane_is_found_as_least_squares_find_it(X):
    y = X @ [2.0, -1.0] + 0.1 * np.random.default_rng(1).normal(size=len(X))
    model = DGTRegressor(early_stopping=False, **LINEAR).fit(X, y)
    plane = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.predict(X), plane.predict(X), atol=0.1)
    assert model.score(X, y) > plane.score(X, y) - 2e-3


@pytest.mark.parametrize("units", [1e-9, 1e9])
def test_units_of_columns_and_target_do_not_matter(units, X):
    y = 3 * np.abs(X[:, 0])
    there = X * [units, 1 / units] + [1e3 * units, 0]
    model = DGTRegressor(**LINEAR).fit(there, y * units + units)
    assert model.score(there, y * units + units) > 0.99


def test_layers_and_linear_leaves_go_together(X):
    y = 3 * np.abs(X[:, 0])
    model = DGTRegressor(layers=[8, 8], **LINEAR).fit(X, y)
    assert model.score(X, y) > 0.99


def test_a_function_as_loss_has_linear_leaves_too(X):
    y = 3 * np.abs(X[:, 0])
    model = DGTRegressor(loss=lambda f, t: f - t, **LINEAR).fit(X, y)
    assert model.score(X, y) > 0.95
    classes = (saddle(X) > 0).astype(int)

    def log_loss(scores, index):
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        one_hot = np.eye(2)[index[:, 0].astype(int)]
        return -np.log((p * one_hot).sum(axis=1)), p - one_hot

    model = DGTClassifier(loss=log_loss, **LINEAR).fit(X, classes)
    assert model.tree_.link == "softmax"
    assert model.score(X, classes) > 0.95


# Categories and gaps


@pytest.fixture(scope="module")
def mixed(X):
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"x": X[:, 0], "kind": rng.choice(["a", "b", "c"], len(X))})
    shift = table["kind"].map({"a": -2.0, "b": 0.0, "c": 4.0}).to_numpy()
    return table, 3 * np.abs(X[:, 0]) + shift


def test_levels_are_columns_of_the_leaves(mixed):
    table, y = mixed
    model = DGTRegressor(**LINEAR).fit(table, y)
    assert model.score(table, y) > 0.99
    assert model.tree_.leaf_weights.shape == (2, 1, 4)


@pytest.mark.filterwarnings("ignore:levels that the model did not learn")
def test_an_unseen_level_counts_as_an_average_one(mixed):
    table, y = mixed
    model = DGTRegressor(**LINEAR).fit(table, y)
    shares = table["kind"].value_counts(normalize=True)
    for x in (-0.7, 0.7):
        rows = pd.DataFrame({"x": x, "kind": ["a", "b", "c", "unheard of"]})
        assert len(set(model.apply(rows))) == 1
        *known, unseen = model.predict(rows)
        assert unseen == pytest.approx(np.average(known, weights=shares[["a", "b", "c"]]), abs=1e-6)


def test_missing_entries_have_a_term_of_their_own(mixed):
    table, y = mixed
    table = table.copy()
    gap = np.random.default_rng(3).random(len(table)) < 0.2
    table.loc[gap, "x"] = np.nan
    table.loc[::9, "kind"] = None
    y = np.where(gap, 10.0, y)
    model = DGTRegressor(**{**LINEAR, "max_depth": 2}).fit(table, y)
    assert model.score(table, y) > 0.85
    np.testing.assert_allclose(model.predict(table)[gap], 10.0, atol=1.5)
    nothing = pd.DataFrame({"x": [np.nan], "kind": [None]})
    assert np.isfinite(model.predict(nothing)).all()


def test_a_start_with_gaps_and_levels(mixed):
    table, y = mixed
    table = table.copy()
    table.loc[::5, "x"] = np.nan
    first = DGTRegressor(max_epochs=40, **LINEAR).fit(table, y)
    part = table[table["x"].isna() | (table["x"] > -0.3)]
    again = DGTRegressor(leaves="linear", max_depth=1, init=first, **STILL)
    again.fit(part, y[part.index])
    np.testing.assert_allclose(again.predict(table), first.predict(table), atol=1e-3)


# Penalties


@pytest.fixture(scope="module")
def wide():
    X = np.random.default_rng(0).normal(size=(800, 12))
    return X, np.where(X[:, 0] > 0, 2 * X[:, 1], -2 * X[:, 2])


def test_l1_makes_slopes_exactly_zero(wide):
    X, y = wide
    model = DGTRegressor(l1=1e-3, **LINEAR).fit(X, y)
    free = DGTRegressor(**LINEAR).fit(X, y)
    assert (free.tree_.leaf_weights != 0).all()
    assert (model.tree_.leaf_weights == 0).mean() > 0.15
    sizes = np.abs(model.tree_.leaf_weights)
    assert sizes[sizes > 0].min() > 1e-6 * sizes.max()


def test_l2_makes_slopes_small(wide):
    sizes = [
        np.abs(DGTRegressor(l2=l2, **LINEAR).fit(*wide).tree_.leaf_weights).mean()
        for l2 in (0.0, 0.03)
    ]
    assert sizes[1] < 0.7 * sizes[0]
