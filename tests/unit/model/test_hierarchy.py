"""A tree as a hierarchy of clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import dendrogram, fcluster, is_valid_linkage

from hardwood.model.kinds.hierarchy import Hierarchy
from hardwood.model.paths import node_depths, visited_nodes
from trees import make_children


def random_hierarchy(seed, n_splits=7, n_rows=60):
    rng = np.random.default_rng(seed)
    splits = make_children(rng, n_splits)
    leaves = np.append(np.arange(n_splits + 1), rng.integers(0, n_splits + 1, n_rows))
    columns = rng.normal(size=(len(leaves), 3)) + 1e4
    weight = rng.integers(1, 4, len(leaves)).astype(float)
    return Hierarchy.by_variation(splits, leaves, columns, weight), leaves, columns, weight


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_heights_are_relative_variations_within_nodes(seed):
    hierarchy, leaves, columns, weight = random_hierarchy(seed)
    reached = visited_nodes(hierarchy.splits, leaves).toarray().astype(bool)
    within = []
    for i in range(len(hierarchy.splits)):
        own, w = columns[reached[:, i]], weight[reached[:, i]]
        within.append((w[:, None] * (own - np.average(own, axis=0, weights=w)) ** 2).sum())
    np.testing.assert_allclose(hierarchy.heights, np.array(within) / within[0], rtol=1e-6)
    assert (np.diff(hierarchy.distances) >= 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(0, 9))
@settings(max_examples=40)
def test_merges_contain_the_leaves_of_their_splits_and_scipy_reads_them(seed, n_splits):
    hierarchy, *_ = random_hierarchy(seed, n_splits)
    n_leaves = n_splits + 1
    members = [{leaf} for leaf in range(n_leaves)]
    for left, right in hierarchy.children.tolist():
        members.append(members[left] | members[right])
    reached = visited_nodes(hierarchy.splits, np.arange(n_leaves)).toarray()
    for i, split in enumerate(hierarchy.order.tolist()):
        assert members[n_leaves + i] == set(np.flatnonzero(reached[:, split]).tolist())
    matrix = hierarchy.linkage()
    assert matrix.shape == (n_splits, 4)
    if n_splits:
        assert is_valid_linkage(matrix)
        drawn = dendrogram(matrix, no_plot=True)
        assert sorted(drawn["leaves"]) == list(range(n_leaves))


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
@settings(max_examples=40)
def test_a_cut_by_number_is_scipys_and_one_by_level_is_the_ancestor(seed, k):
    hierarchy, *_ = random_hierarchy(seed)
    clusters = hierarchy.clusters(n_clusters=k)
    assert len(set(clusters.tolist())) == min(k, 8)
    expected = fcluster(hierarchy.linkage(), k, "maxclust")
    assert (np.unique(clusters[:, None] * 100 + expected[:, None]).size) == min(k, 8)
    depths = node_depths(hierarchy.splits)
    reached = visited_nodes(hierarchy.splits, np.arange(8)).toarray().astype(bool)
    for level in range(depths.max() + 2):
        found = hierarchy.clusters(max_depth=level)
        ancestor = [
            max(np.flatnonzero(row), key=lambda t: (depths[t] <= level) * depths[t]) if level else 0
            for row in reached
        ]
        pairs = set(zip(found.tolist(), ancestor, strict=True))
        assert len(pairs) == len(set(found.tolist())) == len(set(ancestor))


def test_without_a_cut_every_leaf_is_a_cluster():
    hierarchy, *_ = random_hierarchy(0)
    assert sorted(hierarchy.clusters().tolist()) == list(range(8))
    with pytest.raises(ValueError, match="not both"):
        hierarchy.clusters(max_depth=1, n_clusters=2)
    with pytest.raises(ValueError, match="n_clusters must be an integer >= 1"):
        hierarchy.clusters(n_clusters=0)


def test_a_single_leaf_is_one_cluster():
    none = np.empty((0, 2), dtype=np.int32)
    hierarchy = Hierarchy.by_variation(none, np.zeros(3, int), np.ones((3, 2)), np.ones(3))
    assert hierarchy.clusters(max_depth=2).tolist() == [0]
    assert hierarchy.children.shape == (0, 2)
    assert hierarchy.linkage().shape == (0, 4)


def test_huge_weights_do_not_overflow():
    rng = np.random.default_rng(0)
    columns, leaves = rng.normal(size=(9, 2)), np.arange(9) % 3
    splits = np.array([[1, -3], [-1, -2]], dtype=np.int32)
    with np.errstate(all="raise"):
        huge = Hierarchy.by_variation(splits, leaves, columns, np.full(9, 1e300))
    ones = Hierarchy.by_variation(splits, leaves, columns, np.ones(9))
    np.testing.assert_array_equal(huge.heights, ones.heights)
