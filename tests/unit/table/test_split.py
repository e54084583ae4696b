"""Splits of rows: stratified, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.errors import TableError
from hardwood.table.split import fold_numbers, hold_out, separated, validation_folds


def test_hold_out_is_stratified():
    labels = np.repeat(["a", "b", "c"], [500, 95, 5])
    train, test = hold_out(600, 0.2, np.random.default_rng(0), labels)
    assert sorted([*train, *test]) == list(range(600))
    shares = [np.sum(labels[test] == c) for c in "abc"]
    np.testing.assert_allclose(shares, [100, 19, 1], atol=1)


@pytest.mark.parametrize("seed", range(20))
def test_hold_out_keeps_a_training_row_of_every_class(seed):
    labels = np.array(["a"] * 6 + ["b", "c", "c"])
    train, test = hold_out(9, 0.5, np.random.default_rng(seed), labels)
    assert set(labels[train]) == {"a", "b", "c"}
    assert test.size > 0


def test_hold_out_nothing_and_too_few():
    train, test = hold_out(3, 0, np.random.default_rng(0))
    assert (train.tolist(), test.tolist()) == ([0, 1, 2], [])
    with pytest.raises(
        TableError, match="table of 1 row is too small to hold out a fraction of 0.2"
    ):
        hold_out(1, 0.2, np.random.default_rng(0))


def test_folds_are_stratified():
    labels = np.repeat([0, 1, 2], [50, 35, 15])
    number = fold_numbers(100, 5, np.random.default_rng(0), labels)
    for fold in range(5):
        assert np.bincount(labels[number == fold]).tolist() == [10, 7, 3]


def test_a_class_whose_rows_are_all_held_out_gets_one_back():
    train, held = separated(np.array([True, True, False, False]), np.array([0, 0, 1, 1]), "half")
    assert (train.tolist(), held.tolist()) == ([0, 2, 3], [1])


def test_the_only_row_of_a_class_is_in_no_validation_fold():
    group = np.array([0] * 8 + [1])
    folds = validation_folds(group, 4, np.random.default_rng(0))
    assert len(folds) == 4
    assert np.sum(folds, axis=0).tolist() == [1] * 8 + [0]


def test_splits_do_not_change_between_versions():  # recorded results
    rng = np.random.default_rng(7)
    labels = np.arange(12) % 3
    assert hold_out(12, 0.25, rng, labels)[1].tolist() == [7, 9, 11]
    assert fold_numbers(12, 3, rng, labels).tolist() == [2, 1, 1, 1, 1, 0, 0, 0, 2, 0, 2, 2]
