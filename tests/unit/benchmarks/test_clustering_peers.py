"""The peers of the clustering benchmark make whole hierarchies, and find what is plain to see."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.quality.clustering_peers import birch, hierarchical_kmeans
from sklearn.datasets import make_blobs

from hardwood.report import dendrogram_purity


@pytest.mark.parametrize("depth", [1, 3])
def test_blobs_are_subtrees_of_both(depth):
    X, y = make_blobs(300, 3, centers=2, cluster_std=0.3, random_state=0)
    for found in (hierarchical_kmeans(X[:200], X, depth, 0), birch(X[:200], X, 2**depth)):
        assert 1 <= len(found.children) <= 2**depth - 1
        assert dendrogram_purity(y, *found) == 1.0  # checks the merges as well


def test_too_few_rows_make_fewer_leaves():
    X = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    found = hierarchical_kmeans(X, X, 4, 0)
    assert len(found.children) == 2
    assert len(set(found.leaves.tolist())) == 3
    alone = birch(np.zeros((5, 2)), np.zeros((5, 2)), 8)
    assert alone.children.shape == (0, 2)
    assert alone.leaves.tolist() == [0] * 5
