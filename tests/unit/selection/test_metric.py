from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss, mean_absolute_error, mean_pinball_loss, mean_squared_error
from sklearn.tree import DecisionTreeClassifier

from hardwood import DGTClassifier, DGTRegressor
from hardwood.learn import Huber, Quantile
from hardwood.selection.metric import metric_of
from hardwood.selection.rows import LabeledRows

QUICK = {"max_depth": 2, "max_epochs": 3, "random_state": 0}


@pytest.fixture
def parts(rng):
    """Rows to learn from and rows to score, with weights."""

    def make(target):
        X = rng.normal(size=(90, 2))
        y = target(X)
        weight = rng.random(90) + 0.1
        rows = LabeledRows.of(X, y, weight)
        return rows.take(np.arange(60)), rows.take(np.arange(60, 90))

    return make


def value(estimator, parts, scoring=None):
    train, validation = parts
    return metric_of(estimator, scoring).of(estimator.fit(train.X, train.y), train, validation)


def labels(X):
    return np.array(["no", "maybe", "yes"])[np.digitize(X[:, 0], [-0.5, 0.5])]


def amounts(X):
    return np.exp(X[:, 0])


def test_log_loss_of_classes(parts):
    model, (train, validation) = DGTClassifier(**QUICK), parts(labels)
    found = value(model, (train, validation))
    expected = log_loss(
        validation.y, model.predict_proba(validation.X), sample_weight=validation.weight
    )
    assert found == pytest.approx(expected)
    assert metric_of(model, None).direction == "minimize"


def test_a_class_that_was_not_learned_is_a_surprise(parts):
    train, validation = parts(lambda X: np.where(X[:, 0] > 0, "b", "d"))
    for label in ("a", "c", "e"):
        strange = LabeledRows(validation.X, np.full(30, label), None)
        assert value(DGTClassifier(**QUICK), (train, strange)) > 30


def test_log_loss_of_several_labels(parts):
    model, (train, validation) = DGTClassifier(**QUICK), parts(lambda X: (X > 0).astype(int))
    found = value(model, (train, validation))
    p = model.predict_proba(validation.X)
    expected = [
        log_loss(validation.y[:, j], p[:, j], sample_weight=validation.weight, labels=[0, 1])
        for j in range(2)
    ]
    assert found == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("squared_error", mean_squared_error),
        ("absolute_error", mean_absolute_error),
        (Quantile(0.8), lambda *a, **w: mean_pinball_loss(*a, alpha=0.8, **w)),
    ],
)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_losses_of_numbers(parts, loss, expected, n_targets):
    model = DGTRegressor(loss=loss, **QUICK)
    train, validation = parts(lambda X: amounts(X) if n_targets == 1 else X**2)
    found = value(model, (train, validation))
    weight = validation.weight
    assert found == pytest.approx(
        expected(validation.y, model.predict(validation.X), sample_weight=weight)
    )


def test_the_poisson_loss(parts):
    model, (train, validation) = DGTRegressor(loss="poisson", **QUICK), parts(amounts)
    found = value(model, (train, validation))
    p = model.predict(validation.X)
    losses = p - validation.y * np.log(p)
    assert found == pytest.approx(np.average(losses, weights=validation.weight))


def test_the_huber_loss_bends_at_deviations_of_the_training_target(parts):
    train, validation = parts(amounts)
    small = value(DGTRegressor(loss=Huber(1e-6), **QUICK), (train, validation))
    model = DGTRegressor(loss=Huber(1e6), **QUICK)
    large = value(model, (train, validation))
    weight = validation.weight
    squares = mean_squared_error(validation.y, model.predict(validation.X), sample_weight=weight)
    assert large == pytest.approx(squares / 2)
    model = DGTRegressor(loss=Huber(1e-6), **QUICK).fit(train.X, train.y)
    sizes = mean_absolute_error(validation.y, model.predict(validation.X), sample_weight=weight)
    assert small == pytest.approx(1e-6 * train.y.std() * sizes, rel=1e-4)


def test_a_function_that_returns_losses_is_a_metric(parts):
    def squares(prediction, target):
        error = prediction - target
        return (error**2).mean(axis=1), 2 * error

    train, validation = parts(amounts)
    model = DGTRegressor(loss=squares, **QUICK)
    expected = np.average((model.fit(train.X, train.y).predict(validation.X) - validation.y) ** 2)
    unweighted = LabeledRows(validation.X, validation.y, None)
    assert value(model, (train, unweighted)) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="has no values"):
        value(DGTRegressor(loss=lambda p, t: p - t, **QUICK), (train, validation))
    with pytest.raises(ValueError, match="scoring='neg_log_loss'"):
        metric_of(DGTClassifier(loss=squares), None)


def test_scorers_by_name_and_by_function(parts):
    train, validation = parts(labels)
    model = DGTClassifier(**QUICK)
    assert value(model, (train, validation), "accuracy") == pytest.approx(
        model.score(validation.X, validation.y, sample_weight=validation.weight)
    )

    def mine(estimator, X, y, sample_weight):
        return len(X) + sample_weight.sum()

    assert value(model, (train, validation), mine) == pytest.approx(30 + validation.weight.sum())
    assert metric_of(model, mine).name == "mine"
    assert metric_of(model, "accuracy").direction == "maximize"


def test_a_scorer_without_weights_is_named(parts):
    with pytest.raises(ValueError, match="takes no sample_weight"):
        value(DGTRegressor(**QUICK), parts(amounts), "neg_max_error")


def test_other_estimators_have_their_own_score(parts):
    train, validation = parts(labels)
    tree = DecisionTreeClassifier(random_state=0)
    assert metric_of(tree, None).name == "score"
    assert 0 < value(tree, (train, validation)) <= 1
    assert metric_of(LinearRegression(), None).direction == "maximize"


def test_what_is_no_metric_is_refused():
    with pytest.raises(ValueError, match="not a scikit-learn scorer"):
        metric_of(DGTClassifier(), "acuracy")
    with pytest.raises(TypeError, match="scoring must be"):
        metric_of(DGTClassifier(), 3)
