"""Estimators of non-greedy trees: what is theirs alone, and scikit-learn's own checks."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.model_selection import train_test_split

import hardwood
from hardwood import (
    DGTClassifier,
    GreedyTreeClassifier,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
    _native,
)
from hardwood.errors import FitInterruptedWarning
from hardwood.learn import Training
from hardwood.learn import non_greedy as learner
from held_out import held_out_rows

QUICK = {"max_depth": 4, "max_epochs": 20, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return train_test_split(*load_digits(return_X_y=True), random_state=0)


def test_a_model_is_a_tree_that_predicts_saves_and_loads(digits, tmp_path):
    X, test_X, y, test_y = digits
    model = NonGreedyTreeClassifier(random_state=0).fit(X, y)
    assert model.score(test_X, test_y) > 0.9
    model.save(tmp_path / "tree.hardwood")
    loaded = hardwood.load(tmp_path / "tree.hardwood")
    assert loaded == model.tree_
    np.testing.assert_array_equal(loaded.predict_proba(test_X), model.predict_proba(test_X))


@pytest.mark.parametrize("init", ["axis", "random", "oc1", "co2"])
def test_every_start_is_improved(digits, init):
    """By the training loss, which is what the bound is of."""
    X, _, y, _ = digits
    model = NonGreedyTreeClassifier(
        max_depth=4, init=init, max_epochs=40, early_stopping=False, random_state=0
    )
    history = model.fit(X, y).history_
    assert history[-1].train_bound < 0.6 * history[0].train_bound
    assert all(epoch.train_loss <= epoch.train_bound * (1 + 1e-6) for epoch in history)
    start = GreedyTreeClassifier(splitter=init, max_depth=4, random_state=0).fit(X, y)
    assert model.score(X, y) > start.score(X, y)


def test_inference_by_branch_and_bound_learns_the_tree_of_the_exhaustive_one(digits):
    X, _, y, _ = digits
    a, b = (
        NonGreedyTreeClassifier(**QUICK, inference=way).fit(X, y) for way in ("exact", "exhaustive")
    )
    np.testing.assert_array_equal(a.tree_.weights, b.tree_.weights)
    np.testing.assert_array_equal(a.tree_.values, b.tree_.values)
    assert [epoch.train_bound for epoch in a.history_] == [e.train_bound for e in b.history_]


def test_what_is_kept_is_what_was_judged(digits):
    X, _, y, _ = digits
    model = NonGreedyTreeClassifier(**QUICK, early_stopping=True).fit(X, y)
    rows = held_out_rows(model, X, y)
    losses = -np.log(model.predict_proba(X[rows])[np.arange(len(rows)), y[rows]])
    assert losses.mean() == pytest.approx(min(e.validation_loss for e in model.history_), rel=1e-4)


def test_auto_tries_the_papers_grid_and_learns_from_all_rows(digits):
    X, _, y, _ = digits
    model = NonGreedyTreeClassifier(**QUICK, nu="auto", learning_rate="auto").fit(X, y)
    pairs = [(nu, rate) for nu in learner.NU_GRID for rate in learner.LEARNING_RATE_GRID]
    assert [tuple(trial[:2]) for trial in model.trials_] == pairs
    best = min(model.trials_, key=lambda trial: trial[2])
    assert (model.nu_, model.learning_rate_) == best[:2]
    assert np.isnan([epoch.validation_loss for epoch in model.history_]).all()
    assert len(model.history_) == QUICK["max_epochs"]
    assert model.tree_.record["resolved"] == {"nu": best[0], "learning_rate": best[1]}
    same = NonGreedyTreeClassifier(**QUICK, nu="auto", learning_rate="auto", n_jobs=3).fit(X, y)
    assert same.tree_ == model.tree_
    alone = NonGreedyTreeClassifier(**QUICK, nu=model.nu_, learning_rate=model.learning_rate_)
    alone.fit(X, y)
    np.testing.assert_array_equal(alone.tree_.weights, model.tree_.weights)


@pytest.mark.parametrize("seed", range(6))
def test_the_record_tells_the_setting_that_was_used(seed):
    """Where settings tie, or the last epoch is not the best, the engine would choose another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    y = np.digitize(2 * X[:, 0] + np.sin(X[:, 1]) + 0.3 * rng.normal(size=150), [-1, 1])
    model = NonGreedyTreeClassifier(
        max_depth=3, max_epochs=6, nu="auto", init="axis", random_state=seed
    ).fit(X, y)
    used = {"nu": model.nu_, "learning_rate": model.learning_rate_}
    assert model.tree_.record["resolved"] == used


