"""The JSON form of a tree."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from hardwood.errors import ModelFileError
from hardwood.model import ObliqueTree
from trees import make_tree

TREE = make_tree(0, mixed=True)
CONTENT = json.loads(TREE.to_json())


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("n_splits", [0, 1, 7])
def test_what_is_written_is_read(task: str, counts: bool, n_splits: int) -> None:
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
        ({"values": []}, "at least one column|leaves"),
        ({"counts": [[1]]}, "counts must hold"),
        ({"surprise": 1}, "unknown keys"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        ObliqueTree.from_json(json.dumps(CONTENT | change))


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "3", "{}", '{"format": 1}', "[" * 100_000, b"\xff", '{"a":1,"a":1}'],
)
def test_other_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(ModelFileError, match="cannot read a tree from this JSON"):
        ObliqueTree.from_json(text)
