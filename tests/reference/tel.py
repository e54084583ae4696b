r"""NumPy reference of the tree ensemble layer: slow, close to the paper, the oracle of the tests.

H. Hazimeh, N. Ponomareva, P. Mol, Z. Tan, R. Mazumder: *The Tree Ensemble Layer: Differentiability
meets Conditional Computation*. ICML 2020.

The idea: a split of a soft tree sends a sample both ways, by proportions. If these are exactly 0
and 1 outside of a band around the split's hyperplane, a sample reaches few leaves, and the
prediction and its exact gradient cost as much as the nodes that it reaches.

============ =================== ===================================================================
symbol       here                meaning
============ =================== ===================================================================
x            ``X (n, d)``        samples; the paper's p is d
m            ``T``               trees
d            ``depth``           of every tree; they are perfect, in heap order: split i has the
                                 children 2i + 1 (left), 2i + 2 (right); leaves follow the splits
w_i          ``W (T, m, d)``,    weights and bias of the m = 2^depth - 1 splits
             ``b (T, m)``
<w_i, x>     ``t (n, T, m)``     scores of the splits
O            ``O (T, L, k)``     outputs of the L = 2^depth leaves, from left to right
S            ``S``               activation: the share of a sample that a split sends to the right
gamma        ``gamma``           width of the band in which S is neither 0 nor 1; alpha of Sec. 4.1
P({x -> i})  ``P (n, T, m+L)``   share of a sample that reaches node i
R            ``reached``         leaves that a sample reaches
U            ``reachable_``      their number
             ``leaves``
F            ``fractional_``     splits that a sample reaches and that send it both ways
             ``nodes``
dL/dT        ``slope (n, k)``    derivative of the loss by the layer's output
mu_1, mu_2   ``mu_1``, ``mu_2``  S' / S and S' / (1 - S)
============ =================== ===================================================================

What differs from the paper

1. S is the share that goes *right*, as everywhere in this package; the paper's goes left. The two
   are one tree with its sides exchanged, or with all w and b negated.
2. Splits have a bias, <w_i, x> + b_i; in the paper only the shift of the batch normalization
   before the layer moves a hyperplane off the origin, all of them by one vector.
3. 1 - S(t) is formed as S(-t), which is the same for all three activations, and Eq. (4) is
   evaluated as u^2 (3 - 2u) with u = t / gamma + 1/2. Near the edges of the band the paper's
   polynomial cancels to 0 or 1 (float32: for u below 1.2e-4 or above 1 - 1.5e-4), where S' is still
   up to 9e-4 / gamma: a split that is asked "0 < S < 1" would drop that gradient.
4. For the same reason F is made of splits with S(t) > 0 and S(-t) > 0: with abs(t) < gamma / 2.
5. ``backward``, which the kernel follows, divides by nothing. See there.
6. ``batch_normalized`` has neither scale nor shift, which weights and biases of the splits that
   follow can express, and its samples have weights.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit

from reference.dgt import height_of

Activation = Literal["smooth_step", "smooth_step_5", "logistic"]
ACTIVATIONS: tuple[Activation, ...] = ("smooth_step", "smooth_step_5", "logistic")

_ORDER = {"smooth_step": 3, "smooth_step_5": 5}
BATCH_NORM_EPSILON = 1e-3  # of Keras, which the authors used


# Activations, Sec. 2


def smooth_step(t: np.ndarray, gamma: float, order: int = 3) -> np.ndarray:
    """Eq. (4), or the polynomial of degree 5 whose second derivative vanishes at +-gamma/2 too.

    Exactly 0 for t <= -gamma/2 and exactly 1 for t >= gamma/2.
    """
    u = np.clip(np.asarray(t, dtype=np.float64) / gamma + 0.5, 0.0, 1.0)
    if order == 3:
        return u**2 * (3.0 - 2.0 * u)  # departs: (3)
    if order == 5:
        return u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    raise ValueError(f"A smooth step has order 3 or 5, got {order}.")


def smooth_step_derivative(t: np.ndarray, gamma: float, order: int = 3) -> np.ndarray:
    """dS/dt: 0 at the edges of the band and beyond, 3 / (2 gamma) or 15 / (8 gamma) at t = 0."""
    t = np.asarray(t, dtype=np.float64)
    # u and 1 - u, each to its own last place; both edges are 0 beyond the band.
    u, v = (np.clip(s * t / gamma + 0.5, 0.0, 1.0) for s in (1.0, -1.0))
    if order == 3:
        return 6.0 * u * v / gamma
    if order == 5:
        return 30.0 * (u * v) ** 2 / gamma
    raise ValueError(f"A smooth step has order 3 or 5, got {order}.")


def activate(t: np.ndarray, gamma: float, activation: Activation) -> np.ndarray:
    """S(t), the share that goes right; 1 - S(t) is ``activate(-t, ...)``."""
    if activation == "logistic":
        return expit(np.asarray(t, dtype=np.float64) / gamma)  # Sec. 4.1, with alpha = gamma
    return smooth_step(t, gamma, _ORDER[activation])


def activate_derivative(t: np.ndarray, gamma: float, activation: Activation) -> np.ndarray:
    """S'(t)."""
    if activation == "logistic":
        return activate(t, gamma, activation) * activate(-t, gamma, activation) / gamma
    return smooth_step_derivative(t, gamma, _ORDER[activation])


