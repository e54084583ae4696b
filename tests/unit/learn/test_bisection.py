"""Halves by 2-means, as a start."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.learn.latent_network.bisection import bisect


def nodes_of(rows, weights, bias, depth):
    node = np.zeros(len(rows), dtype=int)
    for _ in range(depth):
        score = np.einsum("ij,ij->i", rows, weights[node]) + bias[node]
        node = 2 * node + 1 + (score >= 0)
    return node - (2**depth - 1)


def test_far_apart_clusters_are_told_apart():
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [9, 0], [0, 30], [9, 30]])
    truth = rng.integers(0, 4, 200)
    rows = (centers[truth] + rng.normal(size=(200, 2))).astype(np.float32)
    weights, bias = bisect(rows, np.ones(200), 2, seed=0)
    found = nodes_of(rows, weights, bias, 2)
    assert len(set(zip(truth.tolist(), found.tolist(), strict=True))) == 4
    # The root's plane is half way between the centers, with scores of 1/2 there.
    score = rows @ weights[0] + bias[0]
    is_right = score >= 0
    for side, expected in ((~is_right, -0.5), (is_right, 0.5)):
        np.testing.assert_allclose(score[side].mean(), expected, atol=1e-4)


def test_weights_count_as_repeated_rows_do():
    rng = np.random.default_rng(1)
    rows = np.append(np.zeros((1, 1)), rng.normal(10, 1, size=(30, 1)), axis=0).astype(np.float32)
    light = bisect(rows, np.append(1e-9, np.ones(30)), 1, seed=0)
    heavy = bisect(rows, np.append(1e3, np.ones(30)), 1, seed=0)
    # Nothing is lost by leaving a row of no weight on either side, much by splitting off a heavy.
    assert (nodes_of(rows, *heavy, 1) != nodes_of(rows, *light, 1)).any()
    assert len(set(nodes_of(rows, *heavy, 1)[1:].tolist())) == 1


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 4))
@settings(max_examples=40)
def test_any_rows_give_finite_splits_the_same_each_time(seed, n, depth):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 2, size=(n, 2)).astype(np.float32)
    weight = rng.random(n) + 0.1
    weights, bias = bisect(rows, weight, depth, seed)
    assert weights.shape == (2**depth - 1, 2)
    assert np.isfinite(weights).all()
    assert np.isfinite(bias).all()
    again = bisect(rows, weight, depth, seed)
    assert (again[0] == weights).all()
    assert (again[1] == bias).all()
    assert ((weights == 0).all(axis=1) == (bias == 1)).all()


def test_equal_rows_stay_together():
    weights, bias = bisect(np.ones((5, 3), np.float32), np.ones(5), 2, seed=0)
    assert not weights.any()
    assert (bias == 1).all()


def test_of_many_rows_some_are_looked_at():
    rng = np.random.default_rng(2)
    rows = np.append(rng.normal(-5, 1, (60_000, 1)), rng.normal(5, 1, (60_000, 1)), axis=0)
    weights, bias = bisect(rows.astype(np.float32), np.ones(120_000), 1, seed=0)
    assert abs(-bias[0] / weights[0, 0]) < 0.5
