"""The recalibration that is fitted to held-out predictions."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.report.metrics import label_log_losses, log_losses
from hardwood.search.calibration import fit_recalibration

KINDS = [("classification", 2), ("classification", 4), ("multilabel", 3)]


def drawn(task, k, n, seed=0):
    """Rows with true probabilities (n, k), and targets (n, 1) or (n, k) drawn from them."""
    rng = np.random.default_rng(seed)
    if task == "multilabel":
        p = 1 / (1 + np.exp(-rng.normal(-1, 1, size=(n, k))))
        return p, (rng.random((n, k)) < p).astype(float)
    scores = np.exp(rng.normal(size=(n, k)))
    p = scores / scores.sum(axis=1, keepdims=True)
    label = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return p, np.minimum(label, k - 1)[:, None].astype(float)


def loss_of(task, p, truth):
    if task == "multilabel":
        return label_log_losses(truth, p).mean()
    return log_losses(truth[:, 0].astype(int), p).mean()


def overconfident(p, task, power=3.0):
    if task == "multilabel":
        odds = (p / (1 - p)) ** power
        return odds / (1 + odds)
    return p**power / (p**power).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("task", "k"), KINDS)
def test_overconfident_probabilities_get_the_true_slope(task, k):
    p, truth = drawn(task, k, 20_000)
    change = fit_recalibration(overconfident(p, task), truth, np.ones(len(p)), task)
    np.testing.assert_allclose(change.slope, 1 / 3, rtol=0.1)
    new, new_truth = drawn(task, k, 5_000, seed=1)
    before = overconfident(new, task)
    after = change.of_outputs(before, task)
    assert loss_of(task, after, new_truth) < loss_of(task, before, new_truth) - 0.05
    assert np.abs(after - new).max() < 0.06


@pytest.mark.parametrize(("task", "k"), KINDS)
def test_calibrated_probabilities_hardly_change(task, k):
    p, truth = drawn(task, k, 20_000)
    change = fit_recalibration(p, truth, np.ones(len(p)), task)
    assert np.abs(change.of_outputs(p, task) - p).max() < 0.03


@pytest.mark.parametrize(("task", "k"), KINDS)
def test_few_rows_change_little(task, k):
    p, truth = drawn(task, k, 8)
    change = fit_recalibration(p, truth, np.ones(len(p)), task)
    assert np.abs(change.slope - 1).max() < 0.5
    assert np.abs(change.offset - change.offset.mean() * (task == "classification")).max() < 0.7


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_stays_even_where_predictions_are_worthless(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([1.0, 1.0], size=400)
    truth = (p[:, 1:] < 0.5).astype(float)  # the opposite of what is predicted
    change = fit_recalibration(p, truth, np.ones(400), "classification")
    assert change.slope[0] > 0
    after = change.of_outputs(p, "classification")[:, 1]
    assert (np.diff(after[np.argsort(p[:, 1])]) >= 0).all()


def test_offsets_correct_shares_of_classes():
    p, truth = drawn("classification", 3, 20_000)
    shifted = p * [8.0, 1.0, 1.0]
    shifted /= shifted.sum(axis=1, keepdims=True)
    change = fit_recalibration(shifted, truth, np.ones(len(p)), "classification")
    after = change.of_outputs(shifted, "classification")
    np.testing.assert_allclose(
        after.mean(axis=0), np.bincount(truth[:, 0].astype(int)) / len(p), atol=0.005
    )


@pytest.mark.parametrize(("task", "k"), KINDS)
def test_the_unit_of_weights_does_not_matter(task, k):
    p, truth = drawn(task, k, 300)
    p = overconfident(p, task)
    weight = np.random.default_rng(0).random(300)
    one = fit_recalibration(p, truth, weight, task)
    for unit in (1e-6, 1e6):
        other = fit_recalibration(p, truth, unit * weight, task)
        np.testing.assert_allclose(other.slope, one.slope, rtol=1e-6)
        np.testing.assert_allclose(other.offset, one.offset, atol=1e-6)


def test_probabilities_of_0_are_no_obstacle():
    p = np.array([[0.0, 1.0], [1.0, 0.0]] * 50)
    truth = np.array([[1.0], [0.0]] * 45 + [[0.0], [1.0]] * 5)  # one in ten is wrong
    change = fit_recalibration(p, truth, np.ones(100), "classification")
    assert 0 < change.slope[0] < 0.2
    assert np.isfinite(change.offset).all()
