"""The engine's counterfactual search: its own checks, threads and interruption."""

from __future__ import annotations

import _thread
import threading

import numpy as np
import pytest

from hardwood import _native
from hardwood.explain import counterfactual
from trees import make_rows, make_tree

# Two numbers and a category of three levels; x0 + x1 >= 1 with the second level adding 2.
PARTS = {
    "kind": np.array([0, 1, 2], np.uint8),
    "first_column": np.array([0, 1, 2], np.int32),
    "n_levels": np.array([0, 0, 3], np.int32),
    "cost": np.ones(3),
    "may_become": np.ones(5, np.uint8),
    "normals": np.array([[1.0, 1.0, 0.0, 2.0, 0.0]]),
    "bias": np.array([-1.0]),
    "sizes": np.ones(1),
    "first": np.array([0, 1], np.int64),
    "members": np.array([0], np.int32),
}


def search(parts, rows=None, **options):
    rows = {
        "X": np.array([[-0.5, 0.0, 0.0]]),
        "low": np.full((1, 3), -9.0),
        "high": np.full((1, 3), 9.0),
        "columns": np.array([[-0.5, 0.0, 1.0, 0.0, 0.0]]),
        "sides": np.zeros((1, 1), np.uint8),
    } | (rows or {})
    settings = {"norm": "l2", "margin": 1e-6, "everywhere": False, "most_steps": 1000}
    return _native.CounterfactualSearch(**parts).search(
        **rows, **(settings | {"n_threads": 1} | options)
    )


@pytest.mark.parametrize(
    ("norm", "expected"),
    [("l2", [-0.5, 0.0, 1.0]), ("l1", [-0.5, 0.0, 1.0]), ("l0", [-0.5, 0.0, 1.0])],
)
def test_another_category_is_nearer_than_numbers(norm, expected):
    changed, found, is_proven = search(PARTS, norm=norm)
    assert found.all()
    assert is_proven.all()
    assert changed[0].tolist() == expected


def test_numbers_are_nearer_than_a_category_that_costs_more():
    changed, _, _ = search(PARTS | {"cost": np.array([1.0, 1.0, 9.0])})
    assert changed[0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-5)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"cost": np.zeros(3)}, "cost must be positive"),
        ({"cost": np.ones(2)}, "differ in size"),
        ({"sizes": np.ones(2)}, "sizes and levels differ"),
        ({"bias": np.ones(2)}, "sizes and levels differ"),
        ({"kind": np.array([0, 1, 0], np.uint8)}, "no such kind"),
        ({"kind": np.array([0, 7, 2], np.uint8)}, "no such kind"),
        ({"first_column": np.array([0, 1, 3], np.int32)}, "column is out of range"),
        ({"first_column": np.array([-1, 1, 2], np.int32)}, "column is out of range"),
        ({"first": np.array([0, 2], np.int64)}, "ends with the members"),
        ({"first": np.array([1, 1], np.int64)}, "starts at 0"),
        ({"first": np.array([0, 1, 0], np.int64)}, "out of order"),
        ({"members": np.array([1], np.int32)}, "no such half-space"),
        ({"members": np.array([-2], np.int32)}, "no such half-space"),
    ],
)
def test_invalid_regions_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        search(PARTS | wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"X": np.zeros((1, 2))}, "match the features"),
        ({"low": np.zeros((2, 3))}, "match the features"),
        ({"columns": np.zeros((1, 2))}, "columns do not match"),
        ({"sides": np.zeros((1, 2), np.uint8)}, "sides do not match"),
        ({"X": np.array([[0.0, 0.0, 3.0]])}, "level is out of range"),
        ({"X": np.array([[0.0, 0.0, -1.0]])}, "level is out of range"),
    ],
)
def test_rows_that_do_not_fit_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        search(PARTS, wrong)
    with pytest.raises(ValueError, match="l2, l1 or l0"):
        search(PARTS, norm="l3")


@pytest.mark.parametrize("norm", ["l2", "l1", "l0"])
def test_rows_do_not_depend_on_company_or_threads(norm):
    tree = make_tree(5, n_splits=12, n_features=5, mixed=True)
    table = make_rows(0, tree.schema, 80)
    options = {"wanted": "class 0", "norm": norm}
    together = counterfactual(tree, table, **options)
    threads = counterfactual(tree, table, n_jobs=3, **options)
    alone = [counterfactual(tree, [row], **options).after for row in table[:30]]
    assert np.array_equal(together.after, threads.after, equal_nan=True)
    assert np.array_equal(together.after[:30], np.vstack(alone), equal_nan=True)


def test_an_interrupt_ends_an_endless_search():
    """0.2 <= x0 - x1 <= 0.8 has no integer solution, and infinitely many candidates."""
    parts = PARTS | {
        "kind": np.array([1, 1, 2], np.uint8),
        "normals": np.array([[1.0, -1.0, 0.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0, 0.0]]),
        "bias": np.array([-0.2, 0.8]),
        "sizes": np.ones(2),
        "first": np.array([0, 2], np.int64),
        "members": np.array([0, 1], np.int32),
    }
    rows = {
        "X": np.zeros((1, 3)),
        "low": np.full((1, 3), -np.inf),
        "high": np.full((1, 3), np.inf),
        "columns": np.array([[0.0, 0.0, 1.0, 0.0, 0.0]]),
        "sides": np.array([[0, 1]], np.uint8),
    }
    alarm = threading.Timer(0.3, _thread.interrupt_main)
    alarm.start()
    with pytest.raises(KeyboardInterrupt):
        search(parts, rows, most_steps=2**40)  # for weeks
