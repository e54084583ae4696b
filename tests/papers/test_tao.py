"""What alternating optimization promises: its objective never rises, whatever is minimized."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.clock import Clock
from hardwood.learn.learner import Learned, Run
from hardwood.learn.leaves.constant import LeafRows, Prior, constant_leaves
from hardwood.learn.leaves.linear import LinearLeaves, linear_leaves
from hardwood.learn.losses import (
    AbsoluteError,
    CrossEntropy,
    Huber,
    LabelwiseLogistic,
    Logistic,
    Misclassification,
    Poisson,
    Quantile,
    SquaredError,
)
from hardwood.learn.tao import TAO, cut
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.table import Table
from native.test_non_greedy import random_children
from reference.losses import LOSSES as VALUES

QUICK = {"l1": 0.1, "l2": 0.0, "max_sweeps": 3}
LOSSES = [
    SquaredError(),
    AbsoluteError(),
    Huber(0.5),
    Quantile(0.8),
    Poisson(),
    Logistic(),
    LabelwiseLogistic(),
    CrossEntropy(),
    Misclassification(),
]
BY_NAME = {type(loss).__name__: loss for loss in LOSSES}
TASKS = {"Logistic": "classification", "LabelwiseLogistic": "multilabel"} | dict.fromkeys(
    ("CrossEntropy", "Misclassification"), "classification"
)


def targets(rng: np.random.Generator, name: str, X: np.ndarray) -> np.ndarray:
    """Something that depends on the columns, with noise."""
    signal = X[:, :2] @ rng.normal(size=(2, 2)) + 0.5 * rng.normal(size=(len(X), 2))
    if name == "Logistic":
        return (signal[:, :1] > 0).astype(np.float64)
    if name in ("CrossEntropy", "Misclassification"):
        return ((signal[:, :1] > 0) + 2.0 * (signal[:, 1:] > 0.5)) % 3
    if name == "LabelwiseLogistic":
        return (signal > 0).astype(np.float64)
    return np.round(np.exp(0.5 * signal)) if name == "Poisson" else signal


def posed(
    seed: int,
    name: str,
    *,
    n: int = 120,
    n_splits: int = 5,
    validation: float = 0.0,
    is_far: bool = False,
):
    """A problem and a random tree of any topology to start from; perhaps with rows far away."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    if is_far:
        X[:, 2] = np.exp(4 * X[:, 2])
    y = targets(rng, name, X)
    loss, kind = BY_NAME[name], TASKS.get(name, "regression")
    n_values = {"Logistic": 2, "CrossEntropy": 3, "Misclassification": 3}.get(name, 2)
    task = Task.of(
        Table.of(X),
        y,
        rng.integers(1, 4, size=n).astype(np.float64),
        kind=kind,
        loss=loss,
        classes=None if kind == "regression" else np.arange(n_values),
    ).divided(validation, seed)
    values = rng.dirichlet(np.ones(n_values), size=n_splits + 1)
    tree = ObliqueTree(
        rng.normal(size=(n_splits, 3)),
        0.5 * rng.normal(size=n_splits),
        random_children(rng, n_splits),
        values,
        schema=task.schema,
        task=kind,
        classes=task.labels,
    )
    return task, tree


def alternate(task: Task, tree: ObliqueTree, learner: TAO, **run) -> Learned:
    """Alternate from a tree of any depth."""
    return replace(learner, max_depth=32).fit(task, Run(**run), tree)


def objective_of(learned: Learned) -> list[float]:
    return learned.facts["objective"]


# Linear leaves are fitted to losses that have a slope.
EVERY_LEAF = [
    (name, leaves)
    for name in BY_NAME
    for leaves in ("constant", "linear")
    if (name, leaves) != ("Misclassification", "linear")
]


@pytest.mark.parametrize(("name", "leaves"), EVERY_LEAF)
@settings(max_examples=8)
@given(
    seed=st.integers(0, 10_000),
    l1=st.sampled_from([0.0, 0.1, 3.0]),
    l2=st.sampled_from([0.0, 1.0]),
    n_splits=st.integers(0, 8),
    order=st.sampled_from(["deepest_first", "root_first"]),
    price=st.sampled_from([0.0, 0.01]),
    most=st.sampled_from([None, 1]),
    leaf_prior=st.sampled_from([0.0, 1.0]),
    leaf_l2=st.sampled_from([0.0, 1.0]),
    is_far=st.booleans(),
)
def test_the_objective_never_rises(
    name, leaves, seed, l1, l2, n_splits, order, price, most, leaf_prior, leaf_l2, is_far
):
    problem, tree = posed(seed, name, n_splits=n_splits, is_far=is_far)
    config = TAO(
        l1=l1,
        l2=l2,
        leaves=leaves,
        order=order,
        l0=price,
        max_features_per_split=most,
        leaf_prior=leaf_prior,
        leaf_l2=leaf_l2,
        max_sweeps=4,
    )
    assert never_rises(objective_of(alternate(problem, tree, config)))


