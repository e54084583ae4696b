r"""NumPy reference of reinforced trees: trajectories, costs and gradients, by definition.

Everything is written for one row and float64. A policy tree is (parents, W, b, alpha): the first
way of a node has the score 0, every other way a row of W and b, node by node; leaves are numbered
in the order of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from reference.losses import LOSSES


@dataclass(frozen=True)
class Policy:
    """A policy tree while it is learned: W (m, c), b (m,), alpha (m + 1, k)."""

    parents: tuple[int, ...]
    W: np.ndarray
    b: np.ndarray
    alpha: np.ndarray
    temperature: float = 1.0

    def children(self, node: int) -> list[int]:
        """Return the nodes that a row may go to from a node."""
        return [child for child, parent in enumerate(self.parents) if parent == node]

    def rows(self, node: int) -> list[int]:
        """Return the rows of weights of a node's ways, from the second on."""
        first = sum(max(len(self.children(before)) - 1, 0) for before in range(node))
        return list(range(first, first + max(len(self.children(node)) - 1, 0)))

    def leaf(self, node: int) -> int:
        """Return the number of a node among the leaves."""
        return sum(not self.children(before) for before in range(node))

    def pi(self, node: int, x: np.ndarray) -> np.ndarray:
        """Probability of each way of a node."""
        rows = self.rows(node)
        scores = np.concatenate([[0.0], self.W[rows] @ x + self.b[rows]]) / self.temperature
        p = np.exp(scores - scores.max())
        return p / p.sum()

    def trajectories(self, x: np.ndarray) -> Iterator[tuple[list[tuple[int, int]], int, float]]:
        """Give every trajectory: its (node, way) pairs, the leaf's node, and its probability."""
        stack: list[tuple[list[tuple[int, int]], int, float]] = [([], 0, 1.0)]
        while stack:
            path, node, p = stack.pop()
            if not self.children(node):
                yield path, node, p
                continue
            for way, (child, q) in enumerate(
                zip(self.children(node), self.pi(node, x), strict=True)
            ):
                stack.append(([*path, (node, way)], child, p * q))

    def drawn(self, x: np.ndarray, u: np.ndarray) -> tuple[list[tuple[int, int]], int]:
        """Return the trajectory that uniform numbers, one per depth, lead to."""
        path: list[tuple[int, int]] = []
        node = 0
        while children := self.children(node):
            cumulated = np.cumsum(self.pi(node, x))
            way = min(int((u[len(path)] >= cumulated).sum()), len(children) - 1)
            path.append((node, way))
            node = children[way]
        return path, node

    def entropy(self, node: int, x: np.ndarray) -> float:
        """Entropy of a node's policy, in nats."""
        pi = self.pi(node, x)
        return float(-(pi * np.log(np.maximum(pi, 1e-30))).sum())


@dataclass
class Gradient:
    """Of W, b and alpha."""

    W: np.ndarray
    b: np.ndarray
    alpha: np.ndarray

    @classmethod
    def zero(cls, policy: Policy) -> Gradient:
        """Nothing yet."""
        return cls(np.zeros(policy.W.shape), np.zeros(policy.b.shape), np.zeros(policy.alpha.shape))

    def add_score(self, policy: Policy, node: int, slope: np.ndarray, x: np.ndarray) -> None:
        """Add slope (ways,) by the scores of a node's ways."""
        for row, s in zip(policy.rows(node), slope[1:], strict=True):
            self.W[row] += s * x / policy.temperature
            self.b[row] += s / policy.temperature


def leaf_loss(policy: Policy, leaf: int, y: np.ndarray, loss: str, parameter: float) -> float:
    """Return Delta(alpha_leaf, y)."""
    return float(LOSSES[loss].value(policy.alpha[[leaf]], y[None], *_extra(loss, parameter))[0])


def leaf_slope(policy: Policy, leaf: int, y: np.ndarray, loss: str, parameter: float) -> np.ndarray:
    """Return its derivative by alpha_leaf."""
    slope: np.ndarray = LOSSES[loss].gradient(
        policy.alpha[[leaf]], y[None], *_extra(loss, parameter)
    )[0]
    return slope


