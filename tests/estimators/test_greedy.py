"""Greedy trees for scikit-learn: its checks, weights, tables, starts, bad input."""

from __future__ import annotations

import signal
import threading
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import hardwood
from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    DGTForestRegressor,
    DGTRegressor,
    GreedyTreeClassifier,
    GreedyTreeRegressor,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
    TELClassifier,
    _native,
)
from hardwood.errors import FitInterruptedWarning
from hardwood.learn import Quantile, Relaxation
from hardwood.learn.greedy import Greedy
from hardwood.learn.learner import Run
from hardwood.learn.losses import CrossEntropy, LabelwiseLogistic, SquaredError
from hardwood.learn.task import Task
from hardwood.table import Table

SPLITS = ("axis", "random", "oc1", "co2")
QUICK = {"n_candidates": 8, "n_split_restarts": 2, "n_jumps": 2, "max_sweeps": 3, "max_epochs": 4}
each_split = pytest.mark.parametrize("split", SPLITS)
EVERY_WAY = {
    f"{split} of {what}": partial(Estimator, splitter=split, max_depth=4, random_state=3, **QUICK)
    for split in SPLITS
    for what, Estimator in (("classes", GreedyTreeClassifier), ("numbers", GreedyTreeRegressor))
}
every_way = pytest.mark.parametrize("Estimator", EVERY_WAY.values(), ids=EVERY_WAY)


def mixed_table(n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(1e6, 3.0, n).round(1)),
            "small": rng.normal(size=n).round(1),
            "kind": rng.choice(["a", "b", "c", None], n),
        }
    )
    y = ((X["small"] > 0) ^ (X["kind"] == "a")).astype(int).to_numpy()
    return X, y


@every_way
def test_the_order_of_rows_does_not_matter(Estimator):
    X, y = mixed_table()
    weight = np.random.default_rng(1).uniform(0, 2, len(y))
    p = np.random.default_rng(2).permutation(len(y))
    assert Estimator().fit(X, y, weight).tree_ == Estimator().fit(X.iloc[p], y[p], weight[p]).tree_


@pytest.mark.parametrize("form", ["frame", "array", "sparse"])
@every_way
def test_a_weight_is_that_many_rows(Estimator, form):
    X, y = mixed_table()
    if form != "frame":
        X = X[["number", "small"]].to_numpy()
    times = np.random.default_rng(1).integers(0, 4, len(y))
    order = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), times))
    repeated = X.iloc[order] if form == "frame" else X[order]
    if form == "sparse":
        X, repeated = sparse.csr_array(np.nan_to_num(X)), sparse.csr_array(np.nan_to_num(repeated))
    limits = {"min_samples_leaf": 3, "min_samples_split": 9}
    a = Estimator(**limits).fit(X, y, sample_weight=times)
    assert a.tree_ == Estimator(**limits).fit(repeated, y[order]).tree_
    assert min(a.tree_.counts[a.tree_.n_splits :]) >= 3


@every_way
def test_the_number_of_threads_does_not_matter(Estimator):
    X, y = mixed_table()
    assert Estimator(n_jobs=1).fit(X, y).tree_ == Estimator(n_jobs=4).fit(X, y).tree_


@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@pytest.mark.parametrize("max_depth", [3, None])
def test_axis_splits_are_as_good_as_those_of_scikit_learn(criterion, max_depth):
    X, y = load_iris(return_X_y=True)
    ours = GreedyTreeClassifier(criterion=criterion, max_depth=max_depth).fit(X, y)
    options = {"criterion": criterion, "max_depth": max_depth, "random_state": 0}
    theirs = DecisionTreeClassifier(**options).fit(X, y)
    assert ours.score(X, y) == theirs.score(X, y)
    if max_depth is None:
        assert ours.score(X, y) == 1.0


def test_axis_splits_of_numbers_predict_as_those_of_scikit_learn():
    _, y = load_diabetes(return_X_y=True)
    X = np.random.default_rng(0).normal(size=(len(y), 6))  # no ties: they are broken in other ways
    ours = GreedyTreeRegressor(max_depth=4).fit(X, y)
    theirs = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)


def test_a_tree_without_a_limit_learns_its_rows_by_heart():
    X, y = mixed_table()
    y = np.random.default_rng(3).permutation(y) + np.arange(len(y)) % 3
    distinct = X.assign(own=np.arange(len(y)))
    for split in SPLITS:
        model = GreedyTreeRegressor(splitter=split, max_depth=None, **QUICK).fit(distinct, y)
        np.testing.assert_array_equal(model.predict(distinct), y)


def test_missing_entries_go_to_the_better_side():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = (x > 0.3).astype(int)
    is_missing = rng.random(200) < 0.3
    y[is_missing] = 1  # missing is as large
    x[is_missing] = np.nan
    model = GreedyTreeClassifier(max_depth=1).fit(x[:, None], y)
    assert model.score(x[:, None], y) == 1.0
    assert model.predict([[np.nan], [-5.0], [5.0]]).tolist() == [1, 0, 1]


