"""Where a tree gives a wanted answer, as the engine takes it: half-spaces and lists of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardwood.explain.goal import Wanted
from hardwood.model import ObliqueTree, engine
from hardwood.model.paths import parents_of
from hardwood.table import Schema


@dataclass(frozen=True, eq=False)
class Regions:
    """A union of polyhedra in the columns of a schema.

    Parameters
    ----------
    normals, bias
        (h, c), (h,): the scores. The first m are those of the splits.
    room
        (h,) what a margin may take up at most, in units of the score.
    first, members
        Region r is ``members[first[r]:first[r + 1]]``: i where score i must be at least 0, ~i where
        it must be below.
    """

    normals: np.ndarray
    bias: np.ndarray
    room: np.ndarray
    first: np.ndarray
    members: np.ndarray

    def __len__(self) -> int:
        return self.first.size - 1

    def sizes(self, spread: np.ndarray, margin: float) -> np.ndarray:
        """Return the standard deviation of each score, as if columns varied on their own, (h,).

        Less where `margin` times that is more than there is room for.
        """
        with np.errstate(over="ignore"):
            deviations = np.sqrt(np.square(self.normals * spread).sum(axis=1))
        return np.minimum(deviations, self.room / margin)


def regions_of(tree: ObliqueTree, wanted: Wanted) -> Regions:
    """List the regions where a tree gives the wanted answer.

    A region is the way to a subtree of which all leaves give it, or to a linear leaf together with
    the half-spaces in which that leaf does.
    """
    weights, bias, _ = engine.scaled_splits(tree)
    if tree.leaf_weights is None:
        ways = _ways(tree)
        lists = [ways[node] for node in _highest(tree, wanted.holds(tree.values))]
        return _packed(weights, bias, np.full(bias.size, np.inf), lists)
    return _with_linear_leaves(tree, wanted, weights, bias)


def _with_linear_leaves(
    tree: ObliqueTree, wanted: Wanted, weights: np.ndarray, bias: np.ndarray
) -> Regions:
    assert tree.leaf_weights is not None
    ways = _ways(tree)
    normals, biases, rooms = [weights], [bias], [np.full(bias.size, np.inf)]
    lists, n = [], bias.size
    for leaf in range(tree.n_leaves):
        for region in wanted.in_leaf(tree.values[leaf], tree.leaf_weights[leaf]):
            of_leaf = _scaled(*region, tree.schema)
            lists.append([*ways[tree.n_splits + leaf], *range(n, n + region[1].size)])
            n += region[1].size
            for whole, part in zip((normals, biases, rooms), of_leaf, strict=True):
                whole.append(part)
    return _packed(np.vstack(normals), np.concatenate(biases), np.concatenate(rooms), lists)


def _scaled(
    normals: np.ndarray, bias: np.ndarray, room: np.ndarray, schema: Schema
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide half-spaces by the size of their largest term, as those of splits are."""
    terms = np.abs(normals * schema.column_scale).max(axis=1, initial=0.0)
    size = np.maximum(terms, np.abs(bias))
    size[size == 0] = 1.0
    return normals / size[:, None], bias / size, room / size


def _packed(
    normals: np.ndarray, bias: np.ndarray, room: np.ndarray, lists: list[list[int]]
) -> Regions:
    first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    members = np.array([member for way in lists for member in way], dtype=np.int32)
    return Regions(np.ascontiguousarray(normals), bias, room, first, members)


def _ways(tree: ObliqueTree) -> list[list[int]]:
    """List the way to each node, splits before leaves: i where it goes right at i, else ~i."""
    m = tree.n_splits
    right = np.where(tree.children >= 0, tree.children, m + ~tree.children)[:, 1].tolist()
    ways: list[list[int]] = []
    for node, parent in enumerate(parents_of(tree.children).tolist()):  # parents come first
        way = [] if parent < 0 else [*ways[parent], parent if right[parent] == node else ~parent]
        ways.append(way)
    return ways


def _highest(tree: ObliqueTree, is_wanted: np.ndarray) -> list[int]:
    """List the highest nodes of which all leaves are wanted, splits before leaves."""
    m = tree.n_splits
    nodes = np.where(tree.children >= 0, tree.children, m + ~tree.children)
    whole = np.concatenate([np.zeros(m, dtype=bool), is_wanted])
    for split in range(m - 1, -1, -1):
        whole[split] = whole[nodes[split]].all()
    parents = parents_of(tree.children)
    is_top = whole & ((parents < 0) | ~whole[parents])
    return np.flatnonzero(is_top).tolist()