def test_auto_with_early_stopping_ends_where_the_validation_loss_was_smallest(digits):
    X, _, y, _ = digits
    epochs = []
    model = NonGreedyTreeClassifier(
        **QUICK, nu="auto", early_stopping=True, callbacks=lambda epoch: epochs.append(epoch)
    ).fit(X, y)
    searched = [epoch for epoch in epochs if not np.isnan(epoch.validation_loss)]
    assert {epoch.restart for epoch in searched} == set(range(len(model.trials_)))
    assert {epoch.restart for epoch in epochs[len(searched) :]} == {len(model.trials_)}
    best = min(searched, key=lambda epoch: epoch.validation_loss)
    assert min(trial[2] for trial in model.trials_) == best.validation_loss
    assert len(model.history_) == best.epoch + 1


def test_the_start_never_sees_the_validation_part(digits, monkeypatch):
    """Otherwise it would be evaluated on rows it was trained on."""
    X, _, y, _ = digits
    seen = []
    original = learner.start_from

    def start_from(tree, task, **options):
        seen.append((len(task.train), len(task.valid), float(tree.values.sum())))
        return original(tree, task, **options)

    monkeypatch.setattr(learner, "start_from", start_from)
    NonGreedyTreeClassifier(**QUICK, nu="auto").fit(X, y)
    (n_train, n_valid, _), (n_all, none, _) = seen
    assert n_valid > 0
    assert n_all == n_train + n_valid
    assert none == 0


def test_sparse_splits(digits):
    X, _, y, _ = digits
    dense, few, penalized = (
        NonGreedyTreeClassifier(**QUICK, **options).fit(X, y)
        for options in ({}, {"max_features_per_split": 3}, {"l1": 0.3})
    )
    assert ((few.tree_.weights != 0).sum(axis=1) <= 3).all()
    assert few.score(X, y) > 0.7

    def used(model):
        return (model.tree_.weights != 0).mean()

    assert used(penalized) < 0.7 * used(dense)
    assert penalized.score(X, y) > 0.7


def test_features_of_several_columns_count_once():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "kind": rng.choice(list("abcdef"), 300),
            "gaps": np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300)),
            "number": rng.normal(size=300),
        }
    )
    y = (X["kind"].isin(["a", "c"]) ^ (X["number"] > 0)).astype(int)
    model = NonGreedyTreeClassifier(**QUICK, max_features_per_split=1).fit(X, y)
    tree = model.tree_
    for row in tree.weights:
        assert len(set(tree.schema.column_feature[row != 0])) <= 1
    kinds = tree.weights[:, tree.schema.column_feature == 0]
    assert ((kinds != 0).sum(axis=1) > 1).any()


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson"]
)
def test_every_loss_of_numbers(loss):
    X, y = load_diabetes(return_X_y=True)
    model = NonGreedyTreeRegressor(max_depth=3, loss=loss, random_state=0).fit(X, y)
    history = model.history_
    assert history[-1].train_bound < history[0].train_bound
    assert model.score(X, y) > 0.3


def test_several_targets_and_several_labels():
    X, y = load_diabetes(return_X_y=True)
    both = np.column_stack([y, -3 * y + 7])
    model = NonGreedyTreeRegressor(max_depth=3, random_state=0).fit(X, both)
    assert model.predict(X).shape == both.shape
    np.testing.assert_allclose(model.predict(X)[:, 1], -3 * model.predict(X)[:, 0] + 7, rtol=0.05)
    labels = both > both.mean(axis=0)
    model = NonGreedyTreeClassifier(max_depth=3, random_state=0).fit(X, labels)
    assert (model.predict(X) == labels).mean() > 0.7


