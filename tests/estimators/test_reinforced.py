"""Estimators of reinforced trees: what is theirs alone, and scikit-learn's own checks."""

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
    LatentTreeClassifier,
    NonGreedyTreeClassifier,
    ObliqueTree,
    ReinforcedTreeClassifier,
    ReinforcedTreeRegressor,
    TAOClassifier,
    TELClassifier,
)
from hardwood.learn.losses import Misclassification
from hardwood.learn.reinforced import perfect_parents
from hardwood.model import PolicyTree

QUICK = {"max_depth": 4, "max_epochs": 30, "random_state": 0}
THREE_WAYS = perfect_parents(3, 3)


@pytest.fixture(scope="module")
def digits():
    return train_test_split(*load_digits(return_X_y=True), random_state=0)


@pytest.mark.parametrize("options", [{}, {"gradient": "sampled"}, {"parents": THREE_WAYS}])
def test_a_model_is_a_tree_that_predicts_saves_and_loads(digits, tmp_path, options):
    X, test_X, y, test_y = digits
    model = ReinforcedTreeClassifier(max_depth=5, max_epochs=60, random_state=0, **options)
    model.fit(X, y)
    assert model.score(test_X, test_y) > (0.85 if "parents" in options else 0.9)
    assert isinstance(model.tree_, PolicyTree if "parents" in options else ObliqueTree)
    model.save(tmp_path / "tree.hardwood")
    loaded = hardwood.load(tmp_path / "tree.hardwood")
    assert loaded == model.tree_
    np.testing.assert_array_equal(loaded.predict_proba(test_X), model.predict_proba(test_X))


def test_the_hard_tree_goes_the_greedy_path_of_the_policy(digits):
    X, test_X, y, _ = digits
    model = ReinforcedTreeClassifier(**QUICK).fit(X, y)
    greedy = model.policy_.predict_proba(test_X)
    np.testing.assert_allclose(model.predict_proba(test_X), greedy, atol=1e-12)
    assert model.policy_.counts[0] == len(X) == model.tree_.counts[0]


def test_both_paths_are_offered(digits):
    X, test_X, y, _ = digits
    soft = ReinforcedTreeClassifier(**QUICK | {"max_epochs": 3}, temperature=5.0).fit(X, y)
    p = soft.policy_.leaf_probabilities(test_X)
    likeliest = soft.policy_.values[p.argmax(axis=1)]
    np.testing.assert_allclose(soft.predict_proba(test_X, path="most_probable"), likeliest)
    classes = soft.classes_[likeliest.argmax(axis=1)]
    np.testing.assert_array_equal(soft.predict(test_X, path="most_probable"), classes)
    assert (soft.apply(test_X) >= 0).all()
    assert (p.argmax(axis=1) != soft.policy_.apply(test_X)).any()
    with pytest.raises(ValueError, match="path must be one of"):
        soft.predict(test_X, path="shortest")


