from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from hardwood.report.metrics import (
    classification_scores,
    confusion,
    label_scores,
    regression_scores,
    several_regression_scores,
)
from hardwood.report.resampling import n_resamples


def by_name(scores):
    return {score.name: score for score in scores}


@pytest.fixture(params=[2, 4])
def classified(request):
    rng = np.random.default_rng(request.param)
    k, n = request.param, 200
    truth = rng.integers(0, k, n)
    probabilities = rng.dirichlet(np.ones(k), 8)[rng.integers(0, 8, n)]  # ties, as leaves give them
    probabilities[truth == 0, 0] += 0.5
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return truth, probabilities, rng.integers(1, 4, n).astype(float)


def test_classification_metrics_are_scikit_learns(classified):
    truth, p, w = classified
    scores = by_name(classification_scores(truth, p, w, np.random.default_rng(0)))
    labels = p.argmax(axis=1)
    assert scores["accuracy"].value == pytest.approx(
        sk.accuracy_score(truth, labels, sample_weight=w)
    )
    assert scores["balanced accuracy"].value == pytest.approx(
        sk.balanced_accuracy_score(truth, labels, sample_weight=w)
    )
    assert scores["log loss"].value == pytest.approx(
        sk.log_loss(truth, p, sample_weight=w, labels=range(p.shape[1]))
    )
    brier = ((p - np.eye(p.shape[1])[truth]) ** 2).sum(axis=1)
    if p.shape[1] == 2:
        assert scores["AUC"].value == pytest.approx(
            sk.roc_auc_score(truth, p[:, 1], sample_weight=w)
        )
        assert scores["Brier score"].value == pytest.approx(
            sk.brier_score_loss(truth, p[:, 1], sample_weight=w)
        )
        rarer = int(np.bincount(truth, w).argmin())
        assert scores["average precision"].value == pytest.approx(
            sk.average_precision_score(truth == rarer, p[:, rarer], sample_weight=w)
        )
    else:
        assert scores["AUC (mean over classes)"].value == pytest.approx(
            sk.roc_auc_score(truth, p, multi_class="ovr", sample_weight=w)
        )
        assert scores["Brier score"].value == pytest.approx(np.average(brier, weights=w))


def test_regression_metrics_are_scikit_learns():
    rng = np.random.default_rng(0)
    truth, prediction, w = rng.normal(size=100), rng.normal(size=100), rng.random(100)
    scores = by_name(regression_scores(truth, prediction, w, rng))
    assert scores["RMSE"].value == pytest.approx(
        sk.root_mean_squared_error(truth, prediction, sample_weight=w)
    )
    assert scores["MAE"].value == pytest.approx(
        sk.mean_absolute_error(truth, prediction, sample_weight=w)
    )
    assert scores["R2"].value == pytest.approx(sk.r2_score(truth, prediction, sample_weight=w))


def test_intervals_contain_the_value_and_are_reproducible(classified):
    first = classification_scores(*classified, np.random.default_rng(3))
    again = classification_scores(*classified, np.random.default_rng(3))
    assert first == again
    for score in first:
        assert score.low < score.value < score.high


def test_a_bootstrap_interval_has_the_width_that_theory_gives():
    rng = np.random.default_rng(1)
    error = rng.normal(size=2000)
    (mae,) = [
        s for s in regression_scores(error, np.zeros(2000), np.ones(2000), rng) if s.name == "MAE"
    ]
    theory = 2 * 1.96 * np.abs(error).std() / np.sqrt(2000)
    assert mae.high - mae.low == pytest.approx(theory, rel=0.15)


def test_a_perfect_score_has_an_interval():
    truth = np.arange(60) % 2
    accuracy = classification_scores(
        truth, np.eye(2)[truth], np.ones(60), np.random.default_rng(0)
    )[0]
    assert accuracy.value == accuracy.high == 1.0
    assert accuracy.low == pytest.approx(60 / (60 + 1.96**2), abs=1e-3)  # Wilson's closed form