@each_split
def test_tables_of_every_kind(split, tmp_path):
    X, y = mixed_table()
    model = GreedyTreeClassifier(splitter=split, random_state=0, **QUICK).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.tree_.feature_names == ("number", "small", "kind")
    model.save(tmp_path / "tree.hardwood")
    again = hardwood.load(tmp_path / "tree.hardwood")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.record["parameters"]["splitter"] == split


@each_split
def test_several_labels_and_several_numbers(split):
    X, y = load_iris(return_X_y=True)
    labels = np.stack([y == 1, y > 0], axis=1).astype(int)
    several = GreedyTreeClassifier(splitter=split, max_depth=3, random_state=0, **QUICK)
    assert several.fit(X, labels).score(X, labels) > 0.9
    numbers = np.stack([X[:, 0], 1000 * X[:, 1] + y], axis=1)
    model = GreedyTreeRegressor(splitter=split, max_depth=5, random_state=0, **QUICK)
    assert model.fit(X, numbers).score(X, numbers) > 0.9
    assert model.n_outputs_ == 2


def test_class_weights_count():
    X, y = load_iris(return_X_y=True)
    rare = np.r_[:50, 50:100, 100:103]
    X, y = X[rare, :1], y[rare]
    plain = GreedyTreeClassifier(max_depth=2).fit(X, y)
    balanced = GreedyTreeClassifier(max_depth=2, class_weight="balanced").fit(X, y)
    assert (balanced.predict(X) == 2).sum() > (plain.predict(X) == 2).sum()


@each_split
def test_leaves_have_their_part_of_the_weight(split):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0, 3, len(y))
    options = {"splitter": split, "max_depth": 5, "min_weight_fraction_leaf": 0.1}
    tree = GreedyTreeClassifier(**options, **QUICK).fit(X, y, weight).tree_
    assert tree.n_leaves > 2
    assert tree.counts[tree.n_splits :].min() >= 0.1 * weight.sum()


def test_the_same_seed_gives_the_same_tree_and_another_one_another():
    X, y = load_diabetes(return_X_y=True)
    for split in ("random", "oc1"):
        grow = partial(GreedyTreeRegressor, splitter=split, max_depth=3, **QUICK)
        a, b, c = (grow(random_state=s).fit(X, y).tree_ for s in (0, 0, 1))
        assert a == b != c


@pytest.mark.parametrize(
    ("Estimator", "options"),
    [
        (DGTClassifier, {}),
        (DGTClassifier, {"leaves": "linear"}),
        (DGTClassifier, {"relaxation": Relaxation(path="product")}),
        (DGTRegressor, {}),
        (DGTRegressor, {"loss": "poisson"}),
        (DGTRegressor, {"loss": Quantile(0.8)}),
        (DGTForestRegressor, {"n_estimators": 2}),
    ],
)
@each_split
def test_learners_start_from_greedy_trees(Estimator, options, split):
    X, y = load_iris(return_X_y=True)
    still = {"max_epochs": 1, "learning_rate": 1e-12, "early_stopping": False, "max_depth": 3}
    model = Estimator(init=split, random_state=0, n_jobs=2, **still, **options).fit(X, y)
    assert model.score(X, y) > 0.85
    again = Estimator(init=split, random_state=0, n_jobs=1, **still, **options).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_several_labels_start_from_a_greedy_tree():
    X, y = load_iris(return_X_y=True)
    labels = np.stack([y == 1, y > 0], axis=1).astype(int)
    model = DGTClassifier(max_depth=3, init="axis", max_epochs=1, learning_rate=1e-12)
    assert model.fit(X, labels).score(X, labels) > 0.9


def test_an_own_loss_starts_from_a_greedy_tree():
    X, y = load_iris(return_X_y=True)

    def squared(prediction, target):
        return ((prediction - target) ** 2).sum(axis=1), 2 * (prediction - target)

    model = DGTRegressor(loss=squared, init="axis", max_epochs=1, learning_rate=1e-12, max_depth=3)
    assert model.fit(X, y).score(X, y) > 0.85


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("splitter", ["cart", 3, None]),
        ("criterion", ["variance", "mse", 1]),
        ("max_depth", [0, -1, 2.5, "deep"]),
        ("min_samples_split", [1, -2, "two", np.nan]),
        ("min_samples_leaf", [0, -2, np.inf]),
        ("min_weight_fraction_leaf", [-0.1, 0.6]),
        ("min_impurity_decrease", [-0.1, np.nan]),
        ("n_candidates", [0, 2**20, 1.5]),
        ("n_split_restarts", [0]),
        ("n_jumps", [-1]),
        ("n_coordinates", [0]),
        ("max_sweeps", [0]),
        ("nu", [0, -1.0, 1e-300, 1e300]),
        ("learning_rate", [0, np.inf]),
        ("momentum", [1.0, -0.1]),
        ("batch_size", [0]),
        ("max_epochs", [0]),
        ("n_jobs", [0, 1.5]),
    ],
)
def test_parameters_out_of_range_are_named_and_nothing_changes(name, values):
    X, y = load_iris(return_X_y=True)
    model = GreedyTreeClassifier(max_depth=2).fit(X, y)
    before = model.tree_
    for value in values:
        with pytest.raises(ValueError, match=name):
            model.set_params(**{name: value}).fit(X, y)
    assert model.tree_ is before


