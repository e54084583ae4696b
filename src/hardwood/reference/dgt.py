r"""NumPy twin of the DGT kernels. It reads like the paper, is slow, and is the oracle of the tests.

A. Karthikeyan, N. Jain, N. Natarajan, P. Jain: *Learning Accurate Decision Trees with Bandit
Feedback via Quantized Gradient Descent*. TMLR 2022.

The idea: a hard tree is a sum over leaves of a path function; the AND along a path is written as a
*sum* of decisions, so that its gradient is well conditioned; the forward pass takes hard decisions,
the backward pass goes through a softmax over the path sums and straight through the signs.

======== ============== ========================================================================
symbol   here           meaning
======== ============== ========================================================================
x        ``X (n, d)``   samples
W, b     ``W (m, d)``,  weights and bias of the m = 2^h - 1 internal nodes, in heap order: the
         ``b (m,)``     children of node i are 2i + 1 (left) and 2i + 2 (right)
a_ij     ``a (n, m)``   scores of the nodes
Theta    ``Theta``      values of the leaves (L, K), numbered from left to right; L = 2^h
I(i, l)  ``I (h, L)``   heap index of leaf l's predecessor at depth i
S(i, l)  ``S (h, L)``   -1 when leaf l lies to the left of I(i, l), +1 when to the right
sign(a)  ``s (n, m)``   +1 when a >= 0, -1 otherwise
q~_l     ``path_sums``  decisions that agree with the path to leaf l minus those that do not
q^_l     ``q (n, L)``   softmax of the path sums
======== ============== ========================================================================

What differs from the paper

1. Decisions are sign(a) S(i, l), as in Alg. 2, and not sigma_step(a S(i, l)), as in Eq. (2) and
   (4). They differ only at a = 0, where Eq. (2) opens both children; here the sample goes right.
2. Over-parametrisation (Sec. 3.2) is left out: the product of the layers is one matrix W.
3. K >= 1 outputs and a batch: the gradient of the loss with respect to the prediction is
   contracted with the gradient of the prediction, as Alg. 3 says in words.
"""

from __future__ import annotations

import numpy as np


def height_of(n_nodes: int) -> int:
    """Height of the perfect tree with ``n_nodes`` internal nodes."""
    h = int(n_nodes + 1).bit_length() - 1
    if n_nodes < 1 or n_nodes != 2**h - 1:
        raise ValueError(f"A perfect tree has 2^h - 1 internal nodes, got {n_nodes}.")
    return h


def predecessors(h: int) -> np.ndarray:
    """I(i, l): the heap index of leaf l's predecessor at depth i, shape (h, L)."""
    i, l = np.ogrid[:h, : 2**h]
    return 2**i - 1 + (l >> (h - i))


def sides(h: int) -> np.ndarray:
    """S(i, l): -1 when leaf l lies in the left subtree of I(i, l), +1 otherwise, shape (h, L)."""
    i, l = np.ogrid[:h, : 2**h]
    return 2 * ((l >> (h - 1 - i)) & 1) - 1


def sigma_step(a: np.ndarray) -> np.ndarray:
    """Eq. (3): 1 where a >= 0, else 0."""
    return (np.asarray(a) >= 0).astype(np.float64)


def sign(a: np.ndarray) -> np.ndarray:
    """sign(a) = 2 sigma_step(a) - 1, so that sign(0) = +1."""
    return 2.0 * sigma_step(a) - 1.0


