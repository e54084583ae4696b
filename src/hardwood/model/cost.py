"""The cost of a prediction in operations, and the remaining size of a tree.

The cost includes the splits on a row's path and, if leaves are linear, the leaf at its end. Zero
weights cost nothing. A number with a weight costs a multiplication and an addition. A category
costs at most one addition, no matter how many of its levels have weights, since a row has one
level. A missing value costs at most one addition, instead of the cost of its number. Every split
costs a comparison. Reading the row (centers are part of the threshold: ``w.x >= t``) and the link
of linear leaves are not counted. A tree of depth h on d numbers therefore costs at most h d
multiplications, as in the papers.

In soft trees, all nodes that a row reaches with positive probability are counted. A split costs
what it costs in a hard tree, with two comparisons, one for each edge of its band. A split that
sends a row to both sides costs two more multiplications, for the probabilities; their number in a
tree is one less than that of the leaves reached (Theorem 1 of the paper). A leaf costs a
multiplication and an addition per output. The activation and the link are not counted.

A split of a policy tree costs the scores of all its branches except the first, with which the
others are compared: each costs as much as a split of an oblique tree, including the comparison. A
tree with two branches at every split therefore costs as much as its oblique tree. The search for
the most probable leaf has this cost for each node that it visits; the softmax is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model import engine
from hardwood.model.base import Model
from hardwood.model.paths import child_nodes
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.model.kinds.policy_tree import PolicyTree
    from hardwood.model.kinds.soft_ensemble import TreeEnsemble
    from hardwood.model.kinds.tree import ObliqueTree
    from hardwood.table import Schema


@dataclass(frozen=True)
class Operations:
    """Floating-point operations for one row."""

    multiplications: float
    additions: float
    comparisons: float

    @property
    def total(self) -> float:
        """Multiplications and additions together."""
        return self.multiplications + self.additions

    def __add__(self, other: Operations) -> Operations:
        return Operations(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(Operations))
        )

    def __str__(self) -> str:
        words = (field.name.removesuffix("s") for field in fields(Operations))
        numbers = (getattr(self, field.name) for field in fields(Operations))
        return ", ".join(map(partial(plural, form=",.4g"), numbers, words))


@dataclass(frozen=True)
class Flops:
    """The cost of one prediction.

    Attributes
    ----------
    mean
        Average over the given rows, or else over the training rows; None if neither is known.
    worst
        Cost of the most expensive path, even if no row takes it.
    """

    mean: Operations | None
    worst: Operations

    def __str__(self) -> str:
        mean = "unknown, for want of rows" if self.mean is None else str(self.mean)
        return f"per prediction, mean: {mean}\nper prediction, worst: {self.worst}"


@dataclass(frozen=True)
class Remaining:
    """The remaining size of a model: splits, leaves and nonzero weights, now and originally."""

    n_splits: int
    of_splits: int
    n_leaves: int
    of_leaves: int
    n_weights: int
    of_weights: int

    def __str__(self) -> str:
        return (
            f"{self.n_splits:,} of {plural(self.of_splits, 'split', form=',')}, "
            f"{self.n_leaves:,} of {plural(self.of_leaves, 'leaf', 'leaves', form=',')}, "
            f"{self.n_weights:,} of {plural(self.of_weights, 'weight', form=',')}"
        )


def remaining(model: Model, of: Any = None) -> Remaining:
    """Compare the splits, leaves and nonzero weights of a model with its original size.

    Parameters
    ----------
    model
        An ``ObliqueTree``, a forest with ``trees``, soft trees, or a policy tree.
    of
        The original model, or the depth of the perfect trees that it was learned as, without zero
        weights; by default perfect trees of the model's own depth. A policy tree is by default
        compared with itself without zero weights.
    """
    had = _sizes(of) if isinstance(of, Model) else model._full_sizes(of)
    has = _sizes(model)
    return Remaining(has[0], had[0], has[1], had[1], has[2], had[2])


def _sizes(model: Model) -> tuple[int, int, int]:
    return model.n_splits, model.n_leaves, model.n_weights


def node_operations(tree: ObliqueTree) -> tuple[np.ndarray, np.ndarray]:
    """Count multiplications and additions at each node, splits first: (m + L,) int64 twice."""
    of_nodes = []
    for count in (multiplications, additions):
        at_leaves = np.zeros(tree.n_leaves, dtype=np.int64)
        if tree.leaf_weights is not None:
            at_leaves = count(tree.schema, tree.leaf_weights).sum(axis=1)  # (L, k) before
        of_nodes.append(np.concatenate([count(tree.schema, tree.weights), at_leaves]))
    return of_nodes[0], of_nodes[1]


def multiplications(schema: Schema, weights: np.ndarray) -> np.ndarray:
    """Count the numeric features with nonzero weights (..., c), (...,) int64."""
    is_number = np.zeros(schema.n_columns, dtype=bool)
    is_number[schema.first_column[schema.n_levels == 0]] = True
    return np.count_nonzero(weights[..., is_number], axis=-1)


def additions(schema: Schema, weights: np.ndarray) -> np.ndarray:
    """Count the features with nonzero weights (..., c), (...,) int64."""
    is_used = np.logical_or.reduceat(weights != 0, schema.first_column, axis=-1)  # (..., p)
    return np.count_nonzero(is_used, axis=-1)


def node_weights(tree: ObliqueTree) -> np.ndarray:
    """Count the nonzero weights at each node, splits first, (m + L,) int64."""
    at_leaves = np.zeros(tree.n_leaves, dtype=np.int64)
    if tree.leaf_weights is not None:
        at_leaves = np.count_nonzero(tree.leaf_weights, axis=(1, 2))
    return np.concatenate([np.count_nonzero(tree.weights, axis=1), at_leaves])


def tree_flops(tree: ObliqueTree, X: Any) -> Flops:
    """Count the operations of one prediction; the average is over ``X``, or ``counts``."""
    m = tree.n_splits
    multiplications, additions = node_operations(tree)
    comparisons = np.concatenate([np.ones(m, dtype=np.int64), np.zeros(m + 1, dtype=np.int64)])
    costs = np.stack([multiplications, additions, comparisons])  # (3, m + L)
    for i, children in enumerate(child_nodes(tree.children)):  # includes the cost above
        costs[:, children] += costs[:, i, None]
    return _of_leaves(tree, X, costs[:, m:], None if tree.counts is None else tree.counts[m:])


def _of_leaves(
    tree: ObliqueTree | PolicyTree, X: Any, costs: np.ndarray, counts: np.ndarray | None
) -> Flops:
    """Return the mean and worst cost, from the cost of reaching each leaf, (3, L)."""
    worst = Operations(*costs[:, costs[:2].sum(axis=0).argmax()].tolist())
    if X is not None:
        counts = np.bincount(tree.apply(X), minlength=tree.n_leaves).astype(np.float64)
    if counts is None or not counts.any():
        return Flops(None, worst)
    share = counts / counts.max()  # at most 1 each, so that no sum overflows
    return Flops(Operations(*(costs @ share / share.sum()).tolist()), worst)


def added_up(parts: Sequence[Flops]) -> Flops:
    """Add up the costs of the trees of a forest."""
    means = [part.mean for part in parts if part.mean is not None]
    worst = reduce(add, [part.worst for part in parts])
    return Flops(reduce(add, means) if len(means) == len(parts) else None, worst)


_CHUNK = 1024  # rows at a time, to limit the memory for their scores at all splits


def soft_flops(ensemble: TreeEnsemble, X: Any = None) -> Flops:
    """Count the operations of one prediction; the average is over the rows of ``X``, if given.

    This scores all splits to find the nodes that rows reach, which takes much longer than
    `TreeEnsemble.predict`.
    """
    m = ensemble.bias.shape[1]
    worst = _operations(ensemble, np.ones((ensemble.n_trees, 2 * m + 1)))
    if ensemble.activation == "logistic":  # every row reaches all
        return Flops(worst, worst)
    return Flops(None if X is None else _operations(ensemble, reached_shares(ensemble, X)), worst)


def reached_shares(ensemble: TreeEnsemble, X: Any) -> np.ndarray:
    """Return the fraction of rows that reach each node, at least in part, (T, m + L)."""

    def shares(table: Any, _: int) -> np.ndarray:
        total = np.zeros((ensemble.n_trees, 2 * ensemble.bias.shape[1] + 1))
        for i in range(0, table.shape[0], _CHUNK):
            total += _reached(ensemble, table[i : i + _CHUNK])
        return total / max(table.shape[0], 1)

    return engine.run(ensemble.schema, X, shares, n_jobs=1, who="TreeEnsemble")


def _reached(ensemble: TreeEnsemble, table: Any) -> np.ndarray:
    """Count the rows of a table that reach each node, (T, m + L)."""
    schema, m = ensemble.schema, ensemble.bias.shape[1]
    columns = schema.encoder.encode(table) * schema.column_scale  # (n, c)
    counts = np.empty((ensemble.n_trees, 2 * m + 1))
    for t in range(ensemble.n_trees):
        scores = (columns @ ensemble.weights[t].T + ensemble.bias[t]) / ensemble.gamma  # (n, m)
        is_reached = np.ones((len(columns), 2 * m + 1), dtype=bool)
        for i in range(m):
            is_reached[:, 2 * i + 1] = is_reached[:, i] & (scores[:, i] < 0.5)
            is_reached[:, 2 * i + 2] = is_reached[:, i] & (scores[:, i] > -0.5)
        counts[t] = is_reached.sum(axis=0)
    return counts


def _operations(ensemble: TreeEnsemble, share: np.ndarray) -> Operations:
    """Return the operations of one prediction, given the fraction of rows per node, (T, m + L)."""
    m, k = ensemble.bias.shape[1], ensemble.n_outputs
    at_splits, at_leaves = share[:, :m], share[:, m:]
    n_leaves = float(at_leaves.sum())
    multiplications = k * n_leaves + 2 * (n_leaves - float(at_splits[:, 0].sum()))
    additions = k * n_leaves
    for t in range(ensemble.n_trees):
        of_nodes = node_operations(ensemble.hard_tree(t))
        multiplications += float(at_splits[t] @ of_nodes[0][:m])
        additions += float(at_splits[t] @ of_nodes[1][:m])
    return Operations(multiplications, additions, 2 * float(at_splits.sum()))


def policy_flops(tree: PolicyTree, X: Any = None) -> Flops:
    """Count the operations of one prediction; the average is over ``X``, or ``counts``."""
    counts = None if tree.counts is None else tree.counts[tree.leaf_nodes]
    return _of_leaves(tree, X, _leaf_costs(tree), counts)


def _leaf_costs(tree: PolicyTree) -> np.ndarray:
    """Count the operations on the path to each leaf, (3, L) int64."""
    n_nodes, parents = tree.n_nodes, tree.parents
    branches = tree.relative_weights[1:]
    at_splits = np.zeros((3, n_nodes), dtype=np.int64)
    np.add.at(at_splits[0], parents[1:], multiplications(tree.schema, branches))
    np.add.at(at_splits[1], parents[1:], additions(tree.schema, branches))
    at_splits[2] = np.maximum(tree.n_children - 1, 0)
    costs = np.zeros((3, n_nodes), dtype=np.int64)
    for node in range(1, n_nodes):
        costs[:, node] = costs[:, parents[node]] + at_splits[:, parents[node]]
    of_leaves: np.ndarray = costs[:, tree.leaf_nodes]
    return of_leaves
