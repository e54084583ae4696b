"""The tree in words."""

from __future__ import annotations

from typing import Any

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
        "|   |   species = virginica (p = 0.9776, n = 24.5)\n"
        "|   else:\n"
        "|   |   species = versicolor (p = 0.6, n = 35.5)\n"
        "else:\n"
        "|   species = setosa (p = 1, n = 40)\n"
    )


def test_the_text_routes_rows_like_the_tree() -> None:
    """The branch under a condition is the one taken where it holds."""
    assert IRIS.predict_one([9.0, 1.0]) == "virginica"  # 1.1 - 7.2 <= -2.3, and 9 >= 5
    assert IRIS.predict_one([4.5, 1.0]) == "versicolor"  # 1.1 - 3.6 <= -2.3
    assert IRIS.predict_one([1.0, 1.0]) == "setosa"


def test_a_leaf_without_the_name_of_its_target_says_class() -> None:
    tree = ObliqueTree.of([[1.0]], thresholds=[2.0], values=np.eye(2), classes=["no", "yes"])
    assert "if x0 >= 2:\n|   class yes (p = 1)\nelse:\n|   class no (p = 1)\n" in tree.to_text()


def test_max_depth_counts_the_nodes_not_shown() -> None:
    text = IRIS.to_text(max_depth=1)
    assert "|   ... 1 split and 2 leaves not shown, at node 1\n" in text
    assert "virginica" not in text
    assert "... 2 splits and 3 leaves not shown, at node 0" in IRIS.to_text(max_depth=0)
    assert "to_text(node=N)" in text
    assert "not shown" not in IRIS.to_text()


def test_a_text_may_begin_at_any_split() -> None:
    assert IRIS.to_text(node=1).split("\n", 1)[1] == (
        "From node 1:\n\n"
        "if length >= 5:\n"
        "|   species = virginica (p = 0.9776, n = 24.5)\n"
        "else:\n"
        "|   species = versicolor (p = 0.6, n = 35.5)\n"
    )
    assert IRIS.to_text(node=0) == IRIS.to_text()
    for node in (-1, 2, 0.5, None):
        with pytest.raises(ValueError, match="node must be an integer from 0 to 1, got"):
            IRIS.to_text(node=node)


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


def test_notes_explain_missing_numbers_and_omitted_terms() -> None:
    features = tuple(
        Feature(f"x{i}", "numeric", center=10.0 * i, has_missing=i < 2) for i in range(6)
    )
    schema = Schema(features)
    weights = np.zeros((1, schema.n_columns))
    weights[0, schema.first_column] = np.arange(6, 0, -1)
    tree = ObliqueTree.of(weights, bias=[0], values=[0, 1], schema=schema)
    text = tree.to_text(max_terms=4)
    assert "Terms left out count at the mean of their column (numbers)" in text
    assert "A missing number counts as its mean: x0 as 0, x1 as 10.\n" in text
    assert "left out" not in tree.to_text(max_terms=None)
    plain = ObliqueTree.of([[5, 4, 3, 2, 1]], bias=[0], values=[0, 1]).to_text(max_terms=4)
    assert "Terms left out count as zero." in plain


def test_averages_of_dates_are_dates() -> None:
    joined = Feature(
        "joined", "numeric", center=1548150000.0, has_missing=True, spread=(3e7, 0.1), origin="date"
    )
    tree = ObliqueTree.of([[1.0, 0.0]], bias=[0], values=[0, 1], schema=Schema((joined,)))
    assert "counts as its mean: joined as 2019-01-22 09:40.\n" in tree.to_text()
    assert "counts as its mean: joined as 2019-01-22.\n" in tree.to_text(digits=3)
    assert "counts as its mean: joined as 1548150000.\n" in tree.to_text(digits=None)


def test_a_tree_deeper_than_pythons_stack() -> None:
    m = 1500
    children = np.array([[~i, i + 1 if i + 1 < m else ~m] for i in range(m)])
    tree = ObliqueTree.of(
        np.ones((m, 1)), bias=np.arange(m), children=children, values=np.arange(m + 1)
    )
    assert tree.depth == m
    assert tree.to_text(digits=None, max_depth=None).count("else:") == m
    assert tree.simplify() == tree.simplify().simplify()


