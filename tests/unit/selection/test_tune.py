from __future__ import annotations

import importlib.util
import sys
import threading
from types import SimpleNamespace

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.tree import DecisionTreeClassifier

from hardwood import DGTClassifier, DGTRegressor
from hardwood.errors import MissingExtraError
from hardwood.learn import Training
from hardwood.selection import Range, loop, tune

SPACE = {"max_depth": [1, 2, 3], "momentum": [0.0, 0.3], "learning_rate": [0.003, 0.03]}


@pytest.fixture
def data(rng):
    X = rng.normal(size=(200, 3))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


def quick(**parameters):
    return DGTClassifier(**{"max_epochs": 6, "n_restarts": 1} | parameters)


def seen(result):
    return [(t.number, t.state, t.value, t.params) for t in result.trials]


def test_the_best_on_validation_rows_is_learned_from_all_rows(data):
    result = tune(quick(), *data, space=SPACE, n_trials=8, random_state=0)
    values = [trial.value for trial in result.trials if trial.state == "complete"]
    assert result.best_value == min(values) == result.best_trial.value
    assert result.best_params == result.best_trial.params
    model = result.best_estimator
    assert {name: model.get_params()[name] for name in SPACE} == result.best_params
    assert model.tree_.counts[0] == 200
    assert model.tree_.record["parameters"]["random_state"] == 0
    again = quick(random_state=0, **result.best_params).fit(*data)
    assert again.tree_ == model.tree_
    assert "log loss" in repr(result)


def test_values_are_those_of_rows_that_did_not_teach(data):
    X, y = data
    fold = (np.arange(150), np.arange(150, 200))
    model = quick(random_state=3)
    result = tune(model, X, y, space={"max_depth": [2, 3]}, n_trials=2, validation=[fold])
    for trial in result.trials:
        fitted = quick(random_state=3, **trial.params).fit(X[:150], y[:150])
        p = fitted.predict_proba(X[150:])[np.arange(50), (y[150:] == "same").astype(int)]
        assert trial.value == pytest.approx(-np.log(np.clip(p, 2e-16, 1)).mean())
    assert model.max_depth == 6  # what was given is not touched
    assert not hasattr(model, "tree_")


def test_the_same_seed_gives_the_same_trials(data):
    first, again, other = (
        tune(quick(), *data, space=SPACE, n_trials=14, random_state=seed) for seed in (1, 1, 2)
    )
    assert seen(first) == seen(again)
    assert first.best_estimator.tree_ == again.best_estimator.tree_
    assert seen(first) != seen(other)


def test_what_was_tried_is_not_tried_again(data):
    for sampler in ("tpe", "random"):
        result = tune(quick(), *data, space=SPACE, sampler=sampler, random_state=0)
        tried = {tuple(trial.params.values()) for trial in result.trials}
        assert len(result.trials) == len(tried) == 12  # all there are, and not 30


def test_a_function_that_repeats_itself_is_not_learned_from_twice(data):
    epochs = []
    result = tune(
        quick(callbacks=epochs.append),
        *data,
        space=lambda trial: {"max_depth": trial.suggest_int("depth", 1, 2)},
        n_trials=5,
        pruner=None,
        random_state=0,
        refit=False,
    )
    values = {trial.params["max_depth"]: trial.value for trial in result.trials}
    assert [values[t.params["max_depth"]] for t in result.trials] == [
        t.value for t in result.trials
    ]
    assert sum(epoch.epoch == 0 for epoch in epochs) == len(values)


def test_a_grid_is_tried_whole_in_the_order_of_the_seed(data):
    results = [tune(quick(), *data, space=SPACE, sampler="grid", random_state=s) for s in (0, 1)]
    for result in results:
        points = [tuple(trial.params.values()) for trial in result.trials]
        assert len(points) == len(set(points)) == 12
    orders = [[tuple(trial.params.values()) for trial in result.trials] for result in results]
    assert orders[0] != orders[1]
    part = tune(quick(), *data, space=SPACE, sampler="grid", n_trials=5, random_state=0)
    assert [tuple(trial.params.values()) for trial in part.trials] == orders[0][:5]


# --- pruning ------------------------------------------------------------------------------------

