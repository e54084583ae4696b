"""Rows that judge teach nobody: not the networks, not the user's teacher, not made-up rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from hardwood import GreedyTreeClassifier, refine
from hardwood.estimators.tao import TAOClassifier
from hardwood.learn.dgt import DGT
from hardwood.learn.task import Task
from hardwood.search import distill as teacher
from hardwood.search.augment import Lesson, made_up_rows


@pytest.fixture(scope="module")
def posed():
    """A problem whose rows can be told by their numbers, and what it was made of."""
    X = np.column_stack([np.arange(200.0), np.random.default_rng(0).normal(size=200)])
    y = np.where(X[:, 1] > 0, "up", "down")
    task = Task.read(X, y, classifies=True, loss=DGT().default_loss).divided(0.4, 0)
    return task, X, y


def test_networks_learn_from_training_rows(posed, monkeypatch):
    problem, _, _ = posed
    seen = []
    pass_over = teacher._pass_over

    def noted(network, columns, given, rows, *rest):
        seen.extend(rows.tolist())
        return pass_over(network, columns, given, rows, *rest)

    monkeypatch.setattr(teacher, "_pass_over", noted)
    monkeypatch.setattr(teacher, "_EPOCHS", (1, 1))
    assert teacher.learned_networks(problem, 0, lambda: False) is not None
    assert set(seen) == set(problem.train.tolist())


def test_a_teacher_to_be_fitted_learns_from_training_rows(posed):
    problem, X, y = posed
    seen = []

    class Noting(DecisionTreeClassifier):
        def fit(self, X, y, **options):
            seen.extend(X[:, 0].astype(int).tolist())
            return super().fit(X, y, **options)

    teacher.fitted_teacher(problem, Noting(), X, y)
    assert sorted(seen) == sorted(problem.train.tolist())


def test_made_up_rows_are_made_of_training_rows(posed):
    problem, X, _ = posed
    without = X.copy()
    without[problem.valid, 0] = 1e6  # nothing near it may come up
    marked = replace(problem, matrix=without.astype(problem.matrix.dtype))
    made = made_up_rows(marked, Lesson(4.0, noise=0.0, mix=1.0), 800, seed=0)
    assert np.isin(made.origin, problem.train).all()
    assert made.matrix[:, 0].max() < 200


def test_stages_of_a_refinement_learn_from_training_rows(posed):
    _, X, y = posed
    seen = []

    class Noting(TAOClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, 0].astype(int))
            return super().fit(X, y, sample_weight)

    start = GreedyTreeClassifier(max_depth=1).fit(X, y)
    twice = np.repeat(np.arange(200), 2)
    learner = Noting(max_depth=1, l1=0.1, l2=1.0, max_sweeps=1, random_state=0)
    found = refine(start, X[twice], y[twice], with_=[learner], random_state=0)
    assert len(seen[0]) == found.n_train
    assert found.n_train + found.n_validation == 400
    assert (np.bincount(seen[0], minlength=200) % 2 == 0).all()  # equal rows are on one side
