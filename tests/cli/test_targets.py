from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hardwood.cli.errors import CommandError
from hardwood.cli.read import complete_columns, label_positions, read_targets, read_weights

HERE = Path("t.csv")


def target_of(values, task=None, type=None):
    return read_targets(pa.table({"y": pa.array(values, type=type)}), ("y",), HERE, task)


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        (["a", "b"] * 5, "classification", "text"),
        ([True, False] * 5, "classification", "true and false"),
        ([0, 1, 2] * 5, "classification", "3 different whole numbers"),
        ([0.0, 1.0] * 5, "classification", "2 different whole numbers"),
        ([0.5, 1.0] * 5, "regression", "fractions"),
        (list(range(100)), "regression", "100 different whole numbers in 100 rows"),
        ([1, 2, 3], "regression", "3 different whole numbers in 3 rows"),
        ([1e300, 2e300] * 5, "regression", "fractions"),
    ],
)
def test_the_task_follows_from_the_values(values, task, words):
    target = target_of(values)
    assert target.task == task
    assert words in target.reason


def test_a_given_task_overrides():
    target = target_of([0, 1, 2] * 5, "regression")
    assert target.task == "regression"
    assert target.values.dtype == np.float64
    assert target.reason == "--task regression"


def test_rows_without_target_are_left_out_and_counted():
    target = target_of([1.5, None, float("nan"), 2.5])
    assert target.rows.tolist() == [0, 3]
    assert target.values.tolist() == [1.5, 2.5]
    assert target.n_missing == 2


def test_dictionary_decimal_and_whole_floats():
    target = target_of(pa.array(["a", "b", "a", None, "b"]).dictionary_encode())
    assert target.values.tolist() == ["a", "b", "a", "b"]
    assert target_of([Decimal("1.25"), Decimal("2.5")]).values.tolist() == [1.25, 2.5]
    assert target_of([0.0, 1.0, None, 1.0, 0.0]).values.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        ([None, None], None, "All values of column 'y'"),
        ([float("nan")] * 3, None, "All values of column 'y'"),
        (["a"] * 5, None, "single value, 'a'"),
        (["id1", "id2", "id3"], None, "3 different values in 3 rows"),
        ([1, 2, 3], "classification", "3 different values in 3 rows"),
        ([0.5, 0.5, 1.5, 1.5], "classification", "use --task regression"),
        (["a", "b"] * 5, "regression", "'a'; regression needs numbers"),
        ([1.0, float("inf"), 2.0, 3.5], None, "infinite"),
        ([datetime.date(2020, 1, 1)] * 3, None, "dates or times"),
        ([[1], [2]], None, "Column 'y' contains"),
    ],
)
def test_targets_that_cannot_be_learned_are_explained(values, task, words):
    with pytest.raises(CommandError, match=words):
        target_of(values, task)


def test_an_absent_target_suggests_a_close_one():
    with pytest.raises(CommandError, match="no column 'yy'. Did you mean 'yyy'"):
        read_targets(pa.table({"yyy": [1, 2]}), ("yy",), HERE)


def test_rows_to_score_may_have_one_class():
    rows, (values,) = complete_columns(pa.table({"y": ["a", None, "a"]}), ("y",), HERE)
    assert (rows.tolist(), values.tolist()) == ([0, 2], ["a", "a"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1", "b"], "does not hold numbers, but 'b'"),
        ([1.0, None], "1 missing"),
        ([1.0, -1.0], "Weight column 'w': Negative"),
        ([0.0, 0.0], "non-zero"),
    ],
)
def test_bad_weights_are_explained(values, words):
    with pytest.raises(CommandError, match=words):
        read_weights(pa.table({"w": values}), "w", HERE)


def test_the_entry_of_a_target_that_is_wrong_is_quoted():
    with pytest.raises(CommandError, match="contains text, for example 'oops'"):
        read_targets(pa.table({"y": ["1.5", "oops", "2"]}), ("y",), HERE, "regression")


def test_labels_match_across_number_types_and_text():
    assert label_positions(np.array([1.0, 2.0, 7.0]), (2, 1)).tolist() == [1, 0, -1]
    assert label_positions(np.array([3, 4]), ("3", "4")).tolist() == [0, 1]
    assert label_positions(np.array([True, False]), (False, True)).tolist() == [1, 0]
