r"""NumPy reference of the DGT kernels: slow, close to the paper, the oracle of the tests.

A. Karthikeyan, N. Jain, N. Natarajan, P. Jain: *Learning Accurate Decision Trees with Bandit
Feedback via Quantized Gradient Descent*. TMLR 2022.

The idea: a hard tree is a sum over leaves of a path function; the AND along a path is written as a
*sum* of decisions, so that its gradient is well conditioned; the forward pass takes hard decisions,
the backward pass goes through a softmax over the path sums and straight through the signs. What the
paper compares this with (Table 7) is here too: the product form, the annealed sigmoid, both of them
(PAT), the scaled quantiser, and leaves that are linear in x.

======== ============== ========================================================================
symbol   here           meaning
======== ============== ========================================================================
x        ``X (n, d)``   samples
W, b     ``W (m, d)``,  weights and bias of the m = 2^h - 1 internal nodes, in heap order: the
         ``b (m,)``     children of node i are 2i + 1 (left) and 2i + 2 (right)
a_ij     ``a (n, m)``   scores of the nodes
Theta    ``Theta``      values of the leaves (L, K), numbered from left to right; L = 2^h
A        ``A``          weights of linear leaves (L, K, d): leaf l predicts theta_l + A_l x
I(i, l)  ``I (h, L)``   heap index of leaf l's predecessor at depth i
S(i, l)  ``S (h, L)``   -1 when leaf l lies to the left of I(i, l), +1 when to the right
sign(a)  ``s (n, m)``   +1 when a >= 0, -1 otherwise
sigma_s  ``sigma_s``    sigmoid of sharpness s: 1 / (1 + exp(-s a))
q~_l     ``path_sums``  decisions that agree with the path to leaf l minus those that do not
q^_l     ``q (n, L)``   softmax of the path sums
======== ============== ========================================================================

What differs from the paper

1. Decisions are sign(a) S(i, l), as in Alg. 2, and not sigma_step(a S(i, l)), as in Eq. (2) and
   (4). They differ only at a = 0, where Eq. (2) opens both children; here the sample goes right.
2. Overparameterization (Sec. 3.2) is in ``layers.py``: here the product of the layers is W.
3. K >= 1 outputs and a batch: the gradient of the loss with respect to the prediction is
   contracted with the gradient of the prediction, as Alg. 3 says in words.
4. The path "product" has no softmax behind its product (Sec. C.3.1 has one, "product_softmax"): the
   factors are a distribution over the leaves already.
5. Linear leaves are compared with in Table 5, not defined; they are learned here as constant leaves
   are, with theta_l + A_l x in the place of theta_l.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit


@dataclass(frozen=True)
class Relaxation:
    """How the step functions of Eq. (2) or (4) get a gradient.

    Attributes
    ----------
    path
        The AND along a path: Eq. (4) ("sum"), Eq. (2) ("product"), or Eq. (2) with a softmax over
        the leaves (Sec. C.3.1, "product_softmax").
    quantizer
        Decisions of +-1 ("sign") or of +- the mean of abs(a) ("scaled"); of the sum form's
        quantized routing.
    routing
        Hard decisions and the straight-through estimator ("quantized"), or sigma_s and its own
        derivative ("annealed").
    sharpness
        The s of sigma_s.
    """

    path: Literal["sum", "product", "product_softmax"] = "sum"
    quantizer: Literal["sign", "scaled"] = "sign"
    routing: Literal["quantized", "annealed"] = "quantized"
    sharpness: float = 1.0


ALGORITHM_2 = Relaxation()


# The tree, Sec. 3


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


def towards_leaves(a: np.ndarray) -> np.ndarray:
    """a_{i, I(i, l)} S(i, l): how much each predecessor votes for each leaf, shape (n, h, L)."""
    h = height_of(a.shape[1])
    return a[:, predecessors(h)] * sides(h)


def sigma_step(a: np.ndarray) -> np.ndarray:
    """Eq. (3): 1 where a >= 0, else 0."""
    return (np.asarray(a) >= 0).astype(np.float64)


def sign(a: np.ndarray) -> np.ndarray:
    """sign(a) = 2 sigma_step(a) - 1, so that sign(0) = +1."""
    return 2.0 * sigma_step(a) - 1.0


def sigma_s(a: np.ndarray, s: float) -> np.ndarray:
    """Sec. 3.3: the sigmoid 1 / (1 + exp(-s a)), which tends to the step as s grows."""
    return expit(s * np.asarray(a, dtype=np.float64))


def sharpness_at(
    t: int, n_steps: int, first: float, last: float, annealing: Literal["linear", "log"]
) -> float:
    """Sec. C.3.1: the s of step t, on its way to ``last`` by equal sums or by equal factors."""
    progress = t / n_steps
    if annealing == "log":
        return first * (last / first) ** progress
    return first + (last - first) * progress


def scores(X: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Alg. 2, line 7: a = W x + b, shape (n, m)."""
    X, W, b = (np.asarray(v, dtype=np.float64) for v in (X, W, b))
    return X @ W.T + b


