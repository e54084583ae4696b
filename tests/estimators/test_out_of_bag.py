"""Out-of-bag scores against brute force: who drew which row is asked of the engine."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from hardwood import DGTForestClassifier, DGTForestRegressor
from hardwood._native import bootstrap_counts
from hardwood.learn.learner import drawn_seed
from hardwood.table.canonical_rows import canonical_rows

OPTIONS = {"max_depth": 3, "max_epochs": 20, "oob_score": True, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    """60 different rows, most of them several times, with weights of which some are zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(2)
    order = np.concatenate([np.arange(60), rng.integers(0, 60, 90)])
    weight = rng.uniform(0.1, 3.0, 150)
    weight[[3, 70, 71]] = 0.0
    return X[order], weight


def targets(X):
    index = np.digitize(X[:, 0] + X[:, 1], [-0.8, 0.8])
    return {
        "classes": np.array(["low", "middle", "high"])[index],
        "labels": np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int),
        "number": X[:, 0] - X[:, 1],
        "numbers": np.column_stack([X[:, 0], X[:, 1] ** 2]),
    }


def as_numbers(y):
    if y.dtype.kind == "U":
        return np.unique(y, return_inverse=True)[1][:, None].astype(float)
    return y.reshape(len(y), -1).astype(float)


def brute_force(model, X, y, weight, *, fraction, vote=False):
    """Mean answer, for each row of the table, of the trees that did not draw it; NaN for none."""
    rows = canonical_rows(X, as_numbers(y), weight)
    n_rows = len(rows)
    n_draws = max(1, int(fraction * n_rows + 0.5))
    drawn = np.array(
        [
            bootstrap_counts(n_rows, n_draws, model._seed_of_trees, t)
            for t in range(len(model.estimators_))
        ]
    )
    assert (drawn.sum(axis=1) == n_draws).all()
    place = {(*X[row], *as_numbers(y)[row]): i for i, row in enumerate(rows.index)}
    shown = []
    for x, target, w in zip(X, as_numbers(y), weight, strict=True):
        i = place.get((*x, *target))
        answers = [
            outputs(tree, x, vote)
            for tree, counts in zip(model.estimators_, drawn, strict=True)
            if w > 0 and counts[i] == 0
        ]
        shown.append(np.mean(answers, axis=0) if answers else np.full(answers_of(model), np.nan))
    return np.array(shown)


def answers_of(model):
    return model.forest_.n_outputs


def outputs(tree, x, vote):
    if tree.task == "regression":
        return tree.predict(x[None]).reshape(-1)
    p = tree.predict_proba(x[None])[0]
    if not vote:
        return p
    return (p >= 0.5) * 1.0 if tree.task == "multilabel" else np.eye(len(p))[p.argmax()]


@pytest.mark.parametrize("combine", ["mean", "vote"])
@pytest.mark.parametrize("fraction", [1.0, 0.4])
@pytest.mark.parametrize("task", ["classes", "labels"])
def test_classes_and_labels(task, fraction, combine, table):
    X, weight = table
    y = targets(X)[task]
    model = DGTForestClassifier(
        n_estimators=7, sample_fraction=fraction, combine=combine, **OPTIONS
    ).fit(X, y, sample_weight=weight)
    expected = brute_force(model, X, y, weight, fraction=fraction, vote=combine == "vote")
    np.testing.assert_allclose(model.oob_decision_function_, expected, rtol=1e-12)
    known = ~np.isnan(expected[:, 0])
    assert not known[weight == 0].any()
    p = expected[known]
    chosen = (p >= 0.5).astype(int) if task == "labels" else model.classes_[p.argmax(axis=1)]
    accuracy = accuracy_score(y[known], chosen, sample_weight=weight[known])
    assert model.oob_score_ == pytest.approx(accuracy, rel=1e-12)
    assert not hasattr(model, "oob_prediction_")


@pytest.mark.parametrize("fraction", [1.0, 0.4])
@pytest.mark.parametrize("task", ["number", "numbers"])
def test_numbers(task, fraction, table):
    X, weight = table
    y = targets(X)[task]
    model = DGTForestRegressor(n_estimators=7, sample_fraction=fraction, **OPTIONS)
    model.fit(X, y, sample_weight=weight)
    expected = brute_force(model, X, y, weight, fraction=fraction)
    found = model.oob_prediction_.reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert model.oob_prediction_.shape == y.shape
    known = ~np.isnan(expected[:, 0])
    score = r2_score(y.reshape(expected.shape)[known], expected[known], sample_weight=weight[known])
    assert model.oob_score_ == pytest.approx(score, rel=1e-9)


def test_rows_that_every_tree_saw_are_unknown(table):
    X, _ = table
    y = targets(X)["number"]
    model = DGTForestRegressor(n_estimators=1, **OPTIONS).fit(X, y)
    rows = canonical_rows(X, y[:, None])
    n = len(rows)
    seen = bootstrap_counts(n, n, model._seed_of_trees, 0)
    shown = model.oob_prediction_[rows.index]
    np.testing.assert_array_equal(np.isnan(shown), np.asarray(seen) > 0)
    assert 0 < np.isnan(shown).sum() < n


def test_rows_of_the_validation_part_are_unknown(table):
    X, _ = table
    y = targets(X)["classes"]
    model = DGTForestClassifier(
        n_estimators=40, early_stopping=True, validation_fraction=0.25, **OPTIONS
    ).fit(X, y)
    rows = canonical_rows(X, as_numbers(y)).index
    unknown = np.isnan(model.oob_decision_function_[rows]).any(axis=1)
    assert unknown.sum() == model.estimators_[0].record["validation_rows"] == 15


def test_the_score_is_one_of_unseen_rows():
    """On noise, a tree predicts its training rows well and other rows badly."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    model = DGTForestClassifier(
        n_estimators=20, **{**OPTIONS, "max_depth": 6, "max_epochs": 60}
    ).fit(X, y)
    assert model.score(X, y) > 0.75
    assert 0.35 < model.oob_score_ < 0.65


def test_a_fit_without_scores_forgets_those_of_an_earlier_one(table):
    X, _ = table
    y = targets(X)["number"]
    model = DGTForestRegressor(n_estimators=3, **OPTIONS).fit(X, y)
    assert hasattr(model, "oob_prediction_")
    model.set_params(oob_score=False).fit(X, y)
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_prediction_")


def test_nothing_is_out_of_a_bag_that_holds_all(table):
    X, _ = table
    y = targets(X)["number"]
    with pytest.raises(ValueError, match="oob_score=True needs bootstrap=True"):
        DGTForestRegressor(bootstrap=False, **OPTIONS).fit(X, y)
    seed = next(s for s in range(50) if all(bootstrap_counts(2, 2, drawn_seed(s), 0)))
    model = DGTForestRegressor(n_estimators=1, **{**OPTIONS, "random_state": seed})
    with pytest.raises(ValueError, match="every tree saw every row"):
        model.fit([[0.0], [1.0]], [0.0, 1.0])
