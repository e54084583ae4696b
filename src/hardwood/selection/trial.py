"""One trial: parameters are chosen, learned with, and scored on held-out rows.

A hopeless trial ends early: epochs are reported to the pruner by the estimator's callback. What is
reported is the smallest validation loss so far of the first restart of the first fold, at every
twelfth of its epochs. Other restarts may be learned at the same time, by other threads and in
any order; they have no part in the decision, so that it does not depend on them, and end with it. A
restart that stops early is taken to stay where it was: without that, later steps would compare a
trial with the slow ones only.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.exceptions import TrialPruned
from optuna.trial import FrozenTrial, Trial, TrialState
from sklearn.base import clone

from hardwood.learn.training import Epoch
from hardwood.parameters import callback_list
from hardwood.selection.mapping_space import Suggest, as_text
from hardwood.selection.metric import Metric
from hardwood.selection.rows import Fold, LabeledRows
from hardwood.selection.spaces import check_parameters
from hardwood.selection.study import STEPS


class Unfinished(Exception):
    """Ends a trial that does not count, because time is up or nothing is new."""


class TrialEstimator:
    """An estimator that is copied for every trial, with its callbacks, which are not.

    Parameters
    ----------
    estimator
        As the user gave it.
    seed
        Its ``random_state`` where that is None: trials should differ by their parameters alone.
    """

    def __init__(self, estimator: Any, seed: int) -> None:
        known = estimator.get_params(deep=False)
        self._takes_callbacks = "callbacks" in known
        self._callbacks = callback_list(known["callbacks"]) if self._takes_callbacks else []
        self.template = copy.copy(estimator)
        if self._takes_callbacks:  # a bar on the screen or an open file cannot be copied
            self.template.set_params(callbacks=None)
        if "random_state" in known and known["random_state"] is None:
            self.template.set_params(random_state=seed)

    def learn(self, params: dict[str, Any], rows: LabeledRows, *watches: Any) -> Any:
        """Return a copy with other parameters, fitted; `watches` are callbacks after the user's."""
        model = clone(self.template).set_params(**params)
        callbacks = [*self._callbacks, *watches]
        if self._takes_callbacks and callbacks:
            model.set_params(callbacks=callbacks)
        return rows.teach(model)


@dataclass(frozen=True)
class Objective:
    """The objective of a search."""

    estimator: TrialEstimator
    suggest: Suggest
    metric: Metric
    rows: LabeledRows
    folds: tuple[Fold, ...]

    def choose(self, trial: Trial | FrozenTrial) -> dict[str, Any]:
        """Return the parameters of a trial: drawn now, or as they were when it is over."""
        return check_parameters(self.suggest(trial), self.estimator.template)

    def same_before(
        self, trial: Trial, params: dict[str, Any], trials: Sequence[FrozenTrial]
    ) -> FrozenTrial | None:
        """Return an earlier trial with the same parameters: this one would end as it has."""
        text = as_text(list(params.items()))
        for other in trials:
            if other.number >= trial.number or other.params != trial.params:
                continue
            # A function may choose by more than what it asks the trial for.
            if (
                other.state in (TrialState.COMPLETE, TrialState.PRUNED)
                and as_text(list(self.choose(other).items())) == text
            ):
                return other
        return None

    def value(self, trial: Trial, params: dict[str, Any], must_stop: Callable[[], bool]) -> float:
        """Learn with some parameters on every fold, and return the mean value.

        Raises
        ------
        Unfinished
            Where `must_stop` has cut it off.
        TrialPruned
            Where the pruner has ended it.
        """
        values = []
        for i, fold in enumerate(self.folds):
            if must_stop():
                raise Unfinished
            watch = EpochWatch(trial if i == 0 else None, self.metric.sign, must_stop)
            train, validation = fold.parts(self.rows)
            model = self.estimator.learn(params, train, watch)
            watch.finish()
            values.append(self.metric.of(model, train, validation))
        value = float(np.mean(values))
        if math.isnan(value):
            raise ValueError(
                f"{self.metric.name} is not defined on the validation rows (NaN). Are they too few?"
            )
        return value


class EpochWatch:
    """The callback of one `fit`: reports its epochs to a trial, and ends it when asked to.

    Parameters
    ----------
    trial
        Whose pruner is asked; None for a fit that is not reported.
    sign
        What a loss is multiplied by for the direction of the study.
    must_stop
        Asked after every epoch whether the fit must end for another reason.
    """

    def __init__(self, trial: Trial | None, sign: float, must_stop: Callable[[], bool]) -> None:
        self._trial = trial
        self._sign = sign
        self._must_stop = must_stop
        self._best = math.inf
        self._step = 0
        self._end: Exception | None = None

    def __call__(self, epoch: Epoch) -> bool:
        if self._must_stop():
            self._end = Unfinished()
        elif self._trial is not None and self._end is None:
            self._report(self._trial, epoch)
        return self._end is not None

    def finish(self) -> None:
        """Report the steps that the first restart did not need; raise what has ended the fit."""
        if self._end is not None:
            raise self._end
        if self._trial is not None and self._step > 0:
            for step in range(self._step + 1, STEPS + 1):
                self._trial.report(self._sign * self._best, step)

    def _report(self, trial: Trial, epoch: Epoch) -> None:
        if epoch.restart != 0 or math.isnan(epoch.validation_loss):
            return
        self._best = min(self._best, epoch.validation_loss)
        step = (epoch.epoch + 1) * STEPS // epoch.max_epochs
        if step > self._step:
            self._step = step
            trial.report(self._sign * self._best, step)
            if trial.should_prune():
                self._end = TrialPruned()
