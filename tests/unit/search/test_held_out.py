"""Scores of held-out rows, and the threshold that is chosen on them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from hardwood.learn.losses import CrossEntropy
from hardwood.learn.task import Task
from hardwood.search.held_out import HeldOutRows, best_threshold
from hardwood.table import Table


def rows_of(p, label, labels):
    n = len(p)
    task = Task.of(
        Table.of(np.arange(n, dtype=float)[:, None]),
        label[:, None].astype(float),
        kind="classification",
        loss=CrossEntropy(),
        classes=np.array(labels),
    )
    weight = np.random.default_rng(1).integers(1, 4, n).astype(float)
    return HeldOutRows(task, p, label[:, None].astype(float), weight)


@pytest.mark.parametrize("decision_weights", [None, np.array([1.0, 3.0, 9.0])])
def test_scores_are_scikit_learns(decision_weights):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([5.0, 2.0, 0.5], size=500)
    label = rng.choice(3, 500, p=[0.7, 0.27, 0.03])
    rows = rows_of(p, label, ["a", "b", "c"])
    found = rows.scores(decision_weights)
    w = rows.weight
    predicted = (p if decision_weights is None else p * decision_weights).argmax(axis=1)
    assert found.log_loss == pytest.approx(sk.log_loss(label, p, sample_weight=w))
    assert found.balanced_accuracy == pytest.approx(
        sk.balanced_accuracy_score(label, predicted, sample_weight=w)
    )
    assert found.rarest == "c"
    assert found.average_precision == pytest.approx(
        sk.average_precision_score(label == 2, p[:, 2], sample_weight=w)
    )
    assert found.threshold is None
    assert any("c is rare" in line for line in found.lines)


def test_a_class_of_five_percent_is_not_rare():
    rng = np.random.default_rng(0)
    rows = rows_of(rng.dirichlet([1, 1], size=400), np.arange(400) % 2, ["no", "yes"])
    lines = rows.scores(None).lines
    assert not any("rare" in line for line in lines)
    assert any(line.startswith("Threshold: yes where its probability is above") for line in lines)


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_much_better(seed):
    rng = np.random.default_rng(seed)
    truth = (rng.random(200) < 0.1).astype(int)
    p = np.round(np.clip(0.1 + 0.1 * truth + 0.1 * rng.normal(size=200), 0.01, 0.99), 2)
    w = rng.integers(1, 4, 200).astype(float)
    threshold, accuracy = best_threshold(truth, p, w)

    def at(t):
        return sk.balanced_accuracy_score(truth, p > t, sample_weight=w)

    assert accuracy == pytest.approx(at(threshold))
    assert threshold not in p
    assert accuracy >= max(at(t) for t in np.unique(p)[:-1]) - 0.1


def test_of_good_thresholds_the_one_at_the_share_of_the_class_is_chosen():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 12, size=20_000)
    for n in (1_000, 20_000):
        truth = (rng.random(n) < p[:n]).astype(int)
        threshold, _ = best_threshold(truth, p[:n], np.ones(n))
        assert 0.9 * truth.mean() < threshold < 1.1 * truth.mean()


def test_a_threshold_far_from_the_share_is_chosen_where_it_is_clearly_better():
    truth = np.repeat([0, 1], [900, 100])
    p = np.where(truth == 1, 0.9, 0.7) + 0.001 * np.arange(1000) / 1000
    threshold, accuracy = best_threshold(truth, p, np.ones(1000))
    assert accuracy == 1
    assert 0.701 < threshold < 0.9


def test_without_different_probabilities_there_is_no_threshold():
    assert best_threshold(np.array([0, 1]), np.array([0.3, 0.3]), np.ones(2)) == (None, None)
