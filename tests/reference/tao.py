"""NumPy reference of TAO: the reduced problem, thresholds and a sweep, by definition.

Everything is written for one tree of any topology and float64. A tree is `non_greedy.Tree`: (W, b,
children, theta), with leaves numbered from left to right. The loss is a name of
``tests/reference/losses.py``, or "misclassification".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reference.losses import LOSSES
from reference.non_greedy import Tree


@dataclass(frozen=True)
class Rows:
    """Encoded rows (n, c), targets (n, t), weights (n,)."""

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Objective:
    """A loss by its name and parameter, and what linear leaves add per column, (L, k, c)."""

    loss: str
    parameter: float = 0.0
    A: np.ndarray | None = None

    def of(self, tree: Tree, leaf: int, x: np.ndarray, y: np.ndarray) -> float:
        """Return the loss of one row at a leaf."""
        f = tree.theta[leaf].astype(np.float64)
        if self.A is not None:
            f = f + self.A[leaf] @ x
        if self.loss == "misclassification":
            return float(np.argmax(f) != y[0])
        extra = (self.parameter,) if self.loss in ("huber", "quantile") else ()
        return float(LOSSES[self.loss].value(f[None], y[None], *extra)[0])


def leaf_below(tree: Tree, node: int, x: np.ndarray) -> int:
    """Return the leaf that a row comes to from a node on."""
    while node >= 0:
        node = int(tree.children[node, int(tree.W[node] @ x + tree.b[node] >= 0)])
    return -1 - node


def total_loss(tree: Tree, rows: Rows, objective: Objective) -> float:
    """Sum the weighted losses of all rows."""
    root = 0 if len(tree.children) else -1
    return float(
        sum(
            w * objective.of(tree, leaf_below(tree, root, x), x, y)
            for x, y, w in zip(rows.X, rows.target, rows.weight, strict=True)
        )
    )


def rows_at(tree: Tree, node: int, X: np.ndarray) -> list[int]:
    """Return the places of the rows that come through a node."""
    found = []
    for i, x in enumerate(X):
        at = 0
        while at >= 0 and at != node:
            at = int(tree.children[at, int(tree.W[at] @ x + tree.b[at] >= 0)])
        if at == node:
            found.append(i)
    return found


@dataclass(frozen=True)
class Reduced:
    """Rows that care, 1 where right is better and -1 elsewhere, and what the other side costs."""

    rows: list[int]
    sign: np.ndarray
    cost: np.ndarray


def reduced_problem(tree: Tree, node: int, rows: Rows, objective: Objective) -> Reduced:
    """Theorem 3.2 of [TAO18]: all that matters of a node's split, the rest of the tree given."""
    which, sign, cost = [], [], []
    for i in rows_at(tree, node, rows.X):
        x, y = rows.X[i], rows.target[i]
        left, right = (
            objective.of(tree, leaf_below(tree, int(child), x), x, y)
            for child in tree.children[node]
        )
        if left != right and rows.weight[i] > 0:
            which.append(i)
            sign.append(1 if right < left else -1)
            cost.append(rows.weight[i] * abs(left - right))
    return Reduced(which, np.array(sign), np.array(cost))


def reduced_loss(score: np.ndarray, b: float, sign: np.ndarray, cost: np.ndarray) -> float:
    """Sum the costs of rows on the wrong side of score + b = 0."""
    return float(cost[(score + b >= 0) != (sign > 0)].sum())


def best_threshold(score: np.ndarray, sign: np.ndarray, cost: np.ndarray) -> tuple[float, float]:
    """Return the smallest reduced loss of any threshold, and of those that have it the widest gap.

    Rows with scores at least the threshold go right. Where all go to one side the gap is 0.
    """
    values = np.unique(score)
    ends = [(values[0], 0.0), (np.nextafter(values[-1], np.inf), 0.0)]
    inner = [(0.5 * (a + b), b - a) for a, b in zip(values[:-1], values[1:], strict=True)]
    losses = [(reduced_loss(score, -t, sign, cost), -gap) for t, gap in ends + inner]
    loss, gap = min(losses)
    tied = [g for value, g in losses if value <= loss + 1e-9 * cost.sum()]
    return loss, -min(tied)


