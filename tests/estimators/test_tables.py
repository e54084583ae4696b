"""Tables of every library, with categories and missing entries."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.utils.validation import _get_feature_names

from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    DGTForestRegressor,
    DGTRegressor,
    ObliqueTree,
)
from hardwood.errors import TableError

OPTIONS = {"max_depth": 3, "max_epochs": 80, "random_state": 0}
FOREST = {"n_estimators": 3, **OPTIONS}


@pytest.fixture(scope="module")
def penguinlike() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    n = 300
    island = rng.choice(["Biscoe", "Dream", "Torgersen"], n)
    bill = rng.normal(40, 5, n)
    y = np.where((island == "Dream") & (bill > 40), "Chinstrap", "Adelie")
    X = pd.DataFrame({"island": island, "bill": bill, "male": rng.random(n) < 0.5})
    X.loc[rng.random(n) < 0.1, "bill"] = np.nan
    X.loc[rng.random(n) < 0.05, "island"] = None
    return X, pd.Series(y, name="species")


def in_library(X: pd.DataFrame, library: str):
    return {
        "pandas": lambda: X,
        "pandas categorical": lambda: X.astype({"island": "category"}),
        "polars": lambda: pl.from_pandas(X),
        "polars categorical": lambda: pl.from_pandas(X).cast({"island": pl.Categorical}),
        "arrow": lambda: pa.Table.from_pandas(X),
    }[library]()


LIBRARIES = ["pandas", "pandas categorical", "polars", "polars categorical", "arrow"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_same_table_gives_the_same_tree(penguinlike, library):
    X, y = penguinlike
    expected = DGTClassifier(**OPTIONS).fit(X, y)
    table = in_library(X, library)
    model = DGTClassifier(**OPTIONS).fit(table, y)
    assert model.tree_ == expected.tree_
    np.testing.assert_array_equal(model.predict(table), expected.predict(X))
    if _get_feature_names(table) is not None:  # older scikit-learn does not know every library
        assert model.feature_names_in_.tolist() == ["island", "bill", "male"]
    assert model.score(table, y) > 0.9


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_same_table_gives_the_same_forest(penguinlike, library):
    X, y = penguinlike
    expected = DGTForestClassifier(**FOREST).fit(X, y)
    table = in_library(X, library)
    model = DGTForestClassifier(**FOREST).fit(table, y)
    assert model.forest_ == expected.forest_
    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(X))
    assert model.forest_.target_names == ("species",)
    assert model.score(table, y) > 0.9


@pytest.mark.filterwarnings("ignore:levels that the model did not learn")
def test_a_forest_answers_unseen_levels_and_gaps(penguinlike):
    X, y = penguinlike
    odd = pd.DataFrame(
        {"island": ["Atlantis", None], "bill": [41.0, np.nan], "male": [True, False]}
    )
    for leaves in ("constant", "linear"):
        model = DGTForestClassifier(leaves=leaves, **FOREST).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(odd).sum(axis=1), 1.0)
        mean = np.mean([tree.predict_proba(odd) for tree in model.estimators_], axis=0)
        np.testing.assert_allclose(model.predict_proba(odd), mean, rtol=1e-12)


@pytest.mark.parametrize("leaves", ["constant", "linear"])
@pytest.mark.parametrize("Forest", [DGTForestClassifier, DGTForestRegressor])
def test_sparse_tables_make_forests(Forest, leaves):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(200, 6)).astype(float)
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = Forest(leaves=leaves, oob_score=True, **FOREST).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.predict(sparse.csc_array(X)), model.predict(X), rtol=1e-6)
    assert model.score(X, y) > 0.75
    assert model.oob_score_ > 0.5


def test_the_tree_knows_the_names(penguinlike):
    X, y = penguinlike
    tree = DGTClassifier(**OPTIONS).fit(X, y).tree_
    assert tree.feature_names == ("island", "bill", "male")
    assert tree.target_names == ("species",)
    assert "island = Dream" in tree.schema.column_names
    assert {"island is missing", "bill is missing"} <= set(tree.schema.column_names)


def test_missing_entries_carry_what_they_mean():
    """A number that is missing just where y is 1 must be found by the split."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    X[y == 1, 0] = np.nan
    assert DGTClassifier(**OPTIONS).fit(X, y).score(X, y) == 1.0


