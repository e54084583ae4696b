"""Routing and answering by hand: the reference of ``native/tree/route.hpp`` and ``answer.hpp``."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda scores: scores,
    "exp": np.exp,
    "softmax": lambda scores: np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum(),
    "logistic": lambda scores: (1 + np.tanh(scores / 2)) / 2,
}


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


def answer(
    values: np.ndarray,
    leaf_weights: np.ndarray,
    link: str,
    leaves: np.ndarray,
    columns: np.ndarray,
) -> np.ndarray:
    r"""Answer each row by the linear model of its leaf.

    .. math:: \mathrm{link}(v_l + A_l x)

    Parameters
    ----------
    values, leaf_weights
        (L, k), (L, k, c).
    link
        A key of `LINKS`.
    leaves
        (n,) the leaf of each row.
    columns
        (n, c) what the weights multiply, in their units: as for `route`.

    Returns
    -------
    outputs
        (n, k) float64. Sums are exact but for one rounding.
    """
    outputs = np.empty((len(leaves), values.shape[1]))
    for r, (leaf, row) in enumerate(zip(leaves, columns.astype(np.float64), strict=True)):
        scores = [
            math.fsum([value, *(weights * row)])
            for value, weights in zip(values[leaf], leaf_weights[leaf], strict=True)
        ]
        outputs[r] = LINKS[link](np.array(scores))
    return outputs