RATES = [0.02, 0.021, 0.022, 0.023, 0.024, 1e-6, 2e-6, 3e-6]


class InOrder(optuna.samplers.BaseSampler):
    """The first value first, the second second, ..."""

    def infer_relative_search_space(self, study, trial):
        return {}

    def sample_relative(self, study, trial, search_space):
        return {}

    def sample_independent(self, study, trial, param_name, param_distribution):
        return param_distribution.choices[trial.number]


def five_good_three_hopeless(data, **options):
    return tune(
        *(quick(max_epochs=12, **options.pop("model", {})), *data),
        **{"space": {"learning_rate": RATES}, "sampler": InOrder(), "n_trials": 8} | options,
        random_state=0,
        refit=False,
    )


def states(result):
    return [trial.state for trial in result.trials]


@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_hopeless_trials_are_pruned_at_the_first_look(data, scoring):
    epochs = []
    result = five_good_three_hopeless(data, scoring=scoring, model={"callbacks": epochs.append})
    assert states(result) == ["complete"] * 5 + ["pruned"] * 3
    assert len(epochs) == 5 * 12 + 3 * 3  # of 12 epochs a quarter
    assert list(result.trials[5].curve) == [1, 2, 3]
    assert result.trials[5].value is None
    assert all(loss > 0 for loss in result.trials[5].curve.values())
    assert result.count("pruned") == 3


def test_without_a_pruner_every_trial_is_completed(data):
    epochs = []
    result = five_good_three_hopeless(data, pruner=None, model={"callbacks": epochs.append})
    assert states(result) == ["complete"] * 8
    assert len(epochs) == 8 * 12


def test_successive_halving_prunes_too(data):
    result = five_good_three_hopeless(data, pruner="halving")
    assert states(result)[0] == "complete"
    assert states(result)[5:] == ["pruned"] * 3


def test_a_pruner_of_optuna_may_be_given(data):
    never = optuna.pruners.ThresholdPruner(upper=0.0)  # every loss is above
    result = five_good_three_hopeless(data, pruner=never, n_trials=1, scoring="accuracy")
    assert states(result) == ["complete"]  # losses have a minus sign where scores are maximized
    with pytest.raises(ValueError, match="None of 2 trials was completed"):
        five_good_three_hopeless(data, pruner=never, n_trials=2)


def test_threads_of_a_fit_change_neither_values_nor_pruning(data):
    results = [
        five_good_three_hopeless(data, model={"n_restarts": 4, "n_jobs": n_jobs})
        for n_jobs in (1, 4)
    ]
    assert seen(results[0]) == seen(results[1])
    assert [t.curve for t in results[0].trials] == [t.curve for t in results[1].trials]
    assert "pruned" in states(results[0])


def test_the_first_restart_of_the_first_fold_is_judged(data):
    epochs = []
    whole = Training(patience=1.0)  # no restart stops by itself
    model = {"n_restarts": 2, "callbacks": epochs.append, "training": whole}
    result = five_good_three_hopeless(data, validation=3, model=model)
    assert states(result) == ["complete"] * 5 + ["pruned"] * 3
    # Complete: 3 folds of 2 restarts. Pruned: 3 epochs, then one of the other restart, which ends.
    assert len(epochs) == 5 * 3 * 2 * 12 + 3 * (3 + 1)


def test_a_restart_that_stops_early_has_a_whole_curve(data):
    epochs = []
    model = {"callbacks": epochs.append, "training": Training(patience=0.1)}
    result = five_good_three_hopeless(data, n_trials=5, model=model)
    assert len(epochs) < 5 * 12
    for trial in result.trials:
        assert list(trial.curve) == list(range(1, 13))
        assert sorted(trial.curve.values(), reverse=True) == list(trial.curve.values())


def test_without_a_validation_part_of_the_estimator_nothing_is_pruned(data):
    result = five_good_three_hopeless(data, model={"early_stopping": False})
    assert states(result) == ["complete"] * 8
    assert result.trials[0].curve == {}


# --- ends ---------------------------------------------------------------------------------------


