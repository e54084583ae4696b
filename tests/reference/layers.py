r"""NumPy reference of the overparameterized splits of DGT (Sec. 3.2), in float64.

The splits are the product of L linear layers without activation, over samples with a constant one
at the end, so that the last column of the product is the bias:

.. math:: [W \mid b] = W^{(L)} W^{(L-1)} \cdots W^{(1)}, \qquad a = [W \mid b] \, [x; 1]

The class of trees stays the same; the path of gradient descent does not (Arora, Cohen, Hazan: *On
the Optimization of Deep Networks: Implicit Acceleration by Overparameterization*, ICML 2018).

============  ===================  ===============================================================
symbol        here                 meaning
============  ===================  ===============================================================
W^(1) ...     ``factors``          W^(1) first: shapes (d_1, d + 1), (d_2, d_1), ..., (m, d_{L-1})
[W | b]       ``product(...)``     (m, d + 1)
G             ``G``                dLoss / d[W | b], (m, d + 1)
============  ===================  ===============================================================

What differs from the paper

1. A bias enters once, with the constant one of Alg. 1, line 5: the hidden layers have none.
2. Penalties are on the factors, as in the authors' code: on all of them, entry by entry, the
   constant's column of W^(1) among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from reference import optimize

# Table 12: sizes of the L - 1 = 2 hidden layers, both the same, by the height of the tree.
HIDDEN = {2: 240, 4: 600, 6: 1008, 8: 1530, 10: 2046}


def with_one(X: np.ndarray) -> np.ndarray:
    """[x; 1] (Alg. 1, line 5), shape (n, d + 1)."""
    X = np.asarray(X, dtype=np.float64)
    return np.hstack([X, np.ones((len(X), 1))])


def shapes(n_nodes: int, n_columns: int, hidden: Sequence[int]) -> list[tuple[int, int]]:
    """Shapes of W^(1), ..., W^(L) for hidden sizes d_1, ..., d_{L-1}."""
    sizes = [n_columns + 1, *hidden, n_nodes]
    return list(zip(sizes[1:], sizes[:-1], strict=True))


def multiply(factors: Sequence[np.ndarray], size: int) -> np.ndarray:
    """W^(j) ... W^(i) of factors i to j in this order; of none, the identity of that size."""
    return reduce(lambda below, W: np.asarray(W, dtype=np.float64) @ below, factors, np.eye(size))


def product(factors: Sequence[np.ndarray]) -> np.ndarray:
    """[W | b] = W^(L) ... W^(1), Eq. (5), shape (m, d + 1)."""
    return multiply(factors, factors[0].shape[1])


def factor_gradients(factors: Sequence[np.ndarray], G: np.ndarray) -> list[np.ndarray]:
    r"""Gradient of each factor from that of the product.

    .. math:: \frac{d\ell}{dW^{(j)}} = \big(W^{(L)} \cdots W^{(j+1)}\big)^\top G \,
              \big(W^{(j-1)} \cdots W^{(1)}\big)^\top
    """
    answer = []
    for j, W in enumerate(factors):
        above = multiply(factors[j + 1 :], W.shape[0])  # (m, d_j)
        below = multiply(factors[:j], factors[0].shape[1])  # (d_{j-1}, d + 1)
        answer.append(above.T @ np.asarray(G, dtype=np.float64) @ below.T)
    return answer


def step(
    factors: Sequence[np.ndarray],
    G: np.ndarray,
    optimizers: Sequence[optimize.Optimizer],
    lr: float,
    *,
    l1: float = 0.0,
    l2: float = 0.0,
    clip_norm: float = np.inf,
    squared_norm_elsewhere: float = 0.0,
) -> list[np.ndarray]:
    """Take one step on all factors, each by its own optimizer.

    The norm that is clipped is that of all factors' gradients together, and of what is clipped
    along with them elsewhere (the leaves'); it is not the norm of G.
    """
    clipped = optimize.clip_by_global_norm(
        factor_gradients(factors, G), clip_norm, squared_norm_elsewhere
    )
    return [
        optimize.step(np.asarray(W, dtype=np.float64), g, o, lr, l1=l1, l2=l2)  # departs: (2)
        for W, g, o in zip(factors, clipped, optimizers, strict=True)
    ]
