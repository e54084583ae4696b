r"""NumPy reference for trees that learn from bandit feedback: whole rounds, in float64.

A. Karthikeyan, N. Jain, N. Natarajan, P. Jain: *Learning Accurate Decision Trees with Bandit
Feedback via Quantized Gradient Descent*. TMLR 2022. [DGT22]

D. Foster, A. Rakhlin: *Beyond UCB: Optimal and Efficient Contextual Bandits with Regression
Oracles*. ICML 2020. [FR20]

======== ================= =====================================================================
symbol   here              meaning
======== ================= =====================================================================
x        ``x (c,)``        a context; NaN if missing
K        ``K``             number of actions
theta_l  ``Theta (L, K)``  value of each action in the leaves
delta    ``exploration``   probability of exploring, Eq. (7) [DGT22]
gamma    ``gamma``         weight of gaps, Sec. 3 of [FR20]
p        ``p (K,)``        probabilities of the actions
======== ================= =====================================================================

Random numbers are those of the engine: one stream per decision and one per update.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from reference import dgt, layers
from reference.bootstrap import words
from reference.optimize import Adam, RMSprop

UPDATES = 1 << 62
FIRST_LOSSES = 20  # with equal weights


# Exploration


def explore_uniformly(values: np.ndarray, mask: np.ndarray, delta: float) -> np.ndarray:
    """Eq. (7) of [DGT22]: the best action, but with probability delta any allowed one."""
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


# Statistics of columns and rewards


class Moments:
    """Means and standard deviations of columns so far, without missing values.

    They are computed whenever the number of rows has grown by 1/64. Decisions use those of the last
    update.
    """

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.next = 1
        self.mean = self.deviation = np.zeros(0)
        self.served: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, x: np.ndarray) -> None:
        """Count a row."""
        self.rows.append(np.asarray(x, dtype=np.float64))
        if len(self.rows) < self.next:
            return
        self.next = len(self.rows) + max(1, len(self.rows) // 64)
        seen = np.array(self.rows)
        count = np.maximum((~np.isnan(seen)).sum(axis=0), 1)
        self.mean = np.nansum(seen, axis=0) / count
        self.deviation = np.sqrt(np.nansum((seen - self.mean) ** 2, axis=0) / count)

    def standardize(self, x: np.ndarray) -> np.ndarray:
        """Return (x - mean) / deviation, where a missing x is 0; 0 for constant columns."""
        return _standardized(x, self.mean, self.deviation)

    def publish(self) -> None:
        """Let decisions use these moments."""
        self.served = self.mean, self.deviation

    def standardize_to_decide(self, x: np.ndarray) -> np.ndarray:
        """Standardize with the moments that decisions use."""
        zeros = np.zeros(len(x))
        return zeros if self.served is None else _standardized(x, *self.served)


def _standardized(x: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    z = np.zeros(len(x))
    np.divide(np.nan_to_num(x, nan=0.0) - mean, deviation, out=z, where=deviation > 0)
    return z


@dataclass
class RewardScale:
    """Center of the first rewards, and the spread, computed whenever the rewards have doubled."""

    next_look: int
    rewards: list[float] = field(default_factory=list)
    center: float = 0.0
    scale: float = 1.0
    is_known: bool = False

    def within(self, reward: float) -> float:
        """Clip a reward to at most four scales from the center."""
        if not self.is_known:
            return reward
        return float(np.clip(reward, self.center - 4 * self.scale, self.center + 4 * self.scale))

    def standard(self, reward: float) -> float:
        """Return a reward in units of the scale."""
        return (self.within(reward) - self.center) / self.scale

    def add(self, reward: float) -> float:
        """Add a reward; return the factor for values in the old scale."""
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
    """The spread of all rewards, without outliers and without clipping."""

    def add(self, reward: float) -> float:
        """Add a reward; return the factor for values: 0 to start again from the center."""
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
    """Leave out rewards 20 ranges of the others away: at most one, and one more per thousand."""
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
    """The tree and its optimizers: one for the splits or each of their factors, one for the leaves.

    Decisions use the average of the parameters over about the fraction ``averaging`` of all steps.
    With ``shares_bias``, one number that all values of all leaves have in common is learned too; it
    is part of Theta, which all that is computed depends on.
    """

    def __init__(
        self,
        start: np.ndarray,
        n_columns: int,
        K: int,
        height: int,
        options: Any,
        factors: np.ndarray | None = None,
    ):
        m, stride = 2**height - 1, _padded(n_columns)
        flat = np.asarray(start, dtype=np.float64)
        self.W = flat[: m * stride].reshape(m, stride)[:, :n_columns].copy()
        self.b = flat[m * stride : m * stride + m].copy()
        self.Theta = flat[m * stride + m :].reshape(m + 1, K).copy()
        self.rates = options["split_rate"], options["split_rate"], options["learning_rate"]
        self.optimizers = [_optimizer(options) for _ in range(3)]
        self.relaxation = dgt.Relaxation(
            path=options.get("path", "sum"), quantizer=options.get("quantizer", "sign")
        )
        self.bias_optimizer = _optimizer(options) if options.get("shares_bias") else None
        self.factors = _factors(factors, layers.shapes(m, n_columns, options["hidden"]))
        self.factor_optimizers = [_optimizer(options) for _ in self.factors]
        self.averaging = options.get("averaging", 0.0)
        self.mean, self.n_steps = (self.W, self.b, self.Theta), 0

    def values(self, z: np.ndarray) -> np.ndarray:
        """Return the values of the leaf of a standardized context, in the tree that decides."""
        return (self.mean[2] if self.averaging else self.Theta)[self.leaf(z)]

    def leaf(self, z: np.ndarray) -> int:
        """Return its leaf in the tree that decides."""
        W, b = self.mean[:2] if self.averaging else (self.W, self.b)
        return int(dgt.leaf_of(dgt.scores(z[None, :], W, b))[0])

    def learned_values(self, z: np.ndarray) -> np.ndarray:
        """Return the values of its leaf in the tree that learns."""
        return self.Theta[dgt.leaf_of(dgt.scores(z[None, :], self.W, self.b))[0]]

    def scale_leaves(self, factor: float | np.ndarray) -> None:
        """Multiply the values of all leaves."""
        self.Theta = self.Theta * factor
        self.mean = (*self.mean[:2], self.mean[2] * factor)

    def step(self, Z: np.ndarray, slope: np.ndarray) -> None:
        """Take a gradient step on a batch whose loss has these slopes (n, K)."""
        relaxed = self.relaxation
        found = dgt.gradients(Z, self.W, self.b, self.Theta, slope, relaxation=relaxed)[:3]
        parts = self.W, self.b, self.Theta
        self.W, self.b, self.Theta = (
            optimizer.step(part, g, rate)
            for optimizer, part, g, rate in zip(
                self.optimizers, parts, found, self.rates, strict=True
            )
        )
        if self.bias_optimizer is not None:
            move = self.bias_optimizer.step(np.zeros(1), slope.sum(keepdims=True), self.rates[2])
            self.Theta = self.Theta + move.ravel()
        if self.factors:
            G = np.column_stack(found[:2])
            self.factors = layers.step(self.factors, G, self.factor_optimizers, self.rates[0])
            product = layers.product(self.factors)
            self.W, self.b = product[:, :-1], product[:, -1]
        self.n_steps += 1
        part = 1.0 / (1.0 + self.averaging * self.n_steps)
        now = self.W, self.b, self.Theta
        self.mean = tuple(a + part * (b - a) for a, b in zip(self.mean, now, strict=True))


def _padded(n: int) -> int:
    return -(-n // 8) * 8


def _factors(flat: np.ndarray | None, shapes: list[tuple[int, int]]) -> list[np.ndarray]:
    """Return the factors at the beginning of an engine's layer state; none for a single layer."""
    found: list[np.ndarray] = []
    if flat is None or not len(flat):
        return found
    for rows, cols in shapes:
        size = rows * _padded(cols)
        found.append(np.asarray(flat[:size], np.float64).reshape(rows, -1)[:, :cols])
        flat = flat[size:]
    return found