def test_unknown_classes_are_wrong():
    truth = np.array([0, -1, 1, 1])
    p = np.eye(2)[[0, 1, 1, 1]]
    scores = by_name(classification_scores(truth, p, np.ones(4), np.random.default_rng(0)))
    assert scores["accuracy"].value == 0.75
    assert scores["balanced accuracy"].value == pytest.approx(2 / 3)
    assert "AUC" not in scores
    assert scores["Brier score"].value == 0.25  # the largest loss, for an unknown class
    assert confusion(truth, p.argmax(axis=1), 2).tolist() == [[1, 0], [0, 2]]


def test_undefined_metrics_are_nan():
    scores = by_name(
        regression_scores(np.ones(5), np.zeros(5), np.ones(5), np.random.default_rng(0))
    )
    assert np.isnan(scores["R2"].value)
    assert np.isnan(scores["R2"].low)
    one_class = by_name(
        classification_scores(
            np.ones(5, int), np.eye(2)[[1] * 5], np.ones(5), np.random.default_rng(0)
        )
    )
    assert np.isnan(one_class["AUC"].value)


@pytest.mark.parametrize("value", [0.1, 1e9, 1e-200])
def test_r2_is_undefined_if_the_variance_is_rounding_error(value):
    truth = np.full(7, value)
    scores = by_name(
        regression_scores(truth, truth + 1, np.arange(1.0, 8.0), np.random.default_rng(0))
    )
    assert np.isnan(scores["R2"].value)


def test_large_tables_get_fewer_resamples():
    assert n_resamples(100) == 1000
    assert 200 <= n_resamples(10**6) < 1000
    assert n_resamples(10**9) == 200


def test_scores_of_several_numbers_are_those_of_each():
    rng = np.random.default_rng(0)
    truth, found, w = rng.normal(size=(80, 2)), rng.normal(size=(80, 2)), rng.uniform(1, 2, 80)
    scores = by_name(several_regression_scores(truth, found, ["a", "b"], w, rng))
    assert list(scores) == ["RMSE of a", "MAE of a", "R2 of a", "RMSE of b", "MAE of b", "R2 of b"]
    for j, name in enumerate("ab"):
        expected = sk.r2_score(truth[:, j], found[:, j], sample_weight=w)
        assert scores[f"R2 of {name}"].value == pytest.approx(expected)


def test_scores_of_labels_are_scikit_learns():
    rng = np.random.default_rng(0)
    truth, w = rng.integers(0, 2, (120, 3)), rng.uniform(1, 2, 120)
    p = np.clip(truth * 0.4 + rng.choice([0.0, 0.2, 0.5, 0.6], (120, 3)), 0, 1)
    scores = by_name(label_scores(truth, p, ["a", "b", "c"], w, rng))
    labels = (p >= 0.5).astype(int)
    assert scores["subset accuracy"].value == pytest.approx(
        sk.accuracy_score(truth, labels, sample_weight=w)
    )
    assert scores["label accuracy"].value == pytest.approx(
        1 - sk.hamming_loss(truth, labels, sample_weight=w)
    )
    briers = [sk.brier_score_loss(truth[:, j], p[:, j], sample_weight=w) for j in range(3)]
    assert scores["Brier score"].value == pytest.approx(np.mean(briers))
    losses = [sk.log_loss(truth[:, j], p[:, j], sample_weight=w) for j in range(3)]
    assert scores["log loss"].value == pytest.approx(np.mean(losses))
    for j, name in enumerate("abc"):
        assert scores[f"accuracy of {name}"].value == pytest.approx(
            sk.accuracy_score(truth[:, j], labels[:, j], sample_weight=w)
        )
        assert scores[f"AUC of {name}"].value == pytest.approx(
            sk.roc_auc_score(truth[:, j], p[:, j], sample_weight=w)
        )
