"""Trees into trees that answer alike: smaller (`simplify`) or perfect (`to_perfect`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hardwood.model.kinds.tree import ObliqueTree, heap_children

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PERFECT_DEPTH = 20


def simplify(tree: ObliqueTree) -> ObliqueTree:
    """Drop splits that decide nothing.

    From the leaves up: a split that sends every row to one side (its weights are all zero), or
    whose one side no training sample reached (by ``counts``), gives way to the other side; a split
    between two leaves that always answer alike (equal values, and equal weights where leaves are
    linear) becomes that leaf. Splits and leaves are renumbered level
    by level.

    Returns
    -------
    tree
        Answers as before wherever training samples went; everywhere, if there are no counts.
    """
    below = tree.children.copy()  # of each split, with simplified subtrees
    stands_for = np.arange(tree.n_splits, dtype=np.int32)  # what each split has become
    for i in range(tree.n_splits - 1, -1, -1):
        for side in (0, 1):
            if below[i, side] >= 0:
                below[i, side] = stands_for[below[i, side]]
        only = _only_side(tree, i)
        left, right = below[i].tolist()
        if only is not None:
            stands_for[i] = below[i, only]
        elif left < 0 and right < 0 and _answer_alike(tree, ~left, ~right):
            stands_for[i] = left
    merged = _merged_counts(tree, stands_for)
    root = int(stands_for[0]) if tree.n_splits else -1
    return _renumber(tree, root, below, merged)


def _answer_alike(tree: ObliqueTree, a: int, b: int) -> bool:
    if not np.array_equal(tree.values[a], tree.values[b]):
        return False
    A = tree.leaf_weights
    return A is None or np.array_equal(A[a], A[b])


def _only_side(tree: ObliqueTree, i: int) -> int | None:
    """Side (0 left, 1 right) that all rows take at split ``i``, or None if both are taken."""
    if not tree.weights[i].any():
        return int(tree.bias[i] >= 0)
    if tree.counts is None:
        return None
    left, right = (_count(tree, child) for child in tree.children[i].tolist())
    if left == 0 and right > 0:
        return 1
    if right == 0 and left > 0:
        return 0
    return None  # a split that no sample reached goes with the ancestor that nobody left towards it


def _count(tree: ObliqueTree, node: int) -> float:
    assert tree.counts is not None
    return float(tree.counts[node if node >= 0 else tree.n_splits + ~node])


def _merged_counts(tree: ObliqueTree, stands_for: np.ndarray) -> Mapping[int, float]:
    """Find the counts of leaves that splits have become: those of the topmost such split."""
    if tree.counts is None:
        return {}
    counts: dict[int, float] = {}
    for i in range(tree.n_splits - 1, -1, -1):
        if stands_for[i] < 0:
            counts[int(stands_for[i])] = float(tree.counts[i])
    return counts


def _renumber(
    tree: ObliqueTree, root: int, below: np.ndarray, merged: Mapping[int, float]
) -> ObliqueTree:
    """Gather what is reached from ``root`` through ``below``, numbered level by level."""
    splits: list[int] = []
    leaves: list[int] = []
    children: list[list[int]] = []
    for node, parent, side in _breadth_first(root, below):
        if node >= 0:
            number = len(splits)
            splits.append(node)
            children.append([0, 0])
        else:
            number = ~len(leaves)
            leaves.append(~node)
        if parent >= 0:
            children[parent][side] = number
    counts = None
    if tree.counts is not None:
        counts = [float(tree.counts[i]) for i in splits]
        counts += [merged.get(~leaf, _count(tree, ~leaf)) for leaf in leaves]
    return tree.replace(
        weights=tree.weights[splits],
        bias=tree.bias[splits],
        children=np.array(children, dtype=np.int32).reshape(-1, 2),
        counts=counts,
        **_leaves(tree, leaves),
    )


def _leaves(tree: ObliqueTree, which: list[int] | np.ndarray) -> dict[str, np.ndarray | None]:
    """Gather what leaves answer, in the given order."""
    A = tree.leaf_weights
    return {"values": tree.values[which], "leaf_weights": None if A is None else A[which]}


def _breadth_first(root: int, children: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield (node, new number of its parent split or -1, side), level by level."""
    queue = [(root, -1, 0)]
    n_splits = 0
    for node, parent, side in queue:  # grows while it is read
        yield node, parent, side
        if node >= 0:
            queue.extend((int(children[node, s]), n_splits, s) for s in (0, 1))
            n_splits += 1


def to_perfect(tree: ObliqueTree, depth: int) -> ObliqueTree:
    """Expand to a perfect tree of ``depth`` in heap order: split i has children 2i + 1, 2i + 2.

    A leaf above the last level becomes splits with zero weights and bias 1 (every row goes right)
    over copies of it; the rightmost copy keeps its count, the others have 0.

    Raises
    ------
    ValueError
        If ``depth`` is less than the tree's own, or more than 20.
    """
    if not tree.depth <= depth <= MAX_PERFECT_DEPTH:
        raise ValueError(
            f"depth must be at least {tree.depth}, the tree's own, and at most "
            f"{MAX_PERFECT_DEPTH}, as a perfect tree doubles with each level; got {depth}"
        )
    m = 2**depth - 1
    weights = np.zeros((m, tree.weights.shape[1]))
    bias = np.ones(m)
    origin = np.full(2 * m + 1, -1, dtype=np.int64)  # which node of the tree sits at each place
    origin[0] = 0 if tree.n_splits else ~0
    counts = np.zeros(2 * m + 1)
    counts[0] = 0 if tree.counts is None else _count(tree, int(origin[0]))
    for i in range(m):
        node = int(origin[i])
        if node >= 0:
            weights[i], bias[i] = tree.weights[node], tree.bias[node]
            origin[[2 * i + 1, 2 * i + 2]] = tree.children[node]
        else:
            origin[[2 * i + 1, 2 * i + 2]] = node
        if tree.counts is not None:
            sides = (
                [_count(tree, child) for child in tree.children[node]]
                if node >= 0
                else [0, counts[i]]
            )
            counts[[2 * i + 1, 2 * i + 2]] = sides
    return tree.replace(
        weights=weights,
        bias=bias,
        children=heap_children(m),
        counts=None if tree.counts is None else counts,
        **_leaves(tree, ~origin[m:]),
    )