def _optimizer(options: Any) -> Adam | RMSprop:
    if options["optimizer"] == "adam":
        return Adam(options["momentum"], options["decay"], options["epsilon"])
    return RMSprop(options["momentum"], options["decay"], options["epsilon"])


class Bandit:
    """Rounds of either method, with the engine's options and initial parameters."""

    def __init__(
        self, start: np.ndarray, n_columns: int, K: int, height: int, options: Any, seed: int
    ):
        self.K, self.options, self.seed = K, options, seed
        self.tree = Tree(start, n_columns, K, height, options)
        self.moments = Moments()
        self.rewards = BulkScale(options["n_first"])
        self.stored: list[tuple[np.ndarray, int, float, float]] = []
        self.n_decided = self.n_learned = self.version = 0
        self.due = 0.0

    def decide(self, x: np.ndarray, mask: np.ndarray) -> tuple[int, float, int, int]:
        """Draw an action; return its probability, the leaf and the version of the tree as well."""
        self.moments.add(x)
        z = self.moments.standardize_to_decide(x)
        values = self.tree.values(z)
        self.n_decided += 1
        if self.options["is_paper"]:
            p = explore_uniformly(values, mask, self.options["exploration"])
        else:
            gamma = self.options["exploration"] * np.sqrt(self.n_decided)
            p = explore_by_gaps(values, mask, gamma)
        u = Draws(words(self.seed, self.n_decided - 1)).uniform()
        action = int(np.flatnonzero(p)[np.searchsorted(np.cumsum(p[p > 0]), u, side="right")])
        return action, float(p[action]), self.tree.leaf(z), self.version

    def learn(self, x: np.ndarray, action: int, reward: float, propensity: float) -> None:
        """Learn from one round."""
        draws = Draws(words(self.seed, UPDATES + self.n_learned))
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
        Z = np.array([self.moments.standardize(x) for x, *_ in self.stored])
        slope = np.zeros((n, self.K))
        for i, (_, action, reward, propensity) in enumerate(self.stored):
            theta = self.tree.learned_values(Z[i])[action]
            slope[i, action] = action_slope(theta, reward, propensity) / n
        self.tree.step(Z, slope)
        self._publish()
        self.stored = []

    def _replay(self, reward: float, draws: Draws) -> None:
        change = self.rewards.add(reward)
        if not self.rewards.is_known:
            return
        self.tree.scale_leaves(change)
        self.due += self.options["updates_per_round"]
        while self.due >= 1:
            self._step_on_stored(draws)
            self.due -= 1
        self._publish()

    def _publish(self) -> None:
        self.moments.publish()
        self.version = self.n_learned

    def _step_on_stored(self, draws: Draws) -> None:
        """Step on the squared error of the chosen action, on the newest round and random others."""
        n = len(self.stored)
        size = min(n, self.options["batch_size"])
        drawn = [draws.below(n) for _ in range(size)]
        drawn[0] = n - 1
        Z = np.array([self.moments.standardize(self.stored[i][0]) for i in drawn])
        if self.options["input_noise"] > 0:
            Z = Z + _noise(Z.shape, self.options["input_noise"] * n**-0.25, draws)
        slope = np.zeros((size, self.K))
        for row, i in enumerate(drawn):
            _, action, reward, _ = self.stored[i]
            wanted = self.rewards.standard(reward)
            slope[row, action] = 2.0 * (self.tree.learned_values(Z[row])[action] - wanted) / size
        self.tree.step(Z, slope)


