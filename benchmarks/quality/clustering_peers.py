"""Hierarchical k-means and BIRCH, as hierarchies with a limited number of leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import Birch, KMeans

MAX_SUBCLUSTERS = 500  # of BIRCH, before they are merged by Ward's method
N_STARTS = 10  # of k-means at a node


class Clustered(NamedTuple):
    """Merges (n_leaves - 1, 2) as `dendrogram_purity` takes them, and the leaf of each row."""

    children: np.ndarray
    leaves: np.ndarray


def hierarchical_kmeans(rows: np.ndarray, others: np.ndarray, depth: int, seed: int) -> Clustered:
    """Split rows by 2-means down to a depth, and assign other rows to leaves by the centers."""
    random = np.random.RandomState(seed)
    merges: list[tuple[int, int]] = []
    leaf = np.zeros(len(others), dtype=np.int64)
    # From the root down: leaves are numbered now, splits become merges later, from the bottom up.
    todo = [(np.arange(len(rows)), np.arange(len(others)), 0, None)]
    splits: list[list[int]] = []
    n_leaves = 0
    while todo:
        own, asked, level, place = todo.pop()
        if level == depth or len(np.unique(rows[own], axis=0)) < 2:
            leaf[asked] = n_leaves
            node = -1 - n_leaves
            n_leaves += 1
        else:
            node = len(splits)
            splits.append([0, 0])
            means = KMeans(2, n_init=N_STARTS, random_state=random).fit(rows[own])
            side = means.predict(others[asked]) if len(asked) else np.empty(0, dtype=int)
            for s in (0, 1):
                part = (own[means.labels_ == s], asked[side == s], level + 1, (node, s))
                todo.append(part)
        if place is not None:
            splits[place[0]][place[1]] = node
    last = n_leaves + len(splits) - 1
    for pair in reversed(splits):  # children come after their parents there, before them here
        left, right = (~c if c < 0 else last - c for c in pair)
        merges.append((left, right))
    return Clustered(np.array(merges, dtype=np.int64).reshape(-1, 2), leaf)


def birch(rows: np.ndarray, others: np.ndarray, n_leaves: int) -> Clustered:
    """Merge BIRCH's subclusters by Ward's method; the lowest merges make the leaves.

    The threshold is the smallest power of two, from 1/2, with at most 500 subclusters.
    """
    threshold = 0.5
    while True:
        model = Birch(threshold=threshold, n_clusters=None).fit(rows)
        if len(model.subcluster_centers_) <= MAX_SUBCLUSTERS:
            break
        threshold *= 2
    if len(model.subcluster_centers_) == 1:
        return Clustered(np.empty((0, 2), dtype=np.int64), np.zeros(len(others), dtype=np.int64))
    merges = linkage(model.subcluster_centers_, "ward")
    clusters = fcluster(merges, n_leaves, "maxclust") - 1
    children = _top(merges, clusters)
    return Clustered(children, clusters[model.predict(others)])


def _top(merges: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return the merges above a cut, and the clusters (n,) below it."""
    n, n_clusters = len(clusters), clusters.max() + 1
    number: dict[int, int] = {i: int(clusters[i]) for i in range(n)}
    top: list[tuple[int, int]] = []
    for i, pair in enumerate(merges[:, :2].astype(int).tolist()):
        left, right = (number[c] for c in pair)
        if left == right:
            number[n + i] = left
        else:
            top.append((left, right))
            number[n + i] = n_clusters + len(top) - 1
    return np.array(top, dtype=np.int64).reshape(-1, 2)