def test_of_a_policy_that_is_sure_both_paths_are_one(digits):
    X, test_X, y, _ = digits
    model = ReinforcedTreeClassifier(**QUICK).fit(X, y)
    sure = model.policy_.replace(weights=1e4 * model.policy_.weights, bias=1e4 * model.policy_.bias)
    np.testing.assert_array_equal(
        sure.apply(test_X, path="greedy"), sure.apply(test_X, path="most_probable")
    )


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "squared_error"])
@pytest.mark.parametrize("gradient", ["exact", "sampled"])
def test_every_loss_of_classes(loss, gradient):
    for X, y in (load_iris(return_X_y=True), load_breast_cancer(return_X_y=True)):
        model = ReinforcedTreeClassifier(
            max_depth=3, loss=loss, gradient=gradient, learning_rate=0.05, random_state=0
        ).fit(X, y)
        assert model.score(X, y) > 0.93
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("loss", ["hinge", "squared_error"])
@pytest.mark.parametrize(
    "Estimator", [DGTClassifier, TELClassifier, NonGreedyTreeClassifier, LatentTreeClassifier]
)
def test_losses_of_coded_classes_are_for_all_classifiers(Estimator, loss):
    if Estimator is LatentTreeClassifier:
        pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)
    model = Estimator(max_depth=3, loss=loss, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("Estimator", [ReinforcedTreeClassifier, DGTClassifier, TELClassifier])
def test_a_loss_without_a_gradient_is_refused(Estimator):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="no gradient to descend on. TAOClassifier takes it"):
        Estimator(loss=Misclassification()).fit(X, y)
    TAOClassifier(max_depth=2, loss=Misclassification(), max_sweeps=1).fit(X, y)


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson"]
)
def test_every_loss_of_numbers(loss):
    X, y = load_diabetes(return_X_y=True)
    model = ReinforcedTreeRegressor(max_depth=3, loss=loss, learning_rate=0.05, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.35


def test_several_targets_and_several_labels():
    X, y = load_diabetes(return_X_y=True)
    both = np.column_stack([y, -3 * y + 7])
    model = ReinforcedTreeRegressor(max_depth=3, learning_rate=0.05, random_state=0).fit(X, both)
    assert model.predict(X).shape == model.predict(X, path="most_probable").shape == both.shape
    np.testing.assert_allclose(model.predict(X)[:, 1], -3 * model.predict(X)[:, 0] + 7, rtol=0.05)
    labels = both > both.mean(axis=0)
    model = ReinforcedTreeClassifier(max_depth=3, learning_rate=0.05, random_state=0)
    model.fit(X, labels)
    assert (model.predict(X) == labels).mean() > 0.7
    assert (model.predict(X, path="most_probable") == labels).mean() > 0.7


def test_neither_threads_nor_the_order_of_rows_change_a_bit(digits):
    X, _, y, _ = digits
    order = np.random.default_rng(0).permutation(len(X))
    for gradient in ("exact", "sampled"):
        options = {**QUICK, "max_epochs": 5, "gradient": gradient}
        one = ReinforcedTreeClassifier(**options).fit(X, y)
        threads = ReinforcedTreeClassifier(**options, n_jobs=3).fit(X, y)
        moved = ReinforcedTreeClassifier(**options).fit(X[order], y[order])
        assert one.tree_ == threads.tree_ == moved.tree_
        assert one.policy_ == threads.policy_ == moved.policy_


@pytest.mark.parametrize("gradient", ["exact", "sampled"])
def test_weight_two_is_the_row_twice(gradient):
    X, y = load_iris(return_X_y=True)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2, 1)
    options = {**QUICK, "max_epochs": 5, "gradient": gradient}
    weighted = ReinforcedTreeClassifier(**options).fit(X, y, sample_weight=weight)
    repeated = ReinforcedTreeClassifier(**options).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    assert weighted.policy_ == repeated.policy_


def test_tables_with_levels_and_gaps():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "kind": rng.choice(list("abcdef"), 400),
            "gaps": np.where(rng.random(400) < 0.2, np.nan, rng.normal(size=400)),
            "number": rng.normal(size=400),
        }
    )
    y = np.where(X["kind"].isin(["a", "c"]) ^ (X["number"] > 0), "yes", "no")
    for options in ({}, {"parents": THREE_WAYS}):
        model = ReinforcedTreeClassifier(
            max_depth=4, learning_rate=0.05, random_state=0, **options
        ).fit(X, y)
        assert model.score(X, y) > 0.9
        greedy = model.policy_.predict_proba(X)
        np.testing.assert_allclose(model.predict_proba(X), greedy, atol=1e-12)


def test_a_tree_of_another_learner_is_refined(digits):
    X, _, y, _ = digits
    start = GreedyTreeClassifier(max_depth=5, random_state=0).fit(X, y)
    model = ReinforcedTreeClassifier(init=start, max_epochs=30, random_state=0).fit(X, y)
    assert model.score(X, y) > start.score(X, y) + 0.05
    assert model.policy_.n_leaves == start.tree_.n_leaves
    again = ReinforcedTreeClassifier(init="axis", max_depth=5, max_epochs=30, random_state=0)
    assert again.fit(X, y).score(X, y) > start.score(X, y)


def test_one_node_with_a_way_per_class_is_multinomial_regression():
    """Leaves that are sure of a class each, and one policy: what is left is its cross-entropy."""
    X, y = load_iris(return_X_y=True)
    model = ReinforcedTreeClassifier(
        parents=(-1, 0, 0, 0), learning_rate=0.1, max_epochs=400, random_state=0
    ).fit(X, y)
    assert model.policy_.n_splits == 1
    assert model.score(X, y) > 0.95
    assert set(model.policy_.values.argmax(axis=1)) == {0, 1, 2}


def test_restarts_keep_the_best_on_the_validation_part(digits):
    X, _, y, _ = digits
    model = ReinforcedTreeClassifier(
        **QUICK | {"max_epochs": 5}, n_restarts=3, early_stopping=True, n_jobs=2
    ).fit(X, y)
    best = [min(e.validation_loss for e in model.history_ if e.restart == r) for r in range(3)]
    assert model.tree_.record["validation_loss"] == min(best)


