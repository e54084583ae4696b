"""Coefficients of categories as sets of levels: the same predictions, with fewer numbers."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.learn.linear_trees.level_groups import Category, grouped, with_level_groups

SEEDS = st.integers(0, 2**31)


def squared_error(values, share, n_groups):
    """The least squared error of intervals of sorted values, by trying all of them."""
    order = np.argsort(values)
    values, share = values[order], share[order]
    best = np.inf
    for cuts in combinations(range(1, len(values)), n_groups - 1):
        parts = zip((0, *cuts), (*cuts, len(values)), strict=True)
        best = min(best, sum(error_of(values[a:b], share[a:b]) for a, b in parts))
    return best


def error_of(values, share):
    return share @ (values - np.average(values, weights=share)) ** 2


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 7), st.integers(1, 4))
def test_groups_have_the_least_squared_error(seed, n, n_groups):
    rng = np.random.default_rng(seed)
    values, share = rng.normal(size=n), rng.random(n) + 0.01
    found = grouped(values, share, n_groups)
    assert len(np.unique(found)) <= n_groups
    error = share @ (values - found) ** 2
    assert error == pytest.approx(squared_error(values, share, min(n_groups, n)), abs=1e-12)


def test_equal_values_stay_together():
    values = np.array([1.0, 5.0, 1.0, 5.1, 9.0])
    found = grouped(values, np.ones(5), 3)
    np.testing.assert_allclose(found, [1.0, 5.05, 1.0, 5.05, 9.0])


def indicator_rows(levels, n_levels):
    return np.eye(n_levels)[levels]


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 6), st.integers(1, 3))
def test_predictions_stay_if_groups_suffice(seed, n_levels, k):
    """One number beside the categories, and as many groups as there are levels."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(n_levels, size=50)
    X = np.column_stack([indicator_rows(levels, n_levels), rng.normal(size=50)])
    model = rng.normal(size=(k, n_levels + 2))
    share = np.bincount(levels, minlength=n_levels) / 50 + 1e-12
    category = Category(np.arange(n_levels), share)
    nothing = np.zeros(n_levels + 1, dtype=bool)
    found = with_level_groups(model, (category,), nothing, n_levels)
    ones = np.column_stack([X, np.ones(50)])
    np.testing.assert_allclose(ones @ found.T, ones @ model.T, atol=1e-12)
    assert (np.count_nonzero(found[:, :n_levels], axis=1) == n_levels - 1).all()
    assert (found[:, np.flatnonzero(share == share.max())] == 0).any(axis=1).all()


def test_two_levels_have_one_coefficient_and_more_keep_theirs():
    two, three = Category(np.arange(2), np.array([0.9, 0.1])), Category(np.arange(2, 5), np.ones(3))
    model = np.array([[1.0, 3.0, 4.0, 5.0, 6.0, 0.5]])
    found = with_level_groups(model, (two, three), np.zeros(5, dtype=bool))
    np.testing.assert_allclose(found, [[0.0, 2.0, 4.0, 5.0, 6.0, 1.5]])


def test_levels_that_splits_exclude_have_no_coefficient():
    category = Category(np.arange(3), np.array([0.2, 0.5, 0.3]))
    model = np.array([[1.0, 3.0, 4.0, 0.5]])
    found = with_level_groups(model, (category,), np.array([False, True, False]))
    np.testing.assert_allclose(found, [[-3.0, 0.0, 0.0, 4.5]])
    found = with_level_groups(model, (category,), np.array([False, True, True]))
    np.testing.assert_allclose(found, [[0.0, 0.0, 0.0, 1.5]])
