"""The split search of linear trees equals its NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import _native
from reference import linear_tree


def random_node(seed: int, n: int = 60, q: int = 3, k: int = 2) -> linear_tree.Node:
    rng = np.random.default_rng(seed)
    columns = np.column_stack([rng.normal(size=(n, q - 1)), np.ones(n)])
    return linear_tree.Node(
        columns,
        rng.normal(size=(n, k)),
        rng.uniform(0.05, 1.0, size=(n, k)),
        rng.integers(1, 4, size=n).astype(np.float64),
        rng.uniform(0.5, 3.0, size=q),
        min_count=float(rng.integers(0, 20)),
    )


def search(node: linear_tree.Node, bins, n_bins, has_missing, n_threads: int = 1):
    return _native.linear_splits(
        node.columns,
        node.slope,
        node.curvature,
        node.count,
        bins=np.ascontiguousarray(bins, dtype=np.uint16),
        n_bins=list(n_bins),
        has_missing=list(has_missing),
        l2=node.l2,
        min_count=node.min_count,
        n_threads=n_threads,
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_best_split_equals_the_reference(seed):
    rng = np.random.default_rng(100 + seed)
    node = random_node(seed, q=int(rng.integers(1, 5)), k=int(rng.integers(1, 4)))
    n_bins = [2, 5, 9, 9]
    has_missing = [False, False, True, False]
    bins = np.stack([rng.integers(0, b, size=60) for b in n_bins])
    bins[3, bins[3] == 4] = 5  # an empty bin
    gain, first_right, missing_right = search(node, bins, n_bins, has_missing)
    for c in range(len(bins)):
        expected = linear_tree.best_split(node, bins[c], n_bins[c], has_missing[c])
        assert gain[c] == pytest.approx(expected[0], rel=1e-9, abs=1e-12)
        assert (first_right[c], bool(missing_right[c])) == expected[1:]


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    node = random_node(0, n=4000, q=6)
    bins = rng.integers(0, 30, size=(40, 4000))
    one = search(node, bins, [30] * 40, [False] * 40)
    for n_threads in (2, 5):
        for a, b in zip(one, search(node, bins, [30] * 40, [False] * 40, n_threads), strict=True):
            assert np.array_equal(a, b)


def test_columns_that_repeat_each_other_gain_no_more_than_one():
    node = random_node(3, q=2, k=1)
    doubled = linear_tree.Node(
        np.column_stack([node.columns[:, 0], node.columns]),
        node.slope,
        node.curvature,
        node.count,
        np.array([1e-9, 1e-9, 1.0]),
        node.min_count,
    )
    single = linear_tree.Node(
        node.columns, node.slope, node.curvature, node.count, np.array([1e-9, 1.0]), node.min_count
    )
    bins = np.random.default_rng(4).integers(0, 6, size=(1, 60))
    assert search(doubled, bins, [6], [False])[0] == pytest.approx(
        search(single, bins, [6], [False])[0], rel=1e-5
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_bins": [3]}, "a bin is out of range"),
        ({"n_bins": [0]}, "n_bins must lie between"),
        ({"n_bins": [9, 9]}, "candidates differ in number"),
        ({"n_threads": 0}, "n_threads must lie between"),
        ({"l2": np.ones(2)}, "rows differ in number"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    node = random_node(1)
    arguments = {
        "bins": np.full((1, 60), 8, dtype=np.uint16),
        "n_bins": [9],
        "has_missing": [False],
        "l2": node.l2,
        "min_count": 1.0,
        "n_threads": 1,
    } | change
    with pytest.raises(ValueError, match=message):
        _native.linear_splits(node.columns, node.slope, node.curvature, node.count, **arguments)
