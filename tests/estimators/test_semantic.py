"""Trees by semantic logits: kinds of leaves, starts, noise, and forests of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

from hardwood import (
    DGTRegressor,
    GreedyTreeClassifier,
    SemanticTreeClassifier,
    SemanticTreeRegressor,
    refine,
)
from hardwood.learn.bagging import Bagging
from hardwood.learn.learner import Run
from hardwood.learn.semantic import Semantic, classes_of_start
from hardwood.learn.task import Task

ONCE = {"early_stopping": False, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def task_of(X, y, learner):
    return Task.read(X, y, classifies=True, loss=learner.default_loss)


# Leaves


def test_it_learns_the_digits(digits):
    X, y = digits
    model = SemanticTreeClassifier(max_depth=6, max_epochs=60, **ONCE).fit(X[::2], y[::2])
    assert model.score(X[::2], y[::2]) > 0.98
    assert model.score(X[1::2], y[1::2]) > 0.88


@pytest.mark.parametrize("leaves", ["dealt", "constant", "linear"])
def test_every_kind_of_leaf_learns_classes(leaves, iris, cancer):
    for X, y in (iris, cancer):
        model = SemanticTreeClassifier(max_depth=2, leaves=leaves, max_epochs=200, **ONCE)
        assert model.fit(X, y).score(X, y) > 0.94
        assert model.tree_.has_linear_leaves == (leaves == "linear")


@pytest.mark.parametrize("n_mixed", [1, 2, 3])
@pytest.mark.parametrize("leaves", ["constant", "linear"])
def test_every_mixture_learns_numbers(leaves, n_mixed, diabetes):
    model = SemanticTreeRegressor(max_depth=2, leaves=leaves, n_mixed=n_mixed, **ONCE)
    model.fit(*diabetes)
    assert model.score(*diabetes) > 0.3
    assert ("hardening_loss" in model.tree_.record) == (n_mixed > 1)


def test_auto_deals_leaves_where_each_row_has_one_class(iris):
    options = {"max_depth": 3, "max_epochs": 10, **ONCE}
    found = {
        leaves: SemanticTreeClassifier(leaves=leaves, **options).fit(*iris).tree_
        for leaves in ("auto", "dealt", "constant")
    }
    np.testing.assert_array_equal(found["auto"].weights, found["dealt"].weights)
    assert not np.array_equal(found["auto"].weights, found["constant"].weights)


@pytest.mark.parametrize("options", [{"loss": "hinge"}, {"max_depth": 1}])
def test_auto_learns_values_where_leaves_cannot_be_dealt(options, iris):
    options = {"max_depth": 3, "max_epochs": 10, **ONCE} | options
    auto = SemanticTreeClassifier(**options).fit(*iris).tree_
    constant = SemanticTreeClassifier(leaves="constant", **options).fit(*iris).tree_
    np.testing.assert_array_equal(auto.weights, constant.weights)
    np.testing.assert_array_equal(auto.values, constant.values)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SemanticTreeClassifier(leaves="dealt", max_depth=1), "max_depth=1 has 2 leaves for 3"),
        (SemanticTreeClassifier(leaves="dealt", loss="hinge"), "loss='log_loss'; found"),
        (SemanticTreeRegressor(leaves="dealt"), "found regression"),
    ],
)
def test_leaves_that_cannot_be_dealt(model, message, iris):
    with pytest.raises(ValueError, match=message):
        model.fit(*iris)


def test_probabilities_of_a_leaf_are_frequencies_of_its_training_rows(digits):
    X, y = digits
    model = SemanticTreeClassifier(max_depth=4, max_epochs=5, **ONCE).fit(X, y)
    leaf, shares = model.tree_.apply(X), np.bincount(y) / len(y)
    for each in np.unique(leaf):
        counts, values = np.bincount(y[leaf == each], minlength=10), model.tree_.values[each]
        prior = values * (counts.sum() + 1) - counts  # one row: half its class, half like all
        own = int((prior - 0.5 * shares).argmax())
        np.testing.assert_allclose(prior, 0.5 * (shares + (np.arange(10) == own)), atol=1e-6)


# Starts


def greedy(X, y, max_depth=3):
    return GreedyTreeClassifier(max_depth=max_depth, random_state=0).fit(X, y)


@pytest.mark.parametrize(("max_depth", "layers"), [(3, 1), (5, 1), (5, [80])])
def test_a_start_keeps_its_splits_and_classes(max_depth, layers, digits):
    X, y = digits
    start = greedy(X, y)
    model = SemanticTreeClassifier(
        max_depth=max_depth, init=start, layers=layers, max_epochs=1, learning_rate=1e-9, **ONCE
    )
    np.testing.assert_array_equal(model.fit(X, y).predict(X), start.predict(X))


def test_learning_goes_on_from_a_start(digits):
    X, y = digits
    start = greedy(X, y, max_depth=5)
    model = SemanticTreeClassifier(max_depth=6, init=start, max_epochs=30, **ONCE).fit(X, y)
    assert model.score(X, y) > max(0.97, start.score(X, y) + 0.1)


@pytest.mark.parametrize("max_depth", [2, 3, 6])
def test_every_class_has_a_leaf_of_a_start(max_depth, digits):
    X, y = digits
    tree = greedy(X, np.minimum(y, 3), max_depth=2).tree_.to_perfect(max_depth)
    kept = tree.values.argmax(axis=1)
    found = classes_of_start(tree, 4)
    assert set(found) == {0, 1, 2, 3}
    reached = np.unique(tree.apply(X))
    if max_depth > 2:
        np.testing.assert_array_equal(found[reached], kept[reached])


def test_a_class_without_a_leaf_takes_the_least_sure_one(iris):
    X, y = iris
    tree = greedy(X, y, max_depth=2).tree_.to_perfect(2)
    values = np.array([[0.6, 0.4, 0], [0.9, 0.1, 0], [0.7, 0.3, 0], [0, 1.0, 0]])
    found = classes_of_start(tree.replace(values=values[: len(tree.values)]), 3)
    assert (found == 2).any()


def test_a_start_with_linear_leaves(diabetes):
    X, y = diabetes
    start = DGTRegressor(max_depth=2, leaves="linear", max_epochs=20, **ONCE).fit(X, y)
    options = {"max_depth": 2, "init": start, "max_epochs": 1, "learning_rate": 1e-9, "n_mixed": 1}
    again = SemanticTreeRegressor(leaves="linear", **options, **ONCE).fit(X, y)
    np.testing.assert_allclose(again.predict(X), start.predict(X), rtol=1e-4)
    with pytest.raises(ValueError, match="leaves='linear'"):
        SemanticTreeRegressor(**options).fit(X, y)


def test_it_refines_trees_with_linear_leaves(diabetes):
    X, y = diabetes
    start = DGTRegressor(max_depth=1, leaves="linear", max_epochs=5, **ONCE).fit(X, y)
    learner = Semantic(max_depth=1, leaves="linear", max_epochs=5, early_stopping=False)
    refined = refine(start, X, y, learners=[learner], random_state=0)
    assert len(refined.stages) == 2
    assert refined.stages[1].tree.has_linear_leaves


# Noise


def test_noise_is_gaussian_and_of_its_size(diabetes):
    """A linear leaf passes the noise on: its predictions deviate by noise times its weights."""
    X, y = diabetes
    start = DGTRegressor(max_depth=1, leaves="linear", max_epochs=20, **ONCE).fit(X, y).tree_
    clean, noise, seen = start.predict(X), 0.1, []

    def record(prediction, target):
        seen.append((prediction[:, 0].copy(), target[:, 0].copy()))
        return np.zeros_like(prediction)

    options = {"max_depth": 1, "init": start, "leaves": "linear", "n_mixed": 1, "max_epochs": 200}
    model = SemanticTreeRegressor(noise=noise, loss=record, **options, **ONCE).fit(X, y)
    # rows that stay in their leaf whatever the noise
    tree = model.tree_
    predictions, targets = (np.concatenate(part) for part in zip(*seen, strict=True))
    of_target = {}
    for row, target in enumerate(y):
        of_target.setdefault(target, []).append(row)
    single = {np.float32(t): rows[0] for t, rows in of_target.items() if len(rows) == 1}
    margin = np.abs(X @ tree.weights[0] + tree.bias[0])
    size = noise * np.linalg.norm(tree.weights[0] * tree.schema.column_scale)
    deviations = []
    leaf = tree.apply(X)
    for prediction, target in zip(predictions, targets, strict=True):
        row = single.get(np.float32(target))
        if row is None or margin[row] < 6 * size:
            continue
        weights = tree.leaf_weights[leaf[row], 0] * tree.schema.column_scale
        deviations.append((prediction - clean[row]) / (noise * np.linalg.norm(weights)))
    deviations = np.array(deviations)
    assert len(deviations) > 2000
    assert abs(deviations.mean()) < 0.08
    assert deviations.std() == pytest.approx(1.0, abs=0.06)
    assert (deviations**4).mean() == pytest.approx(3.0, abs=0.5)


def test_noise_changes_learning_and_not_predictions(iris):
    options = {"max_depth": 2, "max_epochs": 10, "n_restarts": 2, **ONCE}
    plain, first, again = (
        SemanticTreeClassifier(noise=noise, n_jobs=n_jobs, **options).fit(*iris)
        for noise, n_jobs in ((0.0, 1), (0.3, 1), (0.3, 2))
    )
    assert not np.array_equal(plain.tree_.weights, first.tree_.weights)
    np.testing.assert_array_equal(first.tree_.weights, again.tree_.weights)
    np.testing.assert_array_equal(first.predict(iris[0]), first.predict(iris[0]))


def test_a_custom_loss_sees_the_rows_of_the_step(diabetes):
    """A squared error from outside learns the same tree from the same noise."""

    def squares(prediction, target):
        return (prediction - target)[:, 0] ** 2, 2 * (prediction - target)

    X, y = diabetes
    y = (y - y.mean()) / y.std()
    options = {"max_depth": 2, "noise": 0.2, "max_epochs": 3, "n_mixed": 1, **ONCE}
    inside, outside = (
        SemanticTreeRegressor(loss=loss, **options).fit(X, y).tree_
        for loss in ("squared_error", squares)
    )
    np.testing.assert_allclose(inside.weights, outside.weights, rtol=1e-3, atol=1e-4)


# Forests


def test_members_of_a_forest_count_only_their_own_rows(iris):
    learner = Semantic(max_depth=2, max_epochs=5, early_stopping=False)
    forest, run = Bagging(learner, n_estimators=3), Run(seed=3)
    task = task_of(*iris, learner)
    learned = forest.fit(task, run)
    for number, member in enumerate(learned.members):
        tree = member.model
        drawn = task.weight[task.train] * forest.drawn(len(task.train), run.seed, number)
        leaf, y = tree.apply(iris[0][task.train]), iris[1][task.train].astype(int)
        for each in np.unique(leaf):
            own = np.bincount(y[leaf == each], drawn[leaf == each], minlength=3)
            prior = tree.values[each] * (own.sum() + 1) - own
            assert prior.min() > -1e-5
            assert prior.sum() == pytest.approx(1.0)