def never_rises(objective: list[float]) -> bool:
    before, after = np.array(objective[:-1]), np.array(objective[1:])
    return bool((after <= before + 1e-5 * np.abs(before) + 1e-6).all())  # what float32 rounds


@pytest.mark.parametrize("seed", [9, 34, 45])
def test_rows_that_would_cost_very_much_do_not_hide_what_others_cost(seed):
    """A linear leaf far from its rows may answer exp(50), which is no row's loss as things are."""
    problem, tree = posed(seed, "Poisson", n_splits=6, is_far=True)
    config = TAO(l1=0.0, l2=0.0, leaves="linear", leaf_l2=0.0, max_sweeps=4)
    for price in (0.0, 0.1):
        found = alternate(problem, tree, replace(config, l0=price))
        assert never_rises(objective_of(found))


@pytest.mark.parametrize("name", BY_NAME)
def test_a_few_sweeps_bring_the_objective_well_down(name):
    problem, tree = posed(0, name, n=300, n_splits=7)
    found = alternate(problem, tree, TAO(l1=0.1, l2=0.0, max_sweeps=10))
    objective = objective_of(found)
    assert objective[-1] < objective[0] - 0.02 * abs(objective[0])
    assert len(found.history) == len(objective) - 1


@pytest.mark.parametrize("name", BY_NAME)
def test_no_other_constant_is_better_for_a_leaf(name):
    """By trying some, close and far."""
    rng = np.random.default_rng(3)
    problem, _ = posed(3, name)
    target = problem.y[problem.train].astype(np.float64)
    rows = LeafRows(
        rng.integers(3, size=len(target)), 4, target, problem.weight[problem.train].astype(float)
    )
    old = rng.normal(size=(4, problem.n_outputs))
    prior = Prior(0.0, np.zeros(problem.n_outputs))
    fitted = constant_leaves(problem.loss, rows, old, prior)
    np.testing.assert_array_equal(fitted[3], old[3])  # it has no rows
    loss = _loss_at(problem, rows, fitted)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            other = fitted + size * rng.normal(size=fitted.shape)
            assert (_loss_at(problem, rows, other) >= loss - 1e-4)[:3].all()


@pytest.mark.parametrize("name", ["SquaredError", "AbsoluteError", "Huber", "Quantile", "Poisson"])
def test_a_prior_is_rows_of_its_target_at_every_leaf(name):
    rng = np.random.default_rng(4)
    problem, _ = posed(4, name)
    target = problem.y[problem.train].astype(np.float64)[:12]
    leaf, weight = rng.integers(3, size=12), rng.random(12) + 0.1
    old, mean = rng.normal(size=(3, 2)), target.max(axis=0) + 1.0
    found = constant_leaves(problem.loss, LeafRows(leaf, 3, target, weight), old, Prior(2.0, mean))
    rows = LeafRows(
        np.append(leaf, np.arange(3)),
        3,
        np.vstack([target, [mean] * 3]),
        np.append(weight, [2] * 3),
    )
    expected = constant_leaves(problem.loss, rows, old, Prior(0.0, mean))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def _loss_at(problem, rows, scores):
    """The loss summed over the rows of each leaf, (L,)."""
    if isinstance(problem.loss, Misclassification):
        each = (scores[rows.leaf].argmax(axis=1) != rows.target[:, 0]).astype(float)
    else:
        parameter = (problem.loss.parameter,) if problem.loss.parameter else ()
        each = VALUES[problem.loss.name].value(scores[rows.leaf], rows.target, *parameter)
    return np.bincount(rows.leaf, rows.weight * each, minlength=len(scores))


def test_linear_leaves_of_the_squared_loss_are_ridge_regressions():
    rng = np.random.default_rng(0)
    for n in (6, 50):  # fewer rows than columns, and more
        X = rng.normal(size=(n, 8)).astype(np.float32)
        y, w = rng.normal(size=(n, 1)), rng.random(n) + 0.1
        rows = LeafRows(np.zeros(n, dtype=int), 1, y, w)
        start = LinearLeaves(np.zeros((1, 1)), np.zeros((1, 1, 8)))
        found = linear_leaves(
            SquaredError(), rows, lambda at, X=X: X[at], start, Prior(0.0, np.zeros(1)), 2.0
        )
        Z = np.hstack([X, np.ones((n, 1))])
        D = np.diag([2.0] * 8 + [0.0])
        expected = np.linalg.solve(2 * (Z * w[:, None]).T @ Z + D, 2 * Z.T @ (w * y[:, 0]))
        np.testing.assert_allclose(found.weights[0, 0], expected[:-1], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.scores[0, 0], expected[-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "Misclassification"])
