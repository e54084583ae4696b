r"""NumPy twin of trees that learn from bandit feedback, in float64: whole rounds, both estimators.

A. Karthikeyan, N. Jain, N. Natarajan, P. Jain: *Learning Accurate Decision Trees with Bandit
Feedback via Quantized Gradient Descent*. TMLR 2022. [DGT22]

D. Foster, A. Rakhlin: *Beyond UCB: Optimal and Efficient Contextual Bandits with Regression
Oracles*. ICML 2020. [FR20]

======== ================= =====================================================================
symbol   here              meaning
======== ================= =====================================================================
x        ``x (c,)``        a context; NaN for what is missing
K        ``K``             number of actions
theta_l  ``Theta (L, K)``  what the leaves hold of each action
delta    ``exploration``   probability of exploring, Eq. (7) [DGT22]
gamma    ``gamma``         how much gaps count, Sec. 3 of [FR20]
p        ``p (K,)``        probabilities of the actions
======== ================= =====================================================================

Random numbers are those of the engine: a stream per decision, and one per lesson.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from hardwood.reference import dgt
from hardwood.reference.bootstrap import words
from hardwood.reference.optimise import Adam, RMSprop

LESSONS = 1 << 62


# Exploration


def explore_uniformly(values: np.ndarray, mask: np.ndarray, delta: float) -> np.ndarray:
    """Eq. (7) of [DGT22]: the best action, but with probability delta any one."""
    p = np.where(mask, delta / mask.sum(), 0.0)
    p[np.argmax(np.where(mask, values, -np.inf))] += 1.0 - delta
    return p


def explore_by_gaps(values: np.ndarray, mask: np.ndarray, gamma: float) -> np.ndarray:
    """Inverse gap weighting of [FR20]: p = 1 / (K + gamma gap), the rest for the best action."""
    best = np.argmax(np.where(mask, values, -np.inf))
    p = np.where(mask, 1.0 / (mask.sum() + gamma * (values[best] - values)), 0.0)
    p[best] = 0.0
    p[best] = 1.0 - p.sum()
    return p


# Estimators of a derivative


def action_slope(theta: float, reward: float, propensity: float) -> float:
    """Eq. (8): the derivative by the score of the action taken, with the loss 1 - reward."""
    s = expit(theta)
    return 2.0 / propensity * ((1.0 - reward) - (1.0 - s)) * s * (1.0 - s)


def one_point(loss: float, u: float, delta: float) -> float:
    """Eq. (9): from the loss at prediction + delta u."""
    return loss * u / delta


def two_point(above: float, below: float, delta: float) -> float:
    """Eq. (10): from the losses at prediction + delta and prediction - delta."""
    return (above - below) / (2.0 * delta)


# What is known of columns and rewards


class Moments:
    """Of columns, from all rows so far; what is missing does not count."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.mean = self.deviation = np.zeros(0)

    def add(self, x: np.ndarray) -> None:
        """Count a row."""
        self.rows.append(np.asarray(x, dtype=np.float64))
        seen = np.array(self.rows)
        count = np.maximum((~np.isnan(seen)).sum(axis=0), 1)
        self.mean = np.nansum(seen, axis=0) / count
        self.deviation = np.sqrt(np.nansum((seen - self.mean) ** 2, axis=0) / count)

    def standardise(self, x: np.ndarray) -> np.ndarray:
        """Return (x - mean) / deviation, zero for what is missing or has not varied."""
        z = np.zeros(len(x))
        np.divide(x - self.mean, self.deviation, out=z, where=self.deviation > 0)
        return np.where(np.isnan(z), 0.0, z)


