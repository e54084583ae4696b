"""The search: trials are begun, told of and counted until there are enough of them."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sklearn
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from sklearn.exceptions import FitFailedWarning

from hardwood.errors import FitInterruptedWarning, TableWarning
from hardwood.selection.objective import Objective, Outcome
from hardwood.selection.result import FinishedTrial
from hardwood.selection.samplers import position_of, untried
from hardwood.selection.study import ERROR, Worker, counts, in_order

_STATES: dict[TrialState, Literal["complete", "pruned", "failed"]] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
_POLL_SECONDS = 0.1

OnTrial = Callable[[FinishedTrial], Any]
"""Called after every trial; a true answer ends the search."""


@dataclass
class Search:
    """Trials of one study, in this process.

    Parameters
    ----------
    study, objective
        Where trials are kept, and what they do.
    n_trials
        How many the study shall have in all.
    timeout
        Seconds after which no trial begins and those under way are cut off; None for no limit. One
        trial is completed in any case.
    on_trial
        Called after every trial, one at a time.
    points
        All that the space holds, where it is finite: what is tried in place of a repetition.
    seed
        Draws among them.
    """

    study: Study
    objective: Objective
    n_trials: int
    timeout: float | None = None
    on_trial: Sequence[OnTrial] = ()
    points: Sequence[dict[str, Any]] = ()
    seed: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _worker: Worker = field(default_factory=Worker)
    _deadline: float | None = None
    _has_complete: bool = False
    _error: BaseException | None = None

    def run(self, n_jobs: int = 1) -> bool:
        """Search, and return whether Ctrl-C has ended it.

        With one job trials are made on this thread. Of the warnings, those about the table are left
        to the final fit, which would repeat them.

        Raises
        ------
        KeyboardInterrupt
            When Ctrl-C comes before a trial is complete: there is nothing to return.
        """
        self._worker.repair(self.study)
        self._has_complete = any(t.state == TrialState.COMPLETE for t in self._trials())
        self._deadline = None if self.timeout is None else time.monotonic() + self.timeout
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)
            warnings.simplefilter("error", FitInterruptedWarning)  # Ctrl-C during a fit
            try:
                if n_jobs == 1:
                    while self._run_one():
                        pass
                else:
                    self._run_side_by_side(n_jobs)
            except KeyboardInterrupt:
                if not self._has_complete:
                    raise
                return True
        return False

    def finished(self) -> tuple[FinishedTrial, ...]:
        """Return all trials that have ended, in order."""
        return tuple(
            self._finished(position, trial) for position, trial in in_order(self._trials())
        )

    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _run_side_by_side(self, n_jobs: int) -> None:
        config = sklearn.get_config()  # each thread has its own

        def work() -> None:
            try:
                with sklearn.config_context(**config):
                    while self._run_one():
                        pass
            except BaseException as error:
                self._error = self._error or error
                self._stop.set()

        threads = [threading.Thread(target=work, daemon=True) for _ in range(n_jobs)]
        for thread in threads:
            thread.start()
        try:
            _join(threads)
        except KeyboardInterrupt:
            self._stop.set()
            _join(threads)
            raise
        if self._error is not None:
            raise self._error

    def _run_one(self) -> bool:
        """Make one trial; false where there is none left to make."""
        with self._lock:
            if self._is_over():
                return False
            trial = self._worker.ask(self.study)
        try:
            params = self.objective.choose(trial)
            before = self.objective.same_before(trial, params, self._trials())
            if before is None or not self._has_replaced(trial):
                self._tell(trial, before or self._outcome(trial, params))
        except (KeyboardInterrupt, FitInterruptedWarning):
            self._give_up(trial)
            raise KeyboardInterrupt from None
        except BaseException:
            self._give_up(trial)
            raise
        return True

    def _has_replaced(self, trial: Trial) -> bool:
        """Give the place of a trial that repeats another to parameters that nobody has tried."""
        with self._lock:
            trials = self._trials()
            position = position_of(next(t for t in trials if t.number == trial.number), trials)
            point = untried(self.points, trials, self.seed, position)
            if point is not None:
                self._worker.replace(self.study, trial.number, position, point)
            return point is not None

    def _outcome(self, trial: Trial, params: dict[str, Any]) -> Outcome | str:
        """Return how the trial has ended, or what error it has ended with."""
        try:
            return self.objective.evaluate(trial, params, self._must_stop)
        except FitInterruptedWarning:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            if not self._has_complete:
                trial.set_user_attr(ERROR, message)
                raise  # the table or the estimator is at fault, most likely
            warnings.warn(
                f"A trial has failed and is left out: {message} Its parameters: {params}",
                FitFailedWarning,
                stacklevel=2,
            )
            return message

    def _tell(self, trial: Trial, outcome: Outcome | str) -> None:
        with self._lock:
            if isinstance(outcome, str):
                trial.set_user_attr(ERROR, outcome)
                self.study.tell(trial, state=TrialState.FAIL)
            elif outcome.state == "cut":
                self._give_up(trial)
                return
            elif outcome.state == "pruned":
                self.study.tell(trial, state=TrialState.PRUNED)
            else:
                self.study.tell(trial, outcome.value)
                self._has_complete = True
            trials = self._trials()
            ended = next(t for t in trials if t.number == trial.number)
            record = self._finished(position_of(ended, trials), ended)
            for callback in self.on_trial:
                if callback(record):
                    self._stop.set()

    def _give_up(self, trial: Trial) -> None:
        """End a trial without an answer; it is made again when the search goes on."""
        self.study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)

    def _finished(self, position: int, trial: FrozenTrial) -> FinishedTrial:
        sign = self.objective.metric.sign
        return FinishedTrial(
            number=position,
            state=_STATES[trial.state],
            value=trial.value if trial.state == TrialState.COMPLETE else None,
            params=self.objective.choose(trial),
            seconds=trial.duration.total_seconds() if trial.duration else 0.0,
            curve={step: sign * value for step, value in sorted(trial.intermediate_values.items())},
            error=trial.user_attrs.get(ERROR),
        )

    def _is_over(self) -> bool:
        return self._must_stop() or sum(map(counts, self._trials())) >= self.n_trials

    def _must_stop(self) -> bool:
        if self._stop.is_set():
            return True
        is_late = self._deadline is not None and time.monotonic() > self._deadline
        return is_late and self._has_complete


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        while thread.is_alive():  # in short waits, so that Ctrl-C is heard everywhere
            thread.join(_POLL_SECONDS)
