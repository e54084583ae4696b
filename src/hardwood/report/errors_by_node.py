"""Where a tree makes its errors: each node's share of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.paths import parents_of, sums_of
from hardwood.report.scored_rows import ScoredRows
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree

_MAX_OF_FOREST = 50  # leaves, and splits, to keep for a forest
_MAX_CONDITIONS = 30  # of a path, those nearest to its node


@dataclass(frozen=True)
class NodeErrors:
    """The rows that reach a node, and their share of the loss.

    Attributes
    ----------
    tree
        Number of the tree in a forest, from 1; None for a single tree.
    node
        Number of the leaf or split, from 0.
    depth
        Number of splits above it.
    rows
        Number of rows that reach it, or the sum of their weights.
    share_of_rows
        Share of all rows.
    loss
        Mean loss of these rows; for accuracy, the error rate.
    share_of_loss
        Share of the total loss; NaN where there is no loss.
    path
        Conditions that these rows satisfy, from the root down. Of more than 30, the last 30, and
        how many are left out.
    condition
        Condition of a split. Empty for a leaf.
    """

    tree: int | None
    node: int
    depth: int
    rows: float
    share_of_rows: float
    loss: float
    share_of_loss: float
    path: tuple[str, ...]
    condition: str

    @property
    def excess(self) -> float:
        """The node's share of the loss minus its share of the rows."""
        return self.share_of_loss - self.share_of_rows

    @property
    def name(self) -> str:
        """Number of the node, with the number of its tree in a forest."""
        return str(self.node) if self.tree is None else f"{self.node} of tree {self.tree}"

    @property
    def text(self) -> str:
        """The path as one line."""
        return " and ".join(self.path) or "all rows"


def errors_by_node(
    rows: ScoredRows, losses: np.ndarray
) -> tuple[tuple[NodeErrors, ...], tuple[NodeErrors, ...]]:
    """Divide the losses (n,) of rows among the nodes that the rows reach.

    Returns
    -------
    leaves, splits
        The nodes that rows reach, those with the largest `NodeErrors.excess` first. For a forest,
        the forest's own losses divided among the leaves of each tree, and at most 50 nodes of each
        kind; empty for a soft ensemble.
    """
    table = rows.model.schema.as_table(rows.matrix)
    kinds: tuple[list[Any], list[Any]] = ([], [])
    trees = rows.model.hard_trees
    for number, tree in enumerate(trees, start=1):
        counts, sums = _by_node(tree, tree.apply(table), rows.weight, losses)
        total = sums[0] if sums[0] > 0 else np.nan
        m = tree.n_splits
        for node in np.flatnonzero(counts).tolist():
            excess = np.nan_to_num(sums[node] / total) - counts[node] / counts[0]
            entry = (excess, number, node, counts[node], counts[0], sums[node], total)
            kinds[node < m].append(entry)
    limit = _MAX_OF_FOREST if rows.model.is_ensemble else None
    found = []
    places = [_Places(tree) for tree in trees]
    for entries in kinds:
        first = sorted(entries, key=lambda entry: -entry[0])[:limit]
        found.append(tuple(_node(places, rows.model.is_ensemble, entry) for entry in first))
    return found[0], found[1]


def _by_node(
    tree: ObliqueTree, leaf: np.ndarray, weight: np.ndarray, losses: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weight and loss of the rows at each node, (m + L,) each; node 0 is the root."""
    amounts = []
    for of_rows in (weight, weight * losses):
        at_leaves = np.bincount(leaf, of_rows, minlength=tree.n_leaves)
        amounts.append(sums_of(tree.children, at_leaves))
    return amounts[0], amounts[1]


def _node(places: list[_Places], in_forest: bool, entry: tuple[Any, ...]) -> NodeErrors:
    _, number, node, count, of_count, loss, of_loss = entry
    place = places[number - 1]
    m = place.tree.n_splits
    return NodeErrors(
        tree=number if in_forest else None,
        node=node if node < m else node - m,
        depth=int(place.tree.node_depths[node]),
        rows=float(count),
        share_of_rows=float(count / of_count),
        loss=float(loss / count),
        share_of_loss=float(loss / of_loss),
        path=place.path(node),
        condition=place.condition(node) if node < m else "",
    )


class _Places:
    """The nodes of a tree in words; splits are numbered before leaves."""

    def __init__(self, tree: ObliqueTree) -> None:
        self.tree = tree
        self.parents = parents_of(tree.children)
        self.conditions: dict[int, str] = {}  # each is in the paths of all nodes below

    def condition(self, split: int) -> str:
        if split not in self.conditions:
            self.conditions[split] = self.tree.split(split).describe()
        return self.conditions[split]

    def path(self, node: int) -> tuple[str, ...]:
        """Conditions from the root to a node."""
        tree, depth = self.tree, int(self.tree.node_depths[node])
        conditions: list[str] = []
        for _ in range(min(depth, _MAX_CONDITIONS)):
            parent = int(self.parents[node])
            child = node if node < tree.n_splits else ~(node - tree.n_splits)
            condition = self.condition(parent)
            goes_right = tree.split(parent).right == child
            conditions.append(condition if goes_right else f"not ({condition})")
            node = parent
        left_out = depth - len(conditions)
        if left_out:
            conditions.append(f"(+ {plural(left_out, 'condition')} nearer to the root left out)")
        return tuple(reversed(conditions))