def test_a_start_that_is_unknown_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="'co2'"):
        DGTClassifier(init="cart").fit(X, y)


def test_huge_weights_and_targets_do_no_harm():
    X, y = load_diabetes(return_X_y=True)
    weight = 10.0 ** np.random.default_rng(0).uniform(-200, 200, len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GreedyTreeRegressor(max_depth=3).fit(X, 1e150 * y, sample_weight=weight)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    "Estimator", [GreedyTreeRegressor, NonGreedyTreeRegressor, partial(DGTRegressor, init="axis")]
)
def test_a_weight_beside_which_no_other_counts_is_named(Estimator):
    X, y = load_diabetes(return_X_y=True)
    weight = np.ones(len(y))
    weight[y.argmin()] = 1e200
    with pytest.raises(ValueError, match=r"A weight below 1\.2e-38 times the largest counts as 0"):
        Estimator().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("init", "advice"),
    [
        (DecisionTreeClassifier(max_depth=2), "hardwood.from_sklearn"),
        (DGTForestClassifier(n_estimators=2, max_epochs=1), "init.estimators_"),
        (GreedyTreeClassifier(), "It is not fitted"),
        (TELClassifier(max_epochs=1), r"max_epochs=1\)\.$"),
    ],
)
def test_a_start_that_is_no_tree_of_ours_is_refused_with_advice(init, advice):
    X, y = load_iris(return_X_y=True)
    if not isinstance(init, GreedyTreeClassifier):
        init.fit(X, y)
    for Estimator in (DGTClassifier, NonGreedyTreeClassifier):
        with pytest.raises(TypeError, match=advice):
            Estimator(init=init).fit(X, y)


@each_split
def test_an_interrupt_keeps_the_tree_so_far(split, monkeypatch):
    rng = np.random.default_rng(0)
    # Growing lasts for many times the wait, however fast the machine is.
    n, p = (8000, 600) if split == "axis" else (4000, 40)
    X, y = rng.normal(size=(n, p)), rng.integers(0, 5, n)
    slow = {"n_candidates": 5000, "n_split_restarts": 500, "max_sweeps": 500, "max_epochs": 100_000}
    grow = _native.fit_greedy
    timers = []

    def grow_interrupted(*arguments, **options):
        timers.append(threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]))
        timers[0].start()
        return grow(*arguments, **options)

    monkeypatch.setattr(_native, "fit_greedy", grow_interrupted)
    model = GreedyTreeClassifier(splitter=split, max_depth=None, random_state=0, **slow)
    with pytest.warns(FitInterruptedWarning, match="the tree so far is kept"):
        model.fit(X, y)
    timers[0].join()
    assert model.score(X, y) < 1.0  # it would overfit to 1.0 if it went on
    assert model.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("n_columns", [2, 40])
def test_a_smaller_norm_is_tried_where_co2_finds_nothing(n_columns):
    """One split: what "auto" gains is never less than with the first norm alone."""
    rng = np.random.default_rng(n_columns)
    X = rng.integers(0, 3, size=(600, n_columns)).astype(np.float64)
    y = X.sum(axis=1) + rng.normal(size=600) > n_columns
    lost = {}
    for nu in ("auto", 10.0, 0.1):
        model = GreedyTreeClassifier(splitter="co2", nu=nu, max_depth=1, random_state=0).fit(X, y)
        shares = model.predict_proba(X)[np.arange(600), y.astype(int)]
        lost[nu] = -np.log(shares).mean()
    assert lost["auto"] in (lost[10.0], lost[0.1])
    assert lost["auto"] <= lost[10.0]


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("splitter", ["axis", "random"])
def test_a_start_tree_has_the_leaves_of_the_greedy_tree_bit_for_bit(rng, kind, splitter):
    X, weight = rng.normal(size=(200, 3)), rng.random(200)
    y, loss, classes = {
        "classification": (rng.integers(3, size=(200, 1)), CrossEntropy(), np.arange(3)),
        "multilabel": (rng.integers(2, size=(200, 2)), LabelwiseLogistic(), np.arange(2)),
        "regression": (1e6 + rng.normal(size=(200, 1)), SquaredError(), None),
    }[kind]
    table, target = Table.of(X), y.astype(float)
    task = Task.of(table, target, weight, kind=kind, loss=loss, classes=classes)
    learner, run = Greedy(splitter=splitter, max_depth=4), Run(seed=0)
    start, fitted = learner.start_tree(task, run), learner.fit(task, run).model
    assert start.n_leaves > 4
    np.testing.assert_array_equal(start.children, fitted.children)
    np.testing.assert_array_equal(start.values, fitted.values)


def test_the_largest_targets_have_a_mean():
    X = np.arange(8.0)[:, None]
    y = np.where(X[:, 0] < 4, -1e308, 1e308)
    tree = GreedyTreeRegressor(max_depth=1).fit(X, y).tree_
    assert sorted(tree.values[:, 0].tolist()) == [-1e308, 1e308]
