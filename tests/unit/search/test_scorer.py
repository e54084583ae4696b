"""Scores of the candidates of a search: accuracy, R2, and scorers by name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from hardwood.search.scorer import Scorer

WEIGHT = np.array([1.0, 2.0, 0.0, 5.0])


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
def test_classes_are_scored_by_accuracy(weight):
    outputs = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    truth = np.array([[0], [0], [1], [1]])
    found = Scorer.of("classification", np.array(["no", "yes"])).score(outputs, truth, weight)
    expected = accuracy_score(truth[:, 0], outputs.argmax(axis=1), sample_weight=weight)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
def test_labels_are_scored_by_the_fraction_that_is_right(weight):
    outputs = np.array([[0.5, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    truth = np.array([[1, 0], [1, 1], [1, 0], [0, 0]])
    found = Scorer.of("multilabel", None).score(outputs, truth, weight)
    share = ((outputs >= 0.5) == truth).mean(axis=1)
    assert found == pytest.approx(np.average(share, weights=weight))


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
