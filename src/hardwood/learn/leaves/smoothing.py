r"""Constant leaves shrunk toward their ancestors, so that few rows do not speak too loudly.

Ferri, Flach, Hernández-Orallo. Improving the AUC of Probabilistic Estimation Trees. ECML 2003.

The value of a node is the mean of its own rows and of m rows that have its parent's value:

.. math:: v_t = \frac{n_t \bar y_t + m\, v_{parent(t)}}{n_t + m}

The parent of the root has equal shares for classes and labels, so that no probability is exactly 0
or 1. For numbers it is the mean of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardwood.learn.finish import routed_leaves
from hardwood.learn.greedy import one_hot
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.model.paths import node_depths, parents_of, sums_of


@dataclass(frozen=True)
class Smoothing:
    """The rows at the nodes of a tree.

    Attributes
    ----------
    tree
        A tree with constant leaves.
    counts
        (N, 1) rows at each node.
    means
        (N, k) mean target at each node, in the user's units; for classes, their shares.
    above_root
        (k,) the value that the root is shrunk toward.
    """

    tree: ObliqueTree
    counts: np.ndarray
    means: np.ndarray
    above_root: np.ndarray

    @classmethod
    def of(cls, tree: ObliqueTree, task: Task, n_jobs: int) -> Smoothing:
        """Count the training rows of a task at the nodes of a tree."""
        rows = task.train
        leaf = routed_leaves(tree, task.matrix, rows, n_jobs)
        target, weight = task.target[rows], task.weight[rows].astype(np.float64)
        if task.kind == "classification":
            target = one_hot(target[:, 0], task.n_targets)
        exponent = np.frexp(np.abs(target).max(axis=0))[1]  # so that no sum overflows
        columns = [np.ones(len(rows)), *np.ldexp(target, -exponent).T]
        sums = sums_of(
            tree.children,
            np.stack([np.bincount(leaf, weight * c, tree.n_leaves) for c in columns], axis=1),
        )
        total = sums[:, :1]
        means = np.ldexp(sums[:, 1:] / np.where(total > 0, total, 1.0), exponent)
        count = np.bincount(leaf, task.weight_of(rows), tree.n_leaves)
        k = means.shape[1]
        share = {"classification": 1.0 / k, "multilabel": 0.5}.get(task.kind)
        above_root = means[0] if share is None else np.full(k, share)
        return cls(tree, sums_of(tree.children, count[:, None]), means, above_root)

    def values(self, m: float) -> np.ndarray:
        """Return the values of the leaves, (L, k), with m rows that have the parent's value."""
        depths, parents = node_depths(self.tree.children), parents_of(self.tree.children)
        found = np.empty_like(self.means)
        for depth in range(int(depths.max()) + 1):
            here = np.flatnonzero(depths == depth)
            above = found[parents[here]] if depth else self.above_root
            n = self.counts[here]
            total = np.where(n + m > 0, n + m, 1.0)
            found[here] = np.where(
                n + m > 0, n / total * self.means[here] + m / total * above, above
            )
        return found[self.tree.n_splits :]

    def smoothed(self, m: float) -> ObliqueTree:
        """Return the tree with shrunk leaves."""
        return self.tree.replace(values=self.values(m))
