"""TEL's estimators: what is theirs alone. What all estimators share is tested with the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split

import hardwood
from hardwood import ObliqueForest, TELClassifier, TELRegressor
from hardwood.model import TreeEnsemble
from held_out import held_out_rows
from reference import losses as reference

QUICK = {"n_estimators": 4, "max_depth": 3, "max_epochs": 30, "random_state": 0}


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return train_test_split(X, y, random_state=0)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def test_a_model_is_an_ensemble_that_predicts_saves_and_loads(cancer, tmp_path):
    X, test_X, y, test_y = cancer
    model = TELClassifier(random_state=0).fit(X, y)
    assert isinstance(model.ensemble_, TreeEnsemble)
    assert model.score(test_X, test_y) > 0.94
    model.save(tmp_path / "soft.hardwood")
    loaded = hardwood.load(tmp_path / "soft.hardwood")
    assert loaded == model.ensemble_
    np.testing.assert_array_equal(loaded.predict_proba(test_X), model.predict_proba(test_X))


@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("activation", ["smooth_step", "smooth_step_5", "logistic"])
def test_what_is_kept_is_what_was_judged(cancer, activation, batch_norm):
    X, _, y, _ = cancer
    model = TELClassifier(activation=activation, batch_norm=batch_norm, **QUICK).fit(X, y)
    rows = held_out_rows(model, X, y)
    found = log_loss(y.iloc[rows], model.predict_proba(X.iloc[rows]))
    assert found == pytest.approx(min(e.validation_loss for e in model.history_), rel=1e-4)


def test_numbers_are_judged_in_units_of_their_deviation(diabetes):
    X, y = diabetes
    y = 1e6 + 1e3 * y
    model = TELRegressor(**QUICK).fit(X, y)
    rows = held_out_rows(model, X, y)
    found = mean_squared_error(y[rows], model.predict(X[rows]))
    best = min(epoch.validation_loss for epoch in model.history_)
    assert found / y.var() == pytest.approx(best, rel=1e-3)


def test_a_function_as_loss_follows_the_built_in_one():
    X, y = load_iris(return_X_y=True)

    def cross_entropy(scores, index):
        return reference.cross_entropy(scores, index), reference.cross_entropy_gradient(
            scores, index
        )

    built_in = TELClassifier(**QUICK).fit(X, y)
    own = TELClassifier(loss=cross_entropy, **QUICK).fit(X, y)
    np.testing.assert_allclose(
        [epoch.train_loss for epoch in own.history_],
        [epoch.train_loss for epoch in built_in.history_],
        rtol=1e-3,
    )


def test_leaves_that_are_reached_become_few(cancer):
    X, _, y, _ = cancer
    options = QUICK | {"max_depth": 6, "learning_rate": 0.1, "max_epochs": 60}
    model = TELClassifier(gamma=0.1, **options).fit(X, y)
    leaves = [epoch.reachable_leaves for epoch in model.history_]
    assert leaves[0] > 2 * leaves[-1]
    reached = model.reachable_leaves(X)
    assert reached.shape == (len(X), 4)
    assert 1 <= reached.mean() < 2
    wide = TELClassifier(gamma=10.0, **options).fit(X, y)
    assert wide.reachable_leaves(X).mean() > 2 * reached.mean()


def test_hard_trees_and_what_they_cost(cancer):
    X, test_X, y, test_y = cancer
    model = TELClassifier(gamma=0.1, random_state=0).fit(X, y)
    hard, cost = model.harden(), model.hardening_cost(test_X, test_y)
    assert isinstance(hard, ObliqueForest)
    assert cost.hard_accuracy == pytest.approx(np.mean(hard.predict(test_X) == test_y))
    assert cost.soft_accuracy == pytest.approx(model.score(test_X, test_y))
    assert abs(cost.hard_accuracy - cost.soft_accuracy) < 0.05
    assert "accuracy" in str(cost)


@pytest.mark.parametrize("table", ["dense", "sparse"])
@pytest.mark.parametrize("activation", ["smooth_step", "logistic"])
def test_counts_are_the_weights_that_arrive(cancer, activation, table):
    X, _, y, _ = cancer
    X = sparse.csr_matrix(X.to_numpy()) if table == "sparse" else X
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    model = TELClassifier(activation=activation, **QUICK).fit(X, y, sample_weight=weight)
    counts, m = model.ensemble_.counts, 2 ** QUICK["max_depth"] - 1
    assert counts.shape == (4, 2 * m + 1)
    np.testing.assert_allclose(counts[:, 0], weight.sum(), rtol=1e-5)
    for i in range(m):
        np.testing.assert_array_equal(counts[:, i], counts[:, 2 * i + 1] + counts[:, 2 * i + 2])
    # All that arrives at leaves, times their scores, is what the rows are given.
    expected = np.einsum("tl,tlk->k", counts[:, m:], model.ensemble_.values)
    router = model.ensemble_._router
    dense = X.toarray() if table == "sparse" else X.to_numpy()
    np.testing.assert_allclose(weight @ router.scores(dense), expected, rtol=1e-3, atol=1e-3)


def test_threads_do_not_change_the_ensemble(cancer):
    X, _, y, _ = cancer
    one, two = (TELClassifier(n_restarts=3, n_jobs=n, **QUICK).fit(X, y) for n in (1, 2))
    assert one.ensemble_ == two.ensemble_
    assert list(map(repr, one.history_)) == list(map(repr, two.history_))  # NaN equals NaN there


def test_restarts_do_not_make_it_worse(cancer):
    X, _, y, _ = cancer
    one, four = (TELClassifier(n_restarts=n, **QUICK).fit(X, y) for n in (1, 4))
    best = [min(e.validation_loss for e in model.history_) for model in (one, four)]
    assert best[1] <= best[0]


def test_the_mean_of_restarts_is_one_ensemble_of_all_their_trees(cancer):
    X, _, y, _ = cancer
    mean = TELClassifier(n_restarts=3, combine_runs="mean", **QUICK).fit(X, y)
    assert mean.ensemble_.n_trees == 12
    assert {epoch.restart for epoch in mean.history_} == {0, 1, 2}
    best = TELClassifier(n_restarts=3, **QUICK).fit(X, y).ensemble_
    # The best is among those that were averaged, with a third of its scores.
    found = [
        i
        for i in range(3)
        if np.array_equal(mean.ensemble_.weights[4 * i : 4 * i + 4], best.weights)
    ]
    assert len(found) == 1
    part = mean.ensemble_.values[4 * found[0] : 4 * found[0] + 4]
    np.testing.assert_allclose(3 * part, best.values, rtol=1e-6)


def test_several_labels_and_several_numbers(diabetes):
    X, y = diabetes
    labels = np.column_stack([y > 100, y > 200, X[:, 1] > 0])
    probability = TELClassifier(**QUICK).fit(X, labels).predict_proba(X)
    assert probability.shape == labels.shape
    assert ((probability > 0.5) == labels).mean() > 0.75
    both = TELRegressor(**QUICK).fit(X, np.column_stack([y, -3 * y]))
    assert both.predict(X).shape == (len(X), 2)
    assert both.score(X, np.column_stack([y, -3 * y])) > 0.3


@pytest.mark.filterwarnings("ignore:levels that the model did not learn")
def test_categories_and_gaps():
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 400)
    number = np.where(rng.random(400) < 0.2, np.nan, rng.normal(size=400))
    y = (kind == "b") | np.isnan(number)
    X = pd.DataFrame({"kind": kind, "number": number})
    model = TELClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.98
    assert model.predict(pd.DataFrame({"kind": ["b", "zebra"], "number": [0.0, 0.0]}))[0]


def test_a_penalty_makes_weights_small(cancer):
    X, _, y, _ = cancer
    sizes = [
        np.abs(
            TELClassifier(l2=l2, **QUICK).fit(X, y).ensemble_.weights * X.std().to_numpy()
        ).mean()
        for l2 in (0.0, 1.0)
    ]
    assert sizes[1] < 0.5 * sizes[0]


def test_a_callback_may_end_it(cancer):
    X, _, y, _ = cancer
    model = TELClassifier(callbacks=lambda epoch: epoch.epoch == 4, **QUICK).fit(X, y)
    assert model.n_iter_ == len(model.history_) == 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be an integer from 1"),
        ({"max_depth": 13}, "max_depth must be an integer from 1 to 12"),
        ({"gamma": 0.0}, "gamma must be a number"),
        ({"gamma": np.nan}, "gamma must be a number"),
        ({"activation": "relu"}, "activation must be one of"),
        ({"batch_norm": "yes"}, "batch_norm must be True or False"),
        ({"l2": -1.0}, "l2 must be a number"),
        ({"n_restarts": "auto"}, "n_restarts must be an integer"),
        ({"combine_runs": "all"}, "combine_runs must be one of"),
        ({"training": "adam"}, "training must be None or a hardwood.learn.Training"),
    ],
)
def test_wrong_parameters_are_named(wrong, message, cancer):
    X, _, y, _ = cancer
    with pytest.raises((ValueError, TypeError), match=message):
        TELClassifier(**wrong).fit(X, y)


def test_learning_that_diverges_says_so(diabetes):
    with pytest.raises(ValueError, match="diverged"):
        TELRegressor(**(QUICK | {"learning_rate": 1e30, "max_epochs": 5})).fit(*diabetes)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_where_zero_is_does_not_matter(offset):
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = TELRegressor(**(QUICK | {"max_epochs": 60})).fit(X, offset + X[:, 0])
    assert model.score(X, offset + X[:, 0]) > 0.95


def test_the_learning_rate_of_one_row_batches(diabetes):
    X, y = diabetes
    model = TELRegressor(batch_size=1, **(QUICK | {"max_epochs": 2})).fit(X[:60], y[:60])
    assert np.isfinite(model.predict(X)).all()
