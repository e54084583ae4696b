"""Scores of the candidates of a search: shares of a loss, and scorers by name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import d2_log_loss_score, log_loss, r2_score

from hardwood.search.scorer import Scorer

WEIGHT = np.array([1.0, 2.0, 0.0, 5.0])


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
def test_classes_are_scored_by_the_share_of_the_log_loss(weight):
    outputs = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    truth = np.array([[0], [0], [1], [1]])
    found = Scorer.of("classification", np.array(["no", "yes"])).score(outputs, truth, weight)
    assert found == pytest.approx(d2_log_loss_score(truth[:, 0], outputs, sample_weight=weight))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
def test_labels_are_scored_by_the_share_of_their_mean_log_loss(weight):
    outputs = np.array([[0.5, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    truth = np.array([[1, 0], [1, 1], [0, 0], [0, 1]])
    found = Scorer.of("multilabel", None).score(outputs, truth, weight)
    each = [(truth[:, k], np.stack([1 - outputs[:, k], outputs[:, k]], 1)) for k in range(2)]
    losses = [log_loss(y, p, sample_weight=weight) for y, p in each]
    shares = [np.average(y, weights=weight) for y, _ in each]
    constant = [
        log_loss(y, np.tile([1 - q, q], (4, 1)), sample_weight=weight)
        for (y, _), q in zip(each, shares, strict=True)
    ]
    assert found == pytest.approx(1 - np.mean(losses) / np.mean(constant))


def test_given_trees_are_scored_by_the_fraction_that_is_right():
    outputs = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.4], [0.0, 1.0]])
    truth = np.array([[0], [0], [1], [1]])
    scorer = Scorer.of_given_trees("classification", np.array(["no", "yes"]))
    assert scorer.score(outputs, truth, WEIGHT) == pytest.approx((1 + 5) / 8)
    labels = Scorer.of_given_trees("multilabel", None)
    assert labels.score(outputs, np.array([[1, 0], [1, 1], [1, 0], [0, 0]])) == 0.75
    assert Scorer.of_given_trees("regression", None).name == "R2"


def test_a_single_held_out_class_is_scored_by_the_loss():
    outputs, truth = np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([[0], [0]])
    found = Scorer.of("classification", np.array(["no", "yes"])).score(outputs, truth)
    assert found == pytest.approx(np.log([0.9, 0.8]).mean())


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
def test_numbers_are_scored_by_r2(weight):
    outputs, truth = np.array([[1.0], [2.0], [4.0], [3.0]]), np.array([[1.5], [2.0], [0.0], [4.0]])
    found = Scorer.of("regression", None).score(outputs, truth, weight)
    assert found == pytest.approx(r2_score(truth, outputs, sample_weight=weight))


def test_a_scorer_by_name_is_given_classes_and_weights():
    outputs = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    truth = np.array([[0], [0], [1], [1]])
    scorer = Scorer.of("classification", np.array(["no", "yes"]), "balanced_accuracy")
    assert scorer.score(outputs, truth) == pytest.approx(0.5)
    assert scorer.score(outputs, truth, WEIGHT) == pytest.approx((1 / 3 + 1.0) / 2)
