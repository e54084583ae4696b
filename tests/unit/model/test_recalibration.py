"""A recalibrated tree: the same tree with other probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.model.edit.recalibration import Recalibration
from trees import make_rows, make_tree

TASKS = ["classification", "multilabel"]


def some_change(task: str, k: int) -> Recalibration:
    rng = np.random.default_rng(k)
    n_slopes = 1 if task == "classification" else k
    return Recalibration(np.exp(rng.normal(size=n_slopes)), rng.normal(size=k))


def by_hand(p, change, task):
    if task == "classification":
        powers = p**change.slope * np.exp(change.offset)
        return powers / powers.sum(axis=1, keepdims=True)
    odds = (p / (1 - p)) ** change.slope * np.exp(change.offset)
    return odds / (1 + odds)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_the_tree_has_the_changed_probabilities(task, linear, k):
    tree = make_tree(0, task=task, k=k, linear=linear, mixed=True)
    change = some_change(task, k)
    rows = make_rows(1, tree.schema, 200)
    found = change.of_tree(tree)
    p = tree.predict_proba(rows)
    expected = by_hand(p, change, task)
    np.testing.assert_allclose(found.predict_proba(rows), expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(change.of_outputs(p, task), expected, rtol=1e-9, atol=1e-15)
    assert (found.apply(rows) == tree.apply(rows)).all()
    assert found.record == tree.record


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("linear", [False, True])
def test_nothing_changes_with_slope_1_and_no_offset(task, linear):
    tree = make_tree(0, task=task, linear=linear)
    same = Recalibration(np.ones(1 if task == "classification" else 3), np.zeros(3))
    np.testing.assert_allclose(same.of_tree(tree).values, tree.values, rtol=1e-12)


def test_probabilities_of_0_and_1_stay():
    sure = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    for task in TASKS:
        found = some_change(task, 2).of_outputs(sure, task)
        assert (found[:2] == sure[:2]).all()
        assert (found[2] > 0).all()


@pytest.mark.parametrize("linear", [False, True])
def test_dividing_by_factors_undoes_their_weights(linear):
    tree = make_tree(0, linear=linear)
    factors = np.array([0.5, 4.0, 20.0])
    rows = make_rows(1, tree.schema, 50)
    p = tree.predict_proba(rows)
    divided = p / factors
    expected = divided / divided.sum(axis=1, keepdims=True)
    found = Recalibration.dividing_by(factors).of_tree(tree).predict_proba(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
