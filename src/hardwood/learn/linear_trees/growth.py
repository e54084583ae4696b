"""A grown linear tree: its nodes with all their models, and a tree of every size within it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hardwood.learn.linear_trees.level_groups import Category, with_level_groups
from hardwood.learn.losses import NO_LINK
from hardwood.learn.task import Task
from hardwood.learn.units import linear_leaves_of, splits_in_raw_units
from hardwood.model import ObliqueTree


@dataclass(eq=False)
class Node:
    """A node of a growing tree.

    Attributes
    ----------
    rows
        Places among the training rows.
    models
        [A | theta] (k, c + 1) for each number of terms.
    constant
        The prediction of a constant leaf, as scores (k,).
    excluded
        (c,) levels of categories that the splits above send elsewhere.
    full
        The model of all features; None where only constants are wanted.
    depth
        Splits on the path from the root.
    gain, split
        The best split, and what it gains; 0 and None without one.
    children
        () for a leaf.
    sizes
        How many different coefficients a reader sees, for each number of terms once asked for.
    """

    rows: np.ndarray
    models: dict[int | None, np.ndarray]
    constant: np.ndarray
    excluded: np.ndarray
    full: np.ndarray | None = None
    depth: int = 0
    gain: float = 0.0
    split: NodeSplit | None = None
    children: tuple[Node, ...] = ()
    sizes: dict[int | None, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeSplit:
    """A split in standard units: right where weights . x + bias >= 0."""

    weights: np.ndarray
    bias: float

    def excluded(self, node: Node, categories: tuple[Category, ...]) -> list[np.ndarray]:
        """Return the levels that no row on the left, and on the right, of a node can have."""
        found = [node.excluded.copy(), node.excluded.copy()]
        for category in categories:
            if self.weights[category.columns].any():
                goes_right = self.weights[category.columns] + self.bias >= 0
                found[0][category.columns[goes_right]] = True
                found[1][category.columns[~goes_right]] = True
        return found

    def goes_right(self, X: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(self.weights)
        right: np.ndarray = X[:, used] @ self.weights[used] + self.bias >= 0
        return right


@dataclass(frozen=True)
class Growth:
    """A grown tree with the models of all its nodes; `order` has the nodes as they were split."""

    task: Task
    root: Node
    order: tuple[Node, ...]
    categories: tuple[Category, ...] = ()

    @property
    def has_many_levels(self) -> bool:
        """Whether a category has more than two levels."""
        return any(len(category.columns) > 2 for category in self.categories)

    def with_level_groups(self, n_groups: int | None, terms: int | None) -> Growth:
        """Return this growth with models of one number of terms, and few sets of levels in each."""
        if n_groups is None:
            return self
        copies: dict[int, Node] = {}

        def copied(node: Node) -> Node:
            model = node.models[terms]
            models = {terms: with_level_groups(model, self.categories, node.excluded, n_groups)}
            children = tuple(copied(child) for child in node.children)
            copies[id(node)] = replace(node, models=models, children=children, sizes={})
            return copies[id(node)]

        root = copied(self.root)
        return replace(self, root=root, order=tuple(copies[id(node)] for node in self.order))

    def n_leaves(self, most: int) -> int:
        """Return how many leaves a tree has that is limited to this many."""
        return min(most, len(self.order) + 1)

    def scores(
        self, X: np.ndarray, sizes: Collection[int]
    ) -> Iterator[tuple[int, int | None, np.ndarray]]:
        """Yield (leaves, terms, scores (n, k)) for encoded rows and every tree within."""
        ones = np.hstack([X, np.ones((len(X), 1))])
        found = {terms: ones @ model.T for terms, model in self.root.models.items()}
        at: dict[int, np.ndarray] = {id(self.root): np.arange(len(X))}
        for n_splits in range(len(self.order) + 1):
            if n_splits:
                node = self.order[n_splits - 1]
                rows = at.pop(id(node))
                assert node.split is not None
                right = node.split.goes_right(X[rows])
                for child, here in zip(node.children, (rows[~right], rows[right]), strict=True):
                    at[id(child)] = here
                    for terms, model in child.models.items():
                        found[terms][here] = ones[here] @ model.T
            if n_splits + 1 in sizes:
                for terms, scores in found.items():
                    yield n_splits + 1, terms, scores.copy()

    def shape(self, n_leaves: int, terms: int | None) -> tuple[int, float]:
        """Return the most features in a leaf or split, and how many numbers a reader must read.

        A split has a threshold or a set of levels, and counts as one number. So do levels of one
        category with the same coefficient.
        """
        splits, leaves = self._nodes(n_leaves)
        feature = self.task.schema.column_feature
        models = [leaf.models[terms] for leaf in leaves]
        used = [np.flatnonzero(model[:, :-1].any(axis=0)) for model in models]
        most = max(len(np.unique(feature[columns])) for columns in used)
        n_coefficients = sum(self._n_coefficients(leaf, terms) for leaf in leaves)
        n_constants = len(leaves) * len(models[0])
        return max(most, min(len(splits), 1)), float(len(splits)) + n_coefficients + n_constants

    def _n_coefficients(self, node: Node, terms: int | None) -> int:
        if terms not in node.sizes:
            A = node.models[terms][:, :-1]
            same = sum(
                np.count_nonzero(own) - len(set(own[own != 0].tolist()))
                for category in self.categories
                for own in A[:, category.columns]
            )
            node.sizes[terms] = int(np.count_nonzero(A) - same)
        return node.sizes[terms]

    def _nodes(self, n_leaves: int) -> tuple[list[Node], list[Node]]:
        """Return the splits and the leaves of the tree after the first splits."""
        splits = list(self.order[: n_leaves - 1])
        is_split = {id(node) for node in splits}
        leaves = [child for node in splits for child in node.children if id(child) not in is_split]
        return splits, leaves or [self.root]

    def tree(self, n_leaves: int, terms: int | None) -> ObliqueTree:
        """Return the tree after the first splits, with leaves of this many terms."""
        splits, leaves = self._nodes(n_leaves)
        number = {id(node): i for i, node in enumerate(splits)}
        number |= {id(leaf): -1 - i for i, leaf in enumerate(leaves)}
        children = np.array(
            [[number[id(child)] for child in node.children] for node in splits], dtype=np.int32
        ).reshape(-1, 2)
        task, c = self.task, self.task.schema.n_columns
        W = np.array([node.split.weights for node in splits if node.split]).reshape(-1, c)
        b = np.array([node.split.bias for node in splits if node.split])
        weights, bias = splits_in_raw_units(W, b, task)
        models = np.stack([leaf.models[terms] for leaf in leaves])  # (L, k, c + 1)
        A, theta = models[:, :, :-1], models[:, :, -1]
        leaf_weights, link = None, NO_LINK
        if A.any():
            values, leaf_weights = linear_leaves_of(theta, A, task)
            link = task.loss.link_name
        else:
            values = task.leaf_values(theta)
        return ObliqueTree(
            weights,
            bias,
            children,
            values,
            schema=task.schema,
            task=task.kind,
            classes=task.labels,
            target_names=task.target_names,
            leaf_weights=leaf_weights,
            link=link,
        )