# The layer as it is defined, Eq. (1) to (3)


def scores(X: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return t = <w_i, x> + b_i of every split of every tree, shape (n, T, m)."""
    X, W, b = (np.asarray(part, dtype=np.float64) for part in (X, W, b))
    return np.einsum("nd,tmd->ntm", X, W) + b  # departs: (2)


def ancestors(leaf: int, depth: int) -> list[tuple[int, bool]]:
    """A(l), from the root down: each split's heap index, and whether the leaf is to its right."""
    node, path = leaf + 2**depth - 1, []
    while node > 0:
        parent = (node - 1) // 2
        path.append((parent, node == 2 * parent + 2))
        node = parent
    return path[::-1]


def leaf_probabilities(t: np.ndarray, gamma: float, activation: Activation) -> np.ndarray:
    """Eq. (2): P({x -> l}), the product of r_il over the ancestors of each leaf, (n, T, L)."""
    right, left = activate(t, gamma, activation), activate(-t, gamma, activation)
    depth = height_of(t.shape[2])
    P = np.ones((*t.shape[:2], 2**depth))
    for l in range(2**depth):
        for i, is_right in ancestors(l, depth):
            P[:, :, l] *= (right if is_right else left)[:, :, i]  # departs: (1), (3)
    return P


def forward(
    X: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    O: np.ndarray,
    gamma: float,
    activation: Activation = "smooth_step",
) -> np.ndarray:
    """Eq. (1) and (3): the sum over trees of the expected output of their leaves, shape (n, k)."""
    P = leaf_probabilities(scores(X, W, b), gamma, activation)
    return np.einsum("ntl,tlk->nk", P, np.asarray(O, dtype=np.float64))


# What a sample reaches


def sides_open(
    t: np.ndarray, gamma: float, activation: Activation
) -> tuple[np.ndarray, np.ndarray]:
    """Whether a split sends anything to its left, and to its right; shapes of t.

    A logistic share is positive, also where its floating point number is 0.
    """
    if activation == "logistic":
        return np.ones(t.shape, dtype=bool), np.ones(t.shape, dtype=bool)
    return activate(-t, gamma, activation) > 0, activate(t, gamma, activation) > 0


def reached(t: np.ndarray, gamma: float, activation: Activation) -> np.ndarray:
    """Which nodes Algorithm 1 visits, splits before leaves, shape (n, T, m + L)."""
    left, right = sides_open(t, gamma, activation)
    m = t.shape[2]
    visited = np.zeros((*t.shape[:2], 2 * m + 1), dtype=bool)
    visited[:, :, 0] = True
    for i in range(m):
        visited[:, :, 2 * i + 1] = visited[:, :, i] & left[:, :, i]
        visited[:, :, 2 * i + 2] = visited[:, :, i] & right[:, :, i]
    return visited


def reachable_leaves(
    X: np.ndarray, W: np.ndarray, b: np.ndarray, gamma: float, activation: Activation
) -> np.ndarray:
    """U of every sample and tree, shape (n, T)."""
    return reached(scores(X, W, b), gamma, activation)[:, :, W.shape[1] :].sum(axis=2)


def fractional_nodes(
    X: np.ndarray, W: np.ndarray, b: np.ndarray, gamma: float, activation: Activation
) -> np.ndarray:
    """F of Sec. 3.2 as a mask over the splits, shape (n, T, m)."""
    t = scores(X, W, b)
    left, right = sides_open(t, gamma, activation)
    return reached(t, gamma, activation)[:, :, : t.shape[2]] & left & right  # departs: (4)


# Conditional computation, Sec. 3: one sample, one tree


def conditional_forward(
    x: np.ndarray, W: np.ndarray, b: np.ndarray, O: np.ndarray, gamma: float, activation: Activation
) -> tuple[np.ndarray, dict[int, float]]:
    """Algorithm 1 for a tree W (m, d), b (m,), O (L, k).

    Returns
    -------
    output, prob
        T(x), shape (k,), and P(x -> i) of every node i that was visited, by heap index.
    """
    m = len(W)
    output, prob = np.zeros(O.shape[1]), {0: 1.0}
    to_traverse = [0]
    while to_traverse:
        i = to_traverse.pop()
        if i >= m:
            output += prob[i] * O[i - m]
            continue
        t = W[i] @ x + b[i]
        for child, share in (
            (2 * i + 1, activate(-t, gamma, activation)),
            (2 * i + 2, activate(t, gamma, activation)),
        ):
            if share > 0:
                prob[child] = prob[i] * float(share)
                to_traverse.append(child)
    return output, prob


def theorem_1(
    x: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    O: np.ndarray,
    slope: np.ndarray,
    gamma: float,
    activation: Activation,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Theorem 1 as it stands, for a tree and a slope dL/dT (k,): dx, dW, db, dO.

    The sums over the reachable leaves on either side are made anew for every split.
    """
    m, depth = len(W), height_of(len(W))
    _, prob = conditional_forward(x, W, b, O, gamma, activation)
    R = [i - m for i in prob if i >= m]
    g = {l: prob[m + l] * (slope @ O[l]) for l in R}
    dx, dW, db, dO = np.zeros_like(x), np.zeros_like(W), np.zeros_like(b), np.zeros_like(O)
    for i in range(m):
        t = W[i] @ x + b[i]
        sides = {side: [l for l in R if (i, side) in ancestors(l, depth)] for side in (False, True)}
        if not (sides[False] and sides[True]):
            continue  # i is not in F
        mu_1, mu_2 = _mu(t, gamma, activation)
        a = mu_1 * sum(g[l] for l in sides[True]) - mu_2 * sum(g[l] for l in sides[False])
        dx += a * W[i]
        dW[i] = a * x
        db[i] = a
    for l in R:
        dO[l] = prob[m + l] * slope
    return dx, dW, db, dO


def conditional_backward(
    x: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    O: np.ndarray,
    slope: np.ndarray,
    gamma: float,
    activation: Activation,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Algorithm 2: the fractional tree in post order, for a tree and a slope (k,): dx, dW, db, dO.

    A node that is reached and has one reachable child only is not part of the fractional tree: it
    hands its child's sum_g on, which connects the child to its closest ancestor (Definition 1).
    """
    m = len(W)
    _, prob = conditional_forward(x, W, b, O, gamma, activation)
    dx, dW, db, dO = np.zeros_like(x), np.zeros_like(W), np.zeros_like(b), np.zeros_like(O)

    def sum_g(i: int) -> float:
        if i >= m:
            dO[i - m] = slope * prob[i]  # line 8
            return prob[i] * (slope @ O[i - m])  # line 9
        below = [sum_g(child) for child in (2 * i + 1, 2 * i + 2) if child in prob]
        if len(below) == 2:
            left, right = below
            mu_1, mu_2 = _mu(W[i] @ x + b[i], gamma, activation)
            a = mu_1 * right - mu_2 * left  # lines 11 and 12; departs: (1)
            dx[:] += W[i] * a  # line 13
            dW[i], db[i] = x * a, a  # line 14
        return sum(below)  # line 15

    sum_g(0)
    return dx, dW, db, dO


def _mu(t: float, gamma: float, activation: Activation) -> tuple[float, float]:
    """mu_1 and mu_2 of Theorem 1 at a score inside the band."""
    slope = activate_derivative(t, gamma, activation)
    return slope / activate(t, gamma, activation), slope / activate(-t, gamma, activation)


# The same without a division: what the kernel computes, for a batch


def node_probabilities(t: np.ndarray, gamma: float, activation: Activation) -> np.ndarray:
    """P({x -> i}) of all nodes, splits before leaves, from the root down, shape (n, T, m + L)."""
    right, left = activate(t, gamma, activation), activate(-t, gamma, activation)
    m = t.shape[2]
    P = np.ones((*t.shape[:2], 2 * m + 1))
    for i in range(m):
        P[:, :, 2 * i + 1] = P[:, :, i] * left[:, :, i]  # not P - P S, which cancels
        P[:, :, 2 * i + 2] = P[:, :, i] * right[:, :, i]
    return P


def node_values(
    t: np.ndarray, O: np.ndarray, slope: np.ndarray, gamma: float, activation: Activation
) -> np.ndarray:
    """v(i) = <slope, expected output below node i>, from the leaves up, shape (n, T, m + L)."""
    right, left = activate(t, gamma, activation), activate(-t, gamma, activation)
    m = t.shape[2]
    v = np.zeros((*t.shape[:2], 2 * m + 1))
    v[:, :, m:] = np.einsum("nk,tlk->ntl", slope, O)
    for i in reversed(range(m)):
        v[:, :, i] = left[:, :, i] * v[:, :, 2 * i + 1] + right[:, :, i] * v[:, :, 2 * i + 2]
    return v


def score_gradient(
    t: np.ndarray, O: np.ndarray, slope: np.ndarray, gamma: float, activation: Activation
) -> np.ndarray:
    r"""dLoss/dt of every split, shape (n, T, m).

    .. math:: \frac{dL}{dt_i} = P(i) \, S'(t_i) \, (v(\mathrm{right}(i)) - v(\mathrm{left}(i)))

    In Theorem 1, :math:`\sum_{l \in R, l \text{ right of } i} g(l) = P(i) \, S(t_i) \,
    v(\mathrm{right}(i))`, since all of these leaves have :math:`P(i) S(t_i)` as a factor of their
    probability; mu_1 divides by that S again. Likewise on the left. So P S' v is what is left, also
    where S is as small as it can be. Splits outside of F have P = 0 or S' = 0.
    """
    m = t.shape[2]
    P = node_probabilities(t, gamma, activation)[:, :, :m]
    v = node_values(t, O, slope, gamma, activation)
    return P * activate_derivative(t, gamma, activation) * (v[:, :, 2::2] - v[:, :, 1::2])


def backward(
    X: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    O: np.ndarray,
    slope: np.ndarray,
    gamma: float,
    activation: Activation = "smooth_step",
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of a loss whose derivative by the output is ``slope`` (n, k): dX, dW, db, dO.

    They have the shapes of X, W, b and O, are exact, and are those of Theorem 1, summed over the
    samples (dX: over the trees).
    """
    X, W, O, slope = (np.asarray(part, dtype=np.float64) for part in (X, W, O, slope))
    t = scores(X, W, b)
    dt = score_gradient(t, O, slope, gamma, activation)
    P = node_probabilities(t, gamma, activation)[:, :, t.shape[2] :]
    return (
        np.einsum("ntm,tmd->nd", dt, W),
        np.einsum("ntm,nd->tmd", dt, X),
        dt.sum(axis=0),
        np.einsum("ntl,nk->tlk", P, slope),
    )


# Batch normalization before the layer, Sec. 2


def batch_statistics(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and (biased) variance of every column of a batch, shapes (d,), (d,)."""
    X, share = np.asarray(X, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    share = share / share.sum()
    mean = share @ X
    return mean, share @ (X - mean) ** 2


def batch_normalized(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(x - mean) / sqrt(variance + epsilon) by the batch's own statistics, shape (n, d)."""
    mean, variance = batch_statistics(X, weight)
    return (np.asarray(X, dtype=np.float64) - mean) / np.sqrt(variance + BATCH_NORM_EPSILON)


def folded(
    W: np.ndarray, b: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and biases that give X itself the scores that W, b give it normalized."""
    W = np.asarray(W, dtype=np.float64) / np.sqrt(variance + BATCH_NORM_EPSILON)
    return W, np.asarray(b, dtype=np.float64) - W @ mean