def _noise(shape: tuple[int, ...], deviation: float, draws: Draws) -> np.ndarray:
    """Return uniform noise; each random word gives two entries, from its lower and upper half."""
    noise = np.zeros(shape)
    for row in noise:
        for c in range(0, shape[1], 2):
            word = draws.word()
            row[c : c + 2] = [word & 0xFFFF, word >> 16][: shape[1] - c]
    return 2.0 * np.sqrt(3.0) * deviation * (noise * 2.0**-16 - 0.5)


# Numbers


@dataclass
class LossShape:
    """Curvature of a loss, from observed losses; weights are inverse mean squares."""

    delta: float
    rows: list[tuple[float, ...]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    square: float = 0.0

    def add(self, loss: float, *rest: float) -> None:
        """Add a loss, with the squared slope of a pair, or whether a single number was far away."""
        weight = 1.0 if len(self.rows) < FIRST_LOSSES else 1.0 / self.square
        self.square += max(0.01, 1.0 / (len(self.rows) + 1)) * (loss**2 - self.square)
        self.rows.append((loss, *rest))
        self.weights = [w * (1.0 - 1e-4) for w in self.weights]
        self.weights.append(weight)
        if len(self.rows) == FIRST_LOSSES:
            self.weights = [w / self.square for w in self.weights]

    def curvature_from_pairs(self) -> float:
        """From the regression of mean losses on squared slopes, with slope 1 / (2 curvature)."""
        w = np.array(self.weights)
        m, x = np.array(self.rows).T
        covariance = np.cov(x, m, aweights=w, ddof=0)
        if covariance[0, 0] > 1e-6 * np.average(x * x, weights=w) and covariance[0, 1] > 0:
            return 0.5 * covariance[0, 0] / covariance[0, 1]
        return 0.5 * np.average(x, weights=w) / np.average(m, weights=w)

    def curvature_from_singles(self) -> float:
        """From the larger loss of numbers twice as far: 3/2 curvature delta^2, plus its error."""
        w = np.array(self.weights)
        e, is_far = np.array(self.rows).T
        near, far = (w * (is_far == side) for side in (0, 1))
        more = np.average(e, weights=far) - np.average(e, weights=near)
        error = np.sqrt(1.0 / near.sum() + 1.0 / far.sum())
        return 2.0 * (max(more, 0.0) + error) / (3.0 * self.delta**2)


class Regression:
    """Rounds of numbers with a replay buffer, with the engine's options and initial parameters."""

    def __init__(self, state: Any, n_columns: int, height: int, options: Any, seed: int):
        self.options, self.seed = options, seed
        self.K = 1 if options["has_two_points"] else 2
        start, factors = state["parameters"], state["layers"]
        self.tree = Tree(start, n_columns, self.K, height, options, factors)
        self.moments = Moments()
        self.targets, self.expected = (RewardScale(options["n_first"]) for _ in range(2))
        self.losses = LossShape(options["perturbation"])
        self.stored: list[tuple[np.ndarray, float, float, float, float]] = []
        self.n_drawn = 0

    def predict(self, x: np.ndarray) -> float:
        """Add a context and return its prediction, from ``start`` in units of ``scale``."""
        self.moments.add(x)
        value = self.tree.values(self.moments.standardize_to_decide(x))[0]
        return self.targets.center + self.targets.scale * value

    def direction(self) -> int:
        """Draw the direction of the number to try."""
        word = next(words(self.seed, self.n_drawn))
        self.n_drawn += 1
        return (1 if word & 1 else -1) * (2 if word & 2 else 1)

    def learn_two(self, x: np.ndarray, prediction: float, below: float, above: float) -> None:
        """Learn from two losses."""
        slope = two_point(above, below, self.losses.delta)
        self.losses.add((above + below) / 2, slope**2)
        self._learn((x, prediction, 0.0, slope, 0.0))

    def learn_one(self, x: np.ndarray, prediction: float, u: int, loss: float) -> None:
        """Learn from one loss minus the expected loss."""
        expected = float(np.mean(self.expected.rewards)) if self.expected.rewards else 0.0
        if self.expected.is_known:
            value = self.tree.values(self.moments.standardize_to_decide(x))[1]
            expected = self.expected.center + self.expected.scale * value
        slope = one_point(loss - expected, np.sign(u), self.losses.delta * abs(u))
        self.losses.add(loss - expected, float(abs(u) > 1))
        variance = self.losses.square / (self.losses.delta * u) ** 2
        self._learn((x, prediction, loss, slope, variance))

    def _target(self, trial: tuple[Any, ...], curvature: float) -> float:
        _, prediction, _, slope, _ = trial
        most = np.inf if self.K == 1 else self.options["reach"] * self.losses.delta
        return prediction - float(np.clip(slope / curvature, -most, most))

    def _curvature(self) -> float:
        return (
            self.losses.curvature_from_pairs()
            if self.K == 1
            else self.losses.curvature_from_singles()
        )

    def _learn(self, trial: tuple[Any, ...]) -> None:
        draws = Draws(words(self.seed, UPDATES + len(self.stored)))
        self.stored.append(trial)
        changes = [1.0, self.expected.add(trial[2])]
        n_first = self.options["n_first"]
        if len(self.stored) < n_first:
            return
        curvature = self._curvature()
        for each in self.stored if len(self.stored) == n_first else [trial]:
            changes[0] *= self.targets.add(self._target(each, curvature))
        self.tree.scale_leaves(np.array(changes[: self.K]))
        self._step(draws, curvature)
        self.moments.publish()

    def _step(self, draws: Draws, curvature: float) -> None:
        """Step on the squared error of targets, on the newest round and random recent ones."""
        n = len(self.stored)
        size = min(n, self.options["batch_size"])
        drawn = [max(draws.below(n) for _ in range(self.options["recency"])) for _ in range(size)]
        drawn[0] = n - 1
        Z = np.array([self.moments.standardize(self.stored[i][0]) for i in drawn])
        Z = Z + _noise(Z.shape, self.options["input_noise"] * n**-0.25, draws)
        slope = np.zeros((size, self.K))
        today = self.losses.square / self.losses.delta**2
        for row, i in enumerate(drawn):
            trial = self.stored[i]
            wanted = [self.targets.standard(self._target(trial, curvature))]
            wanted += [self.expected.standard(trial[2])] * (self.K - 1)
            weight = today / trial[4] if today < trial[4] else 1.0
            slope[row] = 2.0 * weight * (self.tree.learned_values(Z[row]) - wanted) / size
        self.tree.step(Z, slope)