def leaf_values(X: np.ndarray, Theta: np.ndarray, A: np.ndarray | None = None) -> np.ndarray:
    """theta_l(x) = theta_l + A_l x, the prediction of every leaf, shape (n, L, K)."""
    X, Theta = np.asarray(X, dtype=np.float64), np.asarray(Theta, dtype=np.float64)
    constant = np.broadcast_to(Theta, (len(X), *Theta.shape))
    return constant if A is None else constant + np.einsum("lkd,nd->nlk", A, X)  # departs: (5)


# Path functions


def path_functions_product(a: np.ndarray) -> np.ndarray:
    """Eq. (2): the AND along each path as a product of step functions, shape (n, L)."""
    return sigma_step(towards_leaves(a)).prod(axis=1)


def path_functions_sum(a: np.ndarray) -> np.ndarray:
    """Eq. (4): the AND along each path as a step function of a sum, shape (n, L)."""
    return sigma_step(sigma_step(towards_leaves(a)).sum(axis=1) - height_of(a.shape[1]))


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
    return towards_leaves(s).sum(axis=1)  # departs: (1)


def path_probabilities(s: np.ndarray) -> np.ndarray:
    """Softmax over the leaves of the path sums (Sec. 4 (a)), shape (n, L); rows sum to one."""
    q = path_sums(s)
    q = np.exp(q - q.max(axis=1, keepdims=True))
    return q / q.sum(axis=1, keepdims=True)


def path_probabilities_by_nodes(s: np.ndarray) -> np.ndarray:
    r"""Compute the same probabilities, for decisions of one size, as a product over the path.

    .. math:: \hat q_l = \prod_{i=0}^{h-1} \sigma(2 s_{i, I(i, l)} S(i, l)), \qquad s = \pm \mu

    Below any node, whatever the signs, one child contributes e^mu and the other e^-mu times equal
    sums, so a subtree of height k has the partition function (2 cosh mu)^k, which cancels level by
    level. This is what the native kernel computes for both quantisers: no exponential, O(2^h). It
    holds for one common mu only, not for any real-valued s.
    """
    return expit(2.0 * towards_leaves(s)).prod(axis=1)


def path_probabilities_product(a: np.ndarray, s: float) -> np.ndarray:
    """Eq. (2) with sigma_s for the step, shape (n, L); rows sum to one."""
    return sigma_s(towards_leaves(a), s).prod(axis=1)  # departs: (4)


def path_probabilities_softmax(a: np.ndarray, relaxation: Relaxation) -> np.ndarray:
    """Sec. C.3.1: the softmax over the leaves of the products of Eq. (2), shape (n, L).

    Annealed (PAT), it is sharpened as the sigmoids are, so that it becomes hard with them.
    """
    if relaxation.routing == "annealed":
        q = relaxation.sharpness * path_probabilities_product(a, relaxation.sharpness)
    else:
        q = sigma_step(towards_leaves(sign(a))).prod(axis=1)
    q = np.exp(q - q.max(axis=1, keepdims=True))
    return q / q.sum(axis=1, keepdims=True)


