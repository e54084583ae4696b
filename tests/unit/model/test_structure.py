"""Invalid arguments of the constructor, and their error messages."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from hardwood.model import ObliqueTree
from hardwood.table import Schema

GOOD: dict[str, Any] = {
    "weights": [[1.0, 0.0], [0.0, 1.0]],
    "bias": [0.0, 0.5],
    "children": [[1, -1], [-2, -3]],
    "values": [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]],
    "schema": Schema.numeric(2),
    "task": "classification",
    "classes": ["a", "b"],
    "counts": [3, 2, 1, 1, 1],
}


def build(**changes: Any) -> ObliqueTree:
    parts = GOOD | changes
    return ObliqueTree(
        parts.pop("weights"),
        parts.pop("bias"),
        parts.pop("children"),
        parts.pop("values"),
        **parts,
    )


def test_valid_parts_form_a_tree() -> None:
    assert build().n_leaves == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": [[1.0], [1.0]]}, r"weights must have shape \(any, 2\)"),
        ({"weights": [1.0, 2.0]}, "weights must have shape"),
        ({"weights": [[1.0, np.nan], [0, 0]]}, r"weights must be finite.*weights\[0, 1\] is nan"),
        ({"weights": [["a", "b"], ["c", "d"]]}, "weights must hold real numbers"),
        ({"weights": np.ones((2, 2), complex)}, "weights must hold real numbers"),
        ({"weights": np.ones((2, 2), object)}, "weights must hold real numbers"),
        ({"bias": [0.0]}, r"bias must have shape \(2\)"),
        ({"bias": [0.0, np.inf]}, "bias must be finite"),
        ({"values": np.ones((3, 0))}, "at least one column"),
        ({"values": [[0.5, 0.5], [1.0, 0.0]]}, r"values must have shape \(3, any\), not \(2, 2\)"),
        ({"values": [[0.5, 0.4], [1.0, 0.0], [0.0, 1.0]]}, "sum to 1, but those of leaf 0"),
        ({"values": [[0.5, 0.5], [1.0, 0.0], [-0.5, 1.5]]}, "sum to 1, but those of leaf 2"),
        ({"children": [[1.0, -1.0], [-2.0, -3.0]]}, "children must hold integers"),
        ({"children": [[1, -1]]}, r"children must have shape \(2, 2\), not \(1, 2\)"),
        ({"children": [[2, -1], [-2, -3]]}, "children must lie between -3 and 1"),
        ({"children": [[1, -1], [-2, -4]]}, "children must lie between -3 and 1"),
        ({"children": [[1, 2**40], [-2, -3]]}, "children must fit int32, but .* to 1099511627776"),
        ({"children": [[0, -1], [-2, -3]]}, "cycle or are out of order"),
        ({"children": [[1, -1], [0, -3]]}, "cycle or are out of order"),
        ({"children": [[1, 1], [-2, -3]]}, "split 1 has 2"),
        ({"children": [[-1, -2], [-1, -3]]}, "split 1 has 0"),
        ({"children": [[1, -1], [-1, -3]]}, "leaf 0 has 2"),
        ({"counts": [1, 2]}, r"counts must have shape \(5\)"),
        ({"counts": [3, 2, 1, 1, -1]}, r"counts\[4\] is -1"),
        ({"counts": [3, 2, 1, 1, np.nan]}, "counts must be finite"),
        ({"task": "ranking"}, "task must be"),
        ({"classes": None}, "needs its classes"),
        ({"classes": []}, "at least one class"),
        ({"classes": ["a", "b", "c"]}, "values has 2 columns for 3 classes"),
        ({"classes": ["a", "a"]}, "'a' occurs twice"),
        ({"classes": [1, True]}, "True occurs twice"),
        ({"classes": [1.0, float("nan")]}, "a class must be"),
        ({"classes": [1, 2**64]}, "a class must be"),
        ({"classes": [None, "a"]}, "a class must be"),
        ({"classes": ["\ud800", "a"]}, "not valid Unicode"),
        ({"task": "regression"}, "a regression tree has no classes$"),
        ({"task": "multilabel"}, "a multilabel tree has no classes; its labels are"),
        ({"target_names": ["a", "b"]}, "expected 1 target name"),
        ({"target_names": [3]}, "target names must be text"),
        ({"record": [1]}, "record must be a dict"),
        ({"record": {"loss": float("nan")}}, "record cannot be stored"),
        ({"record": {"a": {1: 2, "1": 3}}}, "record cannot be stored"),
        ({"record": {"a": object()}}, "record cannot be stored"),
    ],
)
def test_invalid_parts_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        build(**changes)


MULTILABEL: dict[str, Any] = {
    "task": "multilabel",
    "classes": None,
    "values": [[0.5, 0.9], [1.0, 0.0], [1.0, 1.0]],
    "target_names": ["a", "b"],
}
LINEAR: dict[str, Any] = {"leaf_weights": np.ones((3, 2, 2)), "link": "softmax"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"values": [[0.5, 0.9], [1.0, 0.0], [-0.1, 1]]},
            r"between 0 and 1.*values\[2, 0\] is -0.1",
        ),
        ({"values": [[0.5, 1.1], [1.0, 0.0], [0.1, 1]]}, r"between 0 and 1.*values\[0, 1\] is 1.1"),
        ({"target_names": ["a"]}, r"expected 2 target names, got 1"),
        ({"link": "logistic"}, "without leaf_weights.*link must be 'identity', not 'logistic'"),
        ({"leaf_weights": np.ones((3, 2, 2))}, "linear leaves must be 'logistic', not 'identity'"),
    ],
)
def test_invalid_labels_are_refused(changes: dict[str, Any], words: str) -> None:
    assert build(**MULTILABEL).n_outputs == 2
    with pytest.raises(ValueError, match=words):
        build(**(MULTILABEL | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"link": "identity"}, "classification tree with linear leaves must be 'softmax', not 'id"),
        ({"link": "probit"}, "must be 'softmax', not 'probit'"),
        ({"link": ["softmax"]}, r"must be 'softmax', not \['softmax'\]"),
        ({"leaf_weights": None}, "without leaf_weights the values are the predictions"),
        ({"leaf_weights": np.ones((3, 2))}, r"leaf_weights must have shape \(3, 2, 2\)"),
        ({"leaf_weights": np.ones((3, 1, 2))}, r"leaf_weights must have shape \(3, 2, 2\)"),
        ({"leaf_weights": np.ones((3, 2, 3))}, r"leaf_weights must have shape \(3, 2, 2\)"),
        ({"leaf_weights": np.full((3, 2, 2), np.nan)}, r"leaf_weights\[0, 0, 0\] is nan"),
        ({"leaf_weights": np.full((3, 2, 2), "a")}, "leaf_weights must hold real numbers"),
        (
            {"values": np.ones((3, 3)), "leaf_weights": np.ones((3, 3, 2))},
            "3 columns for 2 classes",
        ),
        ({"values": np.full((3, 2), np.inf)}, "values must be finite"),
        (
            {"task": "regression", "classes": None},
            "regression tree with linear leaves must be 'identity' or 'exp', not 'softmax'",
        ),
    ],
)
def test_invalid_linear_leaves_are_refused(changes: dict[str, Any], words: str) -> None:
    tree = build(**LINEAR, values=[[5, -3], [0, 0], [1, 2]])  # scores, not probabilities
    assert tree.has_linear_leaves
    assert not tree.leaf_weights.flags.writeable
    with pytest.raises((ValueError, TypeError), match=words):
        build(**(LINEAR | changes))


def test_probabilities_whose_sum_overflows_are_refused_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="probabilities that sum to 1"):
            build(values=[[1.7e308, 1.7e308], [0.5, 0.5], [0, 1]])


def test_a_tree_copies_its_arguments() -> None:
    weights = np.array(GOOD["weights"])
    record = {"notes": [1]}
    tree = build(weights=weights, record=record)
    weights[0, 0] = 99
    record["notes"].append(2)
    tree.record["notes"].append(3)
    assert tree.weights[0, 0] == 1
    assert tree.record == {"notes": [1]}


def test_a_tree_is_immutable() -> None:
    tree = build()
    with pytest.raises(AttributeError, match="frozen"):
        tree.bias = np.zeros(2)
    with pytest.raises(AttributeError, match="frozen"):
        del tree.bias
    for array in (tree.weights, tree.bias, tree.children, tree.values, tree.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(tree)
