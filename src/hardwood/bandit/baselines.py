"""What a bandit has to beat: chance, the best single answer, a linear learner; and what it cannot.

`LinearBandit` and `LinearBanditRegressor` learn from what they are told, as our trees do. The best
constant answer is known in hindsight only, and supervised trees see all labels: an upper mark for a
single tree.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hardwood import parameters
from hardwood.bandit.environments import LOSSES, LossSimulator, Simulator, Stream
from hardwood.bandit.log import action_names
from hardwood.bandit.online import all_or_interrupt
from hardwood.bandit.tokens import Decision
from hardwood.table.split import fold_numbers
from hardwood.table.subset import taken

_FOLDS = 5
_QUANTILES = 101
_TINY = 1e-12  # of a column that has been 0 so far


class LinearBandit:
    r"""Epsilon-greedy with a ridge regression of the reward per action, updated in every round.

    .. math:: A_a \leftarrow A_a + x x^\top, \quad
              \theta_a \leftarrow \theta_a + A_a^{-1} x\,(r - \theta_a^\top x)

    with :math:`x` the context and a 1, :math:`A_a = \text{penalty} \cdot I` at first, and the
    inverse kept up to date by the formula of Sherman and Morrison: the exact least squares fit of
    all rounds, in :math:`O(d^2)` each. Contexts should have columns of about the same size.

    Parameters
    ----------
    actions
        Names of the actions, or their number.
    epsilon
        Probability of an action at random.
    penalty
        Of the squared weights.
    random_state
        Seed.
    """

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        *,
        epsilon: float = 0.05,
        penalty: float = 1.0,
        random_state: int | None = None,
    ) -> None:
        self.actions = action_names(actions)
        self.epsilon = parameters.real("epsilon", epsilon, 0, 1, open_high=False)
        self.penalty = parameters.real("penalty", penalty, 0, np.inf, open_low=True)
        self._rng = np.random.default_rng(random_state)
        self._open: dict[int, tuple[int, np.ndarray]] = {}
        self._n_decisions = 0
        self.weights_: np.ndarray | None = None  # (K, d + 1)
        self._inverse = np.empty((0, 0, 0))  # (K, d + 1, d + 1)

    def decide(self, x: Any, mask: np.ndarray | None = None) -> Decision:
        """Choose the allowed action of the highest estimate, or with probability epsilon any."""
        row = np.append(np.asarray(x, dtype=np.float64), 1.0)  # (d + 1,)
        if self.weights_ is None:
            self.weights_ = np.zeros((len(self.actions), row.size))
            self._inverse = np.tile(np.eye(row.size) / self.penalty, (len(self.actions), 1, 1))
        allowed = _allowed(mask, len(self.actions))
        best = allowed[(self.weights_[allowed] @ row).argmax()]
        is_random = self._rng.random() < self.epsilon
        place = int(allowed[self._rng.integers(allowed.size)] if is_random else best)
        propensity = self.epsilon / allowed.size + (1 - self.epsilon) * (place == best)
        token = self._n_decisions
        self._n_decisions += 1
        self._open[token] = (place, row)
        return Decision(self.actions[place], float(propensity), token)

    def learn(self, token: int, reward: float) -> None:
        """Add a round to the fit of its action."""
        place, row = self._open.pop(token)
        assert self.weights_ is not None
        inverse, weights = self._inverse[place], self.weights_[place]
        step = inverse @ row
        gain = step / (1 + row @ step)
        inverse -= np.outer(gain, step)
        weights += gain * (reward - weights @ row)


class LinearBanditRegressor:
    r"""Sets a linear function of the context, by the slopes of the loss between two numbers tried.

    .. math:: g = \frac{l(z + \delta) - l(z - \delta)}{2 \delta}\, x, \qquad
              w \leftarrow w - \eta\, g / \sqrt{G}

    with :math:`G` the sum of the squares of :math:`g` so far, entry by entry (AdaGrad).

    Parameters
    ----------
    perturbation
        How far from the prediction numbers are tried, :math:`\delta`.
    learning_rate
        :math:`\eta`.
    """

    def __init__(self, *, perturbation: float = 0.1, learning_rate: float = 0.1) -> None:
        self.perturbation = parameters.real("perturbation", perturbation, 0, np.inf, open_low=True)
        self.learning_rate = parameters.real("learning_rate", learning_rate, 0, np.inf)
        self._open: dict[int, np.ndarray] = {}
        self._n_decisions = 0
        self.weights_ = np.zeros(0)
        self._squares = np.zeros(0)

    def decide(self, x: Any) -> Decision:
        """Try the prediction less and plus the perturbation."""
        row = np.append(np.asarray(x, dtype=np.float64), 1.0)  # (d + 1,)
        if self._n_decisions == 0:
            self.weights_, self._squares = np.zeros(row.size), np.zeros(row.size)
        number = float(self.weights_ @ row)
        self._open[self._n_decisions] = row
        self._n_decisions += 1
        both = (number - self.perturbation, number + self.perturbation)
        return Decision(both, 1.0, self._n_decisions - 1)

    def learn(self, token: int, losses: tuple[float, float]) -> None:
        """Take a step against the slope."""
        gradient = (losses[1] - losses[0]) / (2 * self.perturbation) * self._open.pop(token)
        self._squares += gradient**2
        self.weights_ -= self.learning_rate * gradient / np.sqrt(self._squares + _TINY)


def random_rewards(world: Simulator, random_state: int | None = None) -> np.ndarray:
    """Return what allowed actions drawn at random earned, (n,)."""
    chance = np.random.default_rng(random_state).random((len(world), world.n_actions))
    return world.rewards_of(np.where(world.allowed(), chance, -1.0).argmax(axis=1))


def best_constant_rewards(world: Simulator) -> np.ndarray:
    """Return what the best single action earned, (n,), known in hindsight.

    Actions are ranked by their mean reward where they were allowed; in every round the best of
    those that are allowed is taken.
    """
    allowed, rewards = world.allowed(), world.all_rewards()
    times = np.maximum(allowed.sum(axis=0), 1)
    worth = (rewards * allowed).sum(axis=0) / times
    return world.rewards_of(np.where(allowed, worth, -np.inf).argmax(axis=1))


def best_constant_losses(world: LossSimulator) -> np.ndarray:
    """Return what the best single number lost, (n,): a quantile of what was right, or its mean."""
    candidates = np.append(np.quantile(world.y, np.linspace(0, 1, _QUANTILES)), world.y.mean())
    losses = [world.losses(np.full(len(world), c), world.y) for c in candidates]
    return np.asarray(losses[int(np.argmin([loss.mean() for loss in losses]))], dtype=np.float64)


def supervised_rewards(
    world: Simulator, max_depth: int, random_state: int | None = None
) -> np.ndarray:
    """Return what trees earn that were told the best action of other rounds, (n,).

    Each is learned from four fifths of the rounds of an era of the world, and answers the others.
    """
    from hardwood.estimators.dgt import DGTClassifier

    best = world.all_rewards().argmax(axis=1) if world.labels is None else world.labels
    allowed = world.allowed()
    places = np.empty(len(world), dtype=np.int64)
    for train, test in _folds(best, world, random_state):
        known = np.unique(best[train])
        share = np.ones((test.size, 1))
        if known.size > 1:
            tree = DGTClassifier(max_depth=max_depth, random_state=random_state)
            with all_or_interrupt():
                tree.fit(taken(world.X, train), best[train])
            share = tree.predict_proba(taken(world.X, test))
        scores = np.zeros((test.size, world.n_actions))
        scores[:, known] = share
        places[test] = np.where(allowed[test], scores, -1.0).argmax(axis=1)
    return world.rewards_of(places)


def supervised_losses(
    world: LossSimulator, max_depth: int, random_state: int | None = None
) -> np.ndarray:
    """Return what trees lose that were told what is right in other rounds of an era, (n,)."""
    from hardwood.estimators.dgt import DGTRegressor

    names = {"absolute": "absolute_error", "huber": "huber"}
    loss = next((names[n] for n in names if world.losses is LOSSES[n]), "squared_error")
    prediction = np.empty(len(world))
    alike = np.zeros(len(world), np.int64)
    for train, test in _folds(alike, world, random_state):
        tree = DGTRegressor(max_depth=max_depth, loss=loss, random_state=random_state)
        with all_or_interrupt():
            tree.fit(taken(world.X, train), world.y[train])
        prediction[test] = tree.predict(taken(world.X, test))
    return np.asarray(world.losses(prediction, world.y), dtype=np.float64)


def _folds(
    classes: np.ndarray, world: Stream, random_state: int | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return which rounds teach and which are answered: five times in every era.

    Rounds of one row of the table stay together, lest a tree answer what it was told.
    """
    rng = np.random.default_rng(random_state)
    eras = np.zeros(len(classes), np.int64) if world.eras is None else world.eras
    origins = np.arange(len(classes)) if world.origins is None else world.origins
    found = []
    for era in np.unique(eras):
        rounds = np.flatnonzero(eras == era)
        _, first, row = np.unique(origins[rounds], return_index=True, return_inverse=True)
        if first.size < 2:  # nobody else is there to teach: it answers from itself
            found.append((rounds, rounds))
            continue
        n_folds = min(_FOLDS, first.size)
        fold = fold_numbers(len(first), n_folds, rng, classes[rounds[first]])[row]
        found += [(rounds[fold != k], rounds[fold == k]) for k in range(n_folds)]
    return found


def _allowed(mask: np.ndarray | None, n_actions: int) -> np.ndarray:
    return np.arange(n_actions) if mask is None else np.flatnonzero(mask)