def test_warm_start_goes_on_from_the_tree():
    X, y = load_breast_cancer(return_X_y=True)
    model = NonGreedyTreeClassifier(**QUICK, early_stopping=False, warm_start=True).fit(X, y)
    first = model.history_[-1].train_bound
    tree = model.tree_
    model.fit(X, y)
    assert model.history_[0].train_bound < 3 * first
    assert model.tree_.n_leaves <= tree.n_leaves
    given = NonGreedyTreeClassifier(**QUICK, early_stopping=False, init=tree).fit(X, y)
    np.testing.assert_array_equal(given.tree_.weights, model.tree_.weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nu": 0.0}, "nu must be a number"),
        ({"nu": "large"}, "nu must be a number"),
        ({"learning_rate": -1.0}, "learning_rate must be a number"),
        ({"inference": "slow"}, "inference must be one of"),
        ({"solver": "adam"}, "solver must be one of"),
        ({"init": None}, "init must be the name of a greedy split, a tree or a learner"),
        ({"init": "best"}, "init must be"),
        ({"max_depth": 33}, "max_depth must be an integer from 1 to 32"),
        ({"max_features_per_split": 0}, "max_features_per_split must be an integer"),
        ({"loss": lambda f, y: f}, "not a function"),
        ({"nu": "auto", "validation_fraction": 0}, "nu='auto' needs validation rows"),
        ({"training": Training()}, "optimizer='sgd'"),
        ({"momentum": 1.0}, "momentum must be a number"),
        ({"warm_start": 1}, "warm_start must be True or False"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X, y = load_iris(return_X_y=True)
    model = NonGreedyTreeClassifier(**options)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert not hasattr(model, "tree_")


def test_starts_that_do_not_fit_are_refused():
    X, y = load_iris(return_X_y=True)
    deep = GreedyTreeClassifier(max_depth=5).fit(X, y)
    with pytest.raises(ValueError, match="start tree has depth"):
        NonGreedyTreeClassifier(max_depth=2, init=deep).fit(X, y)
    linear = DGTClassifier(max_depth=2, leaves="linear", max_epochs=5).fit(X, y)
    with pytest.raises(ValueError, match="linear leaves"):
        NonGreedyTreeClassifier(init=linear).fit(X, y)
    with pytest.raises(ValueError, match="init is a tree for"):
        NonGreedyTreeRegressor(init=deep).fit(X, y.astype(float))


def test_learning_can_be_watched_and_stopped():
    X, y = load_iris(return_X_y=True)
    seen = []
    model = NonGreedyTreeClassifier(
        **QUICK, callbacks=lambda epoch: seen.append(epoch) or epoch.epoch == 4
    ).fit(X, y)
    assert [epoch.epoch for epoch in seen] == [0, 1, 2, 3, 4]
    assert [e.train_bound for e in model.history_] == [e.train_bound for e in seen]
    assert model.n_iter_ == 5
    assert "train_bound" in model.tree_.record["curves"]


def interrupt_while(monkeypatch, function: str, call: int, after: float) -> None:
    """Have the user press Ctrl-C in the nth call of a native function."""
    original = getattr(_native, function)
    pressed = threading.Event()
    n_calls = 0

    def interrupted(*arguments, **options):
        nonlocal n_calls
        n_calls += 1
        if n_calls == call:
            threading.Timer(after, press).start()
            if "callback" in options:  # the run lasts until then, however fast the machine is
                options["callback"] = delayed(options["callback"])
        return original(*arguments, **options)

    def press():
        signal.raise_signal(signal.SIGINT)
        pressed.set()

    def delayed(callback):
        def wait_and_call(*record):
            pressed.wait(60)
            return callback(*record)

        return wait_and_call

    monkeypatch.setattr(_native, function, interrupted)


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3000, 20)), rng.integers(0, 5, 3000)


@pytest.mark.parametrize("Estimator", [NonGreedyTreeClassifier, DGTClassifier])
def test_an_interrupt_while_the_start_grows_is_not_lost(noise, monkeypatch, Estimator):
    model = Estimator(init="oc1", max_depth=8, max_epochs=2, random_state=0)
    interrupt_while(monkeypatch, "fit_greedy", call=1, after=0.1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*noise)
    assert not hasattr(model, "tree_")


@pytest.mark.parametrize(
    ("function", "init"), [("fit_greedy", "oc1"), ("fit", "axis")], ids=["start", "run"]
)
def test_an_interrupt_after_the_search_keeps_its_best_tree(noise, monkeypatch, function, init):
    search = {"learning_rate": "auto", "init": init, "max_depth": 5, "random_state": 0}
    max_epochs = 1 if init == "oc1" else 30
    model = NonGreedyTreeClassifier(**search, max_epochs=max_epochs)
    interrupt_while(monkeypatch, function, call=2, after=0.05)
    with pytest.warns(FitInterruptedWarning, match="the best model so far is kept"):
        model.fit(*noise)
    assert len(model.trials_) == 3
    assert len(model.history_) == max_epochs
    assert np.isfinite([epoch.validation_loss for epoch in model.history_]).all()
    assert model.predict(noise[0][:5]).shape == (5,)
