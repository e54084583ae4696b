"""DGT forests: members, threads, samples, warm starts, combining, interrupts."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

import hardwood
from hardwood import DGTClassifier, DGTForestClassifier, DGTForestRegressor, DGTRegressor
from hardwood.errors import FitInterruptedWarning
from hardwood.learn import Relaxation

OPTIONS = {"n_estimators": 6, "max_depth": 3, "max_epochs": 15, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def tasks(iris, diabetes):
    """For each kind of target: an estimator and what it learns from."""
    X, y = iris
    labels = np.column_stack([y == 1, y == 2, X[:, 0] > 5.8])
    numbers = np.column_stack([diabetes[1], -diabetes[1]])
    return {
        "classes": (DGTForestClassifier(**OPTIONS), X, np.array(["a", "b", "c"])[y]),
        "two classes": (DGTForestClassifier(**OPTIONS), X, y == 1),
        "labels": (DGTForestClassifier(**OPTIONS), X, labels),
        "number": (DGTForestRegressor(**OPTIONS), *diabetes),
        "numbers": (DGTForestRegressor(**OPTIONS), diabetes[0], numbers),
    }


TASKS = ["classes", "two classes", "labels", "number", "numbers"]


def history(model):
    """NaN, which a loss may be, equals nothing."""
    return list(map(repr, model.history_))


# Members


@pytest.mark.parametrize("task", TASKS)
def test_a_forest_learns(task, tasks):
    forest, X, y = tasks[task]
    model = clone(forest).set_params(max_epochs=100).fit(X, y)
    assert model.forest_.n_trees == 6
    assert model.score(X, y) > (0.45 if "number" in task else 0.8)


def test_members_differ(iris):
    trees = DGTForestClassifier(**OPTIONS).fit(*iris).estimators_
    assert len({tree.weights.tobytes() for tree in trees}) == 6


def test_a_forest_is_better_than_its_trees(diabetes):
    X, y = diabetes
    here, there = slice(0, 300), slice(300, None)
    options = {"max_depth": 4, "early_stopping": False, "random_state": 0}
    forest = DGTForestRegressor(n_estimators=20, **options).fit(X[here], y[here])
    alone = [r2(y[there], tree.predict(X[there])) for tree in forest.estimators_]
    assert forest.score(X[there], y[there]) > max(alone)


def r2(truth, found):
    return 1 - ((truth - found) ** 2).mean() / truth.var()


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
@pytest.mark.parametrize("Forest", [DGTForestClassifier, DGTForestRegressor])
def test_threads_do_not_change_the_forest(Forest, n_jobs, cancer):
    one = Forest(n_jobs=1, oob_score=True, **OPTIONS).fit(*cancer)
    many = Forest(n_jobs=n_jobs, oob_score=True, **OPTIONS).fit(*cancer)
    assert one.forest_ == many.forest_
    assert history(one) == history(many)
    assert one.oob_score_ == many.oob_score_
    np.testing.assert_array_equal(one.predict(cancer[0]), many.predict(cancer[0]))


def test_a_seed_makes_the_forest(iris):
    options = {**OPTIONS, "n_estimators": 2}
    seeds = (1, 1, 2)
    a, b, c = (DGTForestClassifier(**{**options, "random_state": s}).fit(*iris) for s in seeds)
    assert a.forest_ == b.forest_ != c.forest_


def test_a_forest_that_draws_nothing_has_all_rows_for_each_tree(iris):
    X, y = iris
    n_rows = len(np.unique(np.column_stack([X, y]), axis=0))
    for bootstrap, at_least, at_most in ((False, n_rows, n_rows), (True, 1, n_rows - 1)):
        seen = rows_per_tree(X, y, bootstrap=bootstrap)
        assert all(at_least <= n <= at_most for n in seen), (bootstrap, seen)
    trees = DGTForestClassifier(bootstrap=False, **OPTIONS).fit(X, y).estimators_
    assert len({tree.weights.tobytes() for tree in trees}) == 6


@pytest.mark.parametrize("fraction", [1.0, 0.7, 0.3, 1e-9])
def test_so_many_rows_are_drawn(fraction, iris):
    X, y = iris
    n_rows = len(np.unique(np.column_stack([X, y]), axis=0))
    draws = max(1, round(fraction * n_rows))
    expected = n_rows * (1 - (1 - 1 / n_rows) ** draws)
    seen = rows_per_tree(X, y, sample_fraction=fraction)
    assert np.mean(seen) == pytest.approx(expected, rel=0.1)


def rows_per_tree(X, y, **options):
    """Count what reaches a loss in the only pass of each tree."""
    seen = {}

    def gradient(scores, index):
        seen.setdefault("rows", []).append(len(index))
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True) - np.eye(3)[index[:, 0].astype(int)]

    n_trees = 8
    DGTForestClassifier(
        n_estimators=n_trees,
        loss=gradient,
        max_epochs=1,
        batch_size=1000,
        random_state=0,
        **options,
    ).fit(X, y)
    return seen["rows"][-n_trees:]  # before that, the estimator asks once what is returned


def test_every_parameter_of_a_tree_is_one_of_a_forest():
    for Tree, Forest in (
        (DGTClassifier, DGTForestClassifier),
        (DGTRegressor, DGTForestRegressor),
    ):
        of_tree, of_forest = Tree().get_params(), Forest().get_params()
        assert set(of_tree) - set(of_forest) == {"n_restarts"}
        shared = set(of_tree) & set(of_forest)
        assert {name for name in shared if of_tree[name] != of_forest[name]} == {"early_stopping"}
    only_classes = {"class_weight", "combine"}
    assert DGTForestClassifier().get_params().keys() - DGTForestRegressor().get_params().keys() == (
        only_classes
    )


@pytest.mark.parametrize(
    "options",
    [{"leaves": "linear"}, {"layers": [6]}, {"relaxation": Relaxation(path="product")}],
    ids=str,
)
def test_members_are_learned_in_every_way(options, cancer):
    X, y = cancer
    model = DGTForestClassifier(**OPTIONS, **options).fit(X, y)
    assert model.score(X, y) > 0.93


def test_a_forest_may_start_from_a_tree(cancer):
    X, y = cancer
    tree = DGTClassifier(max_depth=3, random_state=0).fit(X, y)
    still = {**OPTIONS, "max_epochs": 1, "learning_rate": 1e-9}
    model = DGTForestClassifier(init=tree, **still).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), tree.predict_proba(X), atol=1e-4)


# Combining


def outputs(tree, X):
    return (
        tree.predict_proba(X) if tree.task != "regression" else tree.predict(X).reshape(len(X), -1)
    )


@pytest.mark.parametrize("task", TASKS)
def test_the_mean_is_over_the_trees(task, tasks):
    forest, X, y = tasks[task]
    model = clone(forest).fit(X, y)
    mean = np.mean([outputs(tree, X) for tree in model.estimators_], axis=0)
    if "number" in task:
        np.testing.assert_allclose(model.predict(X).reshape(mean.shape), mean, rtol=1e-12)
        return
    np.testing.assert_allclose(model.predict_proba(X), mean, rtol=1e-12)
    chosen = mean >= 0.5 if task == "labels" else model.classes_[mean.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X), chosen)


@pytest.mark.parametrize("task", ["classes", "two classes", "labels"])
def test_votes_are_counted(task, tasks):
    forest, X, y = tasks[task]
    model = clone(forest).set_params(combine="vote").fit(X, y)
    votes = np.zeros_like(model.predict_proba(X))
    for tree in model.estimators_:
        p = tree.predict_proba(X)
        votes += p >= 0.5 if task == "labels" else np.eye(p.shape[1])[p.argmax(axis=1)]
    share = votes / len(model.estimators_)
    np.testing.assert_allclose(model.predict_proba(X), share, rtol=1e-12, atol=1e-300)
    chosen = share >= 0.5 if task == "labels" else model.classes_[share.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X), chosen)
    assert model.forest_.combine == "vote"


@pytest.mark.parametrize("task", TASKS)
def test_answers_are_those_of_the_forest_as_saved_and_as_pickled(task, tasks, tmp_path):
    forest, X, y = tasks[task]
    model = clone(forest).set_params(max_epochs=3).fit(X, y)
    model.save(tmp_path / "m.hardwood")
    loaded = hardwood.load(tmp_path / "m.hardwood")
    copy = pickle.loads(pickle.dumps(model))
    assert loaded == model.forest_ == copy.forest_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_what_a_forest_tells_of_itself(iris):
    X, y = iris
    model = DGTForestClassifier(**OPTIONS).fit(X, y)
    assert model.apply(X).shape == (150, 6)
    for number, tree in enumerate(model.estimators_):
        np.testing.assert_array_equal(model.apply(X)[:, number], tree.apply(X))
        assert tree.counts[0] == 150
    assert model.forest_.record["learner"] == "DGTForestClassifier"
    assert model.forest_.record["parameters"]["max_depth"] == 3
    assert model.n_features_in_ == 4
    assert not hasattr(model, "oob_score_")
    with pytest.raises(NotFittedError):
        DGTForestClassifier().estimators_  # noqa: B018  # the access is what is tested


# Passes


def test_history_and_callbacks_tell_every_tree(iris):
    seen = []
    model = DGTForestClassifier(callbacks=seen.append, **OPTIONS).fit(*iris)
    expected = [(tree, epoch) for tree in range(6) for epoch in range(15)]
    assert [(e.restart, e.epoch) for e in model.history_] == expected
    assert list(map(repr, seen)) == history(model)
    assert model.n_iter_ == 15


def test_a_callback_ends_one_tree(iris):
    model = DGTForestClassifier(
        callbacks=lambda e: e.restart == 2 and e.epoch == 4, n_jobs=2, **OPTIONS
    ).fit(*iris)
    passes = [sum(e.restart == tree for e in model.history_) for tree in range(6)]
    assert passes == [15, 15, 5, 15, 15, 15]
    assert model.n_iter_ == 15


def test_early_stopping_watches_one_validation_part(cancer):
    model = DGTForestClassifier(early_stopping=True, **{**OPTIONS, "max_epochs": 60}).fit(*cancer)
    records = [tree.record for tree in model.estimators_]
    assert {record["validation_rows"] for record in records} == {57}
    for number, record in enumerate(records):
        losses = [e.validation_loss for e in model.history_ if e.restart == number]
        assert record["validation_loss"] == min(losses)
    off = DGTForestClassifier(**OPTIONS).fit(*cancer)
    assert off.estimators_[0].record["validation_rows"] == 0


def test_verbose_speaks_of_trees(iris, capsys):
    DGTForestClassifier(verbose=2, **{**OPTIONS, "n_estimators": 2, "max_epochs": 3}).fit(*iris)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        [f"tree {tree}", f"epoch {epoch}/3"] for tree in range(2) for epoch in (1, 2, 3)
    ]


# Warm starts


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("Forest", [DGTForestClassifier, DGTForestRegressor])
def test_a_forest_that_grew_is_the_one_learned_at_once(Forest, n_jobs, cancer):
    options = {**OPTIONS, "oob_score": True, "n_jobs": n_jobs}
    at_once = Forest(**{**options, "n_estimators": 10}).fit(*cancer)
    grown = Forest(warm_start=True, **options)
    for n_trees in (1, 4, 10):
        grown.set_params(n_estimators=n_trees).fit(*cancer)
        assert grown.forest_.n_trees == n_trees
    assert grown.forest_ == at_once.forest_
    assert history(grown) == history(at_once)
    assert grown.oob_score_ == at_once.oob_score_
    assert grown.n_iter_ == at_once.n_iter_
    np.testing.assert_array_equal(grown.predict(cancer[0]), at_once.predict(cancer[0]))


def test_without_a_seed_a_forest_goes_on_with_its_own(iris):
    model = DGTForestClassifier(**{**OPTIONS, "random_state": None, "warm_start": True})
    before = model.fit(*iris).forest_.trees
    model.set_params(n_estimators=8).fit(*iris)
    assert model.forest_.trees[:6] == before
    assert len({tree.weights.tobytes() for tree in model.forest_.trees}) == 8


def test_a_copy_of_a_fitted_forest_goes_on_alike(iris):
    model = DGTForestClassifier(warm_start=True, **OPTIONS).fit(*iris)
    copy = pickle.loads(pickle.dumps(model))
    assert (
        copy.set_params(n_estimators=8).fit(*iris).forest_
        == model.set_params(n_estimators=8).fit(*iris).forest_
    )


def test_without_a_warm_start_a_fit_begins_anew(iris):
    X, y = iris
    model = DGTForestClassifier(**OPTIONS).fit(X[:100], y[:100])
    assert model.fit(X, y).forest_ == DGTForestClassifier(**OPTIONS).fit(X, y).forest_


def test_nothing_is_added_to_a_forest_of_that_size(iris):
    model = DGTForestClassifier(warm_start=True, **OPTIONS).fit(*iris)
    before = model.forest_
    with pytest.warns(UserWarning, match="none is added"):
        model.fit(*iris)
    assert model.forest_ == before
    with pytest.warns(UserWarning, match="none is added"):
        model.set_params(oob_score=True, combine="vote").fit(*iris)
    assert model.oob_score_ > 0.7
    assert model.forest_.combine == "vote"
    assert model.forest_.trees == before.trees


def test_a_warm_start_needs_the_same_table(iris):
    X, y = iris
    model = DGTForestClassifier(warm_start=True, **OPTIONS).fit(X, y)
    before = model.forest_
    model.set_params(n_estimators=8, callbacks=lambda epoch: pytest.fail("learning began"))
    for table, target in ((X[:, :3], y), (X[:100], y[:100]), (X, y + 1), (X, y == 1)):
        with pytest.raises(ValueError, match="warm_start=True needs the same table"):
            model.fit(table, target)
    with pytest.raises(ValueError, match="must not be less than the 6 there are"):
        model.set_params(n_estimators=3).fit(X, y)
    assert model.forest_ == before
    assert model.n_features_in_ == 4


def test_out_of_bag_needs_to_know_what_earlier_trees_saw(iris):
    model = DGTForestClassifier(warm_start=True, sample_fraction=0.5, **OPTIONS).fit(*iris)
    model.set_params(n_estimators=8, sample_fraction=0.8, oob_score=True)
    with pytest.raises(ValueError, match="all trees to draw from the same rows"):
        model.fit(*iris)
    model.set_params(oob_score=False).fit(*iris)
    assert model.forest_.n_trees == 8
    with pytest.raises(ValueError, match="all trees to draw from the same rows"):
        model.set_params(n_estimators=9, oob_score=True).fit(*iris)


# What goes wrong


def test_ctrl_c_keeps_the_trees_there_are(cancer):
    X, y = cancer
    begun = threading.Event()

    def press_ctrl_c():
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    options = {**OPTIONS, "n_estimators": 2000, "max_epochs": 40, "n_jobs": 2}

    def on_epoch(epoch):
        if epoch.epoch == 39:  # the first tree is there
            begun.set()

    model = DGTForestClassifier(callbacks=on_epoch, warm_start=True, **options)
    thread = threading.Thread(target=press_ctrl_c)
    thread.start()
    with pytest.warns(FitInterruptedWarning, match="the trees are kept as they are"):
        model.fit(X, y)
    thread.join()
    n_trees = model.forest_.n_trees
    assert 1 <= n_trees < 2000
    assert all(tree.record["passes"] >= 1 for tree in model.estimators_)
    assert model.score(X, y) > 0.9
    more = model.set_params(n_estimators=n_trees + 2, callbacks=None).fit(X, y)
    assert more.forest_.n_trees == n_trees + 2


def test_ctrl_c_in_the_first_pass_leaves_one_tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 20)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    calls = []

    def slow(scores, index):
        calls.append(len(index))
        if len(calls) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        p = 1 / (1 + np.exp(scores[:, :1] - scores[:, 1:]))
        return np.hstack([index - p, p - index])

    model = DGTForestClassifier(n_estimators=5, max_depth=2, loss=slow, random_state=0)
    with pytest.warns(FitInterruptedWarning):
        model.fit(X, y)
    assert model.forest_.n_trees == 1
    assert len(calls) < 1000
    assert model.predict(X[:10]).shape == (10,)


def test_a_loss_that_fails_leaves_the_earlier_forest(diabetes):
    X, y = diabetes
    model = DGTForestRegressor(oob_score=True, **OPTIONS).fit(X, y)
    before, score = model.forest_, model.oob_score_
    n_calls = []

    def fails(prediction, target):
        n_calls.append(1)
        if len(n_calls) > 50:
            raise ZeroDivisionError("mine")
        return prediction - target

    with pytest.raises(ZeroDivisionError, match="mine"):
        model.set_params(loss=fails, n_jobs=2).fit(X[:, :5], y)
    assert model.forest_ == before
    assert model.oob_score_ == score
    assert model.n_features_in_ == 10
    assert model.predict(X).shape == (442,)


def test_an_error_in_a_callback_comes_through(iris):
    def fail(epoch):
        if epoch.restart == 3:
            raise RuntimeError("enough")

    model = DGTForestClassifier(callbacks=fail, n_jobs=2, **OPTIONS)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(*iris)
    assert not hasattr(model, "forest_")


def test_two_rows_make_a_forest_and_one_does_not():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    model = DGTForestClassifier(**{**OPTIONS, "n_estimators": 20, "max_epochs": 50}).fit(X, y)
    assert model.predict_proba(X).shape == (2, 2)
    assert model.predict(X).tolist() == [0, 1]
    with pytest.raises(ValueError, match="n_samples=1"):
        DGTForestRegressor(**OPTIONS).fit(X[:1], y[:1])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n_estimators", [0, -1, 2.0, "30", None, True, 10**9]),
        ("bootstrap", ["yes", 1, None]),
        ("sample_fraction", [0.0, -0.5, 1.5, np.nan, "half", None]),
        ("combine", ["median", None, 1]),
        ("oob_score", ["yes", 1, None]),
        ("warm_start", ["yes", 1, None]),
        ("layers", [0, "3"]),
        ("leaves", ["quadratic"]),
    ],
)
def test_parameters_out_of_range_are_named(name, values, iris):
    for value in values:
        with pytest.raises(ValueError, match=name):
            DGTForestClassifier(**{**OPTIONS, name: value}).fit(*iris)


def test_a_part_of_rows_that_are_not_drawn_is_refused(iris):
    for kind in (DGTForestClassifier, DGTForestRegressor):
        with pytest.raises(ValueError, match="sample_fraction=0.5 needs bootstrap=True"):
            kind(**{**OPTIONS, "bootstrap": False, "sample_fraction": 0.5}).fit(*iris)
        kind(**{**OPTIONS, "bootstrap": False, "sample_fraction": 1}).fit(*iris)


def test_a_single_row_out_of_the_bag_has_no_r_squared():
    """Four distinct rows: some seeds leave one of them out of the bags, others two or more."""
    X, y = np.array([[1, 3], [2, 1], [3, 3], [4, 1]] * 4), np.array([1.0, 2.0, 1.0, 2.0] * 4)
    options = {"n_estimators": 3, "max_depth": 1, "max_epochs": 1, "oob_score": True}
    n_known, scores = [], []
    for seed in range(60):
        model = DGTForestRegressor(**options, random_state=seed).fit(X, y)
        n_known.append(len(np.unique(X[~np.isnan(model.oob_prediction_)], axis=0)))
        scores.append(model.oob_score_)
    assert 1 in n_known
    assert np.array_equal(np.isnan(scores), np.array(n_known) == 1)


def test_memory_does_not_grow_with_the_number_of_trees():
    X = np.random.default_rng(0).normal(size=(20_000, 20)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)

    def peak(n_trees):
        model = DGTForestClassifier(
            n_estimators=n_trees, max_depth=2, max_epochs=1, oob_score=True, random_state=0
        )
        tracemalloc.start()
        model.fit(X, y)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    few, many = peak(10), peak(30)
    assert many < 1.1 * few
    assert many < 3 * X.nbytes
