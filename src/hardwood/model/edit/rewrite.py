"""Rewrite trees: simplify, expand, prune or collapse them; convert policy trees to oblique trees.

`simplify`, `to_perfect` and `to_oblique` do not change predictions; `prune_unreached` does not
change those of given rows; `collapse` does.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np

from hardwood.model.edit.criterion import PROBABILITY_EPSILON
from hardwood.model.kinds.policy_tree import PolicyTree
from hardwood.model.kinds.tree import ObliqueTree, heap_children
from hardwood.model.paths import child_nodes
from hardwood.model.routed_rows import RoutedRows
from hardwood.table.statistics import mean_of_rows

MAX_PERFECT_DEPTH = 20


def simplify(tree: ObliqueTree) -> ObliqueTree:
    """Remove splits without effect.

    From the leaves up: a split that sends every row to one side (all weights are zero), or of which
    one side was reached by no training sample (by ``counts``), is replaced by the other side. A
    split between two leaves with equal predictions (equal values, and equal weights of linear
    leaves) becomes that leaf. Splits and leaves are renumbered level by level.

    Returns
    -------
    tree
        With the same predictions wherever training samples went; everywhere without counts.
    """

    def stand_in(i: int, left: int, right: int) -> int | None:
        only = _only_side(tree, i)
        if only is not None:
            return (left, right)[only]
        return left if left < 0 and right < 0 and _answer_alike(tree, ~left, ~right) else None

    below, stands_for = _folded(tree, stand_in)
    merged = _merged_counts(tree, stands_for)
    root = int(stands_for[0]) if tree.n_splits else -1
    return _renumber(tree, root, below, merged)


def _folded(
    tree: ObliqueTree, stand_in: Callable[[int, int, int], int | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Replace splits, from the leaves up.

    Parameters
    ----------
    stand_in
        Maps a split and its new children to the node that replaces it; None if it stays.

    Returns
    -------
    below, stands_for
        Children (m, 2) and the replacement of each split (m,), numbered as in ``tree.children``.
    """
    below = tree.children.copy()
    stands_for = np.arange(tree.n_splits, dtype=np.int32)
    for i in range(tree.n_splits - 1, -1, -1):
        below[i] = [stands_for[child] if child >= 0 else child for child in below[i].tolist()]
        found = stand_in(i, *below[i].tolist())
        if found is not None:
            stands_for[i] = found
    return below, stands_for


def _answer_alike(tree: ObliqueTree, a: int, b: int) -> bool:
    if not np.array_equal(tree.values[a], tree.values[b]):
        return False
    A = tree.leaf_weights
    return A is None or np.array_equal(A[a], A[b])


def _only_side(tree: ObliqueTree, i: int) -> int | None:
    """Return the side (0 left, 1 right) that all rows take at split ``i``, or None if both."""
    if not tree.weights[i].any():
        return int(tree.bias[i] >= 0)
    if tree.counts is None:
        return None
    left, right = (_count(tree, child) for child in tree.children[i].tolist())
    if left == 0 and right > 0:
        return 1
    if right == 0 and left > 0:
        return 0
    return None  # a split that no sample reached is removed with its ancestor


def _count(tree: ObliqueTree, node: int) -> float:
    assert tree.counts is not None
    return float(tree.counts[node if node >= 0 else tree.n_splits + ~node])


def _merged_counts(tree: ObliqueTree, stands_for: np.ndarray) -> Mapping[int, float]:
    """Find the counts of leaves that replace splits: those of the topmost such split."""
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
    """Collect the nodes reached from ``root`` through ``below``, numbered level by level."""
    splits, ends, children = _gathered(root, below)
    leaves = [~node for node in ends]
    counts = None
    if tree.counts is not None:
        counts = [float(tree.counts[i]) for i in splits]
        counts += [merged.get(node, _count(tree, node)) for node in ends]
    return tree.replace(
        weights=tree.weights[splits],
        bias=tree.bias[splits],
        children=children,
        counts=counts,
        **_leaves(tree, leaves),
    )


def _gathered(
    root: int, below: np.ndarray, is_leaf: Container[int] = ()
) -> tuple[list[int], list[int], np.ndarray]:
    """Find the nodes of a tree, level by level: splits, leaves, and the new tree's children.

    Nodes are numbered as in ``below`` (m, 2): a split by its number, leaf l as -1 - l. Splits for
    which ``is_leaf`` is true become leaves.
    """
    queue = [(root, -1, 0)]  # node, new number of its parent split, side
    splits: list[int] = []
    leaves: list[int] = []
    children: list[list[int]] = []
    for node, parent, side in queue:  # grows during the loop
        if node >= 0 and node not in is_leaf:
            number = len(splits)
            splits.append(node)
            children.append([0, 0])
            queue += [(int(below[node, s]), number, s) for s in (0, 1)]
        else:
            number = ~len(leaves)
            leaves.append(node)
        if parent >= 0:
            children[parent][side] = number
    return splits, leaves, np.array(children, dtype=np.int32).reshape(-1, 2)


