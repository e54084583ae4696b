"""Linear trees: growth, sparse models and shrinkage toward the parent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from hardwood.learn.learner import Run
from hardwood.learn.linear_tree import LinearTree
from hardwood.learn.task import Task


def task_of(X, y, *, classifies: bool = False, weight=None) -> Task:
    return Task.read(
        X, y, weight, classifies=classifies, loss=lambda kind, n: LinearTree().default_loss(kind, n)
    )


def hinge_table(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two lines that meet nowhere: a split on column 0 decides which one holds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] > 0.3, 2 + 3 * X[:, 1], -1 - 2 * X[:, 2]) + 0.05 * rng.normal(size=n)
    return X, y


def mixed_table(n: int = 500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "z": rng.normal(size=n),
            "color": rng.choice(["red", "green", "blue", "gray"], size=n),
        }
    )
    warm = X["color"].isin(["red", "gray"]).to_numpy()
    y = np.where(warm, 4 * X["x"], -4 * X["x"]) + 0.1 * rng.normal(size=n)
    X.loc[rng.random(n) < 0.1, "z"] = np.nan
    return X, np.asarray(y)


def test_one_leaf_is_ridge_regression():
    X, y = hinge_table()
    task = task_of(X, y)
    tree = LinearTree(max_leaves=1, leaf_l2=7.0).fit(task).model
    # Ridge in the same units: squared error in deviations of the target, columns by their scale.
    scale = task.schema.column_scale
    ridge = Ridge(alpha=7.0 / 2).fit((X - X.mean(0)) / scale, (y - y.mean()) / y.std())
    expected = ridge.predict((X - X.mean(0)) / scale) * y.std() + y.mean()
    assert np.allclose(tree.predict(X), expected, atol=1e-5)


def test_one_leaf_is_logistic_regression():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = (X @ [1.0, -2.0, 0.0] + rng.logistic(size=400) > 0).astype(int)
    task = task_of(X, y, classifies=True)
    tree = LinearTree(max_leaves=1, leaf_l2=2.0).fit(task).model
    scale = task.schema.column_scale
    logistic = LogisticRegression(C=1 / 2.0, tol=1e-8).fit((X - X.mean(0)) / scale, y)
    expected = logistic.predict_proba((X - X.mean(0)) / scale)
    assert np.allclose(tree.predict_proba(X), expected, atol=2e-3)


def test_two_lines_are_found():
    X, y = hinge_table()
    tree = LinearTree(max_leaves=2, parent_l2=0.1).fit(task_of(X, y)).model
    assert tree.n_leaves == 2
    assert np.flatnonzero(tree.weights[0]).tolist() == [0]
    assert abs(tree.thresholds[0] - 0.3) < 0.1
    assert np.mean((tree.predict(X) - y) ** 2) < 0.02 * y.var()


def test_terms_are_chosen_by_what_they_explain():
    X, y = hinge_table()
    tree = LinearTree(max_leaves=2, max_terms=1, parent_l2=0.1).fit(task_of(X, y)).model
    used = {tuple(np.flatnonzero(leaf[0])) for leaf in tree.leaf_weights}
    assert used == {(1,), (2,)}


@pytest.mark.parametrize("growth", ["linear", "constant"])
def test_one_growth_holds_every_size(growth):
    X, y = mixed_table()
    task = task_of(X, y)
    grown = LinearTree(max_leaves=6, growth=growth).grow(task, Run(0, 1))
    encoded = task.encoded(np.arange(len(y))).astype(np.float64)
    seen = {}
    for n_leaves, terms, scores in grown.scores(encoded, range(1, 7)):
        tree = grown.tree(n_leaves, terms)
        seen[n_leaves, terms] = tree
        assert np.allclose(tree.predict(X), task.leaf_values(scores)[:, 0], atol=1e-4)
        assert tree.n_leaves == n_leaves
        if terms is not None and tree.leaf_weights is not None:
            feature = task.schema.column_feature
            used = [set(feature[np.flatnonzero(leaf[0])]) for leaf in tree.leaf_weights]
            assert max(map(len, used)) <= terms
    most = grown.n_leaves(6)
    assert most >= 2
    assert {(1, 0), (1, None), (most, 0), (most, 2)} <= set(seen)


def test_levels_are_split_as_sets():
    X, y = mixed_table()
    tree = LinearTree(max_leaves=2, max_terms=1, parent_l2=0.1).fit(task_of(X, y)).model
    assert np.mean((tree.predict(X) - y) ** 2) < 0.05 * y.var()
    sides = {color: tree.apply(X[X["color"] == color])[0] for color in X["color"].unique()}
    assert sides["red"] == sides["gray"] != sides["green"] == sides["blue"]


def test_missing_entries_go_to_the_better_side():
    rng = np.random.default_rng(2)
    x = rng.normal(size=600)
    missing = rng.random(600) < 0.3
    y = np.where(missing | (x > 1), 5.0, 0.0) + 0.1 * rng.normal(size=600)
    X = np.where(missing, np.nan, x)[:, None]
    tree = LinearTree(max_leaves=2, max_terms=0).fit(task_of(X, y)).model
    assert np.abs(tree.predict(X[missing]) - 5.0).max() < 0.1
    assert np.abs(tree.predict(X) - y).mean() < 0.2


def test_a_strong_penalty_keeps_the_model_of_the_parent():
    X, y = hinge_table()
    task = task_of(X, y)
    one = LinearTree(max_leaves=1).fit(task).model
    two = LinearTree(max_leaves=2, parent_l2=1e9).fit(task).model
    for leaf in two.leaf_weights:
        assert np.allclose(leaf, one.leaf_weights[0], rtol=1e-3, atol=1e-6)


def test_sides_have_enough_rows():
    X, y = hinge_table(n=200)
    tree = LinearTree(max_leaves=16, min_samples_leaf=25).fit(task_of(X, y)).model
    assert np.bincount(tree.apply(X)).min() >= 25


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_weights_are_repetitions_and_order_does_not_matter(n_jobs):
    X, y = hinge_table(n=150)
    times = np.random.default_rng(5).integers(1, 4, size=150)
    shuffled = np.random.default_rng(6).permutation(int(times.sum()))
    repeated = task_of(np.repeat(X, times, axis=0)[shuffled], np.repeat(y, times)[shuffled])
    weighted = task_of(X, y, weight=times.astype(float))
    learner = LinearTree(max_leaves=4, min_samples_leaf=10)
    a = learner.fit(repeated, Run(0, n_jobs)).model
    b = learner.fit(weighted, Run(0, 1)).model
    assert np.array_equal(a.weights, b.weights)
    assert np.array_equal(a.leaf_weights, b.leaf_weights)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes(n_classes):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(800, 3))
    side = np.where(X[:, 2] > 0, X[:, 0], X[:, 1])
    y = np.digitize(side, np.linspace(-1, 1, n_classes + 1)[1:-1])
    task = task_of(X, y, classifies=True)
    tree = LinearTree(max_leaves=4, parent_l2=1.0).fit(task).model
    one = LinearTree(max_leaves=1).fit(task).model
    assert np.mean(tree.predict(X) == y) > np.mean(one.predict(X) == y) + 0.1
    assert np.allclose(tree.predict_proba(X).sum(axis=1), 1.0)


def test_constant_leaves_grow_as_in_cart():
    """Best first, with the Gini gain; thresholds are equal where a column has few values."""
    X, y = load_digits(return_X_y=True)
    ours = LinearTree(max_terms=0, growth="constant", max_leaves=8, min_samples_leaf=5)
    tree = ours.fit(task_of(X, y, classifies=True)).model
    cart = DecisionTreeClassifier(max_leaf_nodes=8, min_samples_leaf=5, random_state=0).fit(X, y)
    is_split = cart.tree_.feature >= 0
    expected = zip(cart.tree_.feature[is_split], cart.tree_.threshold[is_split], strict=True)
    thresholds = tree.thresholds / tree.weights.max(axis=1)
    found = zip(tree.weights.argmax(axis=1), thresholds, strict=True)
    assert np.allclose(sorted(found), sorted(expected))


def test_a_constant_target_and_constant_columns_give_one_leaf():
    tree = LinearTree().fit(task_of(np.ones((50, 2)), np.arange(50.0))).model
    assert tree.n_leaves == 1
    tree = (
        LinearTree().fit(task_of(np.random.default_rng(0).normal(size=(50, 2)), np.ones(50))).model
    )
    assert tree.n_leaves == 1
    assert np.allclose(tree.predict(np.zeros((1, 2))), 1.0)


@pytest.mark.parametrize("k", [1, 2])
def test_elimination_takes_out_what_costs_least(k):
    from hardwood.learn.linear_trees.elimination import sparse_starts

    rng = np.random.default_rng(8)
    roots = rng.normal(size=(k, 12, 7))
    hessians = np.swapaxes(roots, 1, 2) @ roots + 0.1 * np.eye(7)
    P = rng.normal(size=(k, 7))
    feature = np.array([0, 0, 1, 2, 3, 3])

    def rise(kept: np.ndarray) -> tuple[float, np.ndarray]:
        """How far the parabola rises with some columns only, and where it is lowest then."""
        at = np.append(kept, 6)
        out = np.setdiff1d(np.arange(7), at)
        moved = np.zeros_like(P)
        total = 0.0
        for o, H in enumerate(hessians):
            pull = np.linalg.solve(H[np.ix_(at, at)], H[np.ix_(at, out)] @ P[o, out])
            moved[o, at] = P[o, at] + pull
            step = moved[o] - P[o]
            total += 0.5 * step @ H @ step
        return total, moved[:, at]

    kept = [0, 1, 2, 3]
    for size, columns, start in sparse_starts(P, hessians, feature, range(5)):
        if size < 4:
            costs = {
                j: rise(np.flatnonzero(np.isin(feature, [i for i in kept if i != j])))[0]
                for j in kept
            }
            kept.remove(min(costs, key=costs.__getitem__))
        assert sorted(set(feature[columns])) == kept
        assert np.allclose(start, rise(columns)[1])
