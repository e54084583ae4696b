"""Run a bandit in a simulated environment, with immediate or delayed feedback."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from hardwood.bandit.environments import LOSSES, NEVER, LossSimulator, Simulator, Stream
from hardwood.bandit.history import History, LossHistory, name_array
from hardwood.bandit.online import all_or_interrupt
from hardwood.table.subset import taken

_REPORTS = 100  # calls of the progress callback

Progress = Callable[[int], None]


def simulate(
    bandit: Any, simulator: Simulator | LossSimulator, *, on_rounds: Progress | None = None
) -> Any:
    """Run a bandit through all rounds of an environment: decide, observe feedback, learn.

    Parameters
    ----------
    bandit
        An object with the ``decide`` and ``learn`` of `DGTBandit`, made for the actions of the
        simulator; or, for a `LossSimulator`, with those of `DGTBanditRegressor`. It is modified.
    simulator
        The environment. Feedback that is still pending after the last round is delivered then.
    on_rounds
        Called about a hundred times with the number of completed rounds.

    Returns
    -------
    history
        A `History`, or for a `LossSimulator` a `LossHistory`: the rewards or losses of all rounds,
        including those whose feedback was lost.

    Notes
    -----
    If all feedback is immediate and the bandit has ``replay``, that is used: the rounds are the
    same, but run in native code. Ctrl-C raises KeyboardInterrupt; the bandit keeps what it has
    learned.
    """
    report = on_rounds or (lambda n: None)
    if isinstance(simulator, Simulator):
        _check_actions(bandit, simulator)
    if simulator.delays is None and hasattr(bandit, "replay"):
        with all_or_interrupt():
            return _replayed(bandit, simulator, report)
    return _played(bandit, simulator, report)


def _check_actions(bandit: Any, environment: Simulator) -> None:
    """Refuse a bandit whose actions differ from those of the environment."""
    known = getattr(bandit, "actions_", None)
    if known is not None and tuple(known) != environment.actions:
        raise ValueError(
            f"the bandit has the actions {tuple(known)!r:.80}, the simulator has "
            f"{environment.actions!r:.80}. Make the bandit with the simulator's actions: "
            "DGTBandit(simulator.actions)."
        )


def _played(bandit: Any, environment: Simulator | LossSimulator, report: Progress) -> Any:
    """Run the rounds one by one and deliver the feedback of each when it is due."""
    actions, propensities, values = [], np.empty(len(environment)), np.empty(len(environment))
    pending = _DelayedFeedback(environment, lambda token, feedback: bandit.learn(token, **feedback))
    for t in range(len(environment)):
        mask = environment.mask(t) if isinstance(environment, Simulator) else None
        x = environment.context(t)
        decision = bandit.decide(x) if mask is None else bandit.decide(x, mask)
        propensities[t] = decision.propensity
        actions.append(decision.action)
        values[t], feedback = _outcome(environment, t, decision.action)
        pending.send(t, decision.token, feedback)
        _report(report, t + 1, len(environment))
    pending.deliver_all()
    if isinstance(environment, LossSimulator):
        return LossHistory(values)
    return History(name_array(actions), propensities, values)


def _outcome(
    environment: Simulator | LossSimulator, t: int, action: Any
) -> tuple[float, dict[str, Any]]:
    """Return the reward or loss of an action, and the feedback as arguments of ``learn``."""
    if isinstance(environment, Simulator):
        reward = environment.reward(t, action)
        return reward, {"reward": reward}
    if isinstance(action, tuple):
        losses = tuple(environment.loss(t, number) for number in action)
        return sum(losses) / len(losses), {"losses": losses}
    loss = environment.loss(t, action)
    return loss, {"loss": loss}


class _DelayedFeedback:
    """Pending feedback, delivered after the delays of the environment, the oldest first."""

    def __init__(self, environment: Stream, learn: Callable[[Any, Any], None]) -> None:
        self._delays = environment.delays
        self._learn = learn
        self._pending: list[tuple[int, int, Any, Any]] = []

    def send(self, t: int, token: Any, feedback: Any) -> None:
        """Accept the feedback of round t, and deliver all that is due by the end of the round."""
        if self._delays is None:
            self._learn(token, feedback)
            return
        if self._delays[t] != NEVER:
            heapq.heappush(self._pending, (t + int(self._delays[t]), t, token, feedback))
        while self._pending and self._pending[0][0] <= t:
            self._deliver_one()

    def deliver_all(self) -> None:
        """Deliver all pending feedback."""
        while self._pending:
            self._deliver_one()

    def _deliver_one(self) -> None:
        _, _, token, feedback = heapq.heappop(self._pending)
        self._learn(token, feedback)


def _replayed(bandit: Any, environment: Simulator | LossSimulator, report: Progress) -> Any:
    """Run the rounds by ``bandit.replay``, part by part."""
    parts = []
    edges = np.linspace(0, len(environment), min(_REPORTS, len(environment)) + 1).astype(np.int64)
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        rows = np.arange(first, last)
        X = taken(environment.X, rows)
        if isinstance(environment, LossSimulator):
            parts.append(bandit.replay(X, environment.y[rows], loss=_loss_for_replay(environment)))
        else:
            mask = None if environment.masks is None else environment.masks[rows]
            parts.append(bandit.replay(X, _feedback(environment, rows), mask))
        report(int(last))
    if isinstance(environment, LossSimulator):
        return LossHistory(np.concatenate([part.loss for part in parts]))
    columns = ("action", "propensity", "reward")
    return History(*(np.concatenate([getattr(part, c) for part in parts]) for c in columns))


def _feedback(environment: Simulator, rows: np.ndarray) -> np.ndarray:
    if environment.labels is None:
        assert environment.rewards is not None
        return environment.rewards[rows]
    return name_array(environment.actions)[environment.labels[rows]]


def _loss_for_replay(environment: LossSimulator) -> Any:
    """Return the name of a loss with native code, else a function of targets and numbers."""
    for name in ("squared", "huber"):
        if environment.losses is LOSSES[name]:
            return name
    return lambda y, numbers: environment.losses(numbers, y)


def _report(report: Progress, done: int, n: int) -> None:
    if done == n or done % max(1, n // _REPORTS) == 0:
        report(done)
