"""`feature_importances_`: in scikit-learn's selection of columns, and the same everywhere."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.every_estimator import EVERY_ESTIMATOR, runnable
from hardwood import (
    DGTForestClassifier,
    GreedyTreeClassifier,
    GreedyTreeRegressor,
    TAOClassifier,
    TELClassifier,
    TreeClassifier,
    TreeRegressor,
)
from hardwood.report import describe
from hardwood.show.page.content import content_of
from hardwood.text.numbers import format_percent

SEARCH = {"time_limit": None, "max_trials": 2, "teacher": None, "random_state": 0}


def table(rng, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return five columns, of which the second and the fourth say everything, and their sum."""
    X = rng.normal(size=(n, 5)) * [1, 100, 1, 0.01, 1]
    return X, X[:, 1] / 100 + 100 * X[:, 3]


def named(estimators):
    return [pytest.param(one, id=type(one).__name__) for one in estimators]


@pytest.mark.parametrize("estimator", named(runnable(EVERY_ESTIMATOR)))
def test_every_estimator_says_which_columns_matter(estimator, rng):
    X, score = table(rng)
    model = clone(estimator).set_params(random_state=0)
    with pytest.raises(NotFittedError):
        _ = model.feature_importances_
    assert not hasattr(model, "feature_importances_")
    model.fit(X, np.where(score > 0, "above", "below") if is_classifier(model) else score)
    found = model.feature_importances_
    assert found.shape == (model.n_features_in_,)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    if hasattr(model, "targets_"):  # a clustering has no target of its own
        assert not found[model.targets_].any()
    else:
        assert set(np.argsort(found)[-2:]) == {1, 3}


@pytest.mark.parametrize(
    "estimator",
    named(
        [
            GreedyTreeRegressor(max_depth=4),
            TreeRegressor(**SEARCH),
            TreeRegressor(**{**SEARCH, "max_trials": 5}, leaves="constant"),
        ]
    ),
)
@pytest.mark.parametrize("selector", [SelectFromModel, RFE])
def test_columns_are_selected(selector, estimator, rng):
    X, score = table(rng)
    size = {"max_features": 2} if selector is SelectFromModel else {"n_features_to_select": 2}
    found = selector(estimator, **size).fit(X, score)
    assert np.flatnonzero(found.get_support()).tolist() == [1, 3]
    np.testing.assert_array_equal(found.transform(X), X[:, [1, 3]])


def test_columns_are_selected_by_cross_validation(rng):
    X, score = table(rng)
    y = np.where(score > 0, "above", "below")
    tree = GreedyTreeClassifier(max_depth=3)
    assert RFECV(tree, cv=3, min_features_to_select=2).fit(X, y).get_support()[[1, 3]].all()
    found = SequentialFeatureSelector(tree, n_features_to_select=2, cv=3).fit(X, y)
    assert np.flatnonzero(found.get_support()).tolist() == [1, 3]


def mixed_frame(rng) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a frame of numbers, texts and gaps, and classes that follow two of its columns."""
    n = 300
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "color": rng.choice(["red", "green", "blue"], size=n),
            "width": rng.normal(size=n),
            "city": pd.Categorical(rng.choice(["Oslo", "Rome"], size=n)),
        }
    )
    frame.loc[::7, "noise"] = np.nan
    return frame, np.where((frame["color"] == "red") ^ (frame["width"] > 1), "yes", "no")


@pytest.mark.parametrize(
    "selecting",
    named([GreedyTreeClassifier(max_depth=4), TreeClassifier(**SEARCH)]),
)
def test_text_columns_are_selected_in_a_pipeline(selecting, rng):
    frame, y = mixed_frame(rng)
    chosen = SelectFromModel(selecting, max_features=2).set_output(transform="pandas")
    model = make_pipeline(chosen, GreedyTreeClassifier(max_depth=4)).fit(frame, y)
    assert model[0].get_feature_names_out().tolist() == ["color", "width"]
    assert model[-1].feature_names_in_.tolist() == ["color", "width"]
    assert model.score(frame, y) > 0.95


def test_the_last_step_of_a_pipeline_is_asked(rng):
    X, score = table(rng)
    pipeline = make_pipeline(StandardScaler(), GreedyTreeRegressor(max_depth=3))
    asked = {"importance_getter": "named_steps.greedytreeregressor.feature_importances_"}
    found = RFE(pipeline, n_features_to_select=2, **asked).fit(X, score)
    assert np.flatnonzero(found.get_support()).tolist() == [1, 3]


def test_who_changes_the_array_does_not_change_the_model(rng):
    X, score = table(rng)
    model = GreedyTreeRegressor(max_depth=2).fit(X, score)
    before = model.feature_importances_.copy()
    model.feature_importances_[:] = 7.0
    np.testing.assert_array_equal(model.feature_importances_, before)


@pytest.mark.parametrize(
    "estimator",
    named(
        [
            TreeClassifier(**SEARCH),
            TAOClassifier(max_depth=2),
            DGTForestClassifier(n_estimators=2, max_depth=2, max_epochs=20, random_state=0),
            TELClassifier(n_estimators=2, max_depth=2, max_epochs=20, random_state=0),
        ]
    ),
)
def test_text_and_reports_and_the_page_say_the_same(estimator, rng):
    frame, y = mixed_frame(rng)
    model = clone(estimator).fit(frame, y)
    expected = dict(zip(frame.columns, model.feature_importances_.tolist(), strict=True))
    found = describe(model)
    assert {use.name: use.importance for use in found.features} == expected
    listed = found.to_dict()["features"]
    assert {entry["name"]: entry["importance"] for entry in listed} == expected
    shown = [expected[entry["name"]] for entry in listed]
    assert shown == sorted(shown, reverse=True)
    for entry in listed:
        if entry["n_splits"] + entry["n_linear_leaves"]:
            words = rf"^ *{entry['name']} .* {re.escape(format_percent(entry['importance']))}( |$)"
            assert re.search(words, str(found), re.MULTILINE)
    if not isinstance(model, TELClassifier):  # a page shows hard trees
        page = content_of(getattr(model, model._model_attribute))["features"]
        of_page = {entry["name"].strip('"'): entry["importance"] for entry in page}
        assert of_page == {name: expected[name] for name in of_page}
