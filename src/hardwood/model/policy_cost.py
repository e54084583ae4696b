"""What a prediction of a policy tree costs on the greedy path.

A split costs the scores of all its ways but the first, which the others are compared with: what a
split of an oblique tree costs (`hardwood.model.cost`) for each, and as many comparisons. So a tree
with two ways everywhere costs what its oblique tree does. Looking for the most probable leaf costs
as much for each node that is looked at, and the softmax, which is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.cost import Flops, Operations, additions, multiplications

if TYPE_CHECKING:
    from hardwood.model.kinds.policy_tree import PolicyTree


def policy_flops(tree: PolicyTree, X: Any = None) -> Flops:
    """Count the operations of one prediction; the mean is over rows of ``X``, or ``counts``."""
    costs = _leaf_costs(tree)  # (3, L)
    worst = costs[:, costs[:2].sum(axis=0).argmax()]
    counts = None if tree.counts is None else tree.counts[tree.leaf_nodes]
    if X is not None:
        counts = np.bincount(tree.apply(X), minlength=tree.n_leaves).astype(np.float64)
    if counts is None or not counts.any():
        return Flops(None, Operations(*worst.tolist()))
    share = counts / counts.max()  # at most 1 each, so that no sum overflows
    return Flops(Operations(*(costs @ share / share.sum()).tolist()), Operations(*worst.tolist()))


def _leaf_costs(tree: PolicyTree) -> np.ndarray:
    """Operations on the way to each leaf, (3, L) int64."""
    n_nodes, parents = tree.n_nodes, tree.parents
    ways = tree.advantages[1:]
    at_splits = np.zeros((3, n_nodes), dtype=np.int64)
    np.add.at(at_splits[0], parents[1:], multiplications(tree.schema, ways))
    np.add.at(at_splits[1], parents[1:], additions(tree.schema, ways))
    at_splits[2] = np.maximum(tree.n_children - 1, 0)
    costs = np.zeros((3, n_nodes), dtype=np.int64)
    for node in range(1, n_nodes):
        costs[:, node] = costs[:, parents[node]] + at_splits[:, parents[node]]
    of_leaves: np.ndarray = costs[:, tree.leaf_nodes]
    return of_leaves
