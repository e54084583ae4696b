"""The search loop: runs trials, sequentially or in parallel, until there are enough."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import sklearn
from optuna.exceptions import TrialPruned
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from sklearn.exceptions import FitFailedWarning

from hardwood.clock import beginning
from hardwood.errors import FitInterruptedWarning, TableWarning
from hardwood.selection.interrupts import InterruptGate
from hardwood.selection.result import FinishedTrial
from hardwood.selection.study import ERROR, has_result, quiet, sampler_of
from hardwood.selection.trial import Objective, Unfinished

_STATES: dict[TrialState, Literal["complete", "pruned", "failed"]] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}

_POLL_SECONDS = 0.1

OnTrial = Callable[[FinishedTrial], Any]
"""Called after every trial; returning True ends the search."""


@dataclass
class TuningLoop:
    """Trials of one study, in this process.

    Parameters
    ----------
    study, objective
        Where trials are kept, and what they do.
    sampler, seed
        How parameters are drawn: a name, or a sampler of Optuna.
    n_trials
        How many the study shall have in all.
    time_limit
        Seconds after which no trial begins and those under way are cut off; None for no limit. One
        trial is completed in any case.
    on_trial
        Called after every trial, one at a time.
    points
        All that the space holds, where it is finite: a grid, and what is tried in place of a
        repetition.
    """

    study: Study
    objective: Objective
    sampler: str | BaseSampler
    seed: int
    n_trials: int
    time_limit: float | None = None
    on_trial: Sequence[OnTrial] = ()
    points: Sequence[dict[str, Any]] = ()
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _interrupts: InterruptGate = field(default_factory=InterruptGate)
    _under_way: int = 0
    _deadline: float | None = None
    _has_complete: bool = False

    def run(self, n_jobs: int = 1) -> bool:
        """Search, and return whether Ctrl-C has ended it.

        With one job trials are made on this thread. Of the warnings, those about the table are left
        to the final fit, which would repeat them.

        Raises
        ------
        KeyboardInterrupt
            When Ctrl-C comes before a trial is complete: there is nothing to return.
        """
        self._has_complete = any(t.state == TrialState.COMPLETE for t in self._trials())
        self._deadline = None if self.time_limit is None else beginning() + self.time_limit
        if not isinstance(self.sampler, str):
            self.study.sampler = self.sampler
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)
            warnings.simplefilter("error", FitInterruptedWarning)  # Ctrl-C during a fit
            try:
                if n_jobs == 1:
                    self._make_trials(sklearn.get_config())
                else:
                    self._make_side_by_side(n_jobs)
            except KeyboardInterrupt:
                if not self._has_complete:
                    raise
                return True
        return False

    def finished(self) -> tuple[FinishedTrial, ...]:
        """Return all trials that have a result, in order."""
        return tuple(self._finished(trial) for trial in self._trials() if has_result(trial))

    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _make_side_by_side(self, n_jobs: int) -> None:
        config = sklearn.get_config()  # each thread has its own
        with ThreadPoolExecutor(n_jobs) as pool:
            try:
                jobs = [pool.submit(self._make_trials, config) for _ in range(n_jobs)]
                while wait(jobs, _POLL_SECONDS).not_done:
                    pass  # short waits, so that Ctrl-C works on all platforms
            finally:
                self._stop.set()
        for job in jobs:
            job.result()

    def _make_trials(self, config: dict[str, Any]) -> None:
        try:
            with sklearn.config_context(**config):
                while self._begins():
                    self._make_one()
                    with self._lock:
                        self._under_way -= 1
        except BaseException:
            self._stop.set()
            raise

    def _make_one(self) -> None:
        with self._interrupts.closed():
            self.study.optimize(
                self._value, n_trials=1, catch=(Unfinished,), callbacks=[self._tell]
            )

    def _begins(self) -> bool:
        """Prepare the draw of the next trial; False where there is none left to make."""
        with self._lock:
            place = self._n_begun()
            if self._must_stop() or place >= self.n_trials:
                return False
            self._under_way += 1
            if isinstance(self.sampler, str):
                self.study.sampler = sampler_of(self.sampler, self.seed, place)
            if self.sampler == "grid":
                order = np.random.default_rng(self.seed).permutation(len(self.points))
                for point in self._untried([self.points[i] for i in order])[:1]:
                    self.study.enqueue_trial(point)
            return True

    def _n_begun(self) -> int:
        return sum(map(has_result, self._trials())) + self._under_way

    def _untried(self, points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the points that no trial has tried, nor is trying if there are such."""
        trials = [t for t in self._trials() if has_result(t) or not t.state.is_finished()]
        left: list[dict[str, Any]] = []
        for known in (trials, [t for t in trials if t.state != TrialState.RUNNING]):
            taken = {_key(t.system_attrs.get("fixed_params") or t.params) for t in known}
            left = left or [point for point in points if _key(point) not in taken]
        return left

    def _value(self, trial: Trial) -> float:
        """Make one trial: what Optuna calls."""
        try:
            params = self.objective.choose(trial)
            before = self.objective.same_before(trial, params, self._trials())
            if before is not None:
                return self._repeated(before)
            with self._interrupts.opened():
                return self._evaluated(trial, params)
        except FitInterruptedWarning:
            raise KeyboardInterrupt from None

    def _repeated(self, before: FrozenTrial) -> float:
        """Replace repeated parameters by untried ones; if there are none, end as before."""
        with self._lock:
            if left := self._untried(self.points):
                rng = np.random.default_rng([self.seed, self._n_begun() - 1])
                self.study.enqueue_trial(left[rng.integers(len(left))])
                raise Unfinished
        if before.state == TrialState.PRUNED:
            raise TrialPruned
        assert before.value is not None
        return before.value

    def _evaluated(self, trial: Trial, params: dict[str, Any]) -> float:
        try:
            return self.objective.value(trial, params, self._must_stop)
        except (FitInterruptedWarning, TrialPruned, Unfinished):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            trial.set_user_attr(ERROR, message)
            if not self._has_complete:
                raise  # the table or the estimator is at fault, most likely
            warnings.warn(
                f"A trial has failed and is left out: {message} Its parameters: {params}",
                FitFailedWarning,
                stacklevel=2,
            )
            raise Unfinished from error

    def _tell(self, study: Study, trial: FrozenTrial) -> None:
        if not has_result(trial):
            return
        with self._lock:
            self._has_complete |= trial.state == TrialState.COMPLETE
            record = self._finished(trial)
            for callback in self.on_trial:
                if callback(record):
                    self._stop.set()

    def _finished(self, trial: FrozenTrial) -> FinishedTrial:
        sign = self.objective.metric.sign
        lost = (
            t.state == TrialState.FAIL and not has_result(t) for t in self._trials()[: trial.number]
        )
        return FinishedTrial(
            number=trial.number - sum(lost),
            state=_STATES[trial.state],
            value=trial.value if trial.state == TrialState.COMPLETE else None,
            params=self.objective.choose(trial),
            seconds=trial.duration.total_seconds() if trial.duration else 0.0,
            curve={step: sign * value for step, value in sorted(trial.intermediate_values.items())},
            error=trial.user_attrs.get(ERROR),
        )

    def _must_stop(self) -> bool:
        if self._stop.is_set():
            return True
        is_late = self._deadline is not None and time.monotonic() > self._deadline
        return is_late and self._has_complete


def _key(params: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(params.items()))
