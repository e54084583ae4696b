"""From what a learner grew to the tree that a user gets: counted and simplified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from hardwood.learn.canonical_rows import Matrix
from hardwood.learn.task import TrainingSet
from hardwood.model import ObliqueTree, PolicyTree, TreeEnsemble, engine
from hardwood.model.kinds.tree import heap_children
from hardwood.model.structure import Link, TaskKind

_CHUNK_ROWS = 2**16


def assemble(
    data: TrainingSet,
    weights: np.ndarray,
    bias: np.ndarray,
    children: np.ndarray,
    values: np.ndarray,
    *,
    task: TaskKind,
    classes: Iterable[Any] | None,
    target_names: tuple[str, ...] | None,
    record: Mapping[str, Any],
    leaf_weights: np.ndarray | None = None,
    link: Link = "identity",
    n_jobs: int = 1,
    keeps_unreached: bool = False,
) -> ObliqueTree:
    """Make a tree of splits in raw units; drop what no row of `data` reaches, unless it is to stay.

    `children` (m, 2) are those of `ObliqueTree`: `heap_children` for a perfect tree in heap order.
    Counts are sums of the rows' own weights, in the user's units, validation rows included.
    """
    leaf = _leaves(data, weights, bias, children, n_jobs)
    reached = _weight_by_leaf(leaf, data, len(values))
    tree = ObliqueTree(
        weights,
        bias,
        children,
        values,
        schema=data.schema,
        task=task,
        counts=_counts_of_nodes(children, reached),
        classes=classes,
        target_names=target_names,
        record=record,
        leaf_weights=leaf_weights,
        link=link,
    )
    return tree if keeps_unreached else tree.simplify()


def with_counts(ensemble: TreeEnsemble, data: TrainingSet) -> TreeEnsemble:
    """Count what arrives at the nodes of soft trees, as `assemble` does for those of hard ones."""
    router = engine.packed_ensemble(ensemble)
    reached = np.zeros(ensemble.values.shape[:2])
    for rows, weight in _chunks(data):
        reached += router.leaf_weights(data.matrix[rows], weight)
    children = heap_children(ensemble.values.shape[1] - 1)
    counts = [_counts_of_nodes(children, of_tree) for of_tree in reached]
    return ensemble.replace(counts=np.array(counts))


def policy_counts(data: TrainingSet, policy: PolicyTree, n_jobs: int) -> np.ndarray:
    """Count what arrives at the nodes of a policy tree by the greedy path, (N,)."""
    router = engine.packed_policy(policy)
    leaf = router.apply(data.matrix, most_probable=False, n_threads=n_jobs)
    counts = np.zeros(policy.n_nodes)
    counts[policy.leaf_nodes] = _weight_by_leaf(leaf, data, policy.n_leaves)
    for node in range(policy.n_nodes - 1, 0, -1):  # parents come before their children
        counts[policy.parents[node]] += counts[node]
    return counts


def routed_leaves(tree: ObliqueTree, matrix: Matrix, rows: np.ndarray, n_jobs: int) -> np.ndarray:
    """Return the leaf, (n,) int32, of rows that were read already."""
    return engine.packed_splits(tree).apply(matrix[rows], n_jobs)


def outputs_of(tree: ObliqueTree, matrix: Matrix, rows: np.ndarray, n_jobs: int) -> np.ndarray:
    """Predict rows that were read already, (n, k): values or probabilities."""
    if tree.leaf_weights is None:
        values: np.ndarray = tree.values[routed_leaves(tree, matrix, rows, n_jobs)]
        return values
    return engine.packed_splits(tree).answer(engine.packed_leaves(tree), matrix[rows], n_jobs)


def _leaves(
    data: TrainingSet, weights: np.ndarray, bias: np.ndarray, children: np.ndarray, n_jobs: int
) -> np.ndarray:
    from hardwood._native import Router

    router = Router(data.schema.encoder, weights, bias, children, len(weights) + 1)
    return router.apply(data.matrix, n_jobs)


def _chunks(data: TrainingSet) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows and their weights, some at a time: who takes them copies what they are."""
    for first in range(0, len(data.rows), _CHUNK_ROWS):
        part = slice(first, first + _CHUNK_ROWS)
        yield data.rows.index[part], data.rows.weight[part]


def _weight_by_leaf(leaf: np.ndarray, data: TrainingSet, n_leaves: int) -> np.ndarray:
    """Total weight of the rows at each leaf."""
    reached = np.zeros(n_leaves)
    for rows, weight in _chunks(data):
        reached += np.bincount(leaf[rows], weight, minlength=n_leaves)
    return reached


def _counts_of_nodes(children: np.ndarray, of_leaves: np.ndarray) -> np.ndarray:
    """Count at all nodes, splits first: what reaches a split is what reaches its children."""
    m = len(children)
    place = np.where(children >= 0, children, m + ~children).tolist()
    counts = [0.0] * m + of_leaves.tolist()
    for i in range(m - 1, -1, -1):  # parents come before their children
        left, right = place[i]
        counts[i] = counts[left] + counts[right]
    return np.array(counts)
