"""Traversals of a tree: depths, ancestors, descendants, and the paths of rows.

Nodes are numbered splits first, then leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def node_depths(children: np.ndarray) -> np.ndarray:
    """Return the depth of each node, (m + L,) int32; the root has depth 0."""
    m, nodes = len(children), child_nodes(children)
    depths = np.zeros(2 * m + 1, dtype=np.int32)
    level, depth = np.zeros(min(m, 1), dtype=np.int32), 0
    while level.size:
        depth += 1
        below = nodes[level].ravel()
        depths[below] = depth
        level = below[below < m]
    depths.flags.writeable = False
    return depths


def child_nodes(children: np.ndarray) -> np.ndarray:
    """Return children as node numbers, (m, 2)."""
    nodes: np.ndarray = np.where(children >= 0, children, len(children) + ~children)
    return nodes


def parents_of(children: np.ndarray) -> np.ndarray:
    """Return the parent of each node, (m + L,) int32; -1 for the root."""
    m = len(children)
    parents = np.full(2 * m + 1, -1, dtype=np.int32)
    parents[child_nodes(children)] = np.arange(m, dtype=np.int32)[:, None]
    return parents


def summed_up(children: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """Add to the value of each split, (m + L, ...), those of all nodes below it; return it."""
    nodes = child_nodes(children)
    for i in range(len(nodes) - 1, -1, -1):  # children come after their parents
        amounts[i] += amounts[nodes[i]].sum(axis=0)
    return amounts


def sums_of(children: np.ndarray, of_leaves: np.ndarray) -> np.ndarray:
    """Return the sum at each node, (m + L, ...), of the values of the leaves below it, (L, ...)."""
    of_splits = np.zeros((len(children), *of_leaves.shape[1:]))
    return summed_up(children, np.concatenate([of_splits, of_leaves]))


def visited_nodes(children: np.ndarray, leaves: np.ndarray) -> csr_array:
    """Return the nodes on the paths to given leaves, (n,), as 0/1 CSR (n, m + L)."""
    return ways_to(parents_of(children), len(children) + leaves)


def ways_to(parents: np.ndarray, nodes: np.ndarray) -> csr_array:
    """Return the nodes on the paths to given nodes, (n,), as 0/1 CSR (n, N)."""
    from scipy.sparse import csr_array

    distinct, inverse = np.unique(nodes, return_inverse=True)
    ways = [_way_to(node, parents) for node in distinct.tolist()]
    lengths = np.array([way.size for way in ways], dtype=np.int64)
    indptr = np.concatenate([[0], np.cumsum(lengths[inverse])])
    indices = np.concatenate([ways[i] for i in inverse.tolist()])
    ones = np.ones(indices.size, dtype=np.uint8)
    return csr_array((ones, indices, indptr), shape=(inverse.size, parents.size))


def _way_to(node: int, parents: np.ndarray) -> np.ndarray:
    """Return the nodes from the root to a node; increasing, because parents come first."""
    way = [node]
    while parents[way[-1]] >= 0:
        way.append(int(parents[way[-1]]))
    return np.array(way[::-1], dtype=np.int64)
