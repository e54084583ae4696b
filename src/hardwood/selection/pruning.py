"""Trials that are no good end early: the pruner hears of epochs through the estimator's callback.

A trial is judged by the first restart of its first fold, whose smallest validation loss so far is
reported at every twelfth of its epochs. Other restarts may be learned at the same time, by other
threads and in any order; they have no part in the judgement, so that it does not depend on them,
and end with it. A restart that stops early is taken to stay where it was: without that, later steps
would compare a trial with the slow ones only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from hardwood.learn.training import Epoch

STEPS = 12
# The cosine schedule starts anew after each quarter: the end of the first is the first fair look.
_FIRST_LOOK = STEPS // 4
_STARTUP_TRIALS = 5

PRUNERS = ("median", "halving")


def pruner_of(pruner: Any) -> BasePruner:
    """Return Optuna's pruner for a name, None (no pruning) or itself."""
    if pruner is None:
        return NopPruner()
    if isinstance(pruner, BasePruner):
        return pruner
    if isinstance(pruner, str) and pruner == "median":
        return MedianPruner(n_startup_trials=_STARTUP_TRIALS, n_warmup_steps=_FIRST_LOOK)
    if isinstance(pruner, str) and pruner == "halving":
        return OfFinishedTrials(
            SuccessiveHalvingPruner(min_resource=_FIRST_LOOK, reduction_factor=2)
        )
    raise ValueError(
        f"pruner must be one of {list(PRUNERS)}, None or a pruner of Optuna, got {pruner!r}."
    )


class EpochWatch:
    """The callback of one `fit`: reports its epochs to a trial, and ends it when asked to.

    Parameters
    ----------
    trial
        Whose pruner is asked; None for a fit that is not judged.
    sign
        What a loss is multiplied by for the direction of the study.
    must_stop
        Asked after every epoch whether the fit must end for another reason.

    Attributes
    ----------
    is_pruned
        Whether the pruner has ended the fit.
    is_cut
        Whether `must_stop` has.
    """

    def __init__(self, trial: Trial | None, sign: float, must_stop: Callable[[], bool]) -> None:
        self._trial = trial
        self._sign = sign
        self._must_stop = must_stop
        self._best = math.inf
        self._step = 0
        self.is_pruned = False
        self.is_cut = False

    def __call__(self, epoch: Epoch) -> bool:
        self.is_cut = self.is_cut or self._must_stop()
        if self._trial is not None and not self.is_cut and not self.is_pruned:
            self._judge(self._trial, epoch)
        return self.is_cut or self.is_pruned

    def finish(self) -> None:
        """Report the steps that the first restart, now over, did not need."""
        if self._trial is not None and self._step > 0 and not self.is_pruned and not self.is_cut:
            for step in range(self._step + 1, STEPS + 1):
                self._trial.report(self._sign * self._best, step)

    def _judge(self, trial: Trial, epoch: Epoch) -> None:
        if epoch.restart != 0 or math.isnan(epoch.validation_loss):
            return
        self._best = min(self._best, epoch.validation_loss)
        step = (epoch.epoch + 1) * STEPS // epoch.max_epochs
        if step > self._step:
            self._step = step
            trial.report(self._sign * self._best, step)
            self.is_pruned = trial.should_prune()


class OfFinishedTrials(BasePruner):
    """A pruner that does not hear of attempts that were interrupted, or that failed."""

    def __init__(self, pruner: BasePruner) -> None:
        self._pruner = pruner

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        return self._pruner.prune(_WithoutFailed(study), trial)  # type: ignore[arg-type]


class _WithoutFailed:
    """A study as a pruner sees it, less its failed trials."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def get_trials(self, deepcopy: bool = True, states: Any = None) -> list[FrozenTrial]:
        trials = self._study.get_trials(deepcopy=deepcopy, states=states)
        return [trial for trial in trials if trial.state != TrialState.FAIL]
