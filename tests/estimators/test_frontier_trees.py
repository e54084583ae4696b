"""Every tree of a frontier is a tree like any other: on tables as people have them."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pandas as pd
import pytest

from hardwood import ObliqueTree, TreeClassifier, TreeRegressor, load
from hardwood.export import to_c, to_onnx, to_python, to_rules, to_sql
from hardwood.export.c.compiler import Compiler
from hardwood.search.frontier import most_terms

QUICK = {"time_limit": None, "max_trials": 6, "random_state": 0, "teacher": None}
N_ROWS = 240


def messy_table() -> pd.DataFrame:
    """Numbers and levels with missing entries, a rare level, dates, durations and booleans."""
    rng = np.random.default_rng(3)
    days = pd.to_timedelta(rng.integers(0, 900, N_ROWS), unit="D")
    cities = ["Rome", "Łódź", "a, b", "O'Hare"]
    X = pd.DataFrame(
        {
            "age (years)": rng.normal(40, 12, N_ROWS),
            "income": rng.lognormal(10, 1, N_ROWS),
            "city": rng.choice(cities, N_ROWS, p=[0.5, 0.3, 0.19, 0.01]),
            "joined": pd.Timestamp("2019-01-01") + days,
            "delay": pd.to_timedelta(rng.exponential(5, N_ROWS), unit="h"),
            "member": rng.random(N_ROWS) < 0.4,
        }
    )
    for name in ("age (years)", "city", "joined"):
        X.loc[rng.random(N_ROWS) < 0.15, name] = None
    return X


def signal(X: pd.DataFrame) -> np.ndarray:
    rng = np.random.default_rng(4)
    late = (X["joined"] > "2020-06-01").to_numpy()
    age = X["age (years)"].fillna(60).to_numpy()
    slope = np.where(late, 0.08 * (age - 40), -0.5 * np.log(X["income"] / 20_000))
    return np.asarray(slope + (X["city"] == "Rome") + 0.3 * rng.normal(size=N_ROWS))


TARGETS = {
    "numbers": lambda s: s,
    "two numbers": lambda s: pd.DataFrame({"a": s, "b": np.exp(s)}),
    "booleans": lambda s: s > 0.4,
    "words": lambda s: np.array(["low", "mid", "high"])[(s > 0).astype(int) + (s > 1)],
    "integers": lambda s: np.array([7, 3, 5])[(s > 0).astype(int) + (s > 1)],
    "labels": lambda s: pd.DataFrame({"up": (s > 0).astype(int), "far": (s > 1).astype(int)}),
}


@pytest.fixture(scope="module", params=TARGETS)
def fit(request):
    X = messy_table()
    y = TARGETS[request.param](signal(X))
    kind = TreeRegressor if "numbers" in request.param else TreeClassifier
    return X, kind(**QUICK).fit(X, y)


def sizes(model):
    """The trees, with the sizes that they were chosen by."""
    assert len(model.frontier_.points) > 4
    return [(point, point.tree) for point in model.frontier_.points]


def test_they_are_as_small_as_they_say(fit):
    X, model = fit
    for point, tree in sizes(model):
        assert tree.n_leaves <= point.n_leaves
        assert most_terms(tree) <= point.n_terms
        assert tree.counts[0] == N_ROWS
        assert model.at(point.n_leaves, point.n_terms).n_leaves <= point.n_leaves


def test_they_are_saved_and_loaded(fit, tmp_path):
    X, model = fit
    for _, tree in sizes(model):
        tree.save(tmp_path / "tree.hardwood")
        loaded = load(tmp_path / "tree.hardwood")
        assert loaded == tree
        assert ObliqueTree.from_json(tree.to_json()) == tree
        assert loaded.to_text(max_terms=None, digits=None) == tree.to_text(
            max_terms=None, digits=None
        )
        np.testing.assert_array_equal(loaded.outputs(X), tree.outputs(X))


def test_they_are_exported(fit):
    X, model = fit
    exports = [to_python, to_sql, to_rules, to_c]
    if pytest.importorskip("onnx", reason="the extra 'onnx' is not installed"):
        exports.append(to_onnx)
    with mock.patch.object(Compiler, "find", return_value=None):  # slow, and tested elsewhere
        for _, tree in sizes(model):
            for export in exports:
                check = export(tree).check  # refuses an export that predicts something else
                assert check.n_on_edge <= check.n_rows / 50


def test_they_predict_as_the_estimator_would_with_them(fit):
    X, model = fit
    kept = model.tree_
    try:
        for _, tree in sizes(model):
            model.tree_ = tree
            predicted = model.predict(X)
            np.testing.assert_array_equal(tree.predict(X), predicted)
            assert tree.predict(X).dtype.kind == predicted.dtype.kind
            one = tree.predict_one(X.iloc[0].to_dict())
            np.testing.assert_array_equal(one, predicted[0])
            if tree.task == "regression":
                continue
            np.testing.assert_array_equal(tree.predict_proba(X), model.predict_proba(X))
            if tree.task == "classification":
                assert list(tree.classes) == model.classes_.tolist()
                assert [type(c) for c in tree.classes] == [type(c) for c in kept.classes]
    finally:
        model.tree_ = kept


@pytest.mark.filterwarnings("ignore:levels that the model did not learn")
def test_rows_unlike_those_of_the_training_are_predicted(fit):
    X, model = fit
    odd = X.head(3).copy()
    odd["city"] = ["Atlantis", None, "Rome"]
    odd["age (years)"] = None
    for _, tree in sizes(model):
        assert np.isfinite(tree.outputs(odd)).all()
