"""The JSON form of trees, forests and soft ensembles."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ensembles import make_ensemble
from forests import make_forest
from hardwood.errors import ModelFileError
from hardwood.model import ObliqueForest, ObliqueTree, TreeEnsemble
from trees import make_tree

TREE = make_tree(0, mixed=True)
CONTENT = json.loads(TREE.to_json())


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("n_splits", [0, 1, 7])
def test_what_is_written_can_be_read(task: str, counts: bool, n_splits: int) -> None:
    tree = make_tree(4, task=task, counts=counts, n_splits=n_splits, mixed=True)
    assert ObliqueTree.from_json(tree.to_json()) == tree
    assert ObliqueTree.from_json(tree.to_json().encode()) == tree


def test_floats_are_exact() -> None:
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308]
    tree = ObliqueTree.of(np.array([values]), bias=[-0.0], values=[1e-17, 2])
    assert ObliqueTree.from_json(tree.to_json()).weights.tolist() == [values]


def test_types_of_labels_survive() -> None:
    classes = (1, 2.0, "1", False)
    tree = ObliqueTree.of([[1.0]], bias=[0], values=np.full((2, 4), 0.25), classes=classes)
    again = ObliqueTree.from_json(tree.to_json())
    assert [type(label) for label in again.classes or ()] == [int, float, str, bool]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "newer hardwood"),
        ({"combine": "mean"}, r"unknown keys \['combine'\]"),
        ({"kind": "bandit"}, "hardwood.bandit.load"),
        ({"weights": None}, "weights must be a list of lists"),
        ({"weights": [1, 2]}, "weights must hold lists of numbers"),
        ({"weights": [[1.0], [1.0, 2.0]]}, "each row of weights must have"),
        ({"weights": [["x" * 10_000] * 1000]}, "weights must hold lists of numbers"),
        ({"weights": [[True] * 11] * 5}, "weights must hold lists of numbers"),
        ({"weights": [[None] * 11] * 5}, "weights must hold lists of numbers"),
        ({"weights": [[10**400] * 11] * 5}, "too large"),
        ({"bias": [1e999] * 5}, "NaN|Infinity|finite"),
        ({"bias": 3}, "bias must hold"),
        ({"children": [[0.0, 1.0]] * 5}, "children must hold lists of whole numbers"),
        ({"children": [[2**70, 1]] * 5}, "children holds a number that is too large"),
        ({"children": [[1, 2, 3]] * 5}, "each row of children must have 2"),
        ({"values": []}, r"values must have shape \(6, any\)"),
        ({"counts": [[1]]}, "counts must hold"),
        ({"surprise": 1}, "unknown keys"),
    ],
)
def test_the_error_says_what_is_wrong(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        ObliqueTree.from_json(json.dumps(CONTENT | change))


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "3", "{}", '{"format": 1}', "[" * 100_000, b"\xff", '{"a":1,"a":1}'],
)
def test_other_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(ModelFileError, match="cannot read a tree from this JSON"):
        ObliqueTree.from_json(text)


# Linear leaves and several labels

LATER = make_tree(0, mixed=True, linear=True)
LATER_CONTENT = json.loads(LATER.to_json())
N_COLUMNS = LATER.schema.n_columns


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("n_splits", [0, 3])
def test_every_kind_of_tree_is_read(task: str, linear: bool, n_splits: int) -> None:
    tree = make_tree(4, task=task, linear=linear, n_splits=n_splits, mixed=True)
    assert ObliqueTree.from_json(tree.to_json()) == tree
    content = json.loads(tree.to_json())
    assert (content["format"], content["kind"]) == (1, "tree")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"link": "identity"}, "link"),
        ({"link": "probit"}, "link"),
        ({"link": 3}, "link"),
        ({"link": ["softmax"]}, "link"),
        ({"leaf_weights": None}, "probabilities that sum to 1"),
        ({"leaf_weights": []}, "a list with a matrix for each leaf"),
        ({"leaf_weights": 3}, "a list with a matrix for each leaf"),
        ({"leaf_weights": [3]}, "leaf_weights must be a list of lists"),
        ({"leaf_weights": [[3]]}, "leaf_weights must hold lists of numbers"),
        ({"leaf_weights": [[["x"]]]}, "leaf_weights must hold lists of numbers"),
        ({"leaf_weights": [[[1.0]]] * 6}, "each row of leaf_weights must have"),
        ({"leaf_weights": [[[1.0] * N_COLUMNS]] * 6}, r"leaf_weights must have shape \(6, 3"),
        ({"leaf_weights": [[[1.0] * N_COLUMNS] * 3] * 5}, r"leaf_weights must have shape \(6, 3"),
        (
            {"leaf_weights": [[[1.0] * N_COLUMNS] * 3] * 5 + [[[1.0] * N_COLUMNS] * 2]},
            "a matrix of the same shape",
        ),
        ({"leaf_weights": [[[1e999] * N_COLUMNS] * 3] * 6}, "NaN|Infinity|finite"),
        ({"task": "multilabel"}, "classes|link"),
        ({"kind": "forest"}, r"lacks the keys \['combine', 'trees'\]"),
    ],
)
def test_the_error_says_what_is_wrong_in_a_linear_tree(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        ObliqueTree.from_json(json.dumps(LATER_CONTENT | change))


# Forests

FOREST = make_forest(0, mixed=True, counts=(True, False), linear=(False, True))
FOREST_CONTENT = json.loads(FOREST.to_json())


def with_member(i: int, **changes: Any) -> dict[str, Any]:
    """Return the trees of the forest, with changes in one of them; ... removes the key."""
    trees = list(FOREST_CONTENT["trees"])
    trees[i] = {key: value for key, value in (trees[i] | changes).items() if value is not ...}
    return {"trees": trees}


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("linear", [(False,), (True, False)])
@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_every_kind_of_forest_is_read(task: str, linear: tuple[bool, ...], combine: str) -> None:
    forest = make_forest(4, task=task, linear=linear, mixed=True, combine=combine)
    assert ObliqueForest.from_json(forest.to_json()) == forest
    assert ObliqueForest.from_json(forest.to_json().encode()) == forest


def test_the_schema_is_written_once() -> None:
    assert FOREST.to_json().count('"has_missing"') == len(FOREST.schema.features)
    assert [tree["counts"] is None for tree in FOREST_CONTENT["trees"]] == [False, True, False]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "newer hardwood"),
        ({"kind": "tree"}, "lacks the keys"),
        ({"combine": "median"}, "combine must be"),
        ({"combine": ["mean"]}, "combine must be"),
        ({"record": 3}, "record must be a dict"),
        ({"trees": []}, "at least one tree"),
        ({"trees": {}}, "at least one tree"),
        ({"trees": [3]}, "tree 0 is described by 3"),
        ({"trees": [None] * 1_000_000}, "1000000 trees, more than 100000"),
        (with_member(1, bias=...), r"tree 1 lacks the keys \['bias'\]"),
        (with_member(1, schema={}), r"tree 1 .* unknown keys \['schema'\]"),
        (with_member(2, bias=[]), "tree 2: bias must have shape"),
        (with_member(2, bias=["x"] * 3), "tree 2: bias must hold lists of numbers"),
        (with_member(2, values=[[1.0, 0.0]] * 4), "tree 2: values has 2 columns"),
        (with_member(2, children=[[0, 1]] * 3), "tree 2: .* a cycle"),
        (with_member(2, record=3), "tree 2: record must be a dict"),
        (with_member(1, link="identity"), "tree 1: the link"),
        (with_member(0, leaf_weights=[[[0.0]]]), "tree 0: each row of leaf_weights"),
    ],
)
def test_the_error_says_what_is_wrong_in_a_forest(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        ObliqueForest.from_json(json.dumps(FOREST_CONTENT | change))
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "{}", "[" * 100_000, b"\xff"])
def test_other_text_is_not_a_forest(text: str | bytes) -> None:
    with pytest.raises(ModelFileError, match="cannot read a forest from this JSON"):
        ObliqueForest.from_json(text)


# Sums and soft ensembles

SUM_CONTENT = json.loads(make_forest(0, mixed=True, combine="sum").to_json())
SOFT = make_ensemble(0, mixed=True)
SOFT_CONTENT = json.loads(SOFT.to_json())


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("activation", ["smooth_step", "smooth_step_5", "logistic"])
@pytest.mark.parametrize("counts", [True, False])
def test_every_kind_of_ensemble_is_read(task: str, activation: str, counts: bool) -> None:
    ensemble = make_ensemble(4, task=task, activation=activation, counts=counts, mixed=True)
    assert TreeEnsemble.from_json(ensemble.to_json()) == ensemble
    content = json.loads(ensemble.to_json())
    assert (content["format"], content["kind"]) == (1, "ensemble")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"combine": "mean"}, "tree 0: "),
        ({"link": "identity"}, "has no classes"),
        ({"link": {}}, "link of a sum must be"),
        ({"task": "multilabel"}, "'softmax' is for classification, but task is 'multilabel'"),
        ({"classes": None}, "needs its classes"),
    ],
)
def test_the_error_says_what_is_wrong_in_a_sum(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        ObliqueForest.from_json(json.dumps(SUM_CONTENT | change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "newer hardwood"),
        ({"kind": "forest"}, r"lacks the keys \['combine', 'trees'\]"),
        ({"gamma": 0}, "gamma must be finite and above 0"),
        ({"gamma": "wide"}, "gamma must be a number"),
        ({"gamma": 10**400}, "gamma must be a float64"),
        ({"activation": "relu"}, "activation must be one of"),
        ({"link": None}, "link of an ensemble must not be null"),
        ({"link": "exp"}, "ensemble must be 'softmax'"),
        ({"weights": None}, "weights must be a list with a matrix for each tree"),
        ({"weights": []}, "weights must be a list with a matrix for each tree"),
        ({"weights": [3]}, "weights must be a list of lists"),
        ({"weights": [[[1.0]]]}, "each row of weights must have"),
        ({"weights": SOFT_CONTENT["weights"][:2]}, "bias must have shape"),
        ({"weights": [SOFT_CONTENT["weights"][0], []]}, "a matrix of the same shape"),
        ({"bias": [1.0]}, "bias must hold lists of numbers"),
        ({"bias": [[1.0], [1.0, 2.0]]}, "each row of bias must have 1 number"),
        ({"values": [[["x"]]]}, "values must hold lists of numbers"),
        ({"values": [[[10**400]]]}, "too large"),
        ({"counts": [1.0]}, "counts must hold lists of numbers"),
        ({"counts": [[1.0]]}, "counts must have shape"),
        ({"children": []}, r"unknown keys \['children'\]"),
    ],
)
def test_the_error_says_what_is_wrong_in_an_ensemble(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        TreeEnsemble.from_json(json.dumps(SOFT_CONTENT | change))
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "{}", "[" * 100_000, b"\xff"])
def test_other_text_is_not_an_ensemble(text: str | bytes) -> None:
    with pytest.raises(ModelFileError, match="cannot read an ensemble from this JSON"):
        TreeEnsemble.from_json(text)
