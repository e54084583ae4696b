"""The tree in words."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.model import ObliqueTree
from hardwood.table import Feature, Schema
from trees import make_tree

IRIS = ObliqueTree.of(
    [[0.8, -1.1], [1.0, 0.0]],
    thresholds=[2.3, 5.0],
    children=[[-1, 1], [-2, -3]],
    values=[[1, 0, 0], [0.1, 0.6, 0.3], [0, 0.0224, 0.9776]],
    feature_names=["length", "width"],
    classes=["setosa", "versicolor", "virginica"],
    target_names="species",
    counts=[100, 60, 40, 35.5, 24.5],
)


def test_classification() -> None:
    assert IRIS.to_text() == (
        "Oblique tree: classification of species, 3 classes, 2 features, depth 2, 2 splits, "
        "3 leaves\n\n"
        "if 1.1*width - 0.8*length <= -2.3:\n"
        "|   if length >= 5:\n"
        "|   |   species = virginica (p = 0.978, n = 24.5)\n"
        "|   else:\n"
        "|   |   species = versicolor (p = 0.6, n = 35.5)\n"
        "else:\n"
        "|   species = setosa (p = 1, n = 40)\n"
    )


def test_the_words_route_as_the_tree_does() -> None:
    """The branch under a condition is the one taken where it holds."""
    assert IRIS.predict_one([9.0, 1.0]) == "virginica"  # 1.1 - 7.2 <= -2.3, and 9 >= 5
    assert IRIS.predict_one([4.5, 1.0]) == "versicolor"  # 1.1 - 3.6 <= -2.3
    assert IRIS.predict_one([1.0, 1.0]) == "setosa"


def test_a_leaf_without_the_name_of_its_target_says_class() -> None:
    tree = ObliqueTree.of([[1.0]], thresholds=[2.0], values=np.eye(2), classes=["no", "yes"])
    assert "if x0 >= 2:\n|   class yes (p = 1)\nelse:\n|   class no (p = 1)\n" in tree.to_text()


def test_max_depth_counts_what_is_not_shown() -> None:
    text = IRIS.to_text(max_depth=1)
    assert "|   ... 1 split and 2 leaves not shown\n" in text
    assert "virginica" not in text
    assert "... 2 splits and 3 leaves not shown" in IRIS.to_text(max_depth=0)


def test_regression() -> None:
    tree = ObliqueTree.of(
        [[1.0]], thresholds=[2.0], values=[[1000.25, 1], [1000.75, 2]], target_names=["price", "n"]
    )
    text = tree.to_text()
    assert text.startswith("Oblique tree: regression of price, n, 2 outputs, 1 feature, depth 1")
    assert "price = 1000.25, n = 1\n" in text  # told apart from 1000.75


def test_many_outputs_are_counted() -> None:
    tree = ObliqueTree.of(np.zeros((0, 1)), bias=[], values=[list(range(9))])
    assert "\n0, 1, 2, 3, (+ 5 more outputs left out)\n" in tree.to_text()


def test_notes_say_how_missing_numbers_and_left_out_terms_count() -> None:
    features = tuple(
        Feature(f"x{i}", "numeric", center=10.0 * i, has_missing=i < 2) for i in range(6)
    )
    schema = Schema(features)
    weights = np.zeros((1, schema.n_columns))
    weights[0, schema.first_column] = np.arange(6, 0, -1)
    text = ObliqueTree.of(weights, bias=[0], values=[0, 1], schema=schema).to_text()
    assert "Terms left out are taken at their average (numbers)" in text
    assert "A missing number is taken at its average: x0 as 0, x1 as 10.\n" in text
    full = ObliqueTree.of(weights, bias=[0], values=[0, 1], schema=schema).to_text(max_terms=None)
    assert "left out" not in full
    plain = ObliqueTree.of([[5, 4, 3, 2, 1]], bias=[0], values=[0, 1]).to_text()
    assert "Terms left out are taken as zero." in plain


def test_averages_of_dates_are_dates() -> None:
    joined = Feature(
        "joined", "numeric", center=1548150000.0, has_missing=True, spread=(3e7, 0.1), origin="date"
    )
    tree = ObliqueTree.of([[1.0, 0.0]], bias=[0], values=[0, 1], schema=Schema((joined,)))
    assert "taken at its average: joined as 2019-01-22.\n" in tree.to_text()
    assert "taken at its average: joined as 1548150000.\n" in tree.to_text(digits=None)


def test_a_tree_deeper_than_pythons_stack() -> None:
    m = 1500
    children = np.array([[~i, i + 1 if i + 1 < m else ~m] for i in range(m)])
    tree = ObliqueTree.of(
        np.ones((m, 1)), bias=np.arange(m), children=children, values=np.arange(m + 1)
    )
    assert tree.depth == m
    assert tree.to_text(digits=None).count("else:") == m
    assert tree.simplify() == tree.simplify().simplify()


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_leaf_is_written_once(task: str) -> None:
    tree = make_tree(3, n_splits=20, mixed=True, task=task)
    assert tree.counts is not None
    lines = tree.to_text(max_terms=None).splitlines()
    assert sum("if " in line and line.endswith(":") for line in lines) == 20
    assert sum("n = " in line for line in lines) == 21
    assert sum(line.endswith("else:") for line in lines) == 20