def _extra(loss: str, parameter: float) -> tuple[float, ...]:
    return (parameter,) if loss in ("huber", "quantile") else ()


def log_pi_slope(policy: Policy, node: int, way: int, x: np.ndarray) -> np.ndarray:
    """Return the derivative of log pi(way) by the node's scores: 1[c = way] - pi_c."""
    slope = -policy.pi(node, x)
    slope[way] += 1.0
    return slope


def entropy_slope(policy: Policy, node: int, x: np.ndarray) -> np.ndarray:
    """Return the derivative of a policy's entropy by its scores: -pi_c (log pi_c + H)."""
    pi = policy.pi(node, x)
    return -pi * (np.log(np.maximum(pi, 1e-30)) + policy.entropy(node, x))


def expected_cost(
    policy: Policy, x: np.ndarray, y: np.ndarray, *, loss: str, parameter: float, entropy: float
) -> float:
    """E[loss] less what the entropies met on the way are worth: what is minimized."""
    total = 0.0
    for path, node, p in policy.trajectories(x):
        cost = leaf_loss(policy, policy.leaf(node), y, loss, parameter)
        total += p * (cost - entropy * sum(policy.entropy(at, x) for at, _ in path))
    return total


def exact_gradient(
    policy: Policy,
    x: np.ndarray,
    y: np.ndarray,
    *,
    loss: str,
    parameter: float = 0.0,
    entropy: float = 0.0,
) -> Gradient:
    """Gradient of `expected_cost`, by enumeration of the trajectories."""
    gradient = Gradient.zero(policy)
    for path, node, p in policy.trajectories(x):
        leaf = policy.leaf(node)
        cost = leaf_loss(policy, leaf, y, loss, parameter)
        cost -= entropy * sum(policy.entropy(at, x) for at, _ in path)
        for at, way in path:
            gradient.add_score(policy, at, p * cost * log_pi_slope(policy, at, way, x), x)
            gradient.add_score(policy, at, -p * entropy * entropy_slope(policy, at, x), x)
        gradient.alpha[leaf] += p * leaf_slope(policy, leaf, y, loss, parameter)
    return gradient


def sampled_gradient(
    policy: Policy,
    x: np.ndarray,
    y: np.ndarray,
    uniforms: np.ndarray,
    *,
    loss: str,
    parameter: float = 0.0,
    baseline: str = "none",
    entropy: float = 0.0,
    value: Callable[[int], float] = lambda node: 0.0,
) -> Gradient:
    """Estimate of Sec. 2.3 from the trajectories that uniforms (depth, M) draw.

    `value` (node) is the learned value of a node, for the row's target.
    """
    M = uniforms.shape[1]
    drawn = [policy.drawn(x, uniforms[:, s]) for s in range(M)]
    loss_of = [leaf_loss(policy, policy.leaf(node), y, loss, parameter) for _, node in drawn]
    bonus = [[entropy * policy.entropy(at, x) for at, _ in path] for path, _ in drawn]
    whole = [cost - sum(paid) for cost, paid in zip(loss_of, bonus, strict=True)]
    gradient = Gradient.zero(policy)
    for s, (path, node) in enumerate(drawn):
        for j, (at, way) in enumerate(path):
            to_go = loss_of[s] - sum(bonus[s][j + 1 :])  # what this decision has a part in
            if baseline == "leave_one_out":
                advantage = whole[s] - (sum(whole) - whole[s]) / (M - 1)
            else:
                advantage = to_go - (value(at) if baseline == "value" else 0.0)
            gradient.add_score(policy, at, advantage / M * log_pi_slope(policy, at, way, x), x)
            gradient.add_score(policy, at, -entropy / M * entropy_slope(policy, at, x), x)
        leaf = policy.leaf(node)
        gradient.alpha[leaf] += leaf_slope(policy, leaf, y, loss, parameter) / M
    return gradient
