"""Policy trees into others: smaller (`simplify`), or the oblique tree of those with two ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood.model.kinds.policy_tree import PolicyTree
from hardwood.model.kinds.tree import ObliqueTree


def hard_form(model: Any, what: str) -> Any:
    """Return the oblique tree of a policy tree with two ways; any other model as it is.

    Raises
    ------
    TypeError
        If it is a policy tree with other splits; ``what`` says in the message what takes none.
    """
    if not isinstance(model, PolicyTree):
        return model
    if not model.is_binary:
        ways = model.n_children[model.split_nodes]
        raise TypeError(
            f"{what} of trees with two ways at every split; this policy tree has one of "
            f"{ways[ways != 2][0]}. Read it with to_text(), draw it with plot()"
        )
    return model.to_oblique()


def to_oblique(tree: PolicyTree) -> ObliqueTree:
    """Make the oblique tree of a policy tree with two ways at every split.

    The first child of a node is its left one; a row goes right where the second is as probable, by
    w = w_right - w_left and b = b_right - b_left. Splits and leaves keep their order.

    Raises
    ------
    ValueError
        If a node has another number of children than two.
    """
    for node in tree.split_nodes.tolist():
        if tree.n_children[node] != 2:
            n = int(tree.n_children[node])
            hint = "; simplify() drops nodes with one" if n == 1 else ""
            raise ValueError(
                "an oblique tree has two children at every split, but node "
                f"{node} has {n}{hint}. Only policy trees with two ways everywhere have one"
            )
    numbers = np.where(tree.leaf_numbers >= 0, ~tree.leaf_numbers, 0)
    numbers[tree.split_nodes] = np.arange(tree.n_splits)
    children = tree._siblings.reshape(-1, 2)
    counts = tree.counts
    if counts is not None:
        counts = np.concatenate([counts[tree.split_nodes], counts[tree.leaf_nodes]])
    return ObliqueTree(
        tree.advantages[children[:, 1]],
        tree.leads[children[:, 1]],
        numbers[children].astype(np.int32),
        tree.values,
        schema=tree.schema,
        task=tree.task,
        counts=counts,
        classes=tree.classes,
        target_names=tree.target_names,
        record=tree.record,
    )


def simplify(tree: PolicyTree) -> PolicyTree:
    """Drop what the greedy path does not need.

    From the leaves up: of ways that no row takes greedily, since another is always ahead by a
    constant, and of ways that no training sample took (by ``counts``), where others were taken,
    nothing stays; a split of one way gives way to what lies there; a split whose ways lead to
    leaves that all say the same becomes such a leaf.

    Returns
    -------
    tree
        Answers as before on the greedy path wherever training samples went; everywhere, if there
        are no counts. Probabilities of leaves, and which is the most probable, may be others.
    """
    stands_for = np.arange(tree.n_nodes)  # what each node has become
    kept: dict[int, list[int]] = {}
    for node in reversed(tree.split_nodes.tolist()):
        ways = _needed_ways(tree, tree.children(node))
        below = [int(stands_for[child]) for child in ways]
        if len(ways) == 1 or _say_the_same(tree, below):
            stands_for[node] = below[0]
        else:
            kept[node] = ways
    return _renumbered(tree, kept, stands_for)


def _needed_ways(tree: PolicyTree, children: tuple[int, ...]) -> list[int]:
    """Children that the greedy path may lead to, at least one."""
    ways = [
        child
        for i, child in enumerate(children)
        if not any(
            _is_ahead(tree, other, child, wins_ties=j > i)
            for j, other in enumerate(children)
            if j != i
        )
    ]
    if tree.counts is None or not any(tree.counts[child] > 0 for child in ways):
        return ways
    return [child for child in ways if tree.counts[child] > 0]


def _is_ahead(tree: PolicyTree, a: int, b: int, *, wins_ties: bool) -> bool:
    """Whether child ``a`` is preferred to ``b`` by every row: they differ by a constant."""
    if not np.array_equal(tree.advantages[a], tree.advantages[b]):
        return False
    lead = float(tree.leads[a] - tree.leads[b])
    return lead > 0 or (lead == 0 and wins_ties)


def _say_the_same(tree: PolicyTree, nodes: list[int]) -> bool:
    leaves = tree.leaf_numbers[nodes]
    return bool((leaves >= 0).all()) and bool((tree.scores[leaves] == tree.scores[leaves[0]]).all())


def _renumbered(tree: PolicyTree, kept: dict[int, list[int]], stands_for: np.ndarray) -> PolicyTree:
    """Gather what is reached from the root, numbered level by level."""
    moves, parents = [0], [-1]  # which node of the tree was moved to, and from which new one
    for number, moved_to in enumerate(moves):  # grows while it is read
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
