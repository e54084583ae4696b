"""The probabilities of `TreeClassifier`: of the user's rows, strictly between 0 and 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import balanced_accuracy_score, log_loss, recall_score
from sklearn.model_selection import FixedThresholdClassifier

import hardwood
from hardwood import GreedyTreeClassifier, TreeClassifier, TreeRegressor
from hardwood.learn.task import Task
from hardwood.search.best_tree import BestTree
from hardwood.search.probabilities import Probabilities

QUICK = {"time_limit": None, "max_trials": 6, "teacher": None, "random_state": 0}
LEAVES = ["auto", "constant", "linear"]


def quick(leaves, **options):
    """A search of a few trials; with leaves="auto", of small trees."""
    small = {"max_leaves": 4} if leaves == "auto" else {}
    return TreeClassifier(**QUICK | small | {"leaves": leaves} | options)


@pytest.fixture(scope="module")
def rare():
    """1,200 rows to learn from and 4,000 others; one row in twenty is "yes"."""
    X, y = make_classification(
        5200, 6, n_informative=4, weights=[0.96], flip_y=0.02, random_state=0
    )
    y = np.array(["no", "yes"])[y]
    return X[:1200], y[:1200], X[1200:], y[1200:]


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("weights", ["balanced", {"no": 0.01, "yes": 0.2}])
def test_with_class_weights_probabilities_are_those_of_the_rows(rare, leaves, weights, tmp_path):
    X, y, X_new, y_new = rare
    plain = quick(leaves).fit(X, y)
    weighted = quick(leaves, class_weight=weights).fit(X, y)
    share = (y_new == "yes").mean()
    assert abs(weighted.predict_proba(X_new)[:, 1].mean() - share) < 0.025
    assert log_loss(y_new, weighted.predict_proba(X_new)) < log_loss(
        y_new, np.tile([1 - share, share], (len(y_new), 1))
    )
    recalls = [recall_score(y_new, m.predict(X_new), pos_label="yes") for m in (plain, weighted)]
    assert recalls[1] > recalls[0] + 0.05
    ratio = weighted.tree_.decision_weights[1] / weighted.tree_.decision_weights[0]
    expected = (y == "no").sum() / (y == "yes").sum() if weights == "balanced" else 20.0
    assert ratio == pytest.approx(expected, rel=0.02)  # its numbers are short
    weighted.save(tmp_path / "tree.hardwood")
    for model in (weighted.tree_, hardwood.load(tmp_path / "tree.hardwood")):
        assert (model.predict(X_new) == weighted.predict(X_new)).all()
        assert (model.predict_proba(X_new) == weighted.predict_proba(X_new)).all()


def test_trees_of_the_frontier_have_the_same_decision_weights(rare):
    X, y, X_new, y_new = rare
    model = quick("auto", class_weight="balanced").fit(X, y)
    for point in model.frontier_.points:
        weights = np.where(
            point.tree.classes == np.array("yes"), (y == "no").sum(), (y == "yes").sum()
        )
        decided = (point.tree.predict_proba(X) * weights).argmax(axis=1)
        assert (point.tree.predict(X) == np.array(point.tree.classes)[decided]).mean() > 0.99
        assert abs(point.tree.predict_proba(X_new)[:, 1].mean() - 0.05) < 0.03


@pytest.mark.parametrize("weights", [None, {"no": 3.0, "yes": 3.0}])
def test_equal_class_weights_are_none(rare, weights):
    X, y, _, _ = rare
    model = TreeClassifier(class_weight=weights, leaves="constant", **QUICK).fit(X, y)
    assert model.tree_.decision_weights is None


def test_sample_weights_are_no_class_weights(rare):
    X, y, _, _ = rare
    heavy = np.where(y == "yes", 20.0, 1.0)
    model = TreeClassifier(leaves="constant", **QUICK).fit(X, y, sample_weight=heavy)
    assert model.tree_.decision_weights is None
    share = heavy[y == "yes"].sum() / heavy.sum()
    assert abs(np.average(model.predict_proba(X)[:, 1], weights=heavy) - share) < 0.05


def test_a_class_of_weight_0_is_left_out():
    X, y = load_iris(return_X_y=True)
    model = TreeClassifier(class_weight={0: 1.0, 1: 2.0, 2: 0.0}, leaves="constant", **QUICK)
    model.fit(X, y)
    assert set(model.predict(X)) == {0, 1}
    weights = model.tree_.decision_weights
    assert weights[1] / weights[0] == pytest.approx(2)


# Recalibration


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2400, 4))
    chance = 1 / (1 + np.exp(-1.5 * X[:, 0]))
    return X, (rng.random(2400) < chance).astype(int)


def overgrown(X, y, task):
    """A tree that is far too sure: each leaf says 0.001 or 0.999."""
    tree = GreedyTreeClassifier(max_depth=8).fit(X[task.train], y[task.train]).tree_
    values = np.clip(tree.values.round(), 0.001, 0.999)
    return tree.replace(values=values / values.sum(axis=1, keepdims=True))


def test_an_overconfident_tree_is_calibrated_on_rows_that_it_did_not_see(noisy):
    X, y = noisy
    search = BestTree()
    task = Task.read(
        X[:1200], y[:1200], classifies=True, loss=lambda kind, n: search.default_loss(kind, n)
    )
    thirds = np.array_split(task.train, 3)
    folds = [replace(task, train=np.setdiff1d(task.train, valid), valid=valid) for valid in thirds]
    by_fold = [overgrown(X, y, fold) for fold in folds]
    tree = overgrown(X, y, task)
    found, scores = Probabilities(task, folds, calibrates=True, n_jobs=1).finished(tree, by_fold)
    before, after = (log_loss(y[1200:], t.predict_proba(X[1200:])) for t in (tree, found))
    assert after < 0.75 * before
    assert abs(scores.log_loss - after) < 0.1
    shares = [t.predict_proba(X[1200:])[:, 1] for t in (tree, found)]
    assert (np.diff(shares[1][np.argsort(shares[0], kind="stable")]) >= 0).all()
    assert (found.predict(X) == tree.predict(X)).mean() > 0.9


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("classes", [2, 3])
def test_calibrate_does_no_harm(noisy, leaves, classes):
    X, y = noisy
    y = y if classes == 2 else y + (X[:, 1] > 1)
    losses = []
    for calibrate in (False, True):
        model = quick(leaves, calibrate=calibrate).fit(X[:600], y[:600])
        losses.append(log_loss(y[600:], model.predict_proba(X[600:])))
        assert (model.predict(X) == model.tree_.predict(X)).all()
    assert losses[1] < losses[0] + 0.02


def test_labels_are_calibrated_too(noisy):
    X, y = noisy
    labels = np.stack([y, X[:, 1] > 0.5], axis=1).astype(int)
    model = TreeClassifier(calibrate=True, leaves="constant", **QUICK).fit(X[:600], labels[:600])
    plain = TreeClassifier(leaves="constant", **QUICK).fit(X[:600], labels[:600])
    assert (model.predict_proba(X) != plain.predict_proba(X)).any()
    assert model.score(X[600:], labels[600:]) > 0.6


def test_regression_has_nothing_to_calibrate():
    with pytest.raises(TypeError, match="calibrate"):
        TreeRegressor(calibrate=True)
    with pytest.raises(ValueError, match="calibrate must be True or False"):
        TreeClassifier(calibrate="yes").fit([[0.0], [1.0]], [0, 1])


# Rare classes


@pytest.mark.parametrize("leaves", ["auto", "constant"])
def test_the_report_has_a_note_on_a_rare_class_and_a_threshold(rare, leaves):
    X, y, X_new, y_new = rare
    model = quick(leaves).fit(X, y)
    report = model.fit_report_
    assert "Note: yes is rare" in str(report)
    assert report.to_dict()["threshold"] == report.threshold
    assert report.to_dict()["held_out"]["rarest"] == "yes"
    found = model.tree_.with_threshold(report.threshold)
    by_threshold = found.predict(X_new)
    plain, better = (
        balanced_accuracy_score(y_new, p) for p in (model.predict(X_new), by_threshold)
    )
    assert better > plain + 0.02
    fixed = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=report.threshold, response_method="predict_proba"
    ).fit(X, y)
    assert (fixed.predict(X_new) == by_threshold).all()


def test_other_reports_have_no_note():
    X, y = load_iris(return_X_y=True)
    report = TreeClassifier(leaves="constant", **QUICK).fit(X, y).fit_report_
    assert report.threshold is None
    assert "held-out rows: log loss" in str(report)
    assert "rare" not in str(report)
    numbers = TreeRegressor(leaves="constant", **QUICK).fit(X[:, 1:], X[:, 0]).fit_report_
    assert numbers.held_out is None
    assert "held-out rows: log loss" not in str(numbers)


# Never 0 or 1


def _separable(rng, n):
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] > 0).astype(int)


def _diagonal(rng, n):
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] > X[:, 1]).astype(int)


def _blocks(rng, n):
    """Every level of a category has one class."""
    X = rng.integers(0, 8, size=(n, 3)).astype(float)
    return X, (X[:, 0] % 3).astype(int)


def _checkers(rng, n):
    X = rng.random((n, 2))
    return X, ((8 * X).astype(int).sum(axis=1) % 2).astype(int)


def _one_row_of_a_class(rng, n):
    y = np.zeros(n, dtype=int)
    y[:2] = 1
    return np.arange(n, dtype=float)[:, None], y


def _noise(rng, n):
    return rng.normal(size=(n, 3)), rng.integers(0, 2, n)


def _labels(rng, n):
    X = rng.normal(size=(n, 3))
    return X, (X[:, :2] > 0).astype(int)


def _sparse(rng, n):
    X, y = _separable(rng, n)
    return sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0)), y


TABLES = [
    _separable, _diagonal, _blocks, _checkers, _one_row_of_a_class, _noise, _labels, _sparse,
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__.strip("_"))
@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("options", [{}, {"max_depth": 16, "max_trials": 12}], ids=["any", "deep"])
def test_no_probability_is_0_or_1(table, leaves, options):
    X, y = table(np.random.default_rng(0), 300)
    model = quick(leaves, **options).fit(X, y)
    p = model.tree_.predict_proba(X)
    assert ((p > 0) & (p < 1)).all()
    if leaves == "constant":
        assert ((model.tree_.values > 0) & (model.tree_.values < 1)).all()


@pytest.mark.parametrize("leaves", ["auto", "constant"])
@pytest.mark.parametrize("weights", [None, "balanced"])
def test_no_probability_of_a_large_table_is_0_or_1(leaves, weights):
    X, y = _checkers(np.random.default_rng(0), 25_000)
    options = {"max_trials": 14, "max_depth": 12, "max_leaves": None}
    if leaves == "auto":
        options |= {"max_terms": 0}
    else:
        options.pop("max_leaves")
    model = quick(leaves, class_weight=weights, **options).fit(X, y)
    assert model.tree_.n_leaves > 20
    p = model.tree_.predict_proba(X)
    assert ((p > 0) & (p < 1)).all()


def test_no_probability_of_an_interrupted_fit_is_0_or_1():
    X, y = _separable(np.random.default_rng(0), 300)

    def interrupt(_):
        raise KeyboardInterrupt

    model = TreeClassifier(**QUICK, callbacks=interrupt)
    with pytest.warns(hardwood.errors.FitInterruptedWarning):
        model.fit(X, y)
    p = model.tree_.predict_proba(X)
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.slow
def test_distilled_and_reinforced_trees_have_no_probability_of_0_or_1(monkeypatch):
    monkeypatch.setattr("hardwood.search.distill._EPOCHS", (2, 60))
    X, y = _diagonal(np.random.default_rng(0), 200)
    search = TreeClassifier(leaves="constant", **QUICK | {"teacher": "auto", "max_trials": 25})
    model = search.fit(X, y)
    tried = " ".join(trial.candidate for trial in model.fit_report_.trials)
    assert "reinforced" in tried
    p = model.tree_.predict_proba(X)
    assert ((p > 0) & (p < 1)).all()
