"""A tree with some of its splits made leaves, and others left out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hardwood.model.edit.criterion import PROBABILITY_EPSILON
from hardwood.model.kinds.tree import ObliqueTree


def collapse(
    tree: ObliqueTree,
    leaves: Mapping[int, np.ndarray],
    counts: np.ndarray | None,
    *,
    root: int | None = None,
    children: np.ndarray | None = None,
) -> ObliqueTree:
    """Make splits into leaves, each with one output for all its rows.

    Parameters
    ----------
    tree
        The tree.
    leaves
        By the number of a split, its output (k,): numbers or probabilities. In a tree with linear
        leaves these are leaves whose weights are zero.
    counts
        (m + L,) of the nodes of ``tree``; those that are left keep theirs.
    root, children
        What the new tree is gathered from, numbered as in ``tree.children``; by default all of it.

    Returns
    -------
    tree
        Splits and leaves are renumbered level by level.
    """
    m = tree.n_splits
    below = tree.children if children is None else children
    queue = [((0 if m else ~0) if root is None else root, -1, 0)]  # node, new parent, side
    splits: list[int] = []
    ends: list[int] = []  # nodes that are leaves now, by number, splits before leaves
    links: list[list[int]] = []
    for node, parent, side in queue:  # grows while it is read
        if node >= 0 and node not in leaves:
            number = len(splits)
            splits.append(node)
            links.append([0, 0])
            queue += [(int(below[node, s]), number, s) for s in (0, 1)]
        else:
            number = ~len(ends)
            ends.append(node if node >= 0 else m + ~node)
        if parent >= 0:
            links[parent][side] = number
    values, leaf_weights = _leaves(tree, ends, leaves)
    return tree.replace(
        weights=tree.weights[splits],
        bias=tree.bias[splits],
        children=np.array(links, dtype=np.int32).reshape(-1, 2),
        values=values,
        leaf_weights=leaf_weights,
        counts=None if counts is None else counts[splits + ends],
    )


def _leaves(
    tree: ObliqueTree, nodes: list[int], outputs: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Values and weights of leaves: those of the tree, or constant ones in place of a split."""
    old = np.array([max(0, node - tree.n_splits) for node in nodes])
    values = tree.values[old]
    leaf_weights = None if tree.leaf_weights is None else tree.leaf_weights[old]
    for place, node in enumerate(nodes):
        if node < tree.n_splits:
            values[place] = _constant(tree, outputs[node])
            if leaf_weights is not None:
                leaf_weights[place] = 0.0
    return values, leaf_weights


def _constant(tree: ObliqueTree, output: np.ndarray) -> np.ndarray:
    """Values of a leaf that gives ``output``: scores, where leaves are linear.

    A probability or rate of 0, whose score would be infinite, becomes the smallest there is.
    """
    if tree.link == "identity":
        return output
    if tree.link == "exp":
        rate: np.ndarray = np.log(np.maximum(output, np.finfo(np.float64).tiny))
        return rate
    low = np.log(np.maximum(output, PROBABILITY_EPSILON))
    if tree.link == "softmax":
        return low
    logit: np.ndarray = low - np.log(np.maximum(1 - output, PROBABILITY_EPSILON))
    return logit
