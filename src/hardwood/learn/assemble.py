"""From what a learner grew to the tree that a user gets: counted and simplified."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from scipy import sparse

from hardwood.learn.problem import TrainingSet
from hardwood.learn.rows import Matrix
from hardwood.model import ObliqueTree
from hardwood.model.tree import heap_children

_CHUNK_ROWS = 2**16


def assemble(
    data: TrainingSet,
    weights: np.ndarray,
    bias: np.ndarray,
    values: np.ndarray,
    *,
    task: Literal["classification", "regression"],
    classes: Iterable[Any] | None,
    target_names: tuple[str, ...] | None,
    record: Mapping[str, Any],
    n_jobs: int = 1,
) -> ObliqueTree:
    """Make a tree of a perfect one in heap order, in raw units; drop what no row of `data` reaches.

    Counts are sums of the rows' own weights, in the user's units, validation rows included.
    """
    children = heap_children(len(weights))
    leaf = _leaves(data, weights, bias, children, n_jobs)
    reached = _weight_by_leaf(leaf, data, len(values))
    return ObliqueTree(
        weights,
        bias,
        children,
        values,
        schema=data.schema,
        task=task,
        counts=_counts_in_heap_order(reached),
        classes=classes,
        target_names=target_names,
        record=record,
    ).simplify()


def _leaves(
    data: TrainingSet, weights: np.ndarray, bias: np.ndarray, children: np.ndarray, n_jobs: int
) -> np.ndarray:
    from hardwood._native import Router

    # The rows are read already: not through ObliqueTree.apply, which would take codes for values.
    router = Router(data.schema.encoder, weights, bias, children, len(weights) + 1)
    X: Matrix = data.matrix
    leaves: np.ndarray
    if sparse.issparse(X):
        leaves = router.apply_csr(X.data, X.indices, X.indptr, n_threads=n_jobs)
    else:
        leaves = router.apply(X, n_threads=n_jobs)
    return leaves


def _weight_by_leaf(leaf: np.ndarray, data: TrainingSet, n_leaves: int) -> np.ndarray:
    """Total weight of the rows at each leaf, in chunks: `bincount` copies what it counts."""
    reached = np.zeros(n_leaves)
    for first in range(0, len(data.rows), _CHUNK_ROWS):
        part = slice(first, first + _CHUNK_ROWS)
        rows, weight = data.rows.index[part], data.rows.weight[part]
        reached += np.bincount(leaf[rows], weight, minlength=n_leaves)
    return reached


def _counts_in_heap_order(of_leaves: np.ndarray) -> np.ndarray:
    """Count at all nodes, splits first: what reaches a split is what reaches its children."""
    m = len(of_leaves) - 1
    counts = np.concatenate([np.zeros(m), of_leaves])
    for i in range(m - 1, -1, -1):
        counts[i] = counts[2 * i + 1] + counts[2 * i + 2]
    return counts
