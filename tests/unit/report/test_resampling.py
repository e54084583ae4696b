from __future__ import annotations

import numpy as np
import pytest

from hardwood.report import resampling
from hardwood.report.metrics import classification_scores, regression_scores
from hardwood.report.resampling import Kinds, wilson


@pytest.fixture
def few_resamples(monkeypatch):
    monkeypatch.setattr(resampling, "_MAX_RESAMPLES", 200)


def test_intervals_of_the_bootstrap_cover_what_they_claim(few_resamples):
    rng = np.random.default_rng(0)
    n_tables, n = 250, 120
    hits = {"RMSE": 0, "MAE": 0, "R2": 0}
    # y = x + noise of variance 1/4, predicted by x: all three are known.
    true = {"RMSE": 0.5, "MAE": 0.5 * np.sqrt(2 / np.pi), "R2": 1 - 0.25 / 1.25}
    for _ in range(n_tables):
        x = rng.normal(size=n)
        y = x + 0.5 * rng.normal(size=n)
        for score in regression_scores(y, x, np.ones(n), rng):
            hits[score.name] += score.low <= true[score.name] <= score.high
    for name, hit in hits.items():
        assert 0.89 <= hit / n_tables <= 0.985, name


def test_intervals_of_classes_cover_what_they_claim(few_resamples):
    rng = np.random.default_rng(1)
    n_tables, n = 250, 120
    # Two leaves, of which the probabilities are true: p = 0.2 and p = 0.7.
    p = np.array([0.2, 0.7])
    true = {
        "accuracy": 0.75,
        "Brier score": np.mean(p * (1 - p)),
        "log loss": -np.mean(p * np.log(p) + (1 - p) * np.log(1 - p)),
    }
    hits = dict.fromkeys(true, 0)
    for _ in range(n_tables):
        leaf = rng.integers(0, 2, n)
        truth = (rng.random(n) < p[leaf]).astype(int)
        probabilities = np.column_stack([1 - p[leaf], p[leaf]])
        for score in classification_scores(truth, probabilities, np.ones(n), rng):
            if score.name in hits:
                hits[score.name] += score.low <= true[score.name] <= score.high
    for name, hit in hits.items():
        assert 0.89 <= hit / n_tables <= 0.985, name


def test_equal_rows_are_counted_together():
    rng = np.random.default_rng(2)
    truth, leaf = rng.integers(0, 2, 500), rng.integers(0, 3, 500)
    outputs = rng.random((3, 2))[leaf]
    weight = rng.integers(1, 3, 500).astype(float)
    kinds = Kinds.of(weight, truth, outputs)
    expected = {(w, t, *o) for w, t, o in zip(weight, truth, outputs, strict=True)}
    assert len(kinds.count) == len(expected) == 12
    assert kinds.n_rows == 500
    found = {}
    for w, t, o in zip(weight, truth, outputs.tolist(), strict=True):
        kind = (w, t, *o)
        found[kind] = found.get(kind, 0) + 1
    for first, count in zip(kinds.first, kinds.count, strict=True):
        assert found[(weight[first], truth[first], *outputs[first])] == count
    assert kinds.total.sum() == pytest.approx(weight.sum())


def test_rows_that_differ_are_their_own_kind():
    kinds = Kinds.of(np.ones(100), np.arange(100.0))
    assert kinds.first.tolist() == list(range(100))
    assert kinds.count.tolist() == [1] * 100


def test_resamples_of_kinds_are_those_of_rows():
    rng = np.random.default_rng(3)
    column = np.repeat([0.0, 1.0, 2.0], [10, 30, 60])
    together = Kinds.of(np.ones(100), column)
    assert len(together.count) == 3
    apart = Kinds(np.arange(100), np.ones(100, dtype=int), np.ones(100))
    by_kind = np.array([together.resample(rng) for _ in range(4000)])
    by_row = np.array([np.add.reduceat(apart.resample(rng), [0, 10, 40]) for _ in range(4000)])
    assert (by_kind.sum(axis=1) == 100).all()
    assert by_kind.mean(axis=0) == pytest.approx(by_row.mean(axis=0), abs=0.4)
    assert by_kind.var(axis=0) == pytest.approx(by_row.var(axis=0), rel=0.12)


def test_weights_count_in_the_intervals():
    rng = np.random.default_rng(4)
    error, weight = rng.normal(size=1000), np.where(np.arange(1000) < 100, 1.0, 1e-6)
    (mae,) = [s for s in regression_scores(error, 0 * error, weight, rng) if s.name == "MAE"]
    # A tenth of the rows have all the weight.
    theory = 2 * 1.96 * np.abs(error[:100]).std() / np.sqrt(100)
    assert mae.high - mae.low == pytest.approx(theory, rel=0.2)
    leaf, truth = rng.integers(0, 2, 1000), rng.integers(0, 2, 1000)
    p = np.array([[0.9, 0.1], [0.3, 0.7]])[leaf]
    loss = -np.log(p[np.arange(1000), truth])[:100]
    scores = classification_scores(truth, p, weight, rng)
    (log_loss,) = [score for score in scores if score.name == "log loss"]
    theory = 2 * 1.96 * loss.std() / np.sqrt(100)
    assert log_loss.high - log_loss.low == pytest.approx(theory, rel=0.2)


def test_wilsons_interval_is_the_closed_form():
    # Shares p with |p - 0.3| = z sqrt(p (1 - p) / n), solved for p.
    n, share = 50, 0.3
    low, high = wilson(share, n)
    for p in (low, high):
        assert abs(p - share) == pytest.approx(resampling.Z * np.sqrt(p * (1 - p) / n))
    assert low < share < high
