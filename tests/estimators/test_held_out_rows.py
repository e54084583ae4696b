"""Validation rows are held out: no teacher, augmented row or stage of `refine` uses them."""

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
from hardwood.search.augment import Augmentation, augmented_rows


@pytest.fixture(scope="module")
def numbered():
    """A task whose first column is the row number, with its table and target."""
    X = np.column_stack([np.arange(200.0), np.random.default_rng(0).normal(size=200)])
    y = np.where(X[:, 1] > 0, "up", "down")
    task = Task.read(X, y, classifies=True, loss=DGT().default_loss).divided(0.4, 0)
    return task, X, y


def test_networks_learn_from_training_rows(numbered, monkeypatch):
    task, _, _ = numbered
    seen = []
    epoch_runner = teacher._epoch_runner

    def noted(network, columns, given, rows, *rest):
        seen.extend(rows.tolist())
        return epoch_runner(network, columns, given, rows, *rest)

    monkeypatch.setattr(teacher, "_epoch_runner", noted)
    monkeypatch.setattr(teacher, "_EPOCHS", (1, 1))
    assert teacher.train_networks(task, 0, lambda: False) is not None
    assert set(seen) == set(task.train.tolist())


def test_a_teacher_to_be_fitted_learns_from_training_rows(numbered):
    task, X, y = numbered
    seen = []

    class Noting(DecisionTreeClassifier):
        def fit(self, X, y, **options):
            seen.extend(X[:, 0].astype(int).tolist())
            return super().fit(X, y, **options)

    teacher.fitted_teacher(task, Noting(), X, y)
    assert sorted(seen) == sorted(task.train.tolist())


def test_augmented_rows_come_from_training_rows(numbered):
    task, X, _ = numbered
    without = X.copy()
    without[task.valid, 0] = 1e6  # no augmented row may be near it
    marked = replace(task, matrix=without.astype(task.matrix.dtype))
    augmented = augmented_rows(marked, Augmentation(4.0, noise=0.0, mixup=1.0), 800, seed=0)
    assert np.isin(augmented.origin, task.train).all()
    assert augmented.matrix[:, 0].max() < 200


def test_stages_of_a_refinement_learn_from_training_rows(numbered):
    _, X, y = numbered
    seen = []

    class Noting(TAOClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, 0].astype(int))
            return super().fit(X, y, sample_weight)

    start = GreedyTreeClassifier(max_depth=1).fit(X, y)
    twice = np.repeat(np.arange(200), 2)
    learner = Noting(max_depth=1, l1=0.1, l2=1.0, max_sweeps=1, random_state=0)
    found = refine(start, X[twice], y[twice], learners=[learner], random_state=0)
    assert len(seen[0]) == found.n_train
    assert found.n_train + found.n_validation == 400
    assert (np.bincount(seen[0], minlength=200) % 2 == 0).all()  # equal rows are on one side
