"""Worlds to try bandits in: what each action would have earned is known here, and to no learner.

`classification_bandit` makes one of a table with labels, `reward_bandit` of known rewards,
`regression_bandit` of a table with numbers. Feedback that comes late or never, actions that are not
always allowed, and a world that changes are made from these by their methods.
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

Losses = Callable[[np.ndarray, np.ndarray], np.ndarray]
World = TypeVar("World", bound="Stream")

NEVER = -1
"""The delay of feedback that is lost."""
_HUBER_BEND = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """Contexts in the order in which they come, and when feedback on them comes.

    Attributes
    ----------
    X
        (n, d) array, list of rows, sparse matrix or data frame.
    delays
        (n,) int64: after how many further rounds feedback comes, `NEVER` where it does not; None
        for feedback at once.
    eras
        (n,) int64: how often the world has changed by then; None where it never does.
    origins
        (n,) int64: the row of the first table that each round is of; None where it is the same.
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
        """Entries of a data frame by column: rows of most libraries are slow to take."""
        if isinstance(self.X, np.ndarray | list | tuple) or hasattr(self.X, "tocsr"):
            return None
        frame = open_frame(self.X)
        if frame is None:
            raise TypeError(f"X must be an array or a data frame, got {type(self.X).__name__}.")
        return {name: frame[name].to_list() for name in frame.columns}

    @property
    def features(self) -> Any:
        """What a bandit for this world takes as ``features``: a data frame, else None."""
        return None if self._columns is None else self.X

    def take(self: World, rows: np.ndarray) -> World:
        """Return some of the rounds, in the order given; a row may come again."""
        # All its arrays have an entry for each round.
        arrays = {k: v[rows] for k, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **({"origins": rows} | arrays | {"X": taken(self.X, rows)}))

    def shuffled(self: World, random_state: int | None, n_rounds: int | None = None) -> World:
        """Return the rounds in random order: so many, each row once before any comes again."""
        rng = np.random.default_rng(random_state)
        n = len(self)
        wanted = n if n_rounds is None else parameters.integer("n_rounds", n_rounds, 1)
        passes = [rng.permutation(n) for _ in range(-(-wanted // n))]
        return self.take(np.concatenate(passes)[:wanted])

    def delayed(
        self: World,
        delay: int | tuple[int, int] | Sequence[int] | np.ndarray,
        *,
        lost: float = 0.0,
        random_state: int | None = None,
    ) -> World:
        """Return the same world with feedback that comes late.

        Parameters
        ----------
        delay
            Further rounds to wait: a number; a pair ``(least, most)`` to draw from, so that
            feedback comes out of order; or (n,), one for each round, -1 for never.
        lost
            Probability that feedback never comes.
        random_state
            Seed.
        """
        rng = np.random.default_rng(random_state)
        delays = _delays(delay, len(self), rng)
        is_lost = rng.random(len(self)) < parameters.real("lost", lost, 0, 1, open_high=False)
        return replace(self, delays=np.where(is_lost, NEVER, delays))

    def _era(self, at: Any, until: int | None, rng: np.random.Generator) -> np.ndarray:
        """Return how many changes lie behind each round, (n,)."""
        if self.eras is not None:
            raise ValueError("This world drifts already: give all rounds `at` once.")
        n = len(self)
        changes = [at] if isinstance(at, int | np.integer) else list(at)
        for change in changes:
            parameters.integer("at", change, 1, n - 1)
        if not changes or sorted(set(changes)) != changes:
            raise ValueError(f"at must be rounds that grow, at least one, got {at!r}.")
        if until is None:
            return np.searchsorted(np.asarray(changes), np.arange(n), side="right")
        if len(changes) > 1:
            raise ValueError("until goes with a single round `at`.")
        last = parameters.integer("until", until, changes[0] + 1)
        chance = (np.arange(n) - changes[0] + 1) / (last - changes[0])
        return (rng.random(n) < chance).astype(np.int64)

    def encoded(self: World) -> World:
        """Return the same world with contexts of numbers only, each of mean 0 and deviation 1.

        Categories become columns of 0 and 1, missing entries the mean and a column that says so.
        """
        table = Table.of(self.X)
        schema = Schema.learn(table)
        return replace(self, X=schema.encoder.encode(schema.read(table)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulator(Stream):
    """A world of K actions.

    Attributes
    ----------
    actions
        Names of the actions.
    labels
        (n,) position of the one action that earns 1, where the others earn 0; else None.
    rewards
        (n, K) float64, what every action earns, where there are no labels.
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
        """Return (K,) which actions may be taken in round t; None for all."""
        return None if self.masks is None else self.masks[t]

    def reward(self, t: int, action: Hashable) -> float:
        """Return what an action, by its name, earns in round t."""
        try:
            place = self._places[action]
        except (KeyError, TypeError):
            raise ValueError(
                f"action {action!r:.60} is none of the simulator's, {self.actions!r:.200}. Make "
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
        """Return what one action per round earns, (n,) positions: (n,) float64."""
        if self.labels is not None:
            return (self.labels == places).astype(np.float64)
        assert self.rewards is not None
        earned: np.ndarray = self.rewards[np.arange(len(self)), places]
        return earned

    def all_rewards(self) -> np.ndarray:
        """Return what every action earns in every round, (n, K) float64."""
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
        """Return the same world in which not all actions are allowed.

        Parameters
        ----------
        masks
            (n, K) or (K,) booleans; by default drawn.
        share
            Of those drawn: probability of an action to be allowed. At least one always is.
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
        """Return a world in which the actions change places, each earning what another did.

        Parameters
        ----------
        at
            Round, or rounds, from which on another permutation of the actions holds.
        until
            With one round `at`: the change is gradual, and complete from this round on; between
            them every round belongs to the new world with a probability that grows.
        random_state
            Seed of the permutations, which leave no action in its place, and of the gradual change.
        """
        if self.n_actions < 2:
            raise ValueError("Actions change places where there are at least 2 of them, found 1.")
        rng = np.random.default_rng(random_state)
        era = self._era(at, until, rng)
        labels, rewards = self.labels, self.rewards
        for number in range(1, int(era.max()) + 1):
            rows = np.flatnonzero(era >= number)  # a later change comes on top of those before
            order = rng.permutation(self.n_actions)
            step = np.empty(self.n_actions, dtype=np.int64)
            step[order] = np.roll(order, 1)  # one cycle: nobody stays
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
    """A world in which numbers are tried, and what each loses is seen.

    Attributes
    ----------
    y
        (n,) float64, the number that would have been right.
    losses
        (predictions, y) -> losses, all (n,).
    loss_name
        Of the losses.
    """

    y: np.ndarray
    losses: Losses
    loss_name: str

    def loss(self, t: int, prediction: float) -> float:
        """Return what a number loses in round t."""
        found = self.losses(np.array([float(prediction)]), self.y[t : t + 1])
        return float(np.asarray(found).reshape(-1)[0])

    def drifting(
        self,
        at: int | Sequence[int],
        *,
        until: int | None = None,
        random_state: int | None = None,
    ) -> LossSimulator:
        """Return a world in which what is right is mirrored about its mean, from a round on.

        Parameters as of `Simulator.drifting`; at every further round it is mirrored again.
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
    """Make a world of a table with labels: the action that is the label earns 1, any other 0.

    Parameters
    ----------
    X
        (n, d) contexts.
    y
        (n,) labels.
    actions
        Names of the actions, all labels among them; by default the labels that occur, sorted.
    n_rounds
        How many rounds; by default as many as rows. With more, the rows come again.
    random_state
        Seed of the order; None keeps the order of the rows.
    """
    labels = log.column("y", y, _checked_rows(X))
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("y must hold a label in every row, found NaN.")
    names = log.action_names(log.occurring(labels) if actions is None else actions)
    world = Simulator(X=X, actions=names, labels=log.action_positions("y", labels, names))
    return _ordered(world, n_rounds, random_state)


def reward_bandit(
    X: Any,
    rewards: Any,
    *,
    actions: Sequence[Hashable] | None = None,
    n_rounds: int | None = None,
    random_state: int | None = None,
) -> Simulator:
    """Make a world of contexts and what every action earns in them, (n, K) of any finite numbers.

    Other parameters as of `classification_bandit`.
    """
    known = log.number_table("rewards", rewards, _checked_rows(X))
    names = log.action_names(known.shape[1] if actions is None else actions)
    if len(names) != known.shape[1]:
        raise ValueError(f"rewards have {known.shape[1]} columns for {len(names)} actions.")
    return _ordered(Simulator(X=X, actions=names, rewards=known), n_rounds, random_state)


def regression_bandit(
    X: Any,
    y: Any,
    *,
    loss: str | Losses = "squared",
    n_rounds: int | None = None,
    random_state: int | None = None,
) -> LossSimulator:
    """Make a world of a table with numbers: a number is tried, and its loss is all that is seen.

    Parameters
    ----------
    X
        (n, d) contexts.
    y
        (n,) numbers that are right.
    loss
        "squared", "absolute", "huber" (which bends at 1), or a function (predictions, y) -> losses.
    n_rounds, random_state
        As of `classification_bandit`.
    """
    truth = log.numbers("y", y, _checked_rows(X))
    if not callable(loss):
        parameters.choice("loss", loss, tuple(LOSSES))
    losses = loss if callable(loss) else LOSSES[loss]
    name = getattr(loss, "__name__", "given") if callable(loss) else loss
    world = LossSimulator(X=X, y=truth, losses=losses, loss_name=str(name))
    return _ordered(world, n_rounds, random_state)


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


def _ordered(world: World, n_rounds: int | None, random_state: int | None) -> World:
    if random_state is not None:
        return world.shuffled(random_state, n_rounds)
    if n_rounds is None:
        return world
    rows = np.arange(parameters.integer("n_rounds", n_rounds, 1)) % len(world)
    return world.take(rows)


def _checked_rows(X: Any) -> int:
    n = n_rows(X)
    if n == 0:
        raise ValueError("X has no rows: there is no round to play.")
    return n


def _delays(delay: Any, n: int, rng: np.random.Generator) -> np.ndarray:
    given = np.asarray(delay)
    if given.dtype.kind not in "iu" or given.shape not in ((), (2,), (n,)):
        raise ValueError(
            f"delay must be a number of rounds, a pair (least, most) or {n} of them, got {delay!r}."
        )
    is_pair = isinstance(delay, tuple) and len(delay) == 2
    least = NEVER if given.shape == (n,) and not is_pair else 0
    if given.min() < least or (is_pair and given[0] > given[1]):
        raise ValueError(f"delay must be at least {least}, the least before the most, got {delay}.")
    if is_pair:
        return rng.integers(given[0], given[1] + 1, size=n)
    if given.shape not in ((), (n,)):
        raise ValueError(f"delay must have an entry for each of the {n} rounds, got {len(given)}.")
    return np.broadcast_to(given, n).astype(np.int64)
