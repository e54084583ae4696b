"""scikit-learn's contract: its own checks, and life inside its tools."""

from __future__ import annotations

import inspect
import pickle
from collections import Counter

import joblib
import numpy as np
import pytest
from sklearn.base import ClassifierMixin, clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import hardwood
from estimators.every_estimator import EVERY_ESTIMATOR, OTHER_SETTINGS, runnable
from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    DGTForestRegressor,
    DGTRegressor,
)
from hardwood.estimators.base import ForestEstimator


@parametrize_with_checks(runnable(EVERY_ESTIMATOR))
def test_scikit_learn_has_nothing_to_object(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(runnable(OTHER_SETTINGS))
def test_scikit_learn_has_nothing_to_object_to_other_settings(estimator, check):
    check(estimator)


def test_the_list_has_every_public_estimator():
    public = [name for name in hardwood.__all__ if hasattr(getattr(hardwood, name), "fit")]
    assert sorted(public) == sorted(type(one).__name__ for one in EVERY_ESTIMATOR)
    counts = Counter(type(one).__name__ for one in OTHER_SETTINGS)
    assert {name: counts[name] for name in public if counts[name] < 2} == {}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def small(**options) -> DGTClassifier:
    return DGTClassifier(**{"max_depth": 3, "max_epochs": 60, "random_state": 0, **options})


# scikit-learn wants every constructor to spell out its parameters; nothing else keeps them alike.
OF_CLASSES = {"class_weight"}
OF_FORESTS = {"n_estimators", "bootstrap", "sample_fraction", "oob_score", "warm_start"}
ONLY_OF = {
    DGTClassifier: OF_CLASSES | {"n_restarts"},
    DGTRegressor: {"n_restarts"},
    DGTForestClassifier: OF_CLASSES | OF_FORESTS | {"combine"},
    DGTForestRegressor: OF_FORESTS,
}


def signature_of(kind) -> dict[str, tuple[object, object]]:
    parameters = inspect.signature(kind).parameters.values()
    return {one.name: (one.default, one.annotation) for one in parameters}


@pytest.mark.parametrize("kind", ONLY_OF)
def test_the_constructors_of_dgt_agree(kind):
    others = [other for other in ONLY_OF if other is not kind]
    found = signature_of(kind)
    shared = set.intersection(*(set(signature_of(other)) for other in [kind, *others]))
    assert set(found) - shared == ONLY_OF[kind]
    for other in others:
        theirs = signature_of(other)
        both = [name for name in found if name in theirs]
        assert both == [name for name in theirs if name in found]  # in the same order
        differ = {name for name in both if found[name] != theirs[name]}
        expected = set()
        if issubclass(kind, ClassifierMixin) != issubclass(other, ClassifierMixin):
            expected.add("loss")
        if issubclass(kind, ForestEstimator) != issubclass(other, ForestEstimator):
            expected.add("early_stopping")  # off in forests
        assert differ == expected


def test_parameters_are_keyword_only():
    with pytest.raises(TypeError):
        DGTClassifier(3)


def test_both_estimators_have_the_same_words():
    classifier, regressor = DGTClassifier().get_params(), DGTRegressor().get_params()
    assert set(classifier) - set(regressor) == {"class_weight"}
    assert set(regressor) <= set(classifier)
    different = {name for name in regressor if regressor[name] != classifier[name]}
    assert different == {"loss"}


def test_in_a_pipeline_with_cross_validation(iris):
    # Of 120 rows a validation part is too small to stop so short a run by.
    pipeline = make_pipeline(StandardScaler(), small().set_params(early_stopping=False))
    assert cross_val_score(pipeline, *iris, cv=5).mean() > 0.9


def test_grid_search_over_depth_and_penalty(iris):
    search = GridSearchCV(small(), {"max_depth": [1, 3], "l1": [0.0, 1e-3]}, cv=3)
    search.fit(*iris)
    assert search.best_params_["max_depth"] == 3
    assert search.best_estimator_.score(*iris) > 0.9


def test_grid_search_over_a_forest(iris):
    forest = DGTForestClassifier(n_estimators=3, max_epochs=40, random_state=0)
    grid = {"max_depth": [1, 3], "leaves": ["constant", "linear"], "combine": ["mean", "vote"]}
    search = GridSearchCV(forest, grid, cv=3).fit(*iris)
    assert search.best_score_ > 0.9
    assert search.best_estimator_.forest_.n_trees == 3


@pytest.mark.parametrize("library", ["default", "pandas", "polars"])
def test_behind_a_transformer_of_any_output(library, iris):
    scaler = StandardScaler().set_output(transform=library)
    forest = DGTForestClassifier(n_estimators=3, max_depth=3, max_epochs=100, random_state=0)
    model = make_pipeline(scaler, forest).fit(*iris)
    assert model.score(*iris) > 0.9
    names = [f"x{j}" for j in range(4)]
    assert list(model[-1].forest_.feature_names) == names
    assert clone(model).fit(*iris)[-1].forest_ == forest.forest_


def test_inside_meta_estimators(iris):
    X, y = iris
    assert BaggingClassifier(small(), n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.9
    labels = np.column_stack([y, y % 2])
    assert MultiOutputClassifier(small()).fit(X, labels).predict(X).shape == (150, 2)
    assert cross_val_predict(small(), X, y, method="predict_proba").shape == (150, 3)
    importance = permutation_importance(small().fit(X, y), X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean[2:].max() > 0.1


def test_a_clone_learns_the_same_tree(iris):
    model = small().fit(*iris)
    assert clone(model).fit(*iris).tree_ == model.tree_


@pytest.mark.parametrize("how", ["pickle", "joblib"])
@pytest.mark.parametrize("Estimator", [DGTClassifier, DGTRegressor])
def test_pickles_answer_alike(how, Estimator, iris, tmp_path):
    X, y = iris
    model = Estimator(max_depth=3, max_epochs=20, random_state=0).fit(X, y)
    if how == "pickle":
        copy = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model")
        copy = joblib.load(tmp_path / "model")
    assert copy.tree_ == model.tree_
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_a_saved_tree_answers_alike(iris, tmp_path):
    X, y = iris
    model = small().fit(X, np.array(["a", "b", "c"])[y])
    model.save(tmp_path / "iris.hardwood")
    tree = hardwood.load(tmp_path / "iris.hardwood")
    assert tree == model.tree_
    np.testing.assert_array_equal(tree.predict(X), model.predict(X))
    np.testing.assert_array_equal(tree.predict_proba(X), model.predict_proba(X))


def test_predictions_are_those_of_the_tree(iris, diabetes):
    for model, (X, y) in ((small(), iris), (DGTRegressor(max_depth=3, random_state=0), diabetes)):
        model.fit(X, y)
        tree = model.tree_
        np.testing.assert_array_equal(model.predict(X), tree.predict(X))
        np.testing.assert_array_equal(model.apply(X), tree.apply(X))
        assert (model.decision_path(X) != tree.decision_path(X)).nnz == 0
    X, y = iris
    model = small().fit(X, y)
    log = model.predict_log_proba(X)
    np.testing.assert_allclose(np.exp(log), model.predict_proba(X))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["setosa", "versicolor", "virginica"], dtype=object),
        np.array([10, 20, 30], dtype=np.int32),
        np.array([-1.0, 0.0, 1.0]),
        np.array([False, True, True]),
    ],
    ids=["text", "objects", "int32", "floats", "booleans"],
)
def test_labels_come_back_as_they_were(iris, labels):
    X, y = iris
    model = small().fit(X, labels[y])
    found = model.predict(X)
    assert model.classes_.tolist() == sorted(set(labels.tolist()))
    assert found.dtype == model.classes_.dtype
    assert (found == labels[y]).mean() > 0.9
    assert found.dtype == labels.dtype or labels.dtype == object


