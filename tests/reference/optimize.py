r"""NumPy reference of the engine's optimizers, schedules, clipping and penalties, in float64.

One step of the engine, in this order: clip the gradient of the data to a global norm, add the L2
term, let the optimizer move the weights, shrink them towards zero by the proximal step of the L1
term. Penalties come after clipping, so that clipping a large gradient does not weaken them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Optimizer(Protocol):
    """Moves one array of weights, and says how long its last step was per unit of gradient."""

    def step(self, w: np.ndarray, g: np.ndarray, lr: float) -> np.ndarray:
        """Return the weights after one step against the gradient g."""
        ...

    def step_size(self, lr: float) -> np.ndarray | float:
        """Return what multiplies each coordinate's gradient now, momentum aside."""
        ...


@dataclass
class SGD:
    """buf = mu buf + g;  w -= lr buf."""

    momentum: float = 0.0
    buf: np.ndarray | float = 0.0

    def step(self, w: np.ndarray, g: np.ndarray, lr: float) -> np.ndarray:
        """Return the weights after one step against the gradient g."""
        self.buf = self.momentum * self.buf + g
        return w - lr * self.buf

    def step_size(self, lr: float) -> float:
        """Return lr, the same for all coordinates."""
        return lr


@dataclass
class RMSprop:
    """v = alpha v + (1 - alpha) g^2;  buf = mu buf + g / (sqrt(v) + eps);  w -= lr buf."""

    momentum: float = 0.0
    alpha: float = 0.99
    eps: float = 1e-8
    v: np.ndarray | float = 0.0
    buf: np.ndarray | float = 0.0

    def step(self, w: np.ndarray, g: np.ndarray, lr: float) -> np.ndarray:
        """Return the weights after one step against the gradient g."""
        self.v = self.alpha * self.v + (1.0 - self.alpha) * g**2
        self.buf = self.momentum * self.buf + g / (np.sqrt(self.v) + self.eps)
        return w - lr * self.buf

    def step_size(self, lr: float) -> np.ndarray:
        """Return lr / (sqrt(v) + eps)."""
        return lr / (np.sqrt(self.v) + self.eps)


@dataclass
class Adam:
    """Adam with bias correction, as torch has it; ``momentum`` is its beta_1."""

    momentum: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    m: np.ndarray | float = 0.0
    v: np.ndarray | float = 0.0
    t: int = 0

    def step(self, w: np.ndarray, g: np.ndarray, lr: float) -> np.ndarray:
        """Return the weights after one step against the gradient g."""
        self.t += 1
        self.m = self.momentum * self.m + (1.0 - self.momentum) * g
        self.v = self.beta2 * self.v + (1.0 - self.beta2) * g**2
        return w - self.step_size(lr) * self.m / (1.0 - self.momentum**self.t)

    def step_size(self, lr: float) -> np.ndarray:
        """Return lr / (sqrt(v / (1 - beta_2^t)) + eps)."""
        return lr / (np.sqrt(self.v / (1.0 - self.beta2**self.t)) + self.eps)


def constant(t: int, n_steps: int, lr: float) -> float:
    """Return lr at every step."""
    return lr


def cosine(t: int, n_steps: int, lr: float, restarts: int = 1) -> float:
    """Half a cosine from lr towards 0, ``restarts`` times, each of n_steps / restarts steps."""
    length = n_steps / restarts
    return 0.5 * lr * (1.0 + np.cos(np.pi * (t % length) / length))


def one_cycle(t: int, n_steps: int, lr: float) -> float:
    """Half a cosine up from lr / 25 to lr in 30 % of the steps, then down to lr / 25e4."""
    start, end, last = lr / 25.0, lr / 25.0 / 1e4, n_steps - 1
    top = 0.3 * n_steps - 1.0
    if t <= top:
        return lr + 0.5 * (start - lr) * (1.0 + np.cos(np.pi * t / top))
    return end + 0.5 * (lr - end) * (1.0 + np.cos(np.pi * (t - top) / (last - top)))


def squared_norm(gradients: Sequence[np.ndarray]) -> float:
    """Sum of the squares of all entries of all arrays."""
    return sum(float((g**2).sum()) for g in gradients)


def clip_by_global_norm(
    gradients: Sequence[np.ndarray], limit: float, squared_norm_elsewhere: float = 0.0
) -> list[np.ndarray]:
    """All gradients times one factor, so that their joint Euclidean norm is at most ``limit``.

    What is clipped together with them in another place counts by ``squared_norm_elsewhere``.
    """
    norm = np.sqrt(squared_norm(gradients) + squared_norm_elsewhere)
    factor = min(1.0, limit / norm) if norm > 0 else 1.0
    return [g * factor for g in gradients]


def soft_threshold(w: np.ndarray, threshold: np.ndarray | float) -> np.ndarray:
    """Proximal step of threshold * |w|: towards zero by the threshold, never past it."""
    return np.sign(w) * np.maximum(np.abs(w) - threshold, 0.0)


def step(
    w: np.ndarray, g: np.ndarray, optimizer: Optimizer, lr: float, l1: float = 0.0, l2: float = 0.0
) -> np.ndarray:
    """One regularized step: the L2 term joins the gradient, L1 is a proximal step after it.

    The threshold of a coordinate is l1 times its own step size, so that under RMSprop and Adam the
    penalty and the loss are weighed against each other as the objective states.
    """
    w = optimizer.step(w, g + l2 * w, lr)
    return soft_threshold(w, l1 * optimizer.step_size(lr)) if l1 else w
