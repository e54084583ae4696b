"""Simulated environments for bandits, in which the reward of every action is known.

`classification_bandit` makes one from a table with labels, `reward_bandit` from known rewards, and
`regression_bandit` from a table with numbers. Methods of an environment add delayed or lost
feedback, actions that are not always allowed, and changes over time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from hardwood import parameters
from hardwood.bandit import log
from hardwood.table import Schema, Table
from hardwood.table.frames import open_frame
from hardwood.table.subset import n_rows, taken
from hardwood.text.numbers import plural

Losses = Callable[[np.ndarray, np.ndarray], np.ndarray]
Environment = TypeVar("Environment", bound="Stream")

NEVER = -1
"""The delay of feedback that is lost."""
_HUBER_BEND = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """Contexts in order, and the delays of their feedback.

    Attributes
    ----------
    X
        (n, d) array, list of rows, sparse matrix or data frame.
    delays
        (n,) int64: rounds until the feedback arrives, or `NEVER`; None for immediate feedback.
    eras
        (n,) int64: how many times the environment has changed before each round; None for never.
    origins
        (n,) int64: the row of the original table for each round; None if they are the same.
    """

    X: Any
    delays: np.ndarray | None = None
    eras: np.ndarray | None = None
    origins: np.ndarray | None = None

    def __len__(self) -> int:
        return n_rows(self.X)

    def context(self, t: int) -> Any:
        """Return the context of round t: a 1-D array, or a dict by names of a data frame."""
        if self._columns is not None:
            return {name: values[t] for name, values in self._columns.items()}
        row = self.X[t]
        return row.toarray()[0] if hasattr(row, "toarray") else row

    @cached_property
    def _columns(self) -> dict[str, list[Any]] | None:
        """Values of a data frame by column: in most libraries, reading single rows is slow."""
        if isinstance(self.X, np.ndarray | list | tuple) or hasattr(self.X, "tocsr"):
            return None
        frame = open_frame(self.X)
        if frame is None:
            raise TypeError(f"X must be an array or a data frame, got {type(self.X).__name__}.")
        return {name: frame[name].to_list() for name in frame.columns}

    @property
    def features(self) -> Any:
        """The ``features`` argument for a bandit in this environment: a data frame, or None."""
        return None if self._columns is None else self.X

    def take(self: Environment, rows: np.ndarray) -> Environment:
        """Return some of the rounds, in the order given; rows may repeat."""
        # Every array has one entry per round.
        arrays = {k: v[rows] for k, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **({"origins": rows} | arrays | {"X": taken(self.X, rows)}))

    def shuffled(
        self: Environment, random_state: int | None, n_rounds: int | None = None
    ) -> Environment:
        """Return ``n_rounds`` rounds in random order; no row repeats before all have been used."""
        rng = np.random.default_rng(random_state)
        n = len(self)
        wanted = n if n_rounds is None else parameters.integer("n_rounds", n_rounds, 1)
        passes = [rng.permutation(n) for _ in range(-(-wanted // n))]
        return self.take(np.concatenate(passes)[:wanted])

    def delayed(
        self: Environment,
        delay: int | tuple[int, int] | Sequence[int] | np.ndarray,
        *,
        lost: float = 0.0,
        random_state: int | None = None,
    ) -> Environment:
        """Return the same environment with delayed feedback.

        Parameters
        ----------
        delay
            Rounds to wait: a number; a pair ``(least, most)`` to draw from, so that feedback
            arrives out of order; or (n,), one for each round, -1 for never.
        lost
            Probability that feedback never arrives.
        random_state
            Seed.
        """
        rng = np.random.default_rng(random_state)
        delays = _delays(delay, len(self), rng)
        is_lost = rng.random(len(self)) < parameters.real("lost", lost, 0, 1, open_high=False)
        return replace(self, delays=np.where(is_lost, NEVER, delays))

    def _era(self, at: Any, until: int | None, rng: np.random.Generator) -> np.ndarray:
        """Return the number of changes before each round, (n,)."""
        if self.eras is not None:
            raise ValueError(
                "This environment already drifts; give all rounds in a single call of drifting."
            )
        n = len(self)
        changes = [at] if isinstance(at, int | np.integer) else list(at)
        for change in changes:
            parameters.integer("at", change, 1, n - 1)
        if not changes or sorted(set(changes)) != changes:
            raise ValueError(f"at must be one or more rounds in ascending order, got {at!r}.")
        if until is None:
            return np.searchsorted(np.asarray(changes), np.arange(n), side="right")
        if len(changes) > 1:
            raise ValueError("until needs a single round as at.")
        last = parameters.integer("until", until, changes[0] + 1)
        chance = (np.arange(n) - changes[0] + 1) / (last - changes[0])
        return (rng.random(n) < chance).astype(np.int64)

    def encoded(self: Environment) -> Environment:
        """Return the same environment with numeric contexts, each column standardized.

        Categories become 0/1 columns; missing values become the mean plus a missing indicator.
        """
        table = Table.of(self.X)
        schema = Schema.learn(table)
        return replace(self, X=schema.encoder.encode(schema.read(table, is_training=True)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulator(Stream):
    """An environment with K actions, of which every reward is known.

    Attributes
    ----------
    actions
        Names of the actions.
    labels
        (n,) position of the one action with reward 1, if all others have reward 0; else None.
    rewards
        (n, K) float64, the reward of every action, if there are no labels.
    masks
        (n, K) bool, which actions may be taken; None for all.
    """

    actions: tuple[Hashable, ...]
    labels: np.ndarray | None = None
    rewards: np.ndarray | None = None
    masks: np.ndarray | None = None

    @property
    def n_actions(self) -> int:
        """Number of actions, K."""
        return len(self.actions)

    def mask(self, t: int) -> np.ndarray | None:
        """Return which actions may be taken in round t, (K,) booleans; None for all."""
        return None if self.masks is None else self.masks[t]

    def reward(self, t: int, action: Hashable) -> float:
        """Return the reward of an action, given by name, in round t."""
        try:
            place = self._places[action]
        except (KeyError, TypeError):
            raise ValueError(
                f"action {action!r:.60} is not one of the simulator's, {self.actions!r:.200}. Make "
                "the bandit with the simulator's actions: DGTBandit(simulator.actions)."
            ) from None
        if self.masks is not None and not self.masks[t, place]:
            raise ValueError(f"action {action!r:.60} is not allowed in round {t}.")
        return self._reward_at(t, place)

    def _reward_at(self, t: int, place: int) -> float:
        if self.labels is not None:
            return float(self.labels[t] == place)
        assert self.rewards is not None
        return float(self.rewards[t, place])

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {action: i for i, action in enumerate(self.actions)}

    def rewards_of(self, places: np.ndarray) -> np.ndarray:
        """Return the rewards of one action per round, given by position, (n,) float64."""
        if self.labels is not None:
            return (self.labels == places).astype(np.float64)
        assert self.rewards is not None
        rewards: np.ndarray = self.rewards[np.arange(len(self)), places]
        return rewards

    def all_rewards(self) -> np.ndarray:
        """Return the reward of every action in every round, (n, K) float64."""
        if self.rewards is not None:
            return self.rewards
        assert self.labels is not None
        return (self.labels[:, None] == np.arange(self.n_actions)).astype(np.float64)

    def allowed(self) -> np.ndarray:
        """Return which actions may be taken in every round, (n, K) bool."""
        return np.ones((len(self), self.n_actions), bool) if self.masks is None else self.masks

    def masked(
        self, masks: Any = None, *, share: float = 0.5, random_state: int | None = None
    ) -> Simulator:
        """Return the same environment in which not all actions are allowed.

        Parameters
        ----------
        masks
            (n, K) or (K,) booleans; by default drawn.
        share
            Probability that an action is allowed, if masks are drawn. At least one always is.
        random_state
            Seed.
        """
        shape = (len(self), self.n_actions)
        if masks is None:
            rng = np.random.default_rng(random_state)
            masks = rng.random(shape) < parameters.real("share", share, 0, 1, open_high=False)
            masks[np.arange(len(self)), rng.integers(self.n_actions, size=len(self))] = True
        return replace(self, masks=log.masks_of(masks, *shape))

    def drifting(
        self,
        at: int | Sequence[int],
        *,
        until: int | None = None,
        random_state: int | None = None,
    ) -> Simulator:
        """Return an environment in which the actions swap their rewards at some rounds.

        Parameters
        ----------
        at
            Round, or rounds in ascending order, at which the rewards are permuted.
        until
            For a single round `at`: the change is gradual and complete from this round on. In
            between, the probability that a round has the new rewards grows linearly.
        random_state
            Seed of the permutations, in which no action keeps its rewards, and of the gradual
            change.
        """
        if self.n_actions < 2:
            raise ValueError("Drift needs at least 2 actions to swap, found 1.")
        rng = np.random.default_rng(random_state)
        era = self._era(at, until, rng)
        labels, rewards = self.labels, self.rewards
        for number in range(1, int(era.max()) + 1):
            rows = np.flatnonzero(era >= number)  # later changes add to earlier ones
            order = rng.permutation(self.n_actions)
            step = np.empty(self.n_actions, dtype=np.int64)
            step[order] = np.roll(order, 1)  # one cycle: no action keeps its place
            if labels is not None:
                labels = labels.copy()
                labels[rows] = step[labels[rows]]
            else:
                assert rewards is not None
                before, rewards = rewards[rows], rewards.copy()
                rewards[np.ix_(rows, step)] = before
        return replace(self, labels=labels, rewards=rewards, eras=era)


@dataclass(frozen=True, eq=False, kw_only=True)
class LossSimulator(Stream):
    """An environment in which the action is a number and the feedback is its loss.

    Attributes
    ----------
    y
        (n,) float64, the best number for each context.
    losses
        (predictions, y) -> losses, all (n,).
    loss_name
        Name of the loss.
    """

    y: np.ndarray
    losses: Losses
    loss_name: str

    def loss(self, t: int, prediction: float) -> float:
        """Return the loss of a number in round t."""
        found = self.losses(np.array([float(prediction)]), self.y[t : t + 1])
        return float(np.asarray(found).reshape(-1)[0])

    def drifting(
        self,
        at: int | Sequence[int],
        *,
        until: int | None = None,
        random_state: int | None = None,
    ) -> LossSimulator:
        """Return an environment whose best numbers are mirrored about their mean at some rounds.

        Parameters are the same as in `Simulator.drifting`.
        """
        rng = np.random.default_rng(random_state)
        era = self._era(at, until, rng)
        mirrored = 2 * self.y.mean() - self.y
        return replace(self, y=np.where(era % 2 == 1, mirrored, self.y), eras=era)


def classification_bandit(
    X: Any,
    y: Any,
    *,
    actions: Sequence[Hashable] | None = None,
    n_rounds: int | None = None,
    random_state: int | None = None,
) -> Simulator:
    """Make an environment from labels: the action equal to the label has reward 1, others 0.

    Parameters
    ----------
    X
        (n, d) contexts.
    y
        (n,) labels.
    actions
        Names of the actions, which include all labels; by default the labels that occur, sorted.
    n_rounds
        Number of rounds; by default one per row. If there are more rounds than rows, rows repeat.
    random_state
        Seed of the order; None keeps the order of the rows.
    """
    labels = log.column("y", y, _checked_rows(X))
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("y must hold a label in every row, found NaN.")
    names = log.action_names(log.occurring(labels) if actions is None else actions)
    environment = Simulator(X=X, actions=names, labels=log.action_positions("y", labels, names))
    return _ordered(environment, n_rounds, random_state)


def reward_bandit(
    X: Any,
    rewards: Any,
    *,
    actions: Sequence[Hashable] | None = None,
    n_rounds: int | None = None,
    random_state: int | None = None,
) -> Simulator:
    """Make an environment from the rewards of all actions, (n, K) of any finite numbers.

    Other parameters are the same as in `classification_bandit`.
    """
    known = log.number_table("rewards", rewards, _checked_rows(X))
    names = log.action_names(known.shape[1] if actions is None else actions)
    if len(names) != known.shape[1]:
        raise ValueError(
            f"rewards have {plural(known.shape[1], 'column')} for {plural(len(names), 'action')}."
        )
    return _ordered(Simulator(X=X, actions=names, rewards=known), n_rounds, random_state)


def regression_bandit(
    X: Any,
    y: Any,
    *,
    loss: str | Losses = "squared",
    n_rounds: int | None = None,
    random_state: int | None = None,
) -> LossSimulator:
    """Make an environment from a numeric target: the action is a number, the feedback its loss.

    Parameters
    ----------
    X
        (n, d) contexts.
    y
        (n,) the best number for each context.
    loss
        "squared", "absolute", "huber" (linear beyond an error of 1), or a function
        (predictions, y) -> losses.
    n_rounds, random_state
        Same as in `classification_bandit`.
    """
    truth = log.numbers("y", y, _checked_rows(X))
    if not callable(loss):
        parameters.choice("loss", loss, tuple(LOSSES))
    losses = loss if callable(loss) else LOSSES[loss]
    name = getattr(loss, "__name__", "given") if callable(loss) else loss
    environment = LossSimulator(X=X, y=truth, losses=losses, loss_name=str(name))
    return _ordered(environment, n_rounds, random_state)


def _squared(prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
    loss: np.ndarray = (prediction - y) ** 2
    return loss


def _absolute(prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(prediction - y)


def _huber(prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
    error = np.abs(prediction - y)
    inside = np.minimum(error, _HUBER_BEND)
    loss: np.ndarray = inside * (error - inside / 2)
    return loss


LOSSES: dict[str, Losses] = {"squared": _squared, "absolute": _absolute, "huber": _huber}


def _ordered(
    environment: Environment, n_rounds: int | None, random_state: int | None
) -> Environment:
    if random_state is not None:
        return environment.shuffled(random_state, n_rounds)
    if n_rounds is None:
        return environment
    rows = np.arange(parameters.integer("n_rounds", n_rounds, 1)) % len(environment)
    return environment.take(rows)


def _checked_rows(X: Any) -> int:
    n = n_rows(X)
    if n == 0:
        raise ValueError("X has no rows, so there are no rounds.")
    return n


def _delays(delay: Any, n: int, rng: np.random.Generator) -> np.ndarray:
    given = np.asarray(delay)
    if given.dtype.kind not in "iu" or given.shape not in ((), (2,), (n,)):
        raise ValueError(
            "delay must be a number of rounds, a pair (least, most) or "
            f"{plural(n, 'number')}, got {delay!r}."
        )
    is_pair = isinstance(delay, tuple) and len(delay) == 2
    least = NEVER if given.shape == (n,) and not is_pair else 0
    if given.min() < least or (is_pair and given[0] > given[1]):
        raise ValueError(f"delay must be at least {least}, with least <= most, got {delay}.")
    if is_pair:
        return rng.integers(given[0], given[1] + 1, size=n)
    if given.shape not in ((), (n,)):
        raise ValueError(f"delay must have one entry for each round, {n} in all, got {len(given)}.")
    return np.broadcast_to(given, n).astype(np.int64)
