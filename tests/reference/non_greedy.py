"""NumPy reference of the non-greedy kernels: loss-augmented inference and a step, by definition.

Everything is written for one tree of any topology and float64. A tree is (W, b, children, theta)
with children as `ObliqueTree` has them and leaves numbered from left to right.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from reference.losses import LOSSES


@dataclass(frozen=True)
class Tree:
    """A tree while it is learned: W (m, c), b (m,), children (m, 2), theta (m + 1, k)."""

    W: np.ndarray
    b: np.ndarray
    children: np.ndarray
    theta: np.ndarray

    def scores(self, x: np.ndarray) -> np.ndarray:
        """W x + b, (m,)."""
        scores: np.ndarray = self.W @ x + self.b
        return scores

    def leaf(self, h: np.ndarray) -> int:
        """Return f(h): the leaf that decisions h (m,), each -1 or 1, lead to."""
        node = 0 if len(self.children) else -1
        while node >= 0:
            node = int(self.children[node, int(h[node] > 0)])
        return -1 - node

    def paths(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Give every leaf, from left to right, with the (split, decision) pairs on its path."""
        if not len(self.children):
            yield 0, []
            return
        stack: list[tuple[int, list[tuple[int, int]]]] = [(0, [])]
        while stack:
            node, path = stack.pop()
            if node < 0:
                yield -1 - node, path
                continue
            for side, decision in ((1, 1), (0, -1)):
                stack.append((int(self.children[node, side]), [*path, (node, decision)]))


def decisions(scores: np.ndarray) -> np.ndarray:
    """sgn(W x), where 0 goes right."""
    return np.where(scores >= 0, 1, -1)


def leaf_loss(tree: Tree, leaf: int, y: np.ndarray, loss: str, parameter: float) -> float:
    """Return the loss of one leaf for a target (t,)."""
    return float(LOSSES[loss].value(tree.theta[leaf][None], y[None], *_extra(loss, parameter))[0])


def _extra(loss: str, parameter: float) -> tuple[float, ...]:
    return (parameter,) if loss in ("huber", "quantile") else ()


@dataclass(frozen=True)
class Augmented:
    """What loss-augmented inference finds for a row.

    `moves` (m,) is g - h, `bound` the right-hand side of Eq. (7), (13) or (14), `loss` that of the
    natural leaf.
    """

    natural: int
    chosen: int
    loss: float
    bound: float
    moves: np.ndarray


def augment(
    tree: Tree,
    x: np.ndarray,
    y: np.ndarray,
    *,
    inference: str,
    loss: str,
    parameter: float = 0.0,
    assigned: int | None = None,
) -> Augmented:
    """Eq. (10) over all leaves, or over those of the ball of Eq. (13); the first of equal ones."""
    scores = tree.scores(x)
    sign = decisions(scores)
    best, chosen, g = -np.inf, -1, sign
    for leaf, path in tree.paths():
        wanted = sign.copy()
        for split, decision in path:
            wanted[split] = decision
        if inference == "fast" and (wanted != sign).sum() > 1:
            continue
        # g^T W x - sgn(W x)^T W x, Eq. (12)
        value = float((wanted - sign) @ scores) + leaf_loss(tree, leaf, y, loss, parameter)
        if value > best:
            best, chosen, g = value, leaf, wanted
    natural = tree.leaf(sign)
    h = sign.copy()
    if assigned is not None:
        for split, decision in dict(tree.paths())[assigned]:
            h[split] = decision
    return Augmented(
        natural=natural,
        chosen=chosen,
        loss=leaf_loss(tree, natural, y, loss, parameter),
        bound=best - float((h - sign) @ scores),
        moves=g - h,
    )


def brute_force_bound(
    tree: Tree, x: np.ndarray, value: Callable[[int], float], *, radius: int | None = None
) -> float:
    """Right-hand side of Eq. (7), or of Eq. (13) with radius 1, over all 2^m decisions g.

    `value` (leaf) is the loss of a leaf.
    """
    scores = tree.scores(x)
    sign = decisions(scores)
    best = -np.inf
    for g in itertools.product((-1, 1), repeat=len(scores)):
        if radius is not None and (np.array(g) != sign).sum() > radius:
            continue
        best = max(best, float(np.array(g) @ scores) + value(tree.leaf(np.array(g))))
    return best - float(sign @ scores)


@dataclass(frozen=True)
class Velocity:
    """Momentum of W, b and theta."""

    W: np.ndarray
    b: np.ndarray
    theta: np.ndarray

    @classmethod
    def zero(cls, tree: Tree) -> Velocity:
        """At rest."""
        return cls(np.zeros_like(tree.W), np.zeros_like(tree.b), np.zeros_like(tree.theta))


def step(
    tree: Tree,
    velocity: Velocity,
    X: np.ndarray,
    Y: np.ndarray,
    weight: np.ndarray,
    *,
    inference: str,
    loss: str,
    learning_rate: float,
    nu: float,
    parameter: float = 0.0,
    momentum: float = 0.0,
    l1: float = 0.0,
    max_features: int = 0,
    assigned: np.ndarray | None = None,
) -> tuple[Tree, Velocity]:
    """Lines 4 to 10 of Algorithm 1 on a mini-batch; only what a row concerns moves."""
    rows = [
        augment(
            tree,
            x,
            y,
            inference=inference,
            loss=loss,
            parameter=parameter,
            assigned=None if assigned is None else int(assigned[i]),
        )
        for i, (x, y) in enumerate(zip(X, Y, strict=True))
    ]
    share = weight / len(X)
    moves = np.stack([row.moves for row in rows])  # (n, m)
    W, b, theta = tree.W.copy(), tree.b.copy(), tree.theta.copy()
    V = Velocity(velocity.W.copy(), velocity.b.copy(), velocity.theta.copy())
    for i in np.flatnonzero((moves != 0).any(axis=0)):
        V.W[i] = momentum * V.W[i] + (share * moves[:, i]) @ X
        V.b[i] = momentum * V.b[i] + (share * moves[:, i]).sum()
        moved = W[i] - learning_rate * V.W[i]
        W[i] = np.sign(moved) * np.maximum(np.abs(moved) - learning_rate * l1, 0.0)
        b[i] -= learning_rate * V.b[i]
        if 0 < max_features < len(W[i]):
            W[i, np.argsort(-np.abs(W[i]), kind="stable")[max_features:]] = 0.0
            V.W[i][W[i] == 0] = 0.0
        W[i], b[i] = project(W[i], b[i], nu)
    for leaf in sorted({row.chosen for row in rows}):
        here = [i for i, row in enumerate(rows) if row.chosen == leaf]
        theta_here = np.repeat(tree.theta[leaf][None], len(here), axis=0)
        slope = LOSSES[loss].gradient(theta_here, Y[here], *_extra(loss, parameter))
        V.theta[leaf] = momentum * V.theta[leaf] + share[here] @ slope
        theta[leaf] -= learning_rate * V.theta[leaf]
    return replace(tree, W=W, b=b, theta=theta), V


def project(w: np.ndarray, b: float, nu: float) -> tuple[np.ndarray, float]:
    """Line 8 of Algorithm 1: onto the ball |w|^2 + b^2 <= nu."""
    norm = float(np.sqrt(w @ w + b * b))
    scale = min(1.0, np.sqrt(nu) / norm) if norm > 0 else 1.0
    return w * scale, b * scale