def test_learning_can_be_watched_and_stopped():
    X, y = load_iris(return_X_y=True)
    seen = []
    model = ReinforcedTreeClassifier(
        **QUICK, callbacks=lambda epoch: seen.append(epoch) or epoch.epoch == 4
    ).fit(X, y)
    assert [epoch.epoch for epoch in seen] == [0, 1, 2, 3, 4]
    assert model.n_iter_ == 5


def test_an_interrupt_keeps_the_best_tree_so_far():
    X, y = load_iris(return_X_y=True)

    def interrupt(epoch):
        if epoch.epoch == 3:
            raise KeyboardInterrupt

    model = ReinforcedTreeClassifier(**QUICK, callbacks=interrupt)
    with pytest.raises(KeyboardInterrupt):  # from a callback it is the user's own exception
        model.fit(X, y)
    assert not hasattr(model, "tree_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": 17}, "max_depth must be an integer from 1 to 16"),
        ({"n_trajectories": 0}, "n_trajectories must be an integer"),
        ({"gradient": "sampled", "n_trajectories": 1}, "n_trajectories must be at least 2"),
        ({"baseline": "mean"}, "baseline must be one of"),
        ({"gradient": "both"}, "gradient must be one of"),
        ({"entropy_bonus": -1.0}, "entropy_bonus must be a number"),
        ({"temperature": 0.0}, "temperature must be a number"),
        ({"temperature": (1.0, 2.0, 3.0)}, "temperature must be a number or a pair"),
        ({"learning_rate": 0.0}, "learning_rate must be a number"),
        ({"parents": [0, 0]}, r"parents\[0\] must be -1"),
        ({"parents": [-1, 0, 2]}, r"parents\[2\] must be a number from 0 to 1"),
        ({"parents": [-1, 0.5]}, r"parents\[1\] must be a number from 0 to 0"),
        ({"parents": [-1]}, "at least 2 node numbers"),
        ({"parents": [-1, -1]}, r"parents\[1\] must be a number from 0 to 0, got -1"),
        ({"parents": [-1, 0, 3, 2]}, r"parents\[2\] must be a number from 0 to 1, got 3"),
        ({"parents": [-1, 0, 1]}, "at least one node with two or more children"),
        ({"parents": "binary"}, "parents must be None or a sequence"),
        ({"parents": [-1, 0, 0], "init": "axis"}, "both give the topology"),
        ({"init": "best"}, "init must be"),
        ({"loss": lambda f, y: f}, "learn_from_rewards"),
        ({"loss": "poisson"}, "is not a loss for classification"),
        ({"n_restarts": 0}, "n_restarts must be an integer"),
        ({"training": "adam"}, "training must be None"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X, y = load_iris(return_X_y=True)
    model = ReinforcedTreeClassifier(**options)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert not hasattr(model, "tree_")


def test_starts_that_do_not_fit_are_refused():
    X, y = load_iris(return_X_y=True)
    linear = DGTClassifier(max_depth=2, leaves="linear", max_epochs=5).fit(X, y)
    with pytest.raises(ValueError, match="linear leaves"):
        ReinforcedTreeClassifier(init=linear).fit(X, y)
    branches = ReinforcedTreeClassifier(parents=(-1, 0, 0, 0), max_epochs=2).fit(X, y)
    for init in (branches, branches.policy_):
        with pytest.raises(TypeError, match=r"init needs hard trees with two branches .* of 3"):
            DGTClassifier(init=init).fit(X, y)


def test_a_policy_with_two_branches_is_a_start():
    X, y = load_iris(return_X_y=True)
    start = ReinforcedTreeClassifier(max_depth=2, max_epochs=2, random_state=0).fit(X, y)
    given = DGTClassifier(init=start.policy_, max_epochs=2, random_state=0).fit(X, y)
    assert given.tree_ == DGTClassifier(init=start.tree_, max_epochs=2, random_state=0).fit(
        X, y
    ).tree_.replace(record=given.tree_.record)


def test_one_way_alone_decides_nothing():
    """A node with a single child is let through, in a topology that somebody wrote down so."""
    X, y = load_breast_cancer(return_X_y=True)
    model = ReinforcedTreeClassifier(
        parents=(-1, 0, 1, 1), learning_rate=0.05, max_epochs=60, random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.9