def test_linear_leaves_gain_on_constant_ones(name):
    problem, tree = posed(1, name, n=300, n_splits=3)
    constant, linear = (
        alternate(problem, tree, TAO(l1=0.1, l2=0.0, max_sweeps=3, leaves=leaves, leaf_l2=0.1))
        for leaves in ("constant", "linear")
    )
    assert objective_of(linear)[-1] < objective_of(constant)[-1]


def test_the_best_sweep_on_the_validation_part_is_kept():
    problem, tree = posed(9, "CrossEntropy", n=300, n_splits=15, validation=0.4)
    config = TAO(l1=0.0, l2=0.0, max_sweeps=12, early_stopping=True)
    found = alternate(problem, tree, config)
    losses = [epoch.validation_loss for epoch in found.history]
    assert found.best_epoch == len(losses) - 1 - int(np.argmin(losses[::-1]))
    last = alternate(problem, tree, TAO(l1=0.0, l2=0.0, max_sweeps=12, early_stopping=False))
    assert objective_of(last) == objective_of(found)
    assert last.best_epoch == len(last.history) - 1


def test_threads_change_nothing():
    problem, tree = posed(4, "CrossEntropy", n=3000, n_splits=15)
    one, three = (
        alternate(problem, tree, TAO(l1=0.3, l2=0.0, max_sweeps=3), n_jobs=n) for n in (1, 3)
    )
    assert one.model == three.model
    assert objective_of(one) == objective_of(three)


def test_splits_among_rows_of_one_class_go():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, :1] > 0).astype(np.float64)
    problem = Task.of(
        Table.of(X), y, kind="classification", loss=Misclassification(), classes=np.arange(2)
    )
    # The root parts the classes; both other splits part rows that are all alike.
    start = ObliqueTree(
        np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),
        np.zeros(3),
        np.array([[1, 2], [-1, -2], [-3, -4]], dtype=np.int32),
        np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]),
        schema=problem.schema,
        task="classification",
        classes=(0, 1),
    )
    tree = alternate(problem, start, TAO(**QUICK)).model
    assert tree.simplify().n_leaves == 2
    assert (tree.predict(X) == y[:, 0]).all()


@given(seed=st.integers(0, 10_000), n_splits=st.integers(1, 20), depth=st.integers(1, 5))
def test_a_tree_that_was_cut_sends_rows_the_same_way_as_far_as_it_goes(seed, n_splits, depth):
    _, tree = posed(seed, "SquaredError", n=20, n_splits=n_splits)
    X = np.random.default_rng(seed).normal(size=(50, 3))
    shorter = cut(tree, depth)
    assert shorter.depth == min(depth, tree.depth)
    # Rows that part in the shorter tree part in the longer one.
    pairs = set(zip(tree.apply(X).tolist(), shorter.apply(X).tolist(), strict=True))
    assert len(pairs) == len({leaf for leaf, _ in pairs})


def test_a_tree_without_splits_has_its_leaf_fitted():
    problem, tree = posed(5, "SquaredError", n_splits=0)
    found = alternate(problem, tree, TAO(l1=1.0, l2=0.0, leaf_prior=0.0))
    rows = problem.train
    mean = np.average(problem.y[rows], axis=0, weights=problem.weight[rows])
    expected = mean * problem.target_scale + problem.target_center
    np.testing.assert_allclose(found.model.values[0], expected, rtol=1e-5, atol=1e-6)


def test_an_interrupt_keeps_what_was_learned():
    problem, tree = posed(6, "SquaredError", n_splits=15)

    def stop(epoch):
        if epoch.epoch == 1:
            raise KeyboardInterrupt

    found = alternate(problem, tree, TAO(l1=0.1, l2=0.0, max_sweeps=9), callbacks=(stop,))
    assert found.interrupted
    assert found.best_epoch == 1
    whole = alternate(problem, tree, TAO(l1=0.1, l2=0.0, max_sweeps=2))
    assert found.model == whole.model


def test_a_run_out_of_time_ends_with_what_it_has():
    problem, tree = posed(6, "SquaredError", n_splits=15)
    config = TAO(l1=0.1, l2=0.0, max_sweeps=9)
    found = alternate(problem, tree, config, clock=Clock(0.0))
    assert not found.interrupted
    assert len(found.history) == 1  # the sweep that was not made
    assert objective_of(found)[1] == pytest.approx(objective_of(found)[0], rel=1e-6)
    in_time = alternate(problem, tree, config, clock=Clock(1e6))
    assert in_time.model == alternate(problem, tree, config).model


def test_what_cannot_be_alternated_is_refused():
    problem, tree = posed(0, "Misclassification")
    with pytest.raises(ValueError, match="misclassification"):
        alternate(problem, tree, TAO(l1=1.0, l2=0.0, leaves="linear"))
    with pytest.raises(ValueError, match="leaves must be one of"):
        TAO(leaves="quadratic")