@dataclass
class RewardScale:
    """Of rewards: the centre of the first ones, and the spread, looked at when they doubled."""

    next_look: int
    rewards: list[float] = field(default_factory=list)
    center: float = 0.0
    scale: float = 1.0
    is_known: bool = False

    def within(self, reward: float) -> float:
        """Draw a reward in that lies more than four scales from the centre."""
        if not self.is_known:
            return reward
        return float(np.clip(reward, self.center - 4 * self.scale, self.center + 4 * self.scale))

    def standard(self, reward: float) -> float:
        """Return a reward in units of the scale."""
        return (self.within(reward) - self.center) / self.scale

    def add(self, reward: float) -> float:
        """Return what values are to be multiplied by."""
        self.rewards.append(self.within(reward))
        if len(self.rewards) < self.next_look:
            return 1.0
        self.next_look *= 2
        before = self.scale
        spread = min(np.ptp(self.rewards), 4.0 * np.std(self.rewards))
        self.scale = spread if spread > 0 else before
        if self.is_known:
            return before / self.scale
        self.is_known, self.center = True, float(np.mean(self.rewards))
        return 1.0


@dataclass
class BulkScale(RewardScale):
    """Looks at all rewards as they came, but for those that are far from all others."""

    def add(self, reward: float) -> float:
        """Return what values are to be multiplied by: 0 to start again from the centre."""
        self.rewards.append(reward)
        if len(self.rewards) < self.next_look:
            return 1.0
        self.next_look *= 2
        before, bulk = self.scale, bulk_of(self.rewards)
        spread = min(np.ptp(bulk), max(4.0 * np.std(bulk), np.ptp(bulk) / 4.0))
        self.scale = spread if spread > 0 else before
        around = 0.5 * self.scale
        if self.is_known and min(bulk) - around <= self.center <= max(bulk) + around:
            return before / self.scale
        self.is_known, self.center = True, float(np.mean(bulk))
        return 0.0