def path_functions(a: np.ndarray, relaxation: Relaxation = ALGORITHM_2) -> np.ndarray:
    """Weights of the leaves in the prediction, shape (n, L): one-hot where quantized."""
    if relaxation.routing == "quantized":
        return np.eye(a.shape[1] + 1)[leaf_of(a)]
    if relaxation.path == "product":
        return path_probabilities_product(a, relaxation.sharpness)
    if relaxation.path == "product_softmax":
        return path_probabilities_softmax(a, relaxation)
    return path_probabilities(decisions(a, relaxation))


def forward(
    X: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    Theta: np.ndarray,
    A: np.ndarray | None = None,
    relaxation: Relaxation = ALGORITHM_2,
) -> np.ndarray:
    """Predict f(x; W, Theta), shape (n, K): one leaf's value, or the annealed mean of all."""
    q = path_functions(scores(X, W, b), relaxation)
    return np.einsum("nl,nlk->nk", q, leaf_values(X, Theta, A))


def soft_prediction(s: np.ndarray, Theta: np.ndarray) -> np.ndarray:
    """Average the leaf values by the path probabilities: v / z of Alg. 2, shape (n, K).

    Its derivative with respect to s is what the backward pass uses in place of the (zero)
    derivative of the hard prediction.
    """
    return path_probabilities(s) @ np.asarray(Theta, dtype=np.float64)


# Gradients


def straight_through(a: np.ndarray) -> np.ndarray:
    """Stand-in for d sign(a) / da: 1 where |a| <= 1, else 0 (Sec. 4 (a))."""
    return (np.abs(a) <= 1.0).astype(np.float64)


def decisions(a: np.ndarray, relaxation: Relaxation) -> np.ndarray:
    r"""Decisions that the sum form adds up along a path, shape (n, m).

    sign: :math:`\pm 1`. scaled: :math:`\pm \mu`, where mu is the mean of abs(a) over all samples
    given and all nodes. annealed: :math:`s (2 \sigma_s(a) - 1)`, whose factor s makes the outer
    softmax sharper together with the inner sigmoid (Sec. C.3.1).
    """
    if relaxation.routing == "annealed":
        return relaxation.sharpness * (2.0 * sigma_s(a, relaxation.sharpness) - 1.0)
    return sign(a) * (np.abs(a).mean() if relaxation.quantizer == "scaled" else 1.0)


def decisions_slope(a: np.ndarray, relaxation: Relaxation) -> np.ndarray:
    """Return the derivative of ``decisions``, or its stand-in; mu counts as a constant."""
    if relaxation.routing == "annealed":
        return 2.0 * relaxation.sharpness * sigma_s_slope(a, relaxation.sharpness)
    return straight_through(a)


def sigma_s_slope(a: np.ndarray, s: float) -> np.ndarray:
    """Sigmoid's derivative: s sigma_s(a) sigma_s(-a)."""
    return s * sigma_s(a, s) * sigma_s(-a, s)


def sum_over_paths(E: np.ndarray) -> np.ndarray:
    """Sum S(i, l) E_il over all (i, l) with I(i, l) = j, for each node j: (n, h, L) -> (n, m)."""
    h = E.shape[1]
    I, S = predecessors(h), sides(h)
    at_nodes = np.zeros((len(E), 2**h - 1))
    for i in range(h):
        for l in range(2**h):
            at_nodes[:, I[i, l]] += S[i, l] * E[:, i, l]
    return at_nodes


def sum_gradient(a: np.ndarray, u: np.ndarray, relaxation: Relaxation) -> np.ndarray:
    r"""Alg. 2, lines 9 to 13, with u_l = <g, theta_l> (n, L): dLoss/da, shape (n, m).

    .. math:: \frac{d\ell}{da_{ij}} = \frac{ds_{ij}}{da_{ij}} \sum_{l : I(i, l) = j}
              S(i, l) \, \hat q_l \, (u_l - \textstyle\sum_r \hat q_r u_r)
    """
    q = path_probabilities(decisions(a, relaxation))  # (n, L)
    D = q * (u - (q * u).sum(axis=1, keepdims=True))  # line 13
    every_level = np.repeat(D[:, None], height_of(a.shape[1]), axis=1)  # (n, h, L)
    return decisions_slope(a, relaxation) * sum_over_paths(every_level)  # line 10


