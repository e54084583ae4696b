"""Policy trees by hand: the reference of ``native/tree/policy.hpp`` and ``policy_search.hpp``."""

from __future__ import annotations

import numpy as np


def node_log_probabilities(
    parents: np.ndarray, weights: np.ndarray, bias: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Log-probability of reaching each node, (n, N): the log-softmax over siblings, added up.

    Parameters
    ----------
    parents, weights, bias
        (N,), (N, c), (N,): a policy tree.
    columns
        (n, c) what the weights multiply, in their units: as for `reference.route.route`.
    """
    scores = columns.astype(np.float64) @ weights.T + bias  # (n, N)
    logs = np.zeros_like(scores)
    for node in range(1, len(parents)):
        siblings = np.flatnonzero(parents == parents[node])
        siblings = siblings[siblings > 0]
        largest = scores[:, siblings].max(axis=1)
        total = np.exp(scores[:, siblings] - largest[:, None]).sum(axis=1)
        logs[:, node] = logs[:, parents[node]] + scores[:, node] - largest - np.log(total)
    return logs


def leaf_nodes(parents: np.ndarray) -> np.ndarray:
    """Nodes that are nobody's parent, in the order of nodes."""
    return np.array([i for i in range(len(parents)) if i not in parents])


def greedy_leaves(
    parents: np.ndarray, weights: np.ndarray, bias: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Leaf of each row, (n,): at every node to the child with the largest score, the last of such.

    Parameters as for `node_log_probabilities`.
    """
    leaves = leaf_nodes(parents)
    found = np.empty(len(columns), dtype=np.int32)
    for r, row in enumerate(columns.astype(np.float64)):
        node = 0
        while node not in leaves:
            children = [i for i in range(1, len(parents)) if parents[i] == node]
            scores = [float(weights[i] @ row + bias[i]) for i in children]
            node = max(zip(scores, children, strict=True))[1]
        found[r] = int(np.flatnonzero(leaves == node)[0])
    return found
