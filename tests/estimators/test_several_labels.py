"""Several yes/no labels per row: what they may come as, and what is learned of them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import compute_sample_weight, get_tags

import hardwood
from hardwood import DGTClassifier, GreedyTreeClassifier, TreeClassifier
from reference import losses as reference

OPTIONS = {"max_depth": 3, "max_epochs": 120, "random_state": 0}
NAMES = ["north", "south", "east"]


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).normal(size=(300, 3))
    return X, np.column_stack([X[:, 0] > 0, X[:, 0] + X[:, 1] > 0.5, X[:, 2] > 1]).astype(int)


@pytest.fixture(scope="module")
def model(table):
    return DGTClassifier(**OPTIONS).fit(*table)


def test_labels_are_learned(table, model):
    X, Y = table
    assert model.tree_.task == "multilabel"
    assert model.score(X, Y) > 0.75  # all three right
    assert (model.predict(X) == Y).mean() > 0.9
    assert roc_auc_score(Y, model.predict_proba(X)) > 0.9


def test_what_is_predicted(table, model):
    X, _ = table
    p, chosen = model.predict_proba(X), model.predict(X)
    assert p.shape == chosen.shape == (300, 3)
    assert chosen.dtype == np.int64
    np.testing.assert_array_equal(chosen, p >= 0.5)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(chosen, model.tree_.predict(X))


LIBRARIES = {
    "booleans": lambda Y: Y.astype(bool),
    "floats": lambda Y: Y.astype(float),
    "uint8": lambda Y: Y.astype(np.uint8),
    "objects": lambda Y: Y.astype(object),
    "fortran": np.asfortranarray,
    "lists": lambda Y: Y.tolist(),
    "rows": list,
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "frame": lambda Y: pd.DataFrame(Y, columns=NAMES),
    "frame of booleans": lambda Y: pd.DataFrame(Y.astype(bool), columns=NAMES),
    "nullable frame": lambda Y: pd.DataFrame(Y, columns=NAMES).astype("boolean"),
    "polars": lambda Y: pl.DataFrame(Y, schema=NAMES),
    "arrow": lambda Y: pa.table({name: Y[:, i] for i, name in enumerate(NAMES)}),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_labels_of_every_library_give_the_same_tree(table, model, library):
    X, Y = table
    labels = LIBRARIES[library](Y)
    found = DGTClassifier(**OPTIONS).fit(X, labels).tree_
    np.testing.assert_array_equal(found.weights, model.tree_.weights)
    np.testing.assert_array_equal(found.values, model.tree_.values)
    is_named = any(words in library for words in ("frame", "polars", "arrow"))
    assert found.target_names == (tuple(NAMES) if is_named else None)


def test_names_are_saved(table, tmp_path):
    X, Y = table
    DGTClassifier(**OPTIONS).fit(X, pd.DataFrame(Y, columns=NAMES)).save(tmp_path / "m")
    tree = hardwood.load(tmp_path / "m")
    assert tree.target_names == tuple(NAMES)
    assert tree.task == "multilabel"


def test_each_label_follows_its_own_log_loss(table):
    """A leaf's probabilities are the shares of its rows, each label by itself."""
    X, Y = table
    found = DGTClassifier(max_depth=1, early_stopping=False, random_state=0).fit(X, Y)
    leaf = found.apply(X)
    for i in range(found.tree_.n_leaves):
        shares = Y[leaf == i].mean(axis=0)
        np.testing.assert_allclose(found.tree_.values[i], shares, atol=0.04)


def test_one_label_is_a_classification(table):
    X, Y = table
    with pytest.warns(UserWarning, match="column-vector"):
        found = DGTClassifier(**OPTIONS).fit(X, Y[:, :1])
    assert found.tree_.task == "classification"
    np.testing.assert_array_equal(
        found.tree_.values, DGTClassifier(**OPTIONS).fit(X, Y[:, 0]).tree_.values
    )


def test_labels_that_never_change_are_learned_as_such(table):
    X, Y = table
    Y = np.column_stack([Y, np.zeros(300, int), np.ones(300, int)])
    chosen = DGTClassifier(**OPTIONS).fit(X, Y).predict(X)
    assert (chosen[:, 3] == 0).all()
    assert (chosen[:, 4] == 1).all()


def test_a_weight_is_that_many_rows(table):
    X, Y = table
    times = np.random.default_rng(1).integers(0, 3, len(X))
    order = np.random.default_rng(2).permutation(np.repeat(np.arange(len(X)), times))
    a = DGTClassifier(**OPTIONS).fit(X, Y, sample_weight=times)
    b = DGTClassifier(**OPTIONS).fit(X[order], Y[order])
    assert a.tree_ == b.tree_


def test_a_start_is_where_learning_begins(table, model):
    X, Y = table
    again = DGTClassifier(init=model, max_depth=3, max_epochs=1, learning_rate=1e-9, random_state=1)
    np.testing.assert_allclose(again.fit(X, Y).predict_proba(X), model.predict_proba(X), atol=1e-5)
    with pytest.raises(ValueError, match="init is a tree for several labels, but the target has"):
        DGTClassifier(init=model).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="numbers of outputs or classes of init"):
        DGTClassifier(init=model).fit(X, Y[:, :2])


def labelwise(scores, labels):
    values = sum(reference.logistic(scores[:, [j]], labels[:, [j]]) for j in range(scores.shape[1]))
    gradient = 1 / (1 + np.exp(-scores)) - labels
    return values / scores.shape[1], gradient / scores.shape[1]


