"""Leaves shrunk toward their ancestors, compared with the definition."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.learn.greedy import Greedy
from hardwood.learn.leaves.smoothing import Smoothing
from hardwood.learn.task import Task


def grown(kind: str, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3))
    weight = rng.integers(1, 4, size=120).astype(float)
    y = X[:, 0] + 0.5 * rng.normal(size=120)
    if kind == "classes":
        y = np.digitize(y, [-0.5, 0.5])
    learner = Greedy(max_depth=5)
    task = Task.read(X, y, weight, classifies=kind == "classes", loss=learner.default_loss)
    return learner.fit(task).model, task, X, y, weight


@pytest.mark.parametrize("m", [0.5, 8.0])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_node_is_the_mean_of_its_rows_and_of_m_rows_of_its_parent(kind, m):
    tree, task, X, y, weight = grown(kind)
    target = np.eye(3)[y] if kind == "classes" else y[:, None]
    values = Smoothing.of(tree, task, 1).values(m)
    path = tree.decision_path(X).toarray().astype(bool)
    above = np.full(3, 1 / 3) if kind == "classes" else np.average(target, axis=0, weights=weight)
    for leaf in range(tree.n_leaves):
        node = tree.n_splits + leaf
        on_way = np.flatnonzero(path[path[:, node].argmax()])
        value = above
        for each in on_way:
            n = weight[path[:, each]].sum()
            mean = np.average(target[path[:, each]], axis=0, weights=weight[path[:, each]])
            value = (n * mean + m * value) / (n + m)
        assert np.allclose(values[leaf], value, rtol=1e-6)


def test_probabilities_are_never_zero_or_one_and_sum_to_one():
    tree, task, *_ = grown("classes")
    assert tree.values.min() == 0
    values = Smoothing.of(tree, task, 1).smoothed(1.0).values
    assert values.min() > 0
    assert np.allclose(values.sum(axis=1), 1)


def test_without_rows_of_the_parent_numbers_stay():
    tree, task, *_ = grown("numbers")
    assert np.allclose(Smoothing.of(tree, task, 1).values(0.0), tree.values)