def test_several_targets(diabetes):
    X, y = diabetes
    model = DGTRegressor(max_depth=3, random_state=0).fit(X, np.column_stack([y, -2 * y + 7]))
    found = model.predict(X)
    assert model.n_outputs_ == 2
    assert found.shape == (442, 2)
    np.testing.assert_allclose(found[:, 1], -2 * found[:, 0] + 7, rtol=0.2, atol=60)
    assert model.score(X, np.column_stack([y, -2 * y + 7])) > 0.35


def test_one_row_does_not_wait_for_checks(iris, monkeypatch):
    """A plain float array goes straight to the model."""
    models = [small().fit(*iris), DGTForestClassifier(n_estimators=2, max_epochs=5).fit(*iris)]

    def checks_run(*_, **__):
        raise AssertionError("a plain float array was checked at length")

    monkeypatch.setattr("hardwood.estimators.base.validate_data", checks_run)
    monkeypatch.setattr("hardwood.estimators.base.check_is_fitted", checks_run)
    for model in models:
        for dtype in (np.float32, np.float64):
            assert model.predict(iris[0][:1].astype(dtype)).shape == (1,)
        with pytest.raises(AssertionError, match="at length"):
            model.predict(iris[0][:1].astype(int))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply", "decision_path"])
@pytest.mark.parametrize("Estimator", [DGTClassifier, DGTForestClassifier])
def test_before_fit_there_is_nothing_to_ask(Estimator, method, iris):
    if method == "decision_path" and Estimator is DGTForestClassifier:
        assert not hasattr(Estimator(), method)
        return
    with pytest.raises(NotFittedError):
        getattr(Estimator(), method)(iris[0])
    with pytest.raises(NotFittedError):
        Estimator().save("nowhere")


def test_another_width_is_refused(iris):
    model = small().fit(*iris)
    with pytest.raises(ValueError, match="X has 3 features, but DGTClassifier is expecting 4"):
        model.predict(iris[0][:, :3])


def test_a_failed_fit_leaves_the_earlier_one(iris):
    X, y = iris
    model = small().fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="class"):
        model.fit(X[:50, :2], y[:50])
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(X), before)