def linear(task: str, k: int, **options: object) -> ObliqueTree:
    """A split on u, leaves on u and v."""
    A = np.zeros((2, k, 2))
    A[:, :, 0] = 1 + np.arange(k)
    A[1, :, 1] = -0.5
    return ObliqueTree.of(
        [[1.0, 0.0]],
        thresholds=[2.0],
        values=np.tile(np.arange(k) / 4, (2, 1)),
        leaf_weights=A,
        feature_names=["u", "v"],
        task=task,
        **options,
    )


def test_linear_leaves_of_a_regression() -> None:
    assert linear("regression", 1, target_names="price", counts=[9, 4, 5]).to_text() == (
        "Oblique tree: regression of price, 2 features, depth 1, 1 split, 2 linear leaves\n\n"
        "if u >= 2:\n"
        "|   price = u - 0.5*v (n = 5)\n"
        "else:\n"
        "|   price = u (n = 4)\n"
    )
    assert "\n|   u - 0.5*v\n" in linear("regression", 1).to_text()
    assert "\n|   exp(u - 0.5*v)\n" in linear("regression", 1, link="exp").to_text()
    two = linear("regression", 2).to_text()
    assert "\n|   output 0 = u - 0.5*v\n|   output 1 = 0.25 + 2*u - 0.5*v\n" in two


def test_linear_leaves_of_two_classes_are_one_equation() -> None:
    tree = linear("classification", 2, classes=["no", "yes"], target_names="pays")
    text = tree.to_text()
    assert "\n|   p(pays = yes) = logistic(0.25 + u)\n" in text  # 0.5 v cancels
    assert text.endswith("\nlogistic(s) is 1 / (1 + exp(-s)).\n")
    shares = tree.predict_proba([[3.0, 7.0]])[0]
    assert shares[1] == pytest.approx(1 / (1 + np.exp(-0.25 - 3.0)))


def test_linear_leaves_of_several_classes_are_scores() -> None:
    text = linear("classification", 3, classes=["a", "b", "c"], counts=[9, 4, 5]).to_text()
    assert (
        "|   score of a = u - 0.5*v (n = 5)\n"
        "|   score of b = 0.25 + 2*u - 0.5*v\n"
        "|   score of c = 0.5 + 3*u - 0.5*v\n"
    ) in text
    assert "The class with the largest score is predicted" in text
    many = linear("classification", 6, classes=range(6)).to_text()
    assert many.count("score of 5 =") == 2
    assert "left out" not in many
    assert "class a (p = 1)" in linear("classification", 1, classes=["a"]).to_text()


def test_linear_leaves_of_labels() -> None:
    text = linear("multilabel", 2, target_names=["spam", "work"]).to_text()
    assert text.startswith("Oblique tree: multilabel classification of spam, work, 2 labels, 2 fe")
    assert "|   p(spam) = logistic(u - 0.5*v)\n|   p(work) = logistic(0.25 + 2*u - 0.5*v)" in text
    assert "p(label 0) = logistic(" in linear("multilabel", 1).to_text()


def scorecard(schema: Schema, leaf_weights: Any, **options: Any) -> list[str]:
    """Return the lines of a single linear leaf."""
    none = np.zeros((0, schema.n_columns))
    leaf = [leaf_weights]
    tree = ObliqueTree.of(none, bias=[], leaf_weights=leaf, schema=schema, counts=[60], **options)
    return tree.to_text().splitlines()[2:]


def known(*spreads: float) -> tuple[Feature, ...]:
    return tuple(
        Feature(f"x{i}", "numeric", center=10.0, spread=(spread,))
        for i, spread in enumerate(spreads)
    )


COLOR = Feature("color", "categorical", levels=("red", "green", "blue"), has_missing=True)


def test_a_long_sum_is_a_scorecard_with_weights_in_standard_units() -> None:
    lines = scorecard(
        Schema((*known(1.0, 2.0, 0.5), COLOR)),
        [0.5, -1.25, 3.0, 0.8, 0.8, -2.0, -2.0],
        values=[2.5],
        target_names="price",
    )
    assert lines == [
        "price =                                     per standard deviation (n = 60)",
        "      -20",
        "    - (2 if color is one of blue, missing)",
        "    + (0.8 if color is one of red, green)",
        "    - 1.25*x1                                                 -2.5",
        "    + 3*x2                                                    +1.5",
        "    + 0.5*x0                                                  +0.5",
    ]