def test_a_small_spread_around_a_large_offset_is_seen():
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + rng.uniform(-1, 1, size=(300, 1))
    y = (seconds[:, 0] > 1.7e9).astype(int)
    assert DGTClassifier(max_depth=1, random_state=0).fit(seconds, y).score(seconds, y) > 0.98


@pytest.mark.filterwarnings("ignore:levels that the model did not learn")
def test_unseen_levels_and_gaps_are_answered(penguinlike):
    X, y = penguinlike
    model = DGTClassifier(**OPTIONS).fit(X, y)
    odd = pd.DataFrame(
        {"island": ["Atlantis", None], "bill": [41.0, np.nan], "male": [True, False]}
    )
    proba = model.predict_proba(odd)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.coo_matrix])
@pytest.mark.parametrize("Estimator", [DGTClassifier, DGTRegressor])
def test_sparse_tables_give_the_tree_of_the_dense_one(container, Estimator):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(200, 6)).astype(float)
    y = (X[:, 0] > X[:, 1]).astype(int)
    dense, thin = Estimator(**OPTIONS).fit(X, y), Estimator(**OPTIONS).fit(container(X), y)
    np.testing.assert_allclose(dense.tree_.weights, thin.tree_.weights, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(thin.predict(container(X)), thin.predict(X))
    assert thin.score(container(X), y) > 0.8


def test_float32_is_not_copied():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    from hardwood.learn.losses import SquaredError
    from hardwood.learn.task import Task
    from hardwood.table import Table

    data = Task.of(Table.of(X), X[:, :1].astype(float), kind="regression", loss=SquaredError())
    assert np.shares_memory(data.matrix, X)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: np.asfortranarray(X),
        lambda X: np.hstack([X, X])[:, :4],
        lambda X: X[::-1][::-1],
        lambda X: X.tolist(),
        lambda X: X.astype(object),
        lambda X: pd.DataFrame(X),
    ],
    ids=["fortran", "strided", "reversed twice", "list", "objects", "frame without names"],
)
def test_the_form_of_an_array_does_not_matter(change):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), rng.integers(0, 2, 80)
    plain = DGTClassifier(**OPTIONS).fit(X, y)
    model = DGTClassifier(**OPTIONS).fit(change(X), y)
    assert model.tree_ == plain.tree_
    np.testing.assert_array_equal(model.predict(change(X)), plain.predict(X))
    assert not hasattr(model, "feature_names_in_")


def test_read_only_memory_will_do():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(80, 4)), rng.integers(0, 2, 80), np.ones(80)
    for array in (X, y, w):
        array.flags.writeable = False
    DGTClassifier(**OPTIONS).fit(X, y, w).predict(X)


