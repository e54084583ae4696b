"""Routing as one would do it by hand: the twin of ``native/tree/route.hpp``."""

from __future__ import annotations

import numpy as np


def route(
    weights: np.ndarray, bias: np.ndarray, children: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Leaf of each row, walking from the root by ``if``.

    Parameters
    ----------
    weights, bias, children
        (m, c), (m,), (m, 2): the splits of a tree.
    columns
        (n, c) what the weights multiply, in their units. With the raw-unit weights of a tree:
        ``x - center`` of numbers, 0 where missing; 0 or 1 of levels and missing flags. That is the
        encoded matrix times the scale of each column.

    Returns
    -------
    leaves
        (n,) int32.
    """
    leaves = np.empty(columns.shape[0], dtype=np.int32)
    for r, row in enumerate(columns.astype(np.float64)):
        node = 0 if len(bias) else ~0
        while node >= 0:
            if weights[node] @ row + bias[node] >= 0:
                node = int(children[node, 1])
            else:
                node = int(children[node, 0])
        leaves[r] = ~node
    return leaves
