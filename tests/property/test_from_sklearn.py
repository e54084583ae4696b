"""Converted trees of scikit-learn predict the same, also at thresholds and for missing values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from hardwood import DGTClassifier, ObliqueTree, from_sklearn

CLASSIFIERS = [DecisionTreeClassifier, ExtraTreeClassifier]
REGRESSORS = [DecisionTreeRegressor, ExtraTreeRegressor]


def table(seed: int, missing: float, scale: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(80, 4)).round(1)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def at_thresholds(model, X: np.ndarray) -> np.ndarray:
    """Return rows with the thresholds themselves, and the numbers next to them."""
    nodes = model.tree_
    rows = [X]
    for j, t in zip(nodes.feature, nodes.threshold, strict=True):
        if j < 0 or not np.isfinite(t):
            continue
        near = np.repeat(np.nan_to_num(X[:1]), 5, axis=0)
        t32 = np.float32(t)
        near[:, j] = t, t32, np.nextafter(t32, -np.inf), np.nextafter(t32, np.inf), np.nan
        rows.append(near)
    return np.vstack(rows)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    missing=st.sampled_from([0.0, 0.2]),
    scale=st.sampled_from([1e-30, 1.0, 1e30]),
    depth=st.integers(1, 8),
    which=st.integers(0, 1),
)
def test_class_predictions_are_equal(seed, missing, scale, depth, which):
    X = table(seed, missing, scale)
    y = np.random.default_rng(seed).choice(["a", "b", "c"], len(X))
    model = CLASSIFIERS[which](max_depth=depth, random_state=seed).fit(X, y)
    tree = from_sklearn(model)
    rows = at_thresholds(model, X)
    np.testing.assert_allclose(tree.predict_proba(rows), model.predict_proba(rows), atol=1e-12)
    assert tree.n_leaves == model.get_n_leaves()
    assert tree.depth == model.get_depth()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), outputs=st.integers(1, 3), which=st.integers(0, 1))
def test_regression_predictions_are_equal(seed, outputs, which):
    X = table(seed, 0.1)
    y = np.random.default_rng(seed).normal(size=(len(X), outputs))
    model = REGRESSORS[which](max_depth=5, random_state=seed).fit(X, y)
    rows = at_thresholds(model, X)
    found = from_sklearn(model).predict(rows).reshape(len(rows), outputs)
    np.testing.assert_array_equal(found, model.predict(rows).reshape(len(rows), outputs))


def test_a_split_may_depend_only_on_missing_values():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])
    assert not np.isfinite(model.tree_.threshold[0])
    tree = from_sklearn(model)
    assert tree.predict(X).tolist() == [0, 0, 1, 1]
    assert "missing" in tree.split(0).condition


def test_counts_names_and_labels():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(frame, y)
    tree = from_sklearn(model, missing=False)
    assert tree.feature_names == tuple(frame.columns)
    assert tree.counts[0] == 150
    assert tree.schema.column_names == tuple(frame.columns)
    np.testing.assert_array_equal(tree.predict(frame), model.predict(frame))
    labels = np.stack([y == 0, y == 1], axis=1).astype(int)
    several = DecisionTreeClassifier(max_depth=2).fit(frame, labels)
    assert from_sklearn(several).task == "multilabel"
    np.testing.assert_array_equal(from_sklearn(several).predict(frame), several.predict(frame))


def test_a_tree_without_splits():
    model = DecisionTreeRegressor().fit([[1.0], [2.0]], [3.0, 3.0])
    assert from_sklearn(model).predict([[7.0]]).tolist() == [3.0]


def test_a_tree_of_a_forest_and_a_start_for_another_learner():
    X, y = load_iris(return_X_y=True)
    member = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y).estimators_[1]
    tree = from_sklearn(member)
    np.testing.assert_array_equal(tree.predict(X), member.predict(X))
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    start = from_sklearn(model)  # with flags for missing entries, of which the table has none
    still = DGTClassifier(
        max_depth=3, init=start, max_epochs=1, learning_rate=1e-12, early_stopping=False
    ).fit(X, y)
    np.testing.assert_array_equal(still.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("thing", "kind", "words"),
    [
        (DecisionTreeClassifier(), ValueError, "Call fit first"),
        (LogisticRegression(), TypeError, "DecisionTreeClassifier"),
        (3, TypeError, "DecisionTreeClassifier"),
        (ObliqueTree.of([[1.0]], thresholds=[0], values=[0, 1]), TypeError, "DecisionTree"),
    ],
)
def test_other_things_are_refused(thing, kind, words):
    with pytest.raises(kind, match=words):
        from_sklearn(thing)


def test_forests_and_several_targets_are_refused_with_advice():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="estimators_"):
        from_sklearn(RandomForestClassifier(2).fit(X, y))
    with pytest.raises(ValueError, match="one tree for each target|Fit one"):
        from_sklearn(DecisionTreeClassifier().fit(X, np.stack([y, y], axis=1)))
