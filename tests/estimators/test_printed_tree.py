"""What the text of a default tree says is what it predicts."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from hardwood import TreeClassifier, TreeRegressor, export
from hardwood.model import ObliqueTree
from hardwood.text.numbers import n_digits
from messy import TABLES, table
from printed import Printed
from trees import make_rows, make_tree

SEARCH: dict[str, Any] = {"time_limit": None, "max_trials": 4, "teacher": None, "random_state": 0}


def check(tree: ObliqueTree, X: Any, **options: Any) -> None:
    """Compare the predictions of a tree with those of its text."""
    outputs = tree.outputs(X)
    read = Printed(tree, max_depth=None, max_terms=None, **options).outputs(X)
    is_given = np.isfinite(read)
    assert is_given.any(axis=1).all()
    # A constant leaf has the probabilities of the predicted class or labels, or the first values.
    assert is_given.all() or not tree.has_linear_leaves
    scale = np.abs(outputs).max() if tree.task == "regression" else 1.0
    np.testing.assert_allclose(read[is_given], outputs[is_given], rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("estimator", [TreeClassifier, TreeRegressor])
@pytest.mark.parametrize("name", TABLES)
def test_the_text_of_a_default_tree_predicts_as_the_tree(name, estimator):
    messy = table(name)
    y = messy.classes if estimator is TreeClassifier else messy.numbers
    fitted = estimator(**SEARCH).fit(messy.X, y)
    for point in fitted.frontier_.points:
        check(point.tree, messy.X)


@cache
def bundled(name: str) -> tuple[Any, Any]:
    loaders = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
    return loaders.get(name, load_diabetes)(return_X_y=True, as_frame=True)


@pytest.mark.parametrize("name", ["iris", "wine", "cancer", "diabetes"])
def test_the_text_of_every_size_predicts_as_the_tree(name):
    X, y = bundled(name)
    estimator = TreeRegressor if name == "diabetes" else TreeClassifier
    fitted = estimator(**SEARCH).fit(X, y)
    for point in fitted.frontier_.points:
        check(point.tree, X)


@pytest.mark.parametrize("write", [export.to_rules, export.to_python, export.to_sql])
@pytest.mark.parametrize("name", ["missing numbers", "levels", "one column"])
def test_exports_of_default_trees_have_short_numbers(name, write):
    messy = table(name)
    tree = TreeRegressor(**SEARCH).fit(messy.X, messy.numbers).tree_
    text = re.sub(r"CENTERS = .*", "", str(write(tree)))  # also of columns that are not used
    numbers = [float(number) for number in re.findall(r"(?<![\w.])\d+\.\d+(?:[eE]-?\d+)?", text)]
    assert any(n_digits(number) > 1 for number in numbers)
    assert all(n_digits(number) <= 9 for number in numbers)


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 11])
def test_the_reader_of_texts_reads_any_tree(task, linear, k):
    for seed in range(5):
        tree = make_tree(seed, task=task, linear=linear, k=k, n_features=7, mixed=seed > 1)
        expected = [feature.has_missing for feature in tree.schema.features]
        X = [
            row
            for row in make_rows(seed, tree.schema, 400)
            if not any(value is None and not e for value, e in zip(row, expected, strict=True))
        ]
        check(tree, X, digits=12)
