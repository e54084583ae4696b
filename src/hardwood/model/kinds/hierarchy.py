"""A tree as a hierarchy of clusters: merges of leaves, their heights, and cuts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hardwood.model.paths import node_depths, sums_of
from hardwood.parameters import integer


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The splits of a binary tree as a hierarchy, from the leaves to the root.

    Attributes
    ----------
    splits
        (m, 2) int32, the children of the tree's splits: a split number, or -1 - l for leaf l.
    heights
        (m,) the height of each split, at most that of its parent.
    """

    splits: np.ndarray
    heights: np.ndarray

    @classmethod
    def by_variation(
        cls, splits: np.ndarray, leaves: np.ndarray, columns: np.ndarray, weight: np.ndarray
    ) -> Hierarchy:
        """Create a hierarchy whose heights are the variation within a split's rows.

        The variation of rows is the weighted sum of squared distances from their mean, relative to
        that of all rows. A node has at least the variation of its children together, so that
        heights decrease from 1 at the root.

        Parameters
        ----------
        splits
            Children of the tree's splits.
        leaves
            (n,) the leaf that each row reaches.
        columns
            (n, c) the rows, in standard units.
        weight
            (n,) row weights.
        """
        m = len(splits)
        weight = weight / weight.max()  # avoids overflow
        mass = np.bincount(leaves, weight, minlength=m + 1)
        sums, squares = np.zeros((m + 1, columns.shape[1])), np.zeros(m + 1)
        # Relative to the mean of all rows: sums of squares of large numbers would lose precision.
        mean = (columns * weight[:, None]).sum(axis=0, dtype=np.float64) / weight.sum()
        for j in range(columns.shape[1]):
            about = columns[:, j] - mean[j]
            sums[:, j] = np.bincount(leaves, weight * about, minlength=m + 1)
            squares += np.bincount(leaves, weight * about**2, minlength=m + 1)
        mass, sums, squares = (sums_of(splits, of_leaves) for of_leaves in (mass, sums, squares))
        within = squares - (sums**2).sum(axis=1) / np.maximum(mass, np.finfo(float).tiny)
        heights = np.maximum(within[:m], 0.0) / max(float(within[0]), np.finfo(float).tiny)
        return cls(splits, _monotone(splits, heights))

    @property
    def n_leaves(self) -> int:
        """Number of leaves: the finest clusters."""
        return len(self.splits) + 1

    @cached_property
    def order(self) -> np.ndarray:
        """(m,) the splits from the lowest to the highest; children come before their parents."""
        return np.lexsort((-np.arange(len(self.splits)), self.heights))

    @cached_property
    def children(self) -> np.ndarray:
        """(m, 2) merges as in scikit-learn: leaves first, then merge i is n_leaves + i."""
        number = np.empty(len(self.splits), dtype=np.int64)
        number[self.order] = self.n_leaves + np.arange(len(self.splits))
        ordered = self.splits[self.order].astype(np.int64)
        return np.where(ordered >= 0, number[np.maximum(ordered, 0)], ~ordered)

    @cached_property
    def distances(self) -> np.ndarray:
        """(m,) heights of the merges, increasing."""
        return self.heights[self.order]

    def linkage(self) -> np.ndarray:
        """Return the matrix for `scipy.cluster.hierarchy.dendrogram`, (m, 4) float64.

        Its observations are the leaves: the last column is the number of leaves of a merge.
        """
        sizes = [1] * self.n_leaves
        for left, right in self.children.tolist():
            sizes.append(sizes[left] + sizes[right])
        return np.column_stack([self.children, self.distances, sizes[self.n_leaves :]]).astype(
            np.float64
        )

    def clusters(
        self, *, max_depth: int | None = None, n_clusters: int | None = None
    ) -> np.ndarray:
        """Cut the hierarchy: the cluster of each leaf, (n_leaves,), numbered from left to right.

        Parameters
        ----------
        max_depth
            Number of levels of splits to keep: 0 gives one cluster, 1 two. A leaf above the cut
            stays a cluster.
        n_clusters
            Keep the n_clusters - 1 highest splits; all leaves if there are fewer.
        """
        m = len(self.splits)
        if max_depth is not None and n_clusters is not None:
            raise ValueError("Give max_depth or n_clusters, not both.")
        if max_depth is not None:
            is_kept = node_depths(self.splits)[:m] < integer("max_depth", max_depth, 0)
        elif n_clusters is not None:
            is_kept = np.zeros(m, dtype=bool)
            n_kept = min(integer("n_clusters", n_clusters, 1) - 1, m)
            is_kept[self.order[m - n_kept :]] = True
        else:
            is_kept = np.ones(m, dtype=bool)
        return self._clusters_below(is_kept)

    def _clusters_below(self, is_kept: np.ndarray) -> np.ndarray:
        """Return the cluster of each leaf if only the given splits, at the top, are kept."""
        cluster = np.empty(self.n_leaves, dtype=np.int64)
        n_clusters = 0
        todo = [(0 if len(self.splits) else -1, False)]
        while todo:
            node, is_within = todo.pop()
            if not is_within and (node < 0 or not is_kept[node]):
                n_clusters += 1
                is_within = True
            if node < 0:
                cluster[~node] = n_clusters - 1
                continue
            left, right = self.splits[node].tolist()
            todo += [(right, is_within), (left, is_within)]
        return cluster


def _monotone(splits: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Raise heights that rounding made smaller than a child's."""
    for i in range(len(splits) - 1, -1, -1):
        inner = splits[i][splits[i] >= 0]
        heights[i] = max(heights[i], *heights[inner]) if len(inner) else heights[i]
    return heights
