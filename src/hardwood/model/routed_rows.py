"""Rows routed through a tree, with their weights and, if known, their targets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.paths import child_nodes, sums_of
from hardwood.table.target import true_targets
from hardwood.table.weights import weight_of_rows

if TYPE_CHECKING:
    from hardwood.model.kinds.tree import ObliqueTree


@dataclass(frozen=True, eq=False)
class RoutedRows:
    """Rows ordered by the leaf they reach, so that the rows of each node are consecutive.

    Attributes
    ----------
    tree
        The tree.
    n_table_rows
        Number of rows of the table.
    row, leaf
        (n,) row numbers in the table, and the leaves they reach; without rows of weight zero.
    weight
        (n,) float64, positive.
    first, last
        (m + L,) int64: the rows of a node, splits numbered before leaves, are ``first:last``.
    """

    tree: ObliqueTree
    n_table_rows: int
    row: np.ndarray
    leaf: np.ndarray
    weight: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, tree: ObliqueTree, X: Any, sample_weight: Any = None) -> RoutedRows:
        """Route the rows of a table through a tree; ``TableError`` if the weights are invalid."""
        leaf = tree.apply(X)
        weight = weight_of_rows(sample_weight, leaf.size)
        first_rank, last_rank = _leaf_ranks(tree)
        rank = first_rank[tree.n_splits :][leaf]
        used = np.flatnonzero(weight)
        row = used[np.argsort(rank[used], kind="stable")]
        sizes = np.bincount(rank[used], minlength=tree.n_leaves)
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        return cls(
            tree, leaf.size, row, leaf[row], weight[row], bounds[first_rank], bounds[last_rank]
        )

    def __len__(self) -> int:
        return self.row.size

    def at(self, node: int) -> slice:
        """Return the rows that reach a node."""
        return slice(int(self.first[node]), int(self.last[node]))

    @cached_property
    def counts(self) -> np.ndarray:
        """(m + L,) total weight of the rows at each node."""
        at_leaves = np.bincount(self.leaf, self.weight, minlength=self.tree.n_leaves)
        return sums_of(self.tree.children, at_leaves)

    def outputs(self, X: Any) -> np.ndarray:
        """Return the outputs of the tree for each row of its table X, (n, k)."""
        if not self.tree.has_linear_leaves:
            constants: np.ndarray = self.tree.values[self.leaf]
            return constants
        return self.tree.outputs(X)[self.row]

    def truth(self, y: Any) -> np.ndarray:
        """Read the targets of all rows of the table; return those of the rows here."""
        return true_targets(self.tree, y, self.n_table_rows)[self.row]


def _leaf_ranks(tree: ObliqueTree) -> tuple[np.ndarray, np.ndarray]:
    """Return the leaves below each node, (m + L,) twice: ranks ``first`` to before ``last``.

    Ranks count the leaves from the left.
    """
    sizes = sums_of(tree.children, np.ones(tree.n_leaves)).astype(np.int64)
    first = np.zeros(tree.n_nodes, dtype=np.int64)
    for i, (left, right) in enumerate(child_nodes(tree.children).tolist()):  # parents come first
        first[left] = first[i]
        first[right] = first[i] + sizes[left]
    return first, first + sizes
