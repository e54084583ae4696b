"""A bandit at work in a simulated world, with feedback that comes when it comes."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from hardwood.bandit.environments import LOSSES, NEVER, LossSimulator, Simulator, Stream
from hardwood.bandit.history import History, LossHistory, name_array
from hardwood.bandit.online import all_or_interrupt
from hardwood.table.subset import taken

_REPORTS = 100  # how often progress is told

Progress = Callable[[int], None]


def simulate(
    bandit: Any, simulator: Simulator | LossSimulator, *, on_rounds: Progress | None = None
) -> Any:
    """Let a bandit decide in every round of a world, and learn from what it is told.

    Parameters
    ----------
    bandit
        Any object with ``decide`` and ``learn`` as `DGTBandit` has them, made for the actions of
        the simulator; or, in a world of losses, as `DGTBanditRegressor` has them. It is changed.
    simulator
        The world. Feedback that is still on its way after the last round is told then.
    on_rounds
        Called now and then with the number of rounds that are over.

    Returns
    -------
    history
        A `History`, or in a world of losses a `LossHistory`: what was earned or lost, whether the
        bandit was told or not.

    Notes
    -----
    Where all feedback comes at once and the bandit has ``replay``, that is used: the rounds are
    the same, and run in native code. Ctrl-C raises KeyboardInterrupt; the bandit keeps what it has
    learned by then.
    """
    report = on_rounds or (lambda n: None)
    if isinstance(simulator, Simulator):
        _check_actions(bandit, simulator)
    if simulator.delays is None and hasattr(bandit, "replay"):
        with all_or_interrupt():
            return _replayed(bandit, simulator, report)
    return _played(bandit, simulator, report)


def _check_actions(bandit: Any, world: Simulator) -> None:
    """Refuse a bandit that says what its actions are, and has others than the world."""
    known = getattr(bandit, "actions_", None)
    if known is not None and tuple(known) != world.actions:
        raise ValueError(
            f"the bandit has the actions {tuple(known)!r:.80}, the simulator has "
            f"{world.actions!r:.80}. Make it with the simulator's: DGTBandit(simulator.actions)."
        )


def _played(bandit: Any, world: Simulator | LossSimulator, report: Progress) -> Any:
    """Run the rounds one by one, and tell what each earned or lost when it is due."""
    actions, propensities, values = [], np.empty(len(world)), np.empty(len(world))
    feedback = _DelayedFeedback(world, lambda token, told: bandit.learn(token, **told))
    for t in range(len(world)):
        mask = world.mask(t) if isinstance(world, Simulator) else None
        x = world.context(t)
        decision = bandit.decide(x) if mask is None else bandit.decide(x, mask)
        propensities[t] = decision.propensity
        actions.append(decision.action)
        values[t], told = _outcome(world, t, decision.action)
        feedback.send(t, decision.token, told)
        _tell(report, t + 1, len(world))
    feedback.deliver_all()
    if isinstance(world, LossSimulator):
        return LossHistory(values)
    return History(name_array(actions), propensities, values)


def _outcome(world: Simulator | LossSimulator, t: int, action: Any) -> tuple[float, dict[str, Any]]:
    """Return what an action earned or lost, and what the bandit is told of it."""
    if isinstance(world, Simulator):
        reward = world.reward(t, action)
        return reward, {"reward": reward}
    if isinstance(action, tuple):
        losses = tuple(world.loss(t, number) for number in action)
        return sum(losses) / len(losses), {"losses": losses}
    loss = world.loss(t, action)
    return loss, {"loss": loss}


class _DelayedFeedback:
    """Feedback on its way: told as many rounds later as the world says, the oldest first."""

    def __init__(self, world: Stream, learn: Callable[[Any, Any], None]) -> None:
        self._delays = world.delays
        self._learn = learn
        self._on_its_way: list[tuple[int, int, Any, Any]] = []

    def send(self, t: int, token: Any, told: Any) -> None:
        """Take the feedback of round t, and tell what is due by its end."""
        if self._delays is None:
            self._learn(token, told)
            return
        if self._delays[t] != NEVER:
            heapq.heappush(self._on_its_way, (t + int(self._delays[t]), t, token, told))
        while self._on_its_way and self._on_its_way[0][0] <= t:
            self._deliver_one()

    def deliver_all(self) -> None:
        """Tell what is still on its way."""
        while self._on_its_way:
            self._deliver_one()

    def _deliver_one(self) -> None:
        _, _, token, told = heapq.heappop(self._on_its_way)
        self._learn(token, told)


def _replayed(bandit: Any, world: Simulator | LossSimulator, report: Progress) -> Any:
    """Run the rounds in the bandit's own loop, part by part."""
    parts = []
    edges = np.linspace(0, len(world), min(_REPORTS, len(world)) + 1).astype(np.int64)
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        rows = np.arange(first, last)
        X = taken(world.X, rows)
        if isinstance(world, LossSimulator):
            parts.append(bandit.replay(X, world.y[rows], loss=_loss_for_replay(world)))
        else:
            mask = None if world.masks is None else world.masks[rows]
            parts.append(bandit.replay(X, _feedback(world, rows), mask))
        report(int(last))
    if isinstance(world, LossSimulator):
        return LossHistory(np.concatenate([part.loss for part in parts]))
    columns = ("action", "propensity", "reward")
    return History(*(np.concatenate([getattr(part, c) for part in parts]) for c in columns))


def _feedback(world: Simulator, rows: np.ndarray) -> np.ndarray:
    if world.labels is None:
        assert world.rewards is not None
        return world.rewards[rows]
    return name_array(world.actions)[world.labels[rows]]


def _loss_for_replay(world: LossSimulator) -> Any:
    """Return the name of a loss that native code has, else a function of targets and numbers."""
    for name in ("squared", "huber"):
        if world.losses is LOSSES[name]:
            return name
    return lambda y, numbers: world.losses(numbers, y)


def _tell(report: Progress, done: int, n: int) -> None:
    if done == n or done % max(1, n // _REPORTS) == 0:
        report(done)