def test_a_long_sum_with_a_link_is_in_its_parentheses() -> None:
    lines = scorecard(
        Schema(known(1.0, 2.0, 3.0, 4.0, 5.0)),
        [1.0] * 5,
        values=[0.0],
        task="regression",
        link="exp",
    )
    assert lines[0].startswith("value = exp(")
    assert lines[-1] == ")"
    assert lines[2].split() == ["+", "x4", "+5"]


def test_several_long_sums_are_a_table() -> None:
    weights = [[1.0, 2.0, 0.5, 0.0, 0.5, 0.0, -3.0], [0.0, 1.0, 0.5, 0.0, 0.25, 1.0, -3.0]]
    schema = Schema((*known(1.0, 1.0, 1.0), COLOR))
    lines = scorecard(schema, weights, values=[[0.0, 1.0]], target_names=["up", "down"])
    assert lines == [
        "target             up  down (n = 60)",
        "constant          -35   -14",
        "color is missing   -3    -3",
        "color is blue             1",
        "color is green    0.5  0.25",
        "x1                  2     1",
        "x0                  1",
        "x2                0.5   0.5",
    ]
    many = scorecard(
        Schema.numeric(5),
        np.arange(1.0, 51.0).reshape(10, 5),
        values=[list(range(10))],
        task="multilabel",
    )
    assert [line.split()[:3] for line in many if "of" in line] == [["logistic", "of", "label"]] * 2
    assert "label 9" in many[7]


def test_linear_leaves_show_all_terms() -> None:
    for k in (1, 3):
        tree = make_tree(
            1, n_splits=1, n_features=9, task="regression", k=k, linear=True, sparsity=0
        )
        text = tree.to_text(max_terms=2, digits=2)
        leaves = text.split("if ")[1].split("Terms left out")[0]
        assert leaves.count("f8") >= 2
        assert "f8" in leaves.split("else:")[1]
        assert "left out" not in tree.to_text(max_terms=None)


def test_missing_numbers_of_linear_leaves_are_noted() -> None:
    schema = Schema((Feature("x", "numeric", center=10.0, has_missing=True),))
    none = np.zeros((0, 2))
    leaf = ObliqueTree.of(none, bias=[], values=[1], leaf_weights=[[1.0, 0.0]], schema=schema)
    assert "A missing number counts as its mean: x as 10.\n" in leaf.to_text()


def test_the_means_of_all_missing_numbers_are_noted() -> None:
    features = [Feature(f"x{i}", "numeric", center=float(i), has_missing=True) for i in range(20)]
    schema = Schema(tuple(features))
    weights = np.zeros((1, schema.n_columns))
    weights[0, schema.first_column] = 1.0
    note = ObliqueTree.of(weights, bias=[0], values=[0, 1], schema=schema).to_text().split("\n")[-2]
    assert note.endswith(", ".join(f"x{i} as {i}" for i in range(20)) + ".")


def test_labels() -> None:
    values = [[0.75, 0.1, 0.5], [0.25, 0.4, 0.1]]
    names = ["spam", "work", "a - b"]
    tree = ObliqueTree.of(
        [[1.0]], bias=[0], values=values, task="multilabel", target_names=names, counts=[3, 1, 2]
    )
    assert tree.to_text() == (
        'Oblique tree: multilabel classification of spam, work, "a - b", 3 labels, 1 feature, '
        "depth 1, 1 split, 2 leaves\n\n"
        "if x0 >= 0:\n"
        "|   labels: none, nearest work (p = 0.4) (n = 2)\n"
        "else:\n"
        '|   labels: spam (p = 0.75), "a - b" (p = 0.5) (n = 1)\n'
    )
    many = ObliqueTree.of(np.zeros((0, 1)), bias=[], values=np.ones((1, 7)), task="multilabel")
    assert "\nlabels: 0 (p = 1), 1 (p = 1), 2 (p = 1), 3 (p = 1), (+ 3 more labels left out)\n" in (
        many.to_text()
    )


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("linear", [False, True])
def test_every_leaf_is_written_once(task: str, linear: bool) -> None:
    tree = make_tree(3, n_splits=20, mixed=True, task=task, linear=linear)
    assert tree.counts is not None
    lines = tree.to_text(max_terms=None).splitlines()
    assert sum(line.strip("| ").startswith("if ") for line in lines) == 20
    assert sum("n = " in line for line in lines) == 21
    assert sum(line.endswith("else:") for line in lines) == 20