def test_a_function_as_loss_follows_the_built_in_one(table, model):
    X, Y = table
    own = DGTClassifier(loss=labelwise, **OPTIONS).fit(X, Y)
    np.testing.assert_allclose(
        [epoch.train_loss for epoch in own.history_[:5]],
        [epoch.train_loss for epoch in model.history_[:5]],
        rtol=1e-3,
    )
    assert own.score(X, Y) > 0.7


def test_a_refit_changes_from_classes_to_labels_and_back(table):
    X, Y = table
    found = DGTClassifier(**OPTIONS).fit(X, np.array(["no", "yes"])[Y[:, 0]])
    assert set(found.predict(X)) == {"no", "yes"}
    assert found.fit(X, Y).predict(X).shape == (300, 3)
    assert set(found.fit(X, Y[:, 0]).predict(X)) == {0, 1}


def test_inside_scikit_learn(table):
    X, Y = table
    search = GridSearchCV(DGTClassifier(**OPTIONS), {"max_depth": [1, 3]}, cv=3, scoring="f1_macro")
    assert search.fit(X, Y).best_params_ == {"max_depth": 3}
    p = cross_val_predict(DGTClassifier(**OPTIONS), X, Y, method="predict_proba", cv=3)
    assert p.shape == (300, 3)
    assert ((p >= 0.5) == Y).mean() > 0.85


def test_many_labels_of_many_columns():
    X, Y = make_multilabel_classification(1000, 20, n_classes=12, n_labels=3, random_state=0)
    here, there = slice(0, 500), slice(500, None)

    def f1(model):
        found = model.fit(X[here], Y[here]).predict(X[there])
        return f1_score(Y[there], found, average="micro", zero_division=0)

    axis_aligned = f1(DecisionTreeClassifier(max_depth=4, random_state=0))
    assert f1(DGTClassifier(max_depth=4, random_state=0)) > axis_aligned


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Y: 2 * Y, "must be 0 or 1; found 0, 2"),
        (lambda Y: 2 * Y - 1, "must be 0 or 1; found -1, 1"),
        (lambda Y: Y.astype(str), "must be 0 or 1; found '0', '1'"),
        (lambda Y: Y + 0.5, "must be 0 or 1; found 0.5"),
        (lambda Y: np.where(Y, np.nan, 0.0), r"contains NaN \(first at row"),
        (lambda Y: [[None, 1, 0]] * len(Y), "NaN or None"),
        (lambda Y: Y[:-1], "inconsistent numbers of samples"),
        (lambda Y: Y[:, :, None], "1d array"),
        (lambda Y: [*Y.tolist()[:-1], [1, 0]], "rows of y have 2 to 3 values"),
        (lambda Y: np.ma.masked_array(Y, mask=Y == 1), "masked"),
        (lambda Y: sparse.csr_array(3 * Y), "must be 0 or 1; found 0, 3"),
    ],
)
def test_labels_that_cannot_be_learned(table, change, message):
    X, Y = table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            DGTClassifier(**OPTIONS).fit(X, change(Y))


@pytest.mark.parametrize("Estimator", [DGTClassifier, GreedyTreeClassifier])
def test_balanced_weights_are_those_of_scikit_learn(Estimator, table):
    X, Y = table
    options = {"max_depth": 3, "random_state": 0}
    balanced = Estimator(class_weight="balanced", **options).fit(X, Y)
    weighted = Estimator(**options).fit(X, Y, compute_sample_weight("balanced", Y))
    np.testing.assert_allclose(balanced.predict_proba(X), weighted.predict_proba(X), atol=1e-6)
    plain = Estimator(**options).fit(X, Y).predict_proba(X)
    assert np.abs(plain - balanced.predict_proba(X)).max() > 0.01


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 2.0}, [{0: 1, 1: 2}] * 3, "even"])
def test_other_class_weights_have_no_meaning_for_labels(class_weight, table):
    with pytest.raises(ValueError, match=r"None or 'balanced' if y has several labels, got"):
        DGTClassifier(class_weight=class_weight).fit(*table)


def test_probabilities_are_never_certain(table):
    """scikit-learn wants labels strictly between 0 and 1, where leaves hold shares of rows."""
    X, Y = table
    model = GreedyTreeClassifier(max_depth=None).fit(X, Y)
    certain = model.tree_.predict_proba(X)
    assert ((certain == 0) | (certain == 1)).any()
    found = model.predict_proba(X)
    assert ((found > 0) & (found < 1)).all()
    np.testing.assert_allclose(found, certain, atol=1e-15)
    np.testing.assert_array_equal(model.predict(X), model.tree_.predict(X))


@pytest.mark.parametrize("loss", ["hinge", "squared_error"])
def test_a_loss_of_classes_says_that_it_is_not_for_labels(loss, table):
    assert get_tags(DGTClassifier()).classifier_tags.multi_label
    assert not get_tags(DGTClassifier(loss=loss)).classifier_tags.multi_label
    with pytest.raises(ValueError, match=f"loss='{loss}' is not a loss for multilabel"):
        DGTClassifier(loss=loss).fit(*table)


@pytest.mark.parametrize("leaves", ["auto", "constant"])
@pytest.mark.parametrize("scoring", ["accuracy", "f1_micro", "roc_auc"])
def test_a_search_is_scored_by_scikit_learn(scoring, leaves, table):
    X, Y = table
    options = {"time_limit": None, "max_trials": 2, "teacher": None, "random_state": 0}
    model = TreeClassifier(scoring=scoring, leaves=leaves, **options).fit(X, Y)
    assert model.fit_report_.metric == scoring
    assert 0 < model.fit_report_.score <= 1
