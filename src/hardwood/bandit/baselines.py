"""Baselines for bandits: random and constant actions, linear and supervised learners.

`LinearBandit` and `LinearBanditRegressor` learn from bandit feedback, as our trees do. The best
constant action is known only in hindsight. Supervised trees see all labels, and so are roughly an
upper bound for a bandit with a single tree.
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
from hardwood.errors import folds_lack_levels
from hardwood.table.split import fold_numbers
from hardwood.table.subset import taken

_FOLDS = 5
_QUANTILES = 101
_TINY = 1e-12  # avoids 0 / 0 for a column that has been 0 so far


class LinearBandit:
    r"""Epsilon-greedy with a ridge regression of the reward per action, updated in every round.

    .. math:: A_a \leftarrow A_a + x x^\top, \quad
              \theta_a \leftarrow \theta_a + A_a^{-1} x\,(r - \theta_a^\top x)

    with :math:`x` the context and a 1, and :math:`A_a = \text{penalty} \cdot I` at the start. The
    Sherman-Morrison formula updates the inverse: the exact least squares fit of all rounds, in
    :math:`O(d^2)` per round. The columns of contexts should have similar scales.

    Parameters
    ----------
    actions
        Names of the actions, or their number.
    epsilon
        Probability of a random action.
    penalty
        Coefficient of the squared weights.
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
        """Choose the allowed action with the highest estimate, or with probability epsilon any."""
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
        """Add a round to the regression of its action."""
        place, row = self._open.pop(token)
        assert self.weights_ is not None
        inverse, weights = self._inverse[place], self.weights_[place]
        step = inverse @ row
        gain = step / (1 + row @ step)
        inverse -= np.outer(gain, step)
        weights += gain * (reward - weights @ row)


class LinearBanditRegressor:
    r"""Set a number by a linear function of the context, learned from two-point slopes of the loss.

    .. math:: g = \frac{l(z + \delta) - l(z - \delta)}{2 \delta}\, x, \qquad
              w \leftarrow w - \eta\, g / \sqrt{G}

    with :math:`G` the sum of the squares of :math:`g` so far, for each weight (AdaGrad).

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
        """Try the prediction minus and plus the perturbation."""
        row = np.append(np.asarray(x, dtype=np.float64), 1.0)  # (d + 1,)
        if self._n_decisions == 0:
            self.weights_, self._squares = np.zeros(row.size), np.zeros(row.size)
        number = float(self.weights_ @ row)
        self._open[self._n_decisions] = row
        self._n_decisions += 1
        both = (number - self.perturbation, number + self.perturbation)
        return Decision(both, 1.0, self._n_decisions - 1)

    def learn(self, token: int, losses: tuple[float, float]) -> None:
        """Take a gradient step."""
        gradient = (losses[1] - losses[0]) / (2 * self.perturbation) * self._open.pop(token)
        self._squares += gradient**2
        self.weights_ -= self.learning_rate * gradient / np.sqrt(self._squares + _TINY)


def random_rewards(environment: Simulator, random_state: int | None = None) -> np.ndarray:
    """Return the rewards of allowed actions drawn at random, (n,)."""
    chance = np.random.default_rng(random_state).random((len(environment), environment.n_actions))
    return environment.rewards_of(np.where(environment.allowed(), chance, -1.0).argmax(axis=1))


def best_constant_rewards(environment: Simulator) -> np.ndarray:
    """Return the rewards of the best constant action, (n,), which is known only in hindsight.

    Actions are ranked by their mean reward over the rounds that allow them; every round takes the
    best action that is allowed.
    """
    allowed, rewards = environment.allowed(), environment.all_rewards()
    times = np.maximum(allowed.sum(axis=0), 1)
    means = (rewards * allowed).sum(axis=0) / times
    return environment.rewards_of(np.where(allowed, means, -np.inf).argmax(axis=1))


def best_constant_losses(environment: LossSimulator) -> np.ndarray:
    """Return the losses of the best constant number, (n,), among quantiles and the mean of y."""
    candidates = np.append(
        np.quantile(environment.y, np.linspace(0, 1, _QUANTILES)), environment.y.mean()
    )
    losses = [environment.losses(np.full(len(environment), c), environment.y) for c in candidates]
    return np.asarray(losses[int(np.argmin([loss.mean() for loss in losses]))], dtype=np.float64)


def supervised_rewards(
    environment: Simulator, max_depth: int, random_state: int | None = None
) -> np.ndarray:
    """Return the rewards of supervised trees, trained on the best actions of other rounds, (n,).

    Cross-validated with five folds, within the rounds between two changes of the environment.
    """
    from hardwood.estimators.dgt import DGTClassifier

    best = (
        environment.all_rewards().argmax(axis=1)
        if environment.labels is None
        else environment.labels
    )
    allowed = environment.allowed()
    places = np.empty(len(environment), dtype=np.int64)
    for train, test in _folds(best, environment, random_state):
        known = np.unique(best[train])
        share = np.ones((test.size, 1))
        if known.size > 1:
            tree = DGTClassifier(max_depth=max_depth, random_state=random_state)
            with all_or_interrupt():
                tree.fit(taken(environment.X, train), best[train])
            with folds_lack_levels():
                share = tree.predict_proba(taken(environment.X, test))
        scores = np.zeros((test.size, environment.n_actions))
        scores[:, known] = share
        places[test] = np.where(allowed[test], scores, -1.0).argmax(axis=1)
    return environment.rewards_of(places)


def supervised_losses(
    environment: LossSimulator, max_depth: int, random_state: int | None = None
) -> np.ndarray:
    """Return the losses of supervised trees, trained on the best numbers of other rounds, (n,)."""
    from hardwood.estimators.dgt import DGTRegressor

    names = {"absolute": "absolute_error", "huber": "huber"}
    loss = next((names[n] for n in names if environment.losses is LOSSES[n]), "squared_error")
    prediction = np.empty(len(environment))
    one_class = np.zeros(len(environment), np.int64)
    for train, test in _folds(one_class, environment, random_state):
        tree = DGTRegressor(max_depth=max_depth, loss=loss, random_state=random_state)
        with all_or_interrupt():
            tree.fit(taken(environment.X, train), environment.y[train])
        with folds_lack_levels():
            prediction[test] = tree.predict(taken(environment.X, test))
    return np.asarray(environment.losses(prediction, environment.y), dtype=np.float64)


def _folds(
    classes: np.ndarray, environment: Stream, random_state: int | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rounds: five folds in every era.

    Rounds from the same row of the table stay together, so that no tree is tested on its training
    rows.
    """
    rng = np.random.default_rng(random_state)
    eras = np.zeros(len(classes), np.int64) if environment.eras is None else environment.eras
    origins = np.arange(len(classes)) if environment.origins is None else environment.origins
    found = []
    for era in np.unique(eras):
        rounds = np.flatnonzero(eras == era)
        _, first, row = np.unique(origins[rounds], return_index=True, return_inverse=True)
        if first.size < 2:  # no other rows to train on
            found.append((rounds, rounds))
            continue
        n_folds = min(_FOLDS, first.size)
        fold = fold_numbers(len(first), n_folds, rng, classes[rounds[first]])[row]
        found += [(rounds[fold != k], rounds[fold == k]) for k in range(n_folds)]
    return found


def _allowed(mask: np.ndarray | None, n_actions: int) -> np.ndarray:
    return np.arange(n_actions) if mask is None else np.flatnonzero(mask)
