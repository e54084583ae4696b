"""Reading targets and weights, for training and for scoring."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from hardwood.errors import TableError
from hardwood.table.target import (
    are_whole,
    class_target,
    positions,
    suggested_task,
    true_targets,
)
from hardwood.table.weights import class_weights, row_weights, weight_of_rows


@dataclass(frozen=True)
class Model:
    task: str
    classes: tuple | None
    n_outputs: int


ANIMALS = Model("classification", ("cat", "dog"), 2)
NUMBERS = Model("regression", None, 2)
LABELS = Model("multilabel", None, 2)


@pytest.mark.parametrize("y", [["dog", "cat"], np.array(["dog", "cat"]), [["dog"], ["cat"]]])
def test_classes_are_read_as_positions(y):
    assert true_targets(ANIMALS, y, 2).tolist() == [1, 0]


def test_an_unknown_class_is_refused_or_wrong():
    with pytest.raises(TableError, match="'cow' at row 1, which is not a class of the model"):
        true_targets(ANIMALS, ["dog", "cow"], 2)
    assert true_targets(ANIMALS, ["dog", "cow"], 2, "wrong").tolist() == [1, -1]
    with pytest.raises(TableError, match="None of the target's values"):
        true_targets(ANIMALS, ["cow", "cow"], 2, "wrong")
    with pytest.raises(ValueError, match="must be 'error' or 'wrong'"):
        true_targets(ANIMALS, ["dog"], 1, "ignored")


@pytest.mark.parametrize(
    ("model", "y", "words"),
    [
        (NUMBERS, [[1.0], [2.0]], r"2 outputs"),
        (NUMBERS, [[1.0, np.inf], [2.0, 3.0]], "infinity"),
        (LABELS, [[0, 1], [2, 1]], "must be 0 or 1; found 0, 1, 2"),
        (LABELS, [[0, 1]], "X has 2 rows, y has 1"),
        (ANIMALS, ["cat", None], r"None \(first at row 1\)"),
    ],
)
def test_targets_that_do_not_match_are_refused(model, y, words):
    with pytest.raises(TableError, match=words):
        true_targets(model, y, 2)


def test_positions_of_values_of_several_types():
    values = np.array([1, "1", 2.0, None], dtype=object)
    assert positions(values, ("1", 2)).tolist() == [-1, 0, 1, -1]
    assert positions(np.array([1.0, 2.0]), (2, 1)).tolist() == [1, 0]


def test_numbers_too_large_to_be_whole_are_a_quantity():
    assert not are_whole(np.array([1e300, 2e300]))
    assert suggested_task(np.array([1e300, 2e300] * 5))[0] == "regression"
    assert suggested_task(np.array(["a", "b"]))[0] == "classification"


def test_all_readers_of_weights_agree():
    assert row_weights(None, 2) is None
    assert row_weights(3, 2) is None
    assert weight_of_rows(None, 2).tolist() == [1.0, 1.0]
    assert weight_of_rows([2, 0], 2).tolist() == [2.0, 0.0]
    for weight, words in (
        ([1.0, -1.0], "Negative values .* -1.0 at row 1"),
        ([1.0, np.nan], r"contains NaN \(first at row 1"),
        (["a", "b"], "must hold numbers"),
        ([1e308, 1e308], "adds up to infinity"),
    ):
        with pytest.raises(TableError, match=words):
            row_weights(weight, 2)


def test_class_weights_are_for_existing_classes():
    target = class_target(["a", "b", "b"], 3)
    assert class_weights({"a": 2.0}, target, None).tolist() == [2.0, 1.0, 1.0]
    assert class_weights("balanced", target, None).tolist() == [1.5, 0.75, 0.75]
    with pytest.raises(ValueError, match=r"classes, \['b'\], are not in class_weight"):
        class_weights({"a": 2.0, "c": 1.0}, target, None)


def test_targets_and_weights_are_read_without_scikit_learn():
    code = "import hardwood.table.target, hardwood.table.weights, hardwood.table.split, sys"
    code += "; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_whole_numbers_with_two_rows_each_are_classes():
    assert suggested_task(np.array([0, 0, 1, 1]))[0] == "classification"
    assert suggested_task(np.array([0, 0, 1]))[0] == "regression"


def test_balanced_divides_the_weight_among_the_classes_that_occur():
    target = class_target(np.array(["a", "a", "a", "b", "c"]), 5)
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    factor = class_weights("balanced", target, weight)
    np.testing.assert_allclose((factor * weight)[:3].sum(), 2.0)  # of 4, for two classes
    np.testing.assert_allclose((factor * weight)[3], 2.0)