def _leaves(tree: ObliqueTree, which: list[int] | np.ndarray) -> dict[str, np.ndarray | None]:
    """Collect the predictions of leaves, in the given order."""
    A = tree.leaf_weights
    return {"values": tree.values[which], "leaf_weights": None if A is None else A[which]}


def to_perfect(tree: ObliqueTree, depth: int) -> ObliqueTree:
    """Expand to a perfect tree of ``depth`` in heap order: split i has children 2i + 1, 2i + 2.

    A leaf above the last level becomes splits with zero weights and bias 1 (every row goes right)
    over copies of it; the rightmost copy keeps its count, the others have 0.

    Raises
    ------
    ValueError
        If ``depth`` is less than the depth of the tree, or more than 20.
    """
    if not tree.depth <= depth <= MAX_PERFECT_DEPTH:
        raise ValueError(
            f"depth must be at least {tree.depth}, the depth of the tree, and at most "
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


def to_oblique(tree: PolicyTree) -> ObliqueTree:
    """Convert a policy tree with two branches at every split to an oblique tree.

    The first child of a node becomes the left one; a row goes right if the second child is at least
    as probable, with w = w_right - w_left and b = b_right - b_left. Splits and leaves keep their
    order.

    Raises
    ------
    ValueError
        If a node does not have exactly two children.
    """
    for node in tree.split_nodes.tolist():
        if tree.n_children[node] != 2:
            n = int(tree.n_children[node])
            hint = "; simplify() drops nodes with one" if n == 1 else ""
            raise ValueError(
                "an oblique tree has two children at every split, but node "
                f"{node} has {n}{hint}. Only policy trees with two branches everywhere have one"
            )
    numbers = np.where(tree.leaf_numbers >= 0, ~tree.leaf_numbers, 0)
    numbers[tree.split_nodes] = np.arange(tree.n_splits)
    children = tree._siblings.reshape(-1, 2)
    counts = tree.counts
    if counts is not None:
        counts = np.concatenate([counts[tree.split_nodes], counts[tree.leaf_nodes]])
    return ObliqueTree(
        tree.relative_weights[children[:, 1]],
        tree.relative_bias[children[:, 1]],
        numbers[children].astype(np.int32),
        tree.values,
        schema=tree.schema,
        task=tree.task,
        counts=counts,
        classes=tree.classes,
        target_names=tree.target_names,
        record=tree.record,
    )


def simplify_policy(tree: PolicyTree) -> PolicyTree:
    """Remove what the greedy path does not need.

    From the leaves up: removes branches that no row takes greedily, because another one is always
    better by a constant, and branches that no training sample took (by ``counts``) if others were
    taken. A split with one branch is replaced by its child, and a split whose branches lead to
    leaves with equal predictions becomes such a leaf.

    Returns
    -------
    tree
        With the same predictions on the greedy path wherever training samples went; everywhere
        without counts. Probabilities of leaves, and the most probable leaf, may change.
    """
    stands_for = np.arange(tree.n_nodes)  # the replacement of each node
    kept: dict[int, list[int]] = {}
    for node in reversed(tree.split_nodes.tolist()):
        branches = _needed_branches(tree, tree.children(node))
        below = [int(stands_for[child]) for child in branches]
        if len(branches) == 1 or _say_the_same(tree, below):
            stands_for[node] = below[0]
        else:
            kept[node] = branches
    return _renumbered(tree, kept, stands_for)


def _needed_branches(tree: PolicyTree, children: tuple[int, ...]) -> list[int]:
    """Return the children that the greedy path may lead to, at least one."""
    branches = [
        child
        for i, child in enumerate(children)
        if not any(
            _is_ahead(tree, other, child, wins_ties=j > i)
            for j, other in enumerate(children)
            if j != i
        )
    ]
    if tree.counts is None or not any(tree.counts[child] > 0 for child in branches):
        return branches
    return [child for child in branches if tree.counts[child] > 0]


def _is_ahead(tree: PolicyTree, a: int, b: int, *, wins_ties: bool) -> bool:
    """Whether every row prefers child ``a`` to ``b``, because they differ by a constant."""
    if not np.array_equal(tree.relative_weights[a], tree.relative_weights[b]):
        return False
    lead = float(tree.relative_bias[a] - tree.relative_bias[b])
    return lead > 0 or (lead == 0 and wins_ties)


def _say_the_same(tree: PolicyTree, nodes: list[int]) -> bool:
    leaves = tree.leaf_numbers[nodes]
    return bool((leaves >= 0).all()) and bool((tree.scores[leaves] == tree.scores[leaves[0]]).all())


def _renumbered(tree: PolicyTree, kept: dict[int, list[int]], stands_for: np.ndarray) -> PolicyTree:
    """Collect the nodes reached from the root, numbered level by level."""
    moves, parents = [0], [-1]  # original node, and new number of its parent
    for number, moved_to in enumerate(moves):  # grows during the loop
        for child in kept.get(int(stands_for[moved_to]), []):
            moves.append(child)
            parents.append(number)
    weights, bias = tree.weights[moves].copy(), tree.bias[moves].copy()
    stands = stands_for[moves]
    leaves = tree.leaf_numbers[stands]
    return tree.replace(
        parents=np.array(parents, dtype=np.int32),
        weights=weights,
        bias=bias,
        scores=tree.scores[leaves[leaves >= 0]],
        counts=None if tree.counts is None else tree.counts[moves],
    )


def collapse(
    tree: ObliqueTree,
    leaves: Mapping[int, np.ndarray],
    counts: np.ndarray | None,
    *,
    root: int | None = None,
    children: np.ndarray | None = None,
) -> ObliqueTree:
    """Turn splits into leaves, each with a constant output.

    Parameters
    ----------
    tree
        The tree.
    leaves
        The output (k,) of each split to collapse, by its number: numbers or probabilities. In a
        tree with linear leaves, the new leaves have zero weights.
    counts
        (m + L,) counts of the nodes of ``tree``; remaining nodes keep theirs.
    root, children
        The part of the tree to keep, numbered as in ``tree.children``; by default all of it.

    Returns
    -------
    tree
        With splits and leaves renumbered level by level.
    """
    m = tree.n_splits
    start = (0 if m else ~0) if root is None else root
    below = tree.children if children is None else children
    splits, nodes, links = _gathered(start, below, leaves)
    ends = [node if node >= 0 else m + ~node for node in nodes]
    values, leaf_weights = _collapsed_leaves(tree, ends, leaves)
    return tree.replace(
        weights=tree.weights[splits],
        bias=tree.bias[splits],
        children=links,
        values=values,
        leaf_weights=leaf_weights,
        counts=None if counts is None else counts[splits + ends],
    )


def _collapsed_leaves(
    tree: ObliqueTree, nodes: list[int], outputs: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return values and weights of leaves: those of the tree, or constants that replace splits."""
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
    """Return the values of a leaf with this output: scores, if leaves are linear.

    A probability or rate of 0, whose score would be infinite, becomes the smallest positive float.
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


def prune_unreached(
    tree: ObliqueTree, X: Any, *, sample_weight: Any = None, min_samples: float = 0.0
) -> ObliqueTree:
    """Remove the nodes that no given row, or too few rows, reach.

    A split with only one reached side is replaced by that side. If neither side has ``min_samples``
    rows, the split becomes a leaf with the average prediction of its rows.

    Parameters
    ----------
    tree
        The tree.
    X
        A table, as for ``predict``.
    sample_weight
        (n,) row weights; None for equal weights. Rows of weight 0 are ignored.
    min_samples
        Minimum weight of rows at each node; with 0, any row is enough.

    Returns
    -------
    tree
        With the counts of the given rows. With ``min_samples=0``, their predictions do not change.
    """
    if not 0 <= min_samples < np.inf:
        raise ValueError(f"min_samples must be a finite weight, at least 0, not {min_samples!r}")
    rows = RoutedRows.of(tree, X, sample_weight)
    stays = (rows.counts > 0) & (rows.counts >= min_samples)
    stays[0] = True
    stay = stays[child_nodes(tree.children)]  # (m, 2)
    below, stands_for = _folded(
        tree, lambda i, *sides: sides[int(stay[i, 1])] if stay[i, 0] != stay[i, 1] else None
    )
    merged = np.flatnonzero(stays[: tree.n_splits] & ~stay.any(axis=1)).tolist()
    outputs = rows.outputs(X) if merged else np.empty(0)
    leaves = {}
    for i in merged:
        here = rows.at(i)
        leaves[i] = mean_of_rows(outputs[here], rows.weight[here])
    root = int(stands_for[0]) if tree.n_splits else ~0
    smaller = collapse(tree, leaves, rows.counts, root=root, children=below)
    if min_samples > 0 and smaller.n_splits < tree.n_splits:  # rows have moved to other branches
        smaller = smaller.replace(counts=RoutedRows.of(smaller, X, sample_weight).counts)
    return smaller