def bulk_of(rewards: list[float]) -> np.ndarray:
    """Leave the farthest out if they are 20 ranges of the others away, one and one per thousand."""
    rest = np.sort(rewards)
    bulk, median = rest, rest[len(rest) // 2]
    for _ in range(1 + len(rewards) // 1000):
        if len(rest) <= 2:
            break
        is_low = median - rest[0] > rest[-1] - median
        gap = rest[1] - rest[0] if is_low else rest[-1] - rest[-2]
        rest = rest[1:] if is_low else rest[:-1]
        if 0 < np.ptp(rest) < gap / 20:
            bulk = rest
    return bulk


@dataclass
class Draws:
    """Random numbers of one stream, as the engine draws them."""

    stream: Iterator[int]

    def word(self) -> int:
        return next(self.stream)

    def uniform(self) -> float:
        return (self.word() >> 8) * 2.0**-24

    def below(self, n: int) -> int:
        word = self.word() << 32 | self.word()
        return word * n >> 64


class Tree:
    """The tree and its optimisers: one for the splits, one for the leaves."""

    def __init__(self, start: np.ndarray, n_columns: int, K: int, height: int, options: Any):
        m, stride = 2**height - 1, -(-n_columns // 8) * 8
        flat = np.asarray(start, dtype=np.float64)
        self.W = flat[: m * stride].reshape(m, stride)[:, :n_columns].copy()
        self.b = flat[m * stride : m * stride + m].copy()
        self.Theta = flat[m * stride + m :].reshape(m + 1, K).copy()
        self.rates = options["split_rate"], options["split_rate"], options["learning_rate"]
        self.optimisers = [_optimiser(options) for _ in range(3)]

    def values(self, z: np.ndarray) -> np.ndarray:
        """Return what the leaf of a standardised context holds."""
        return self.Theta[dgt.leaf_of(dgt.scores(z[None, :], self.W, self.b))[0]]

    def step(self, Z: np.ndarray, slope: np.ndarray) -> None:
        """Move against the gradient of a batch whose loss has these slopes (n, K)."""
        found = dgt.backward(Z, self.W, self.b, self.Theta, slope)
        parts = self.W, self.b, self.Theta
        self.W, self.b, self.Theta = (
            optimiser.step(part, g, rate)
            for optimiser, part, g, rate in zip(
                self.optimisers, parts, found, self.rates, strict=True
            )
        )


def _optimiser(options: Any) -> Adam | RMSprop:
    if options["optimizer"] == "adam":
        return Adam(options["momentum"], options["decay"], options["epsilon"])
    return RMSprop(options["momentum"], options["decay"], options["epsilon"])


class Bandit:
    """Rounds of either estimator, with the engine's options and the engine's start."""

    def __init__(self, start: np.ndarray, n_columns: int, K: int, height: int, options: Any, seed):
        self.K, self.options, self.seed = K, options, seed
        self.tree = Tree(start, n_columns, K, height, options)
        self.moments = Moments()
        self.rewards = BulkScale(options["n_first"])
        self.stored: list[tuple[np.ndarray, int, float, float]] = []
        self.n_decided = self.n_learned = 0
        self.due = 0.0

    def decide(self, x: np.ndarray, mask: np.ndarray) -> tuple[int, float]:
        """Draw an action; return it with its probability."""
        self.moments.add(x)
        values = self.tree.values(self.moments.standardise(x))
        self.n_decided += 1
        if self.options["is_paper"]:
            p = explore_uniformly(values, mask, self.options["exploration"])
        else:
            gamma = self.options["exploration"] * np.sqrt(self.n_decided)
            p = explore_by_gaps(values, mask, gamma)
        u = Draws(words(self.seed, self.n_decided - 1)).uniform()
        action = int(np.flatnonzero(p)[np.searchsorted(np.cumsum(p[p > 0]), u, side="right")])
        return action, float(p[action])

    def learn(self, x: np.ndarray, action: int, reward: float, propensity: float) -> None:
        """Learn from one round."""
        draws = Draws(words(self.seed, LESSONS + self.n_learned))
        self.n_learned += 1
        self.stored.append((np.asarray(x, dtype=np.float64), action, reward, propensity))
        if self.options["is_paper"]:
            self._paper()
        else:
            self._replay(reward, draws)

    def _paper(self) -> None:
        n = self.options["batch_size"]
        if len(self.stored) < n:
            return
        Z = np.array([self.moments.standardise(x) for x, *_ in self.stored])
        slope = np.zeros((n, self.K))
        for i, (_, action, reward, propensity) in enumerate(self.stored):
            theta = self.tree.values(Z[i])[action]
            slope[i, action] = action_slope(theta, reward, propensity) / n
        self.tree.step(Z, slope)
        self.stored = []

    def _replay(self, reward: float, draws: Draws) -> None:
        change = self.rewards.add(reward)
        if not self.rewards.is_known:
            return
        self.tree.Theta = self.tree.Theta * change
        self.due += self.options["batches_per_round"]
        while self.due >= 1:
            self._step_on_stored(draws)
            self.due -= 1

    def _step_on_stored(self, draws: Draws) -> None:
        """Squared error of the action taken, over the newest round and others that are drawn."""
        n = len(self.stored)
        size = min(n, self.options["batch_size"])
        drawn = [draws.below(n) for _ in range(size)]
        drawn[0] = n - 1
        Z = np.array([self.moments.standardise(self.stored[i][0]) for i in drawn])
        if self.options["blur"] > 0:
            Z = Z + self._noise(Z.shape, self.options["blur"] * n**-0.25, draws)
        slope = np.zeros((size, self.K))
        for row, i in enumerate(drawn):
            _, action, reward, _ = self.stored[i]
            wanted = self.rewards.standard(reward)
            slope[row, action] = 2.0 * (self.tree.values(Z[row])[action] - wanted) / size
        self.tree.step(Z, slope)

    @staticmethod
    def _noise(shape: tuple[int, int], deviation: float, draws: Draws) -> np.ndarray:
        """Uniform, two entries from each word: the lower half, then the upper."""
        noise = np.zeros(shape)
        for row in noise:
            for c in range(0, shape[1], 2):
                word = draws.word()
                row[c : c + 2] = [word & 0xFFFF, word >> 16][: shape[1] - c]
        return 2.0 * np.sqrt(3.0) * deviation * (noise * 2.0**-16 - 0.5)