def test_a_time_limit_cuts_trials_off_but_not_the_first(data, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(loop, "time", clock)
    monkeypatch.setattr("hardwood.clock.time", clock)

    def on_epoch(epoch):
        clock.now += 1  # six seconds a trial

    options = {"space": SPACE, "random_state": 0, "refit": False}
    result = tune(quick(callbacks=on_epoch), *data, time_limit=9, **options)
    assert states(result) == ["complete"]  # and not the half of the second
    assert len(result.study.trials) == 2
    assert not result.interrupted
    tiny = tune(quick(callbacks=on_epoch), *data, time_limit=1e-9, **options)
    assert states(tiny) == ["complete"]


def test_a_callback_ends_the_search(data):
    heard = []
    callbacks = [lambda trial: trial.number == 2, heard.append]
    result = tune(quick(), *data, space=SPACE, callbacks=callbacks, random_state=0)
    assert tuple(heard) == result.trials  # every callback gets every trial
    assert [trial.number for trial in heard] == [0, 1, 2]


def test_verbose_prints_a_line_per_trial(data, capsys):
    tune(quick(), *data, space=SPACE, n_trials=2, random_state=0, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["trial 0", "trial 1"]
    assert "max_depth=" in lines[0]


def test_trials_side_by_side(data):
    n_before = threading.active_count()  # other tests may have left some, a browser's say
    result = tune(quick(), *data, space=SPACE, n_trials=7, n_jobs=2, random_state=0)
    assert [trial.number for trial in result.trials] == list(range(7))
    assert result.best_value == min(t.value for t in result.trials if t.value is not None)
    assert threading.active_count() < n_before + 3


def test_a_failing_trial_is_left_out_once_another_has_succeeded(data):
    class Picky(DGTClassifier):
        def fit(self, X, y, sample_weight=None):
            if self.max_depth == 2:
                raise ValueError("not two")
            return super().fit(X, y, sample_weight)

    model, space = Picky(max_epochs=3, n_restarts=1), {"max_depth": [1, 2, 3]}
    with pytest.warns(FitFailedWarning, match="not two"):
        result = tune(model, *data, space=space, sampler=InOrder(), n_trials=3)
    assert states(result) == ["complete", "failed", "complete"]
    assert result.trials[1].error == "ValueError: not two"
    assert result.trials[1].params == {"max_depth": 2}
    with pytest.raises(ValueError, match="not two"):
        tune(model, *data, space={"max_depth": [2, 3]}, sampler=InOrder(), n_trials=2)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_callback_raises_is_raised(data, n_jobs):
    def fail(trial):
        raise RuntimeError("no disk for the log")

    with pytest.raises(RuntimeError, match="no disk for the log"):
        tune(quick(), *data, space=SPACE, callbacks=fail, n_jobs=n_jobs)


# --- what is tuned, and how it is scored ---------------------------------------------------------


def test_regression_with_weights_and_a_range(rng):
    X = rng.normal(size=(150, 2))
    y, weight = 3 * X[:, 0], rng.integers(0, 3, size=150)
    space = {"learning_rate": Range(0.003, 0.1, log=True), "max_depth": Range(1, 3)}
    result = tune(
        DGTRegressor(max_epochs=5, n_restarts=1),
        X,
        y,
        sample_weight=weight,
        space=space,
        n_trials=6,
        random_state=0,
    )
    assert (result.metric, result.direction) == ("squared error", "minimize")
    assert 0.003 <= result.best_params["learning_rate"] <= 0.1
    assert result.best_estimator.tree_.counts[0] == weight.sum()


def test_any_scorer_folds_and_rows_of_their_own(data):
    X, y = data
    folded = tune(quick(), X, y, space=SPACE, n_trials=3, validation=3, scoring="accuracy")
    assert folded.direction == "maximize"
    assert folded.best_value == max(t.value for t in folded.trials if t.value is not None)
    given = tune(
        quick(random_state=0),
        X[:150],
        y[:150],
        space=SPACE,
        n_trials=2,
        validation=(X[150:], y[150:]),
        scoring=lambda model, X, y: len(X) / 50,
    )
    assert given.best_value == 1.0
    assert given.best_estimator.tree_.counts[0] == 150


def test_frames_and_lists_are_tables(data):
    X, y = data
    frames = (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc")))
    results = [
        tune(quick(), frame, y.tolist(), space=SPACE, n_trials=2, random_state=0)
        for frame in frames
    ]
    assert seen(results[0]) == seen(results[1])
    assert results[0].best_estimator.tree_.feature_names == ("a", "b", "c")


def test_an_estimator_of_another_package(data):
    result = tune(
        DecisionTreeClassifier(), *data, space={"max_depth": [1, 2, 3]}, n_trials=3, random_state=0
    )
    assert result.metric == "score"
    assert result.best_estimator.get_params()["random_state"] == 0


def test_the_built_in_space_is_searched_where_none_is_given(data):
    model = DGTClassifier(max_depth=2, max_epochs=2, n_restarts=1, batch_size=64)
    result = tune(model, *data, n_trials=4, random_state=0)
    assert set(result.best_params) == {"layers", "l1", "l2", "momentum"}
    assert {trial.params["layers"] for trial in result.trials} <= {1, 3}


def test_trials_become_columns_of_a_frame(data):
    result = tune(quick(), *data, space=SPACE, n_trials=3, random_state=0)
    columns = result.to_columns()
    assert list(columns) == ["number", "state", "value", "seconds", *SPACE]
    frame = pd.DataFrame(columns)
    assert frame.shape == (3, 7)
    assert pl.DataFrame(columns).height == 3
    best = frame.loc[frame.value.idxmin()]
    assert best.max_depth == result.best_params["max_depth"]


def test_callbacks_of_the_estimator_are_not_copied(data):
    class Log:
        def __init__(self):
            self.lock, self.n = threading.Lock(), 0

        def on_epoch(self, epoch):
            self.n += 1

    log = Log()
    tune(quick(callbacks=log.on_epoch), *data, space=SPACE, n_trials=2, random_state=0)
    assert log.n == 3 * 6  # two trials and the last fit


# --- mistakes -----------------------------------------------------------------------------------


def test_without_optuna_the_install_line_is_shown(data, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        sys.modules["hardwood.selection.tune"],  # the package's `tune` is the function
        "find_spec",
        lambda name: None if name == "optuna" else find(name),
    )
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[tune\]'"):
        tune(quick(), *data)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_trials": 0}, "n_trials must be an integer >= 1"),
        ({"n_trials": 2.5}, "n_trials must be an integer"),
        ({"time_limit": 0}, "time_limit must be a number in"),
        ({"time_limit": "60"}, "time_limit must be a number in"),
        ({"time_limit": float("inf")}, "time_limit must be a number in"),
        ({"sampler": "bayes"}, "sampler must be one of"),
        ({"pruner": "best"}, "pruner must be one of"),
        ({"scoring": "acc"}, "not a scikit-learn scorer"),
        ({"validation": 1.5}, "between 0 and 1"),
        ({"storage": "trials"}, "must end in .db"),
        ({"storage": "no/folder/t.db"}, "no folder"),
        ({"storage": "."}, "is a directory"),
        ({"storage": "nosuch://db"}, "cannot be opened"),
        ({"storage": 3}, "storage must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"callbacks": 3}, "callbacks must be"),
        ({"verbose": -1}, "verbose"),
        ({"space": {"loss": ["log_loss", "other"]}}, "cannot be compared"),
        ({"space": lambda trial: 3}, "must return a dict"),
        ({"space": lambda trial: {"depth": 3}}, "no parameter 'depth'"),
        ({"sample_weight": [1.0]}, "sample_weight"),
    ],
)
def test_bad_arguments_are_explained(data, options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError), match=words):
        tune(quick(), *data, **{"space": SPACE, "n_trials": 1} | options)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_estimator_or_target_is_refused(data):
    X, y = data
    for thing in (DGTClassifier, "DGTClassifier", None):
        with pytest.raises(TypeError, match="tune takes an estimator"):
            tune(thing, X, y)
    with pytest.raises(ValueError, match="1 class"):
        tune(quick(), X, ["a"] * 200, space=SPACE)
    with pytest.raises(ValueError, match="y has 199"):
        tune(quick(), X, y[1:], space=SPACE)


def test_a_score_that_is_not_defined_is_an_error(data):
    with pytest.raises(ValueError, match="not defined on the validation rows"):
        tune(quick(), *data, space=SPACE, scoring=lambda model, X, y: float("nan"))
