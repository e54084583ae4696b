"""The engine of latent trees equals the NumPy reference. Needs no torch."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood import _native
from reference import latent

TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
each_input = pytest.mark.parametrize("is_q", [False, True], ids=["scores", "q"])


def pruned(rows, is_q, pruning):
    """Return activities, groups and curvatures."""
    n_nodes = rows.shape[1] if is_q else 2 * rows.shape[1] + 1
    activity = np.empty(n_nodes, rows.dtype)
    group, curvature = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    _native.latent_prune(rows, is_q, pruning, activity, group, curvature)
    return activity, group, curvature


def traversed(rows, is_q, activity, n_threads=1):
    z = np.empty((len(rows), len(activity)), rows.dtype)
    _native.latent_traverse(rows, is_q, activity, z, n_threads)
    return z


def backward(rows, is_q, found, dz, da, n_threads=1):
    slope = np.empty_like(rows)
    _native.latent_backward(rows, is_q, *found, dz, da, slope, n_threads)
    return slope


def drawn(rng, n, depth, is_q, spread=0.7):
    n_splits = 2**depth - 1
    return spread * rng.normal(size=(n, 2 * n_splits + 1 if is_q else n_splits))


problems = st.fixed_dictionaries(
    {
        "n": st.integers(1, 30),
        "depth": st.integers(1, 5),
        "is_q": st.booleans(),
        "pruning": st.floats(1e-3, 1e3),
        "spread": st.sampled_from([0.01, 0.3, 1.0, 5.0]),
        "is_coarse": st.booleans(),
        "seed": st.integers(0, 2**32 - 1),
    }
)


@given(problems)
@settings(deadline=None, max_examples=300)
def test_activities_and_traversals_are_those_of_the_reference(problem):
    """Also if many values are equal to each other and to thresholds."""
    rng = np.random.default_rng(problem["seed"])
    rows = drawn(rng, problem["n"], problem["depth"], problem["is_q"], problem["spread"])
    if problem["is_coarse"]:
        rows = np.round(4 * rows) / 4
    expected = latent.program(rows if problem["is_q"] else latent.rewards(rows), problem["pruning"])
    activity, _, _ = pruned(rows, problem["is_q"], problem["pruning"])
    np.testing.assert_allclose(activity, expected.a, atol=1e-12)
    np.testing.assert_allclose(traversed(rows, problem["is_q"], activity), expected.z, atol=1e-12)


@given(problems)
@settings(deadline=None, max_examples=200)
def test_groups_are_connected_and_share_one_activity(problem):
    rng = np.random.default_rng(problem["seed"])
    rows = drawn(rng, problem["n"], problem["depth"], problem["is_q"], problem["spread"])
    activity, group, curvature = pruned(rows, problem["is_q"], problem["pruning"])
    parent = (np.arange(len(activity)) - 1) // 2
    for t, top in enumerate(group):
        assert top == t or group[parent[t]] == top
        assert activity[t] == pytest.approx(activity[top], abs=1e-12)
        assert curvature[t] == curvature[top]
    assert (activity[1:] <= activity[parent[1:]]).all()
    assert ((activity >= 0) & (activity <= 1)).all()


@each_dtype
@each_input
@pytest.mark.parametrize("pruning", [0.05, 0.7, 3.0, 30.0])
def test_the_gradient_is_that_of_the_reference(dtype, is_q, pruning):
    rng = np.random.default_rng(3)
    for _ in range(20):
        rows = drawn(rng, 24, 4, is_q).astype(dtype)
        found = pruned(rows, is_q, pruning)
        dz, da = rng.normal(size=(24, 31)), rng.normal(size=31)
        q = rows.astype(float) if is_q else latent.rewards(rows.astype(float))
        expected = latent.gradient(q, pruning, dz, da)
        if not is_q:
            expected = latent.gradient_by_scores(rows.astype(float), expected)
        got = backward(rows, is_q, found, dz.astype(dtype), da.astype(dtype))
        scale = np.abs(dz).max() + np.abs(da).max()
        np.testing.assert_allclose(got, expected, atol=20 * scale * TOLERANCE[dtype])


@each_input
def test_nothing_is_pruned_without_a_price(is_q):
    rows = drawn(np.random.default_rng(0), 10, 3, is_q)
    activity, group, _ = found = pruned(rows, is_q, 0.0)
    assert (activity == 1).all()
    assert (group == np.arange(15)).all()
    q = rows if is_q else latent.rewards(rows)
    np.testing.assert_allclose(traversed(rows, is_q, activity), np.clip(q + 0.5, 0, 1))
    by_activity = backward(rows, is_q, found, np.zeros((10, 15)), np.ones(15))
    assert (by_activity == 0).all()


@each_dtype
@each_input
def test_threads_change_no_bit(dtype, is_q):
    rng = np.random.default_rng(1)
    rows = drawn(rng, 1500, 4, is_q).astype(dtype)
    found = pruned(rows, is_q, 200.0)
    dz, da = rng.normal(size=(1500, 31)).astype(dtype), rng.normal(size=31).astype(dtype)
    assert (traversed(rows, is_q, found[0]) == traversed(rows, is_q, found[0], 3)).all()
    one, many = (backward(rows, is_q, found, dz, da, n_threads) for n_threads in (1, 3))
    assert (one == many).all()


def test_any_activities_can_be_gone_by():
    """Activities from training apply to later rows; a subtree of a pruned node is not entered."""
    rows = drawn(np.random.default_rng(2), 50, 3, False)
    activity = np.linspace(1, 0, 15).clip(0.3) - 0.3
    expected = np.clip(latent.rewards(rows) + 0.5, 0, activity)
    np.testing.assert_allclose(traversed(rows, False, activity), expected)


@each_input
def test_a_row_with_a_nan_is_nan_and_spoils_no_other(is_q):
    rng = np.random.default_rng(4)
    rows = drawn(rng, 6, 3, is_q)
    rows[2, 1] = np.nan
    found = pruned(rows, is_q, 1.0)
    others = pruned(np.delete(rows, 2, axis=0), is_q, 1.0)
    assert all((part == other).all() for part, other in zip(found, others, strict=True))
    z = traversed(rows, is_q, found[0])
    slope = backward(rows, is_q, found, np.ones((6, 15)), np.ones(15))
    for result in (z, slope):
        assert (np.isnan(result).all(axis=1) == (np.arange(6) == 2)).all()


@each_input
def test_infinite_values_are_sure_decisions(is_q):
    rows = np.where(drawn(np.random.default_rng(5), 8, 3, is_q) > 0, np.inf, -np.inf)
    activity, _, _ = pruned(rows, is_q, 0.5)
    z = traversed(rows, is_q, activity)
    assert np.isfinite(activity).all()
    assert np.isfinite(z).all()


@each_input
def test_no_rows_prune_everything(is_q):
    activity, _, _ = pruned(np.empty((0, 7)), is_q, 1.0)
    assert len(activity) == (7 if is_q else 15)
    assert (activity == 0).all()


@pytest.mark.parametrize(
    ("rows", "is_q", "pruning"),
    [
        (np.zeros((2, 5)), False, 1.0),
        (np.zeros((2, 1)), True, 1.0),
        (np.zeros((2, 0)), False, 1.0),
        (np.zeros((2, 3)), False, -1.0),
        (np.zeros((2, 3)), False, np.nan),
    ],
)
def test_wrong_shapes_and_prices_are_refused(rows, is_q, pruning):
    with pytest.raises(ValueError, match="depth 1 to 16|at least 0"):
        pruned(rows, is_q, pruning)


def adverse(n, depth):
    """Return q for which each node exceeds its parent, so that all of them are pooled."""
    n_nodes = 2 ** (depth + 1) - 1
    rng = np.random.default_rng(0)
    return np.sort(rng.random((n, n_nodes)) * 1e-3, axis=1)


def test_time_grows_with_the_number_of_values_also_where_everything_is_pooled():
    """Sixteen times the values must take less than sixty-four times the time."""
    times = []
    for n in (256, 4096):
        q = adverse(n, 6)
        best = np.inf
        for _ in range(5):
            start = time.process_time()
            _, group, _ = pruned(q, True, n / 8)
            best = min(best, time.process_time() - start)
        assert len(np.unique(group)) < 10
        times.append(best)
    assert times[1] < 64 * times[0]
