r"""NumPy reference of trees that learn by semantic logits: slow, the oracle of the tests.

S. Panda, B. Genest, A. Easwaran, P. N. Suganthan: *Vanilla Gradient Descent for Oblique Decision
Trees*. ECAI 2024. [DTSemNet24]
The same: *Approximation-Free Differentiable Oblique Decision Trees*. arXiv 2605.07837, 2026.
[DTSemNet26]

The idea: the score of a leaf is minus the sum of the decisions that a row violates on the way to
it. The leaf that the hard tree reaches violates none, so it has the largest score, 0, and a softmax
over the scores of the leaves trains the hard tree itself.

======== ====================== ==============================================================
symbol   here                   meaning
======== ====================== ==============================================================
x        ``X (n, d)``           samples
A, B     ``W (m, d)``,          weights and bias of the m = 2^h - 1 splits, in heap order
         ``b (m,)``
I_i      ``a (n, m)``           scores of the splits, a = W x + b
L_l      ``z (n, L)``           scores of the leaves, L = 2^h, from left to right
         ``classes (L,)``       the class of each leaf, where leaves are dealt to the classes
         ``Theta (L, K)``       values of the leaves, where they are learned
         ``A (L, K, d)``        weights of linear leaves: leaf l predicts theta_l + A_l x
q        ``q (n, L)``           shares of the leaves in a prediction or in its gradient
======== ====================== ==============================================================

What differs from the paper

1. The score of a leaf is minus the sum of the violated decisions on its path. The paper adds the
   positive parts of the satisfied ones, and both parts of every split off the path. The difference
   is the sum of abs(a) over all splits, the same for every leaf.
2. A score of 0 goes right, in the tree and in the gradient (there, each side has derivative 0).
   Among equal leaves of a class the last one wins, which is the leaf of the hard tree if that is
   among them.
3. A prediction of learned leaves may mix the k best leaves, as in [DTSemNet26]; k = 1 is the
   straight-through estimator of [DTSemNet24], with the gradient of a mixture of the best two leaves
   instead of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reference.dgt import height_of, leaf_of, leaf_values, predecessors, scores, sides


@dataclass(frozen=True)
class Leaves:
    """What leaves stand for.

    Attributes
    ----------
    classes
        (L,) the class of each leaf; None where leaves have values that are learned.
    n_mixed
        Learned leaves: how many of the best leaves a prediction mixes. 1 is the hard tree, whose
        gradient is that of a mixture of the best two (straight-through).
    """

    classes: np.ndarray | None = None
    n_mixed: int = 1


# Scores of leaves


def violated(a: np.ndarray) -> np.ndarray:
    """max(0, -s a) of each decision on each path, shape (n, h, L); s = 1 to the right, else -1."""
    h = height_of(a.shape[1])
    return np.maximum(0.0, -a[:, predecessors(h)] * sides(h))


def leaf_scores(a: np.ndarray) -> np.ndarray:
    r"""Scores of the leaves, shape (n, L).

    .. math:: z_l = -\sum_{i=0}^{h-1} \max\big(0, -S(i, l) \, a_{I(i, l)}\big)
    """
    return -violated(a).sum(axis=1)  # departs: (1)


def papers_leaf_scores(a: np.ndarray) -> np.ndarray:
    """The scores as the paper writes them: positive parts of all splits, shape (n, L)."""
    h = height_of(a.shape[1])
    total = np.zeros((len(a), 2**h))
    for l in range(2**h):
        on_path = dict(zip(predecessors(h)[:, l], sides(h)[:, l], strict=True))
        for i in range(a.shape[1]):
            if i in on_path:
                total[:, l] += np.maximum(0.0, on_path[i] * a[:, i])
            else:
                total[:, l] += np.maximum(0.0, a[:, i]) + np.maximum(0.0, -a[:, i])
    return total


def score_gradient(a: np.ndarray, dz: np.ndarray) -> np.ndarray:
    r"""dLoss/da (n, m) from dLoss/dz (n, L).

    A split with a >= 0 takes a from every leaf below its left child, one with a < 0 gives a to
    every leaf below its right child.
    """
    h = height_of(a.shape[1])
    I, S = predecessors(h), sides(h)
    da = np.zeros_like(a, dtype=np.float64)
    for i in range(h):
        for l in range(2**h):
            node, goes_left = I[i, l], S[i, l] < 0
            is_violated = (a[:, node] >= 0) == goes_left  # departs: (2)
            da[:, node] += np.where(is_violated, S[i, l] * dz[:, l], 0.0)
    return da


# Leaves that are dealt to classes


def dealt(n_leaves: int, n_classes: int) -> np.ndarray:
    """Deal the classes to the leaves in turn, shape (L,)."""
    return np.arange(n_leaves) % n_classes


def winners(z: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Find the best leaf of each class, shape (n, C); of equal ones the last."""
    found = np.zeros((len(z), n_classes), dtype=np.int64)
    for c in range(n_classes):
        own = np.flatnonzero(classes == c)
        found[:, c] = own[::-1][z[:, own[::-1]].argmax(axis=1)]  # departs: (2)
    return found