def test_names_are_checked_as_scikit_learn_does(penguinlike):
    X, y = penguinlike
    X = X[["bill", "male"]].astype(float)
    model = DGTClassifier(**OPTIONS).fit(X, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but DGTClassifier"):
        model.predict(X.to_numpy())
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict(X[["male", "bill"]])
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        model.predict(X[["bill"]])
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        model.predict(X.assign(more=1.0))
    unnamed = DGTClassifier(**OPTIONS).fit(X.to_numpy(), y)
    with pytest.warns(
        UserWarning, match="X has feature names, but DGTClassifier was fitted without"
    ):
        unnamed.predict(X)
    with pytest.raises(TypeError, match="Feature names are only supported if all input features"):
        DGTClassifier(**OPTIONS).fit(X.rename(columns={"male": 1}), y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize("Estimator", [DGTClassifier, DGTForestClassifier])
def test_columns_in_another_order_are_read_by_the_model_and_by_a_selection(
    penguinlike, make, Estimator
):
    """scikit-learn's checks want an estimator to refuse them; the error says what to do."""
    X, y = penguinlike
    options = FOREST if Estimator is DGTForestClassifier else OPTIONS
    model = Estimator(**options).fit(make(X), y)
    attribute = model._model_attribute
    advice = rf"X\[list\(model.feature_names_in_\)\].*model\.{attribute}\.predict\(X\)"
    expected = model.predict(make(X))
    others = [make(X[["male", "island", "bill"]]), make(X.assign(more=1.0))]
    for other in others:
        for ask in (model.predict, model.predict_proba, model.apply):
            with pytest.raises(TableError, match=rf"(?s)feature names should match.*{advice}"):
                ask(other)
        found = getattr(model, attribute).predict(other)
        np.testing.assert_array_equal(found, expected)
        selected = other[list(model.feature_names_in_)]
        np.testing.assert_array_equal(model.predict(selected), expected)
    with pytest.raises(TableError, match="now missing:\n- male\n$"):
        model.predict(make(X[["island", "bill"]]))


def test_a_refit_without_names_forgets_them(penguinlike):
    X, y = penguinlike
    X = X[["bill", "male"]].astype(float)
    model = DGTClassifier(**OPTIONS).fit(X, y).fit(X.to_numpy(), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X.to_numpy())


def test_targets_of_every_library(penguinlike):
    X, y = penguinlike
    expected = DGTClassifier(**OPTIONS).fit(X, y.to_numpy()).tree_.values
    targets = [
        y,
        y.astype("category"),
        y.astype("string"),
        pl.Series(y),
        pa.chunked_array([y]),
        list(y),
    ]
    for target in targets:
        tree = DGTClassifier(**OPTIONS).fit(X, target).tree_
        np.testing.assert_array_equal(tree.values, expected)


def test_numbers_of_every_library():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 9, 60)
    expected = DGTRegressor(**OPTIONS).fit(X, y).tree_.values
    for target in (
        pd.Series(y),
        pd.Series(y, dtype="Int64"),
        pl.Series(y),
        pa.array(y),
        y.astype(object),
    ):
        tree = DGTRegressor(**OPTIONS).fit(X, target).tree_
        np.testing.assert_array_equal(tree.values, expected)


@pytest.mark.parametrize("kind", [Decimal, Fraction, int])
def test_numbers_of_databases_and_of_python_are_numbers(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 9, 60)
    expected = DGTRegressor(**OPTIONS).fit(X, y * 2.0**70)
    model = DGTRegressor(**OPTIONS).fit(X, [kind(int(value) * 2**70) for value in y])
    assert model.tree_ == expected.tree_
    assert DGTClassifier(**OPTIONS).fit(X, [kind(int(v)) for v in y > 3]).classes_.tolist() == [
        0,
        1,
    ]


def test_several_named_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = pd.DataFrame({"left": X[:, 0], "right": X[:, 1]})
    assert DGTRegressor(**OPTIONS).fit(X, Y).tree_.target_names == ("left", "right")


def test_text_where_numbers_were_learned_names_the_column(penguinlike):
    X, y = penguinlike
    model = DGTClassifier(**OPTIONS).fit(X, y)
    with pytest.raises(TableError, match="bill"):
        model.predict(X.assign(bill="long"))


def test_infinity_is_refused_by_fit_and_predict():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    model = DGTClassifier(**OPTIONS).fit(X, y)
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X)
    with pytest.raises(ValueError, match="infinity"):
        DGTClassifier(**OPTIONS).fit(X, y)


def test_the_tree_is_a_plain_one(penguinlike):
    model = DGTClassifier(**OPTIONS).fit(*penguinlike)
    assert type(model.tree_) is ObliqueTree
    assert model.tree_.depth <= 3
    assert model.tree_.counts[0] == 300
