"""What a prediction of soft trees costs: the nodes that some share of a row reaches.

A split that is reached costs what it costs in a hard tree (`hardwood.model.cost`), with two
comparisons, one for each edge of its band. One that sends a row both ways costs two multiplications
more, for the shares; there is one less of them in a tree than leaves are reached (Theorem 1 of the
paper). A leaf that is reached costs a multiplication and an addition for each output. Not counted
are the activation and the link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model import engine
from hardwood.model.cost import Flops, Operations, node_operations

if TYPE_CHECKING:
    from hardwood.model.kinds.soft_ensemble import TreeEnsemble

_CHUNK = 1024  # rows at a time: their scores at all splits of a tree take little memory


def soft_flops(ensemble: TreeEnsemble, X: Any = None) -> Flops:
    """Count the operations of one prediction; the mean is over rows of ``X``, where given.

    To find the nodes that rows reach, all splits are scored, which takes far longer than
    `TreeEnsemble.predict` does.
    """
    m = ensemble.bias.shape[1]
    worst = _operations(ensemble, np.ones((ensemble.n_trees, 2 * m + 1)))
    if ensemble.activation == "logistic":  # every row reaches all
        return Flops(worst, worst)
    return Flops(None if X is None else _operations(ensemble, reached_shares(ensemble, X)), worst)


def reached_shares(ensemble: TreeEnsemble, X: Any) -> np.ndarray:
    """Share of the rows that reach each node in part, splits before leaves, (T, m + L)."""

    def of_dense(table: np.ndarray, _: int) -> np.ndarray:
        total = np.zeros((ensemble.n_trees, 2 * ensemble.bias.shape[1] + 1))
        for i in range(0, len(table), _CHUNK):
            total += _reached(ensemble, table[i : i + _CHUNK])
        return total / max(len(table), 1)

    def of_sparse(data: Any, indices: Any, indptr: Any, n_threads: int) -> np.ndarray:
        from scipy.sparse import csr_array

        shape = (len(indptr) - 1, ensemble.n_features)
        return of_dense(csr_array((data, indices, indptr), shape).toarray(), n_threads)

    return engine.ask(ensemble.schema, X, of_dense, of_sparse, n_jobs=1, who="TreeEnsemble")


def _reached(ensemble: TreeEnsemble, table: np.ndarray) -> np.ndarray:
    """Count the rows of a table that reach each node, (T, m + L)."""
    schema, m = ensemble.schema, ensemble.bias.shape[1]
    columns = schema.encoder.encode(np.ascontiguousarray(table)) * schema.column_scale  # (n, c)
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
    """Operations of one prediction, if each node is reached by that share of rows, (T, m + L)."""
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