def class_scores(z: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Scores of the classes: the largest of their leaves, shape (n, C)."""
    return np.take_along_axis(z, winners(z, classes, n_classes), axis=1)


def class_gradient(z: np.ndarray, classes: np.ndarray, n_classes: int, g: np.ndarray) -> np.ndarray:
    """dLoss/dz (n, L) from dLoss by the scores of classes (n, C): only the best leaf of each."""
    dz = np.zeros_like(z)
    np.put_along_axis(dz, winners(z, classes, n_classes), g, axis=1)
    return dz


# Leaves that learn their values


def shares(z: np.ndarray, n_mixed: int) -> np.ndarray:
    """Softmax over the leaves of the ``n_mixed`` largest scores, shape (n, L).

    Leaves of equal score are all in, or all out.
    """
    kept = np.ones_like(z, dtype=bool)
    for row, of_row in zip(kept, z, strict=True):
        row[:] = of_row >= np.unique(of_row)[::-1][:n_mixed][-1]
    q = np.where(kept, np.exp(z - z.max(axis=1, keepdims=True)), 0.0)
    return q / q.sum(axis=1, keepdims=True)


def forward_shares(a: np.ndarray, n_mixed: int) -> np.ndarray:
    """Shares of the leaves in a prediction, shape (n, L)."""
    if n_mixed == 1:
        return np.eye(a.shape[1] + 1)[leaf_of(a)]
    return shares(leaf_scores(a), n_mixed)  # departs: (3)


def share_gradient(z: np.ndarray, u: np.ndarray, n_mixed: int) -> np.ndarray:
    """dLoss/dz (n, L) for u_l = <dLoss/dPrediction, theta_l(x)>, the softmax's derivative."""
    q = shares(z, max(n_mixed, 2))  # departs: (3)
    return q * (u - (q * u).sum(axis=1, keepdims=True))


# The whole step


def _both(scores_of_classes: np.ndarray, K: int) -> np.ndarray:
    """Return predictions (n, K): of two classes with one output, their difference."""
    return scores_of_classes[:, 1:] - scores_of_classes[:, :1] if K == 1 else scores_of_classes


def forward(
    X: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    Theta: np.ndarray | None,
    A: np.ndarray | None,
    leaves: Leaves,
    K: int,
) -> np.ndarray:
    """Predict, shape (n, K): scores of classes, or the values of leaves."""
    a = scores(X, W, b)
    if leaves.classes is not None:
        return _both(class_scores(leaf_scores(a), leaves.classes, max(K, 2)), K)
    assert Theta is not None
    return np.einsum("nl,nlk->nk", forward_shares(a, leaves.n_mixed), leaf_values(X, Theta, A))


def gradients(
    X: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    Theta: np.ndarray | None,
    A: np.ndarray | None,
    leaves: Leaves,
    g: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """dW, db, dTheta and dA, for g = dLoss/dPrediction (n, K) at the prediction of ``forward``.

    Exact, except for ``n_mixed=1``, where the gradient of the splits is that of a mixture of the
    best two leaves. Without learned leaves the last two are None.
    """
    X, g = np.asarray(X, dtype=np.float64), np.asarray(g, dtype=np.float64)
    a = scores(X, W, b)
    z = leaf_scores(a)
    dTheta = dA = None
    if leaves.classes is not None:
        K = max(g.shape[1], 2)
        dz = class_gradient(z, leaves.classes, K, np.hstack([-g, g]) if g.shape[1] == 1 else g)
    else:
        assert Theta is not None
        u = np.einsum("nk,nlk->nl", g, leaf_values(X, Theta, A))
        dz = share_gradient(z, u, leaves.n_mixed)
        q = forward_shares(a, leaves.n_mixed)
        dTheta, dA = q.T @ g, np.einsum("nl,nk,nd->lkd", q, g, X)
    da = score_gradient(a, dz)
    return da.T @ X, da.sum(axis=0), dTheta, dA
