"""The shape of a tree as lookup tables."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hardwood.parameters import integer

MAX_NODES = 2**22


def perfect_parents(max_depth: int, n_children: int) -> tuple[int, ...]:
    """Return the parents of a perfect tree, level by level."""
    n_splits = sum(n_children**level for level in range(max_depth))
    return (-1, *(node for node in range(n_splits) for _ in range(n_children)))


def parents_of(max_depth: Any, parents: Any, n_children: Any) -> tuple[int, ...]:
    """Return the checked parents for the arguments of a layer."""
    if (max_depth is None) == (parents is None):
        raise ValueError(
            "give either max_depth, for a tree with n_children at every split, or parents"
        )
    if parents is not None:
        return _checked(parents)
    n_children = integer("n_children", n_children, 2, MAX_NODES)
    max_depth = integer("max_depth", max_depth, 1, 40)
    if sum(n_children**level for level in range(max_depth + 1)) > MAX_NODES:
        raise ValueError(
            f"a tree with n_children={n_children} and max_depth={max_depth} has more than "
            f"{MAX_NODES} nodes"
        )
    return perfect_parents(max_depth, n_children)


def _checked(parents: Any) -> tuple[int, ...]:
    try:
        numbers = tuple(operator.index(parent) for parent in parents)
    except TypeError:
        raise TypeError(
            "parents must be a list with the number of each node's parent, the root's -1 first; "
            f"got {parents!r:.80}"
        ) from None
    if len(numbers) < 2 or numbers[0] != -1:
        raise ValueError(
            "parents must begin with -1, the root, and have at least one more node; got "
            f"{list(numbers[:8])}"
        )
    for i, parent in enumerate(numbers[1:], start=1):
        if not 0 <= parent < i:
            raise ValueError(
                f"parents must come before their children, but parents[{i}] is {parent}, expected "
                f"0 to {i - 1}"
            )
    if len(numbers) > MAX_NODES:
        raise ValueError(f"parents has {len(numbers)} nodes, more than {MAX_NODES}")
    return numbers


@dataclass(frozen=True)
class Topology:
    """Nodes are numbered as in `parents`; the move to node i has the number i - 1.

    Attributes
    ----------
    parents
        Of each node; -1 of the root.
    children
        Of each node, in the order of nodes.
    splits, leaves
        Nodes with children and without.
    levels
        Nodes at each depth, from the root on.
    width
        Children of the widest node.
    """

    parents: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    splits: tuple[int, ...]
    leaves: tuple[int, ...]
    levels: tuple[tuple[int, ...], ...]
    width: int

    @classmethod
    def of(cls, parents: Sequence[int]) -> Topology:
        """Derive the tables from parents that were checked."""
        children: list[list[int]] = [[] for _ in parents]
        depths = [0] * len(parents)
        for node, parent in enumerate(parents[1:], start=1):
            children[parent].append(node)
            depths[node] = depths[parent] + 1
        levels: list[list[int]] = [[] for _ in range(max(depths) + 1)]
        for node, depth in enumerate(depths):
            levels[depth].append(node)
        nodes = range(len(parents))
        return cls(
            tuple(parents),
            tuple(map(tuple, children)),
            tuple(node for node in nodes if children[node]),
            tuple(node for node in nodes if not children[node]),
            tuple(map(tuple, levels)),
            max(map(len, children)),
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes, N."""
        return len(self.parents)

    @property
    def n_moves(self) -> int:
        """Number of moves: one to each node but the root."""
        return self.n_nodes - 1

    @property
    def depth(self) -> int:
        """Moves on the longest path to a leaf."""
        return len(self.levels) - 1

    def child_table(self) -> list[list[int]]:
        """List the children of each node, (N, width): a leaf is its own; fillers are the root."""
        return [self._padded(of or (node,), 0) for node, of in enumerate(self.children)]

    def move_table(self) -> list[list[int]]:
        """List the moves from each node, (N, width); a filler is ``n_moves``, to stay one more."""
        none, stay = self.n_moves, self.n_moves + 1
        return [self._padded([child - 1 for child in of] or (stay,), none) for of in self.children]

    def level_order(self) -> list[int]:
        """List all nodes, level by level."""
        return [node for level in self.levels for node in level]

    def places_above(self) -> list[int]:
        """List, in the order of levels, each node's parent by its place in the level above."""
        place = {node: i for level in self.levels for i, node in enumerate(level)}
        return [place[max(self.parents[node], 0)] for node in self.level_order()]

    def leaf_places(self) -> list[int]:
        """List the leaves by their places in the order of levels."""
        place = {node: i for i, node in enumerate(self.level_order())}
        return [place[leaf] for leaf in self.leaves]

    def _padded(self, items: Sequence[int], filler: int) -> list[int]:
        return [*items, *[filler] * (self.width - len(items))]
