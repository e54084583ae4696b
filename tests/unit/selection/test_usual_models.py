"""What a linear model and CART reach, in no more time than they are given."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from hardwood.clock import Clock
from hardwood.selection import other_libraries, usual_models
from hardwood.selection.models import Settings
from hardwood.selection.other_libraries import CART_HEIGHTS, CART_LEAF_ROWS, TunedCART
from hardwood.selection.rows import LabeledRows
from hardwood.selection.usual_models import UsualModel

CLASSES = Settings(has_classes=True, seed=0, n_jobs=1)
NUMBERS = Settings(has_classes=False, seed=0, n_jobs=1)


def measured(rows: LabeledRows, X, settings, seconds: float = math.inf) -> list[UsualModel]:
    return usual_models.usual_models(rows, X, settings, seconds=seconds)


def slope(rng, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -2.0, 0.0] + 0.1 * rng.normal(size=n)


def test_classes_get_probabilities(rng):
    X, score = slope(rng)
    y = np.where(score > 0, "yes", "no")
    linear, cart = measured(LabeledRows(X[:200], y[:200], None), X[200:], CLASSES)
    assert linear.name == "logistic regression"
    assert cart.name.startswith("CART, depth ")
    assert cart.name.endswith(" leaves")
    for model, least in ((linear, 0.95), (cart, 0.8)):
        assert model.outputs.shape == (100, 2)
        assert ((model.outputs[:, 1] > 0.5) == (y[200:] == "yes")).mean() > least
    expected = LogisticRegression(C=1e6).fit(X[:200], y[:200]).predict(X[200:])
    assert (np.where(linear.outputs[:, 1] > 0.5, "yes", "no") == expected).mean() > 0.95


def test_numbers_get_predictions(rng):
    X, y = slope(rng)
    linear, cart = measured(LabeledRows(X[:200], y[:200], None), X[200:], NUMBERS)
    assert linear.name == "ridge regression"
    expected = Ridge(alpha=1e-3).fit(X[:200], y[:200]).predict(X[200:])
    np.testing.assert_allclose(linear.outputs, expected, atol=0.05)
    assert np.corrcoef(cart.outputs, y[200:])[0, 1] > 0.8


def test_text_and_gaps_are_encoded(rng):
    n = 240
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], size=n)})
    frame.loc[::5, "a"] = np.nan
    y = np.where(frame["b"] == "x", 3.0, 0.0) + frame["a"].isna()
    found = measured(LabeledRows(frame[:200], y[:200].to_numpy(), None), frame[200:], NUMBERS)
    for model in found:
        assert np.abs(model.outputs - y[200:]).max() < 0.5


def test_weights_count(rng):
    X = np.zeros((100, 1))
    y = np.repeat([0.0, 1.0], 50)
    found = measured(LabeledRows(X, y, np.repeat([1.0, 3.0], 50)), X[:1], NUMBERS)
    for model in found:
        np.testing.assert_allclose(model.outputs, 0.75, atol=0.01)


def test_several_targets_are_not_measured(rng):
    X, y = slope(rng)
    for settings in (CLASSES, NUMBERS):
        found = measured(LabeledRows(X, np.column_stack([y, y]), None), X, settings)
        assert [model.reason for model in found] == ["there are several targets"] * 2
        assert all(model.outputs is None for model in found)


def test_what_fails_says_why(rng, monkeypatch):
    class Broken(BaseEstimator):
        def fit(self, X, y):
            raise RuntimeError("a long\nstory")

    monkeypatch.setattr(other_libraries, "cart", lambda _: Broken())
    X, y = slope(rng)
    linear, cart = measured(LabeledRows(X, y, None), X, NUMBERS)
    assert linear.outputs is not None
    assert (cart.outputs, cart.reason) == (None, "a long")


def test_what_did_not_converge_is_said(rng, monkeypatch):
    model = other_libraries.EncodedClassifier(LogisticRegression(max_iter=1))
    monkeypatch.setattr(other_libraries, "linear", lambda _: model)
    X, score = slope(rng)
    linear, _ = measured(LabeledRows(X, score > 0, None), X, CLASSES)
    assert linear.name == "logistic regression, not converged"


# --- time -------------------------------------------------------------------------------------


class Timed(ClassifierMixin, BaseEstimator):
    """A model that takes a millisecond per row, by a clock of its own."""

    now = 0.0
    sizes: list[int] = []

    def fit(self, X, y):
        Timed.now += 1e-3 * len(X)
        Timed.sizes.append(len(X))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def predict_proba(self, X):
        return np.zeros((len(X), len(self.classes_)))


@pytest.fixture
def timed(monkeypatch):
    Timed.now, Timed.sizes = 0.0, []
    monkeypatch.setattr(other_libraries, "linear", lambda _: Timed())
    monkeypatch.setattr(other_libraries, "cart", lambda _: Timed())
    monkeypatch.setattr(usual_models, "Clock", lambda limit: Clock(limit, lambda: Timed.now))
    return Timed


@pytest.mark.parametrize("seconds", [0.5, 2.0, 5.0, 10.0, 16.9, 17.1, 100.0])
def test_all_models_together_keep_the_time(timed, rng, seconds):
    """6,400 rows take 6.4 seconds, and the probes before them a third of that."""
    X, y = rng.normal(size=(6400, 10)), np.zeros(6400)
    found = measured(LabeledRows(X, y, None), X[:5], NUMBERS, seconds)
    assert timed.now <= seconds
    n_measured = sum(model.outputs is not None for model in found)
    assert n_measured == (0 if seconds < 8 else 1 if seconds < 17 else 2)
    for model in found:
        late = "it would take about 6.4 s, longer than the fit leaves for it"
        assert model.reason == ("" if model.outputs is not None else late)


def test_few_entries_are_not_probed(timed, rng):
    X, y = rng.normal(size=(200, 10)), np.zeros(200)
    measured(LabeledRows(X, y, None), X[:5], NUMBERS, 10.0)
    assert timed.sizes == [200, 200]
    timed.sizes.clear()
    measured(LabeledRows(np.tile(X, 20), y, None), np.tile(X, 20)[:5], NUMBERS, 10.0)
    assert timed.sizes == [50, 200] * 2


def test_without_time_nothing_is_measured(timed, rng):
    X, y = rng.normal(size=(200, 10)), np.zeros(200)
    found = measured(LabeledRows(X, y, None), X[:5], NUMBERS, -1.0)
    assert [model.reason for model in found] == ["the fit leaves no time for it"] * 2


def test_a_probe_has_every_class(timed, rng):
    X, y = rng.normal(size=(6400, 10)), np.zeros(6400, dtype=int)
    y[:3] = [1, 2, 3]
    (linear, _) = measured(LabeledRows(X, y, None), X[:5], CLASSES)
    assert linear.outputs.shape == (5, 4)
    assert 100 <= timed.sizes[0] <= 104


# --- CART -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_one_tree_cut_at_every_depth_is_as_good_as_many(scoring, rng):
    X, y = slope(rng, 400)
    y = y + rng.normal(size=400)
    tree = DecisionTreeRegressor(random_state=0)
    tuned = TunedCART(tree, scoring, 0).fit(X, y)
    rows = LabeledRows(X, y, None)
    folds = [(f.train, f.validation) for f in tuned._folds(rows, np.random.default_rng(0))]
    grid = {"max_depth": CART_HEIGHTS, "min_samples_leaf": CART_LEAF_ROWS}
    search = GridSearchCV(tree, grid, scoring=scoring, cv=folds).fit(X, y)
    found = tuned.best_estimator_.get_params()
    assert {name: found[name] for name in grid} == search.best_params_
    np.testing.assert_array_equal(tuned.predict(X), search.predict(X))


def test_a_tree_that_is_cut_predicts_like_one_that_was_stopped(rng):
    X, score = slope(rng)
    y = score > 0
    full = DecisionTreeClassifier(random_state=0).fit(X, y)
    for height, found in zip(
        CART_HEIGHTS, other_libraries._cut(full, X, CART_HEIGHTS), strict=True
    ):
        stopped = DecisionTreeClassifier(random_state=0, max_depth=height).fit(X, y)
        np.testing.assert_allclose(found, stopped.predict_proba(X))


def test_the_depth_is_chosen_on_part_of_many_rows(rng, monkeypatch):
    monkeypatch.setattr(other_libraries, "_MOST_INNER_ROWS", 90)
    sizes = []

    class Counted(DecisionTreeRegressor):
        def fit(self, X, y, sample_weight=None):
            sizes.append(len(X))
            return super().fit(X, y, sample_weight)

    X, y = slope(rng)
    TunedCART(Counted(random_state=0), None, 0).fit(X, y)
    assert sizes == [60] * 6 + [300]
