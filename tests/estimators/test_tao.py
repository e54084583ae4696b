"""Estimators of alternating optimization: what is theirs alone, and scikit-learn's own checks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.model_selection import train_test_split

import hardwood
from hardwood import (
    DGTClassifier,
    GreedyTreeClassifier,
    GreedyTreeRegressor,
    TAOClassifier,
    TAORegressor,
)
from hardwood.errors import FitInterruptedWarning
from hardwood.learn import Quantile
from hardwood.learn.tao import PENALTIES
from held_out import held_out_rows

QUICK = {"max_depth": 4, "l1": 0.3, "l2": 1.0, "max_sweeps": 4, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return train_test_split(*load_digits(return_X_y=True), random_state=0)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def test_a_model_is_a_tree_that_predicts_saves_and_loads(digits, tmp_path):
    X, test_X, y, test_y = digits
    model = TAOClassifier(random_state=0).fit(X, y)
    assert model.score(test_X, test_y) > 0.89
    model.save(tmp_path / "tree.hardwood")
    loaded = hardwood.load(tmp_path / "tree.hardwood")
    assert loaded == model.tree_
    np.testing.assert_array_equal(loaded.predict_proba(test_X), model.predict_proba(test_X))


@pytest.mark.parametrize("init", ["axis", "random", "oc1", "co2"])
@pytest.mark.parametrize("loss", ["misclassification", "log_loss"])
def test_every_start_is_improved_and_the_objective_never_rises(digits, init, loss):
    X, _, y, _ = digits
    model = TAOClassifier(**QUICK, init=init, loss=loss, early_stopping=False).fit(X, y)
    assert (np.diff(model.objective_) <= 1e-9).all()
    assert model.n_iter_ == len(model.objective_) - 1
    start = GreedyTreeClassifier(splitter=init, max_depth=4, random_state=0).fit(X, y)
    assert model.score(X, y) > start.score(X, y)


def test_the_objective_of_the_01_loss_is_the_share_of_wrong_answers(digits):
    X, _, y, _ = digits
    model = TAOClassifier(**QUICK, leaf_prior=0.0, early_stopping=False).fit(X, y)
    assert model.objective_[-1] == pytest.approx(1 - model.score(X, y), abs=2e-3)


def test_leaves_have_probabilities_whatever_the_loss(digits):
    X, test_X, y, _ = digits
    model = TAOClassifier(**QUICK).fit(X, y)
    p = model.predict_proba(test_X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p.min() > 0
    bare = TAOClassifier(**QUICK, leaf_prior=0.0).fit(X, y)
    assert bare.predict_proba(test_X).max() > p.max()


def test_any_tree_can_be_improved_further(digits):
    X, _, y, _ = digits
    start = DGTClassifier(max_depth=5, max_epochs=20, random_state=0).fit(X, y)
    options = {"max_depth": 5, "l1": 0.1, "l2": 0.1, "early_stopping": False, "random_state": 0}
    from_estimator = TAOClassifier(init=start, **options).fit(X, y)
    from_tree = TAOClassifier(init=start.tree_, **options).fit(X, y)
    assert from_tree.tree_.weights.tolist() == from_estimator.tree_.weights.tolist()
    assert from_tree.score(X, y) > start.score(X, y)
    again = TAOClassifier(init=from_tree, **options).fit(X, y)
    assert again.objective_[0] <= from_tree.objective_[-1] + 2e-3


def test_no_sweep_leaves_the_splits_of_the_start(digits):
    X, _, y, _ = digits
    start = GreedyTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    options = {**QUICK, "max_sweeps": 0, "early_stopping": False}
    model = TAOClassifier(**options, init=start).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), start.predict(X))
    assert model.history_ == []


def test_warm_start_goes_on(digits):
    X, _, y, _ = digits
    options = {**QUICK, "max_sweeps": 1, "early_stopping": False}
    model = TAOClassifier(**options, warm_start=True).fit(X, y)
    first = model.objective_[-1]
    assert model.fit(X, y).objective_[-1] < first


def test_auto_tries_penalties_and_learns_from_all_rows(digits):
    X, _, y, _ = digits
    model = TAOClassifier(max_depth=4, max_sweeps=3, random_state=0).fit(X, y)
    assert [trial[:2] for trial in model.trials_[: len(PENALTIES)]] == list(PENALTIES)
    best = min(model.trials_, key=lambda trial: trial[3])
    assert (model.l1_, model.l2_) == best[:2]
    assert [trial[2] for trial in model.trials_[: len(PENALTIES)]] == [4] * len(PENALTIES)
    assert best[2] == 4  # digits are not for three levels
    assert [trial[:3] for trial in model.trials_[len(PENALTIES) :]] == [
        (*best[:2], depth) for depth in (3, 2, 1)
    ]
    assert np.isnan([epoch.validation_loss for epoch in model.history_]).all()
    assert model.tree_.record["resolved"] == {"l1": best[0], "l2": best[1]}
    alone = TAOClassifier(
        max_depth=4,
        l1=model.l1_,
        l2=model.l2_,
        max_sweeps=model.n_iter_,
        early_stopping=False,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_array_equal(alone.tree_.weights, model.tree_.weights)
    one = TAOClassifier(max_depth=4, l1=0.5, max_sweeps=2, random_state=0).fit(X, y)
    assert {trial[0] for trial in one.trials_} == {0.5}
    assert {t[1] for t in one.trials_} == {l2 for _, l2 in PENALTIES}


def test_auto_starts_from_fewer_levels_where_more_of_them_do_not_help():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] > 0, 3.0, -3.0) + 2.0 * rng.normal(size=400)
    model = TAORegressor(max_depth=6, validation_fraction=0.3, random_state=0).fit(X, y)
    depths = [trial[2] for trial in model.trials_]
    assert depths[0] == 6
    assert min(depths) < 4
    assert model.tree_.depth < 5
    given = TAORegressor(max_depth=6, init=GreedyTreeRegressor(max_depth=6).fit(X, y))
    assert {trial[2] for trial in given.fit(X, y).trials_} == {given.init.tree_.depth}


def test_what_is_kept_is_what_was_judged(digits):
    X, _, y, _ = digits
    model = TAOClassifier(**{**QUICK, "max_sweeps": 8}, early_stopping=True, loss="log_loss")
    model.fit(X, y)
    rows = held_out_rows(model, X, y)
    losses = -np.log(model.predict_proba(X[rows])[np.arange(len(rows)), y[rows]])
    assert losses.mean() == pytest.approx(min(e.validation_loss for e in model.history_), rel=1e-3)


@pytest.mark.parametrize("leaves", ["constant", "linear"])
@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", Quantile(0.9), "poisson"]
)
def test_every_loss_of_numbers_is_learned(diabetes, loss, leaves):
    X, y = diabetes
    model = TAORegressor(**QUICK, loss=loss, leaves=leaves, early_stopping=False).fit(X, y)
    assert model.objective_[-1] < model.objective_[0]
    assert (np.diff(model.objective_) <= 1e-6 * np.abs(model.objective_[:-1]) + 1e-7).all()
    above = (y <= model.predict(X)).mean()
    assert above > 0.8 if isinstance(loss, Quantile) else 0.3 < above < 0.7


def test_linear_leaves_predict_what_the_tree_does(diabetes):
    X, y = diabetes
    model = TAORegressor(max_depth=2, leaves="linear", random_state=0).fit(X, y)
    assert model.tree_.has_linear_leaves
    assert model.score(X, y) > 0.5
    np.testing.assert_allclose(model.tree_.predict(X).ravel(), model.predict(X))


def test_linear_leaves_of_classes(digits):
    X, test_X, y, test_y = digits
    model = TAOClassifier(
        max_depth=2, leaves="linear", l1=1.0, l2=1.0, max_sweeps=2, random_state=0
    ).fit(X, y)
    assert model.tree_.has_linear_leaves
    assert model.score(test_X, test_y) > 0.93


def test_sparse_splits(digits):
    X, _, y, _ = digits
    options = {**QUICK, "early_stopping": False}
    few = TAOClassifier(**options, max_features_per_split=3).fit(X, y)
    assert (np.count_nonzero(few.tree_.weights, axis=1) <= 3).all()
    assert (np.diff(few.objective_) <= 1e-9).all()
    weak, strong = (TAOClassifier(**{**options, "l1": l1}).fit(X, y) for l1 in (0.03, 10.0))
    assert np.count_nonzero(strong.tree_.weights) < 0.5 * np.count_nonzero(weak.tree_.weights)


def test_tables_with_names_levels_and_gaps():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.assign(kind=pd.Categorical(np.where(np.arange(150) % 3, "a", "b")))
    X.iloc[::7, 1] = np.nan
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = TAOClassifier(max_depth=3, random_state=0).fit(X, names)
    assert model.score(X, names) > 0.93
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert "petal" in model.tree_.to_text()


def test_several_labels():
    X, y = load_iris(return_X_y=True)
    labels = np.stack([y == 0, y == 2, X[:, 0] > 6], axis=1).astype(int)
    model = TAOClassifier(max_depth=3, random_state=0).fit(X, labels)
    assert (model.predict(X) == labels).mean() > 0.93


def test_weight_two_is_the_row_twice(digits):
    X, _, y, _ = digits
    X, y = X[:300], y[:300]
    twice = np.concatenate([np.arange(300), np.arange(0, 300, 3)])
    weight = np.ones(300)
    weight[::3] = 2
    a = TAOClassifier(**QUICK).fit(X[twice], y[twice])
    b = TAOClassifier(**QUICK).fit(X, y, sample_weight=weight)
    assert a.tree_ == b.tree_


def test_weights_of_classes_move_the_answers():
    X, y = load_breast_cancer(return_X_y=True)
    options = {"max_depth": 2, "l1": 10.0, "l2": 100.0, "random_state": 0, "early_stopping": False}
    even, skewed = (
        TAOClassifier(**options, class_weight=weight).fit(X, y) for weight in (None, {0: 50, 1: 1})
    )
    missed = [(model.predict(X)[y == 0] == 1).sum() for model in (even, skewed)]
    assert missed[1] <= missed[0]
    assert skewed.tree_ != even.tree_


def test_threads_change_nothing(digits):
    X, _, y, _ = digits
    one, three = (TAOClassifier(**QUICK, n_jobs=n).fit(X, y) for n in (1, 3))
    assert one.tree_ == three.tree_


def test_callbacks_hear_of_sweeps_and_stop_them(digits, capsys):
    X, _, y, _ = digits
    heard = []

    def stop(epoch):
        heard.append(epoch)
        return epoch.epoch == 1

    options = {**QUICK, "early_stopping": False}
    model = TAOClassifier(**options, callbacks=stop, verbose=2).fit(X, y)
    assert [epoch.epoch for epoch in heard] == [0, 1]
    assert model.n_iter_ == 2
    assert "training loss" in capsys.readouterr().out


def test_an_interrupt_keeps_the_best_tree(digits):
    X, _, y, _ = digits

    def stop(epoch):
        if (epoch.restart, epoch.epoch) == (1, 0):
            raise KeyboardInterrupt

    model = TAOClassifier(max_depth=4, max_sweeps=3, callbacks=stop, random_state=0)
    with pytest.warns(FitInterruptedWarning, match="interrupted"):
        model.fit(X, y)
    assert len(model.trials_) == 2
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l1": -1.0}, "l1"),
        ({"l2": "many"}, "l2"),
        ({"leaves": "cubic"}, "leaves"),
        ({"max_sweeps": -1}, "max_sweeps"),
        ({"max_features_per_split": 0}, "max_features_per_split"),
        ({"init": None}, "init"),
        ({"init": "cart"}, "init"),
        ({"loss": "squared_error"}, "loss"),
        ({"loss": lambda f, y: f}, "single leaves"),
        ({"leaves": "linear", "loss": "misclassification"}, "log_loss"),
        ({"validation_fraction": 0.0}, "validation_fraction is 0"),
        ({"leaf_prior": -1}, "leaf_prior"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(options, message):
    X, y = load_iris(return_X_y=True)
    model = TAOClassifier(max_depth=2, l1=1.0, l2=0.0, random_state=0).fit(X, y)
    before = model.tree_
    model.set_params(**{"l1": "auto", **options})
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert model.tree_ is before


def test_a_start_that_is_too_deep_is_refused(digits):
    X, _, y, _ = digits
    deep = GreedyTreeClassifier(max_depth=6).fit(X, y)
    with pytest.raises(ValueError, match="more than max_depth=4"):
        TAOClassifier(**QUICK, init=deep).fit(X, y)