def scores(X: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Alg. 2, line 7: a = W x + b, shape (n, m)."""
    X, W, b = (np.asarray(v, dtype=np.float64) for v in (X, W, b))
    return X @ W.T + b


def path_functions_product(a: np.ndarray) -> np.ndarray:
    """Eq. (2): the AND along each path as a product of step functions, shape (n, L)."""
    h = height_of(a.shape[1])
    return sigma_step(a[:, predecessors(h)] * sides(h)).prod(axis=1)


def path_functions_sum(a: np.ndarray) -> np.ndarray:
    """Eq. (4): the AND along each path as a step function of a sum, shape (n, L)."""
    h = height_of(a.shape[1])
    return sigma_step(sigma_step(a[:, predecessors(h)] * sides(h)).sum(axis=1) - h)


def leaf_of(a: np.ndarray) -> np.ndarray:
    """Find the leaf that each sample reaches, which is the arg-max of the path sums."""
    h = height_of(a.shape[1])
    node = np.zeros(len(a), dtype=np.int64)
    for _ in range(h):
        node = 2 * node + 1 + (a[np.arange(len(a)), node] >= 0)
    return node - (2**h - 1)


def path_sums(s: np.ndarray) -> np.ndarray:
    r"""Alg. 2, line 9, as a function of the decisions s, shape (n, L).

    .. math:: \tilde q_l = \sum_{i=0}^{h-1} s_{i, I(i, l)} S(i, l)
    """
    h = height_of(s.shape[1])
    return (s[:, predecessors(h)] * sides(h)).sum(axis=1)  # departs: (1)


def path_probabilities(s: np.ndarray) -> np.ndarray:
    """Softmax over the leaves of the path sums (Sec. 4 (a)), shape (n, L); rows sum to one."""
    q = path_sums(s)
    q = np.exp(q - q.max(axis=1, keepdims=True))
    return q / q.sum(axis=1, keepdims=True)


def path_probabilities_by_nodes(s: np.ndarray) -> np.ndarray:
    r"""Compute the same probabilities, for hard s, as a product over the nodes of the path.

    .. math:: \hat q_l = \prod_{i=0}^{h-1} \sigma(2 s_{i, I(i, l)} S(i, l)), \qquad s = \pm 1

    Below any node, whatever the signs, one child contributes e and the other 1/e times equal sums,
    so a subtree of height k has the partition function (2 cosh 1)^k, which cancels level by level.
    This is what the native kernel computes: no exponential, O(2^h). It holds for signs only, not
    for real-valued s.
    """
    h = height_of(s.shape[1])
    return (1.0 / (1.0 + np.exp(-2.0 * s[:, predecessors(h)] * sides(h)))).prod(axis=1)


def forward(X: np.ndarray, W: np.ndarray, b: np.ndarray, Theta: np.ndarray) -> np.ndarray:
    """Predict f(x; W, Theta), the value of the one leaf reached, shape (n, K)."""
    return np.asarray(Theta, dtype=np.float64)[leaf_of(scores(X, W, b))]


def soft_prediction(s: np.ndarray, Theta: np.ndarray) -> np.ndarray:
    """Average the leaf values by the path probabilities: v / z of Alg. 2, shape (n, K).

    Its derivative with respect to s is what the backward pass uses in place of the (zero)
    derivative of the hard prediction.
    """
    return path_probabilities(s) @ np.asarray(Theta, dtype=np.float64)


def straight_through(a: np.ndarray) -> np.ndarray:
    """Stand-in for d sign(a) / da: 1 where |a| <= 1, else 0 (Sec. 4 (a))."""
    return (np.abs(a) <= 1.0).astype(np.float64)


def score_gradient(a: np.ndarray, Theta: np.ndarray, g: np.ndarray) -> np.ndarray:
    r"""Alg. 2, lines 9 to 13, contracted with g = dLoss/dPrediction (n, K): dLoss/da, shape (n, m).

    .. math:: \frac{d\ell}{da_{ij}} = 1_{|a_{ij}| \le 1} \sum_{l : I(i, l) = j}
              S(i, l) \, \hat q_l \, \langle g, \theta_l - v / z \rangle
    """
    h = height_of(a.shape[1])
    I, S = predecessors(h), sides(h)
    q = path_probabilities(sign(a))  # (n, L)
    u = np.asarray(g, dtype=np.float64) @ np.asarray(Theta, dtype=np.float64).T  # departs: (3)
    D = q * (u - (q * u).sum(axis=1, keepdims=True))  # line 13, (n, L)
    da = np.zeros_like(a)
    for i in range(h):
        for l in range(2**h):
            da[:, I[i, l]] += S[i, l] * D[:, l]  # line 10
    return straight_through(a) * da


def backward(
    X: np.ndarray, W: np.ndarray, b: np.ndarray, Theta: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Alg. 2 for a batch: the gradient estimate of a loss whose derivative by the prediction is g.

    Parameters
    ----------
    X, W, b, Theta
        The samples (n, d) and the tree: (m, d), (m,), (L, K).
    g
        dLoss/dPrediction (n, K) at the hard prediction; sample weights and the 1/n of a mean are
        part of it.

    Returns
    -------
    dW, db, dTheta
        Shapes of W, b and Theta. Leaves are updated at the arg-max leaf only (lines 4 and 5).
    """
    X = np.asarray(X, dtype=np.float64)
    a = scores(X, W, b)
    da = score_gradient(a, Theta, g)  # (n, m)
    dTheta = np.zeros(np.shape(Theta))
    np.add.at(dTheta, leaf_of(a), np.asarray(g, dtype=np.float64))
    return da.T @ X, da.sum(axis=0), dTheta