def product_gradient(a: np.ndarray, u: np.ndarray, relaxation: Relaxation) -> np.ndarray:
    r"""Product rule on Eq. (2), with u_l = <g, theta_l> (n, L): dLoss/da, shape (n, m).

    .. math:: \frac{d\ell}{da_{ij}} = \sigma'(a_{ij}) \sum_{l : I(i, l) = j} S(i, l) \, u_l
              \prod_{r \ne i} \sigma\big(a_{r, I(r, l)} S(r, l)\big)

    Quantized, sigma is the step and its derivative stands for half of that of the sign; then all
    factors but one's own are 0 or 1, and a node off the path that was taken gets nothing.
    """
    s = relaxation.sharpness
    if relaxation.routing == "annealed":
        factors, slope = sigma_s(towards_leaves(a), s), sigma_s_slope(a, s)
    else:
        factors, slope = sigma_step(towards_leaves(sign(a))), 0.5 * straight_through(a)
    E = np.empty_like(factors)  # (n, h, L)
    for i in range(factors.shape[1]):
        E[:, i] = u * np.delete(factors, i, axis=1).prod(axis=1)
    return slope * sum_over_paths(E)


def softmax_gradient(a: np.ndarray, u: np.ndarray, relaxation: Relaxation) -> np.ndarray:
    r"""Eq. (2) with a softmax (Sec. C.3.1), with u_l = <g, theta_l> (n, L): dLoss/da, shape (n, m).

    The derivative of the softmax, :math:`\hat q_l (u_l - \sum_r \hat q_r u_r)` times its sharpness,
    takes the place of u in the product rule.
    """
    q = path_probabilities_softmax(a, relaxation)
    sharpness = relaxation.sharpness if relaxation.routing == "annealed" else 1.0
    D = sharpness * q * (u - (q * u).sum(axis=1, keepdims=True))
    return product_gradient(a, D, relaxation)


GRADIENTS = {
    "sum": sum_gradient,
    "product": product_gradient,
    "product_softmax": softmax_gradient,
}


def score_gradient(
    a: np.ndarray, Theta: np.ndarray, g: np.ndarray, relaxation: Relaxation = ALGORITHM_2
) -> np.ndarray:
    """dLoss/da, shape (n, m), for g = dLoss/dPrediction (n, K).

    Theta is (L, K), or (n, L, K) where each sample has leaves of its own: ``leaf_values``.
    """
    Theta = np.asarray(Theta, dtype=np.float64)
    every = np.broadcast_to(Theta, (len(a), *Theta.shape[-2:]))
    u = np.einsum("nk,nlk->nl", np.asarray(g, dtype=np.float64), every)  # departs: (3)
    return GRADIENTS[relaxation.path](a, u, relaxation)


def gradients(
    X: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    Theta: np.ndarray,
    g: np.ndarray,
    A: np.ndarray | None = None,
    relaxation: Relaxation = ALGORITHM_2,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gradient estimate of a loss whose derivative by the prediction is g; exact where annealed.

    Parameters
    ----------
    X, W, b, Theta
        The samples (n, d) and the tree: (m, d), (m,), (L, K).
    g
        dLoss/dPrediction (n, K) at the prediction of ``forward``; sample weights and the 1/n of a
        mean are part of it.
    A
        Weights of linear leaves (L, K, d), or None: constant leaves.
    relaxation
        Which gradient.

    Returns
    -------
    dW, db, dTheta, dA
        Shapes of W, b, Theta and A, the last one also for constant leaves. A leaf is pulled as much
        as it counts in the prediction: where quantized, the arg-max leaf only (Alg. 2, lines 4, 5).
    """
    X, g = np.asarray(X, dtype=np.float64), np.asarray(g, dtype=np.float64)
    a = scores(X, W, b)
    q = path_functions(a, relaxation)  # (n, L)
    da = score_gradient(a, leaf_values(X, Theta, A), g, relaxation)  # (n, m)
    return da.T @ X, da.sum(axis=0), q.T @ g, np.einsum("nl,nk,nd->lkd", q, g, X)


def backward(
    X: np.ndarray, W: np.ndarray, b: np.ndarray, Theta: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Alg. 2 for a batch: dW, db and dTheta of ``gradients``, for the paper's own relaxation."""
    return gradients(X, W, b, Theta, g)[:3]
