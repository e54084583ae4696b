r"""NumPy reference of the network that explores for a bandit, and of what watches it, in float64.

======== ================= =====================================================================
symbol   here              meaning
======== ================= =====================================================================
z        ``Z (n, c)``      standardized contexts, at most 10 in size
W_i      ``layers[i]``     (inputs + 1, outputs); the last row is the bias
r        ``reward (n,)``   rewards of the actions taken, in the units of the loss
======== ================= =====================================================================

I. Loshchilov, F. Hutter: *Decoupled Weight Decay Regularization*. ICLR 2019.

M. Dudik, J. Langford, L. Li: *Doubly Robust Policy Evaluation and Learning*. ICML 2011.

E. Page: *Continuous Inspection Schemes*. Biometrika 1954; as ``river.drift.PageHinkley`` with mode
"down" and alpha 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from reference import bandit
from reference.bootstrap import words
from reference.optimize import Adam

FARTHEST_INPUT = 10.0
HUBER_WIDTH = 0.25
SHORTEST_INTERVAL = 16
MEMORY = 1000
MOST_WEIGHT = 100.0
TOLERATED = 0.01
LEAST_COMPARED = 500


def layers_of(flat: Any, n_columns: int, hidden: int, K: int) -> list[np.ndarray]:
    """Return the three layers of an engine's parameters, whose rows are padded to eights."""
    flat, layers = np.asarray(flat, np.float64), []
    for rows, cols in ((n_columns, hidden), (hidden, hidden), (hidden, K)):
        stride = -(-cols // 8) * 8
        layers.append(flat[: (rows + 1) * stride].reshape(rows + 1, stride)[:, :cols].copy())
        flat = flat[(rows + 1) * stride :]
    assert not len(flat)
    return layers


def activations(layers: list[np.ndarray], Z: np.ndarray) -> list[np.ndarray]:
    """Return the inputs of every layer, with their constant, and the outputs."""
    found = []
    for i, W in enumerate(layers):
        found.append(np.column_stack([Z, np.ones(len(Z))]))
        Z = found[-1] @ W
        if i + 1 < len(layers):
            Z = np.maximum(Z, 0.0)
    return [*found, Z]


def expected(loss: str, output: np.ndarray) -> np.ndarray:
    """Return the expected rewards that outputs stand for."""
    return expit(output) if loss == "logistic" else output


def mean_loss(
    layers: list[np.ndarray],
    Z: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    loss: str,
) -> float:
    """Return the mean loss of the rewards of the actions taken."""
    output = activations(layers, Z)[-1][np.arange(len(Z)), action]
    if loss == "logistic":
        each = np.logaddexp(0.0, output) - reward * output
    else:
        error = np.abs(output - reward)
        each = error**2 / 2
        if loss == "huber":
            each = np.where(error <= HUBER_WIDTH, each, HUBER_WIDTH * (error - HUBER_WIDTH / 2))
    return float((weight * each).mean())


def gradient(
    layers: list[np.ndarray],
    Z: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    weight: np.ndarray,
    loss: str,
) -> list[np.ndarray]:
    """Return the gradient of `mean_loss` by every layer."""
    *inputs, output = activations(layers, Z)
    rows = np.arange(len(Z))
    error = expected(loss, output[rows, action]) - reward
    if loss == "huber":
        error = np.clip(error, -HUBER_WIDTH, HUBER_WIDTH)
    slope = np.zeros_like(output)
    slope[rows, action] = weight * error / len(Z)
    found = []
    for W, x in zip(reversed(layers), reversed(inputs), strict=True):
        found.append(x.T @ slope)
        slope = (slope @ W[:-1].T) * (x[:, :-1] > 0)
    return found[::-1]


class Network:
    """The layers and their optimizer, AdamW."""

    def __init__(self, layers: list[np.ndarray], rate: float, weight_decay: float) -> None:
        self.layers, self.rate, self.weight_decay = layers, rate, weight_decay
        self.optimizers = [Adam(0.9, 0.999, 1e-8) for _ in layers]

    def step(self, *batch: Any) -> None:
        """Take a step on a batch: the arguments of `gradient` after the layers."""
        found = gradient(self.layers, *batch)
        kept = 1.0 - self.rate * self.weight_decay
        self.layers = [
            optimizer.step(kept * W, G, self.rate)
            for optimizer, W, G in zip(self.optimizers, self.layers, found, strict=True)
        ]

    def values(self, Z: np.ndarray, loss: str) -> np.ndarray:
        """Return the expected rewards of all actions (n, K)."""
        limited = np.clip(Z, -FARTHEST_INPUT, FARTHEST_INPUT)
        return expected(loss, activations(self.layers, limited)[-1])


def falls(values: np.ndarray, tolerated: float = 0.05, threshold: float = 50.0) -> list[int]:
    """Return the numbers after which Page and Hinkley's test finds that the mean has fallen."""
    found, n = [], 0
    mean = total = highest = 0.0
    for i, value in enumerate(values):
        n += 1
        mean += (value - mean) / n
        total += value - mean + tolerated
        highest = total if n == 1 else max(highest, total)
        if n >= 30 and highest - total > threshold:
            found.append(i)
            n = 0
            mean = total = highest = 0.0
    return found


def compared(
    expected: np.ndarray,
    by_tree: np.ndarray,
    by_network: np.ndarray,
    action: np.ndarray,
    propensity: np.ndarray,
    reward: np.ndarray,
) -> list[float]:
    """Return effective rounds, agreement, and mean and error of tree, network and difference."""
    n = len(action)
    if not n:
        return [0.0] * 8
    rows, age = np.arange(n), np.arange(n)[::-1]
    weight = (1.0 - 1.0 / MEMORY) ** age
    effective = weight.sum() ** 2 / (weight**2).sum()
    error = np.minimum(1.0 / propensity, MOST_WEIGHT) * (reward - expected[rows, action])

    def reward_of(by: np.ndarray) -> np.ndarray:
        found: np.ndarray = expected[rows, by] + np.where(by == action, error, 0.0)
        return found

    all_found = [effective, np.average(by_tree == by_network, weights=weight)]
    for each in (
        reward_of(by_tree),
        reward_of(by_network),
        reward_of(by_tree) - reward_of(by_network),
    ):
        mean = np.average(each, weights=weight)
        variance = max(np.average(each**2, weights=weight) - mean**2, 0.0)
        all_found += [mean, np.sqrt(variance / (effective - 1)) if effective > 1 else 0.0]
    return [float(value) for value in all_found]


class Bandit(bandit.Bandit):
    """Rounds with a network, with the engine's options and initial parameters."""

    def __init__(
        self,
        start: np.ndarray,
        network: np.ndarray,
        n_columns: int,
        K: int,
        height: int,
        options: Any,
        seed: int,
    ) -> None:
        super().__init__(start, n_columns, K, height, options, seed)
        layers = layers_of(network, n_columns, options["hidden_size"], K)
        self.network = Network(layers, options["network_rate"], options["weight_decay"])
        self.served, self.start = list(layers), layers[-1]
        self.has_learned = False
        self.next_hand_over = 0
        self.has_other_rewards = False
        self.tree_decides = options["who_decides"] == "tree"
        self.explored_from = 0
        self.watched: list[tuple[Any, ...]] = []
        self.residuals: list[float] = []
        self.changes: list[int] = []

    @property
    def loss(self) -> str:
        """The loss in use."""
        if self.options["loss"] != "auto":
            return str(self.options["loss"])
        return "squared" if self.has_other_rewards else "logistic"

    def standard(self, reward: float) -> float:
        """Return a reward in the units of the loss."""
        if self.loss == "logistic":
            return float(np.clip(reward, 0.0, 1.0))
        return self.rewards.standard(reward)

    def by_network(self, z: np.ndarray) -> np.ndarray:
        """Return the expected rewards by the network that decides."""
        if not self.has_learned:
            return np.zeros(self.K)
        limited = np.clip(z, -FARTHEST_INPUT, FARTHEST_INPUT)[None]
        return expected(self.loss, activations(self.served, limited)[-1])[0]

    def decide(self, x: np.ndarray, mask: np.ndarray) -> tuple[int, float, int, int]:
        """Draw an action; return its probability, the leaf and the version of the tree as well."""
        self.moments.add(x)
        z = self.moments.standardize_to_decide(x)
        values = self.tree.values(z) if self.tree_decides else self.by_network(z)
        self.n_decided += 1
        if self.options["explores_by_gaps"]:
            gamma = self.options["exploration"] * np.sqrt(self.n_decided - self.explored_from)
            p = bandit.explore_by_gaps(values, mask, gamma)
        else:
            p = bandit.explore_uniformly(values, mask, self.options["exploration"])
        floor = min(self.options["min_propensity"], 1.0 / mask.sum())
        p = np.where(mask, floor + (1.0 - mask.sum() * floor) * p, 0.0)
        u = bandit.Draws(words(self.seed, self.n_decided - 1)).uniform()
        action = int(np.flatnonzero(p)[np.searchsorted(np.cumsum(p[p > 0]), u, side="right")])
        return action, float(p[action]), self.tree.leaf(z), self.version

    def learn(self, x: np.ndarray, action: int, reward: float, propensity: float) -> None:
        """Learn from one round whose decision was made here."""
        draws = bandit.Draws(words(self.seed, bandit.UPDATES + self.n_learned))
        self.n_learned += 1
        if self.has_learned:
            self._watch(x, action, reward, propensity)
        self.stored.append((np.asarray(x, dtype=np.float64), action, reward, propensity))
        change = self.rewards.add(reward)
        is_first_other = self.options["loss"] == "auto" and reward not in (0.0, 1.0)
        if is_first_other and not self.has_other_rewards:
            self.has_other_rewards = True
            self._forget_values()
            self.next_hand_over = self.n_learned
        if not self.rewards.is_known:
            return
        if change != 1.0 and self.loss != "logistic":
            self.network.layers[-1] = self.network.layers[-1] * change
            self.tree.scale_leaves(change)
            self.watched = []
            self.next_hand_over = self.n_learned
        if self.n_learned >= self.next_hand_over:
            self._hand_over(draws)

    def _watch(self, x: np.ndarray, action: int, reward: float, propensity: float) -> None:
        z = self.moments.standardize_to_decide(x)
        expects = self.by_network(z)
        best = int(np.argmax(self.tree.values(z))), int(np.argmax(expects))
        self.watched.append((expects, *best, action, propensity, self.standard(reward)))
        self.residuals.append(self.standard(reward) - expects[action])
        if self.options["detects_change"] and falls(np.array(self.residuals)):
            self._forget()

    def _forget_values(self) -> None:
        self.network.layers[-1], self.has_learned = self.start, False
        self.network.optimizers = [Adam(0.9, 0.999, 1e-8) for _ in self.network.layers]
        self.tree.scale_leaves(0.0)
        self.tree.n_steps = 0
        self.watched, self.residuals = [], []
        self._serve()

    def _forget(self) -> None:
        self.stored = []
        self._forget_values()
        self.explored_from = self.n_decided
        self.changes.append(self.n_learned)
        self.next_hand_over = self.n_learned + SHORTEST_INTERVAL

    def _serve(self) -> None:
        self.served = list(self.network.layers)
        self._publish()

    def _hand_over(self, draws: bandit.Draws) -> None:
        n_steps = round(SHORTEST_INTERVAL * self.options["updates_per_round"])
        for _ in range(n_steps):
            self._step(draws)
        for _ in range(n_steps):
            self._teach(draws)
        self.has_learned = True
        self._serve()
        interval = max(SHORTEST_INTERVAL, int(np.sqrt(self.n_learned) / 4))
        self.next_hand_over = self.n_learned + interval
        if self.options["who_decides"] == "auto":
            self._let_decide()

    def _step(self, draws: bandit.Draws) -> None:
        n = min(len(self.stored), self.options["batch_size"])
        rows = [self.stored[draws.below(len(self.stored))] for _ in range(n)]
        Z = np.array([self.moments.standardize(x) for x, *_ in rows])
        Z = np.clip(Z, -FARTHEST_INPUT, FARTHEST_INPUT)
        action = np.array([action for _, action, *_ in rows])
        reward = np.array([self.standard(reward) for *_, reward, _ in rows])
        self.network.step(Z, action, reward, np.ones(n), self.loss)

    def _teach(self, draws: bandit.Draws) -> None:
        """Step the tree on the network's answers, for stored contexts and mixtures of two."""
        n = min(len(self.stored), self.options["batch_size"])
        rows = []
        for i in range(2 * n):
            z = self._drawn(draws)
            if i >= n:
                other = self._drawn(draws)
                z = z + 0.5 * draws.uniform() * (other - z)
            rows.append(z)
        Z = np.array(rows)
        wanted = self.network.values(Z, self.loss)
        found = np.array([self.tree.learned_values(z) for z in Z])
        self.tree.step(Z, 2.0 * (found - wanted) / len(Z))

    def _drawn(self, draws: bandit.Draws) -> np.ndarray:
        return self.moments.standardize(self.stored[draws.below(len(self.stored))][0])

    def _let_decide(self) -> None:
        effective, *_, mean, error = compared(*map(np.array, zip(*self.watched, strict=True)))
        if self.tree_decides:
            self.tree_decides = mean >= -TOLERATED
        elif effective >= LEAST_COMPARED:
            self.tree_decides = mean - 1.959964 * error >= -TOLERATED
