"""A tree less what (almost) no row reaches, by one pass over a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood.model.edit.rewrite import collapse
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.paths import child_nodes
from hardwood.model.routed_rows import RoutedRows


def prune_unreached(
    tree: ObliqueTree, X: Any, *, sample_weight: Any = None, min_samples: float = 0.0
) -> ObliqueTree:
    """Remove the nodes that no given row reaches, or too few.

    A split of which only one side is reached gives way to that side. A split of which neither side
    is, by ``min_samples``, becomes a leaf with the mean of what its rows were given.

    Parameters
    ----------
    tree
        The tree.
    X
        A table, as for ``predict``.
    sample_weight
        (n,) what each row counts; None: 1. Rows of weight 0 are as if absent.
    min_samples
        Weight of rows that must reach a node for it to stay; at 0, any will do.

    Returns
    -------
    tree
        With the counts of the given rows. At ``min_samples=0`` it answers these as before.
    """
    if not 0 <= min_samples < np.inf:
        raise ValueError(f"min_samples must be a finite weight, at least 0, not {min_samples!r}")
    rows = RoutedRows.of(tree, X, sample_weight)
    stays = (rows.counts > 0) & (rows.counts >= min_samples)
    stays[0] = True
    root, children, merged = _without(tree, stays)
    leaves = {}
    if merged:
        outputs = rows.outputs(X)
        for i in merged:
            here = rows.at(i)
            leaves[i] = np.average(outputs[here], axis=0, weights=rows.weight[here])
    smaller = collapse(tree, leaves, rows.counts, root=root, children=children)
    if min_samples > 0 and smaller.n_splits < tree.n_splits:  # rows have found other ways
        smaller = smaller.replace(counts=RoutedRows.of(smaller, X, sample_weight).counts)
    return smaller


def _without(tree: ObliqueTree, stays: np.ndarray) -> tuple[int, np.ndarray, list[int]]:
    """Leave out nodes, (m + L,); return the root, the children, and the splits to make leaves."""
    nodes = child_nodes(tree.children)
    below = tree.children.copy()  # of each split, with what is left
    stands_for = np.arange(tree.n_splits, dtype=np.int32)  # what each split has become
    merged = []
    for i in range(tree.n_splits - 1, -1, -1):
        below[i] = [stands_for[child] if child >= 0 else child for child in below[i].tolist()]
        left_stays, right_stays = stays[nodes[i]].tolist()
        if left_stays != right_stays:
            stands_for[i] = below[i, int(right_stays)]
        elif not left_stays and stays[i]:
            merged.append(i)
    return int(stands_for[0]) if tree.n_splits else ~0, below, merged