def logistic_objective(
    w: np.ndarray,
    b: float,
    X: np.ndarray,
    sign: np.ndarray,
    weight: np.ndarray,
    l1: float,
    l2: float = 0.0,
) -> float:
    """Weighted logistic loss with its penalties."""
    margin = sign * (X @ w + b)
    penalty = l1 * np.abs(w).sum() + 0.5 * l2 * w @ w
    return float(weight @ np.logaddexp(0.0, -margin) + penalty)


def solve_logistic(
    X: np.ndarray,
    sign: np.ndarray,
    weight: np.ndarray,
    l1: float,
    l2: float = 0.0,
    n_steps: int = 20_000,
) -> tuple[np.ndarray, float]:
    """Minimize `logistic_objective` by proximal gradient steps of a length that is always safe."""
    Z = np.hstack([X, np.ones((len(X), 1))]).astype(np.float64)
    p = np.zeros(Z.shape[1])
    length = 1.0 / (0.25 * np.linalg.eigvalsh((Z * weight[:, None]).T @ Z)[-1] + l2)
    shrink = np.append(np.full(X.shape[1], l1), 0.0) * length
    for _ in range(n_steps):
        slope = -weight * sign / (1.0 + np.exp(sign * (Z @ p)))
        gradient = Z.T @ slope
        gradient[:-1] += l2 * p[:-1]
        moved = p - length * gradient
        p = np.sign(moved) * np.maximum(np.abs(moved) - shrink, 0.0)
    return p[:-1], float(p[-1])


def improved(tree: Tree, node: int, rows: Rows, objective: Objective, l1: float) -> Tree:
    """Return the tree with a better split at one node, or as it was."""
    reduced = reduced_problem(tree, node, rows, objective)
    if len(reduced.rows) == 0:
        return tree
    X = rows.X[reduced.rows].astype(np.float64)
    best = reduced_loss(X @ tree.W[node], tree.b[node], reduced.sign, reduced.cost)
    directions = [tree.W[node].astype(np.float64)]
    if len(np.unique(reduced.sign)) == 2:
        weight = reduced.cost * rows.weight[reduced.rows].sum() / reduced.cost.sum()
        directions.append(solve_logistic(X, reduced.sign, weight, l1)[0])
    for w in directions:
        score = X @ w
        loss, _ = best_threshold(score, reduced.sign, reduced.cost)
        if loss < best - 1e-9 * reduced.cost.sum():
            best = loss
            W, b = tree.W.astype(np.float64), tree.b.astype(np.float64)
            W[node], b[node] = w, -_threshold_of(score, reduced, loss)
            tree = replace(tree, W=W, b=b)
    return tree


def _threshold_of(score: np.ndarray, reduced: Reduced, loss: float) -> float:
    """Return the threshold in the widest gap among those with such a reduced loss."""
    values = np.unique(score)
    inner = [(b - a, 0.5 * (a + b)) for a, b in zip(values[:-1], values[1:], strict=True)]
    ends = [(0.0, values[0]), (0.0, np.nextafter(values[-1], np.inf))]
    _, threshold = max(
        (gap, t)
        for gap, t in inner + ends
        if reduced_loss(score, -t, reduced.sign, reduced.cost) <= loss + 1e-9 * reduced.cost.sum()
    )
    return float(threshold)


def sweep(tree: Tree, rows: Rows, objective: Objective, l1: float) -> Tree:
    """Improve every split once, the deepest first."""
    depth = [0] * len(tree.children)
    for i, pair in enumerate(tree.children):  # splits come before their children
        for child in pair:
            if child >= 0:
                depth[child] = depth[i] + 1
    for node in sorted(range(len(depth)), key=lambda i: -depth[i]):
        tree = improved(tree, node, rows, objective, l1)
    return tree
