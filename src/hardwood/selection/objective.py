"""One trial: parameters are chosen, learned with, and judged on rows that did not teach."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from optuna.trial import FrozenTrial, Trial, TrialState
from sklearn.base import clone

from hardwood.estimators.parameters import callback_list
from hardwood.selection.metric import Metric
from hardwood.selection.pruning import EpochWatch
from hardwood.selection.rows import Fold, Rows
from hardwood.selection.settings import as_text
from hardwood.selection.spaces import Suggest, check_parameters

_ENDED: dict[TrialState, Literal["complete", "pruned"]] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
}


@dataclass(frozen=True)
class Outcome:
    """How a trial has ended: with a value, by the pruner, or cut off by the end of the search."""

    state: Literal["complete", "pruned", "cut"]
    value: float = math.nan


class Candidate:
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
        self.estimator = copy.copy(estimator)
        if self._takes_callbacks:  # a bar on the screen or an open file cannot be copied
            self.estimator.set_params(callbacks=None)
        if "random_state" in known and known["random_state"] is None:
            self.estimator.set_params(random_state=seed)

    def learn(self, params: dict[str, Any], rows: Rows, *watches: Any) -> Any:
        """Return a copy with other parameters, fitted; `watches` are callbacks after the user's."""
        options = {} if rows.weight is None else {"sample_weight": rows.weight}
        model = clone(self.estimator).set_params(**params)
        callbacks = [*self._callbacks, *watches]
        if self._takes_callbacks and callbacks:
            model.set_params(callbacks=callbacks)
        return model.fit(rows.X, rows.y, **options)


@dataclass(frozen=True)
class Objective:
    """What is minimised or maximised over a space."""

    candidate: Candidate
    suggest: Suggest
    metric: Metric
    rows: Rows
    folds: tuple[Fold, ...]

    def choose(self, trial: Trial | FrozenTrial) -> dict[str, Any]:
        """Return the parameters of a trial: drawn now, or as they were when it is over."""
        return check_parameters(self.suggest(trial), self.candidate.estimator)

    def same_before(
        self, trial: Trial, params: dict[str, Any], trials: list[FrozenTrial]
    ) -> Outcome | None:
        """Return how an earlier trial with the same parameters has ended: it would end so again."""
        text = as_text(list(params.items()))
        for other in trials:
            if other.number >= trial.number or other.params != trial.params:
                continue
            # A function may choose by more than what it asks the trial for.
            if other.state in _ENDED and as_text(list(self.choose(other).items())) == text:
                return Outcome(
                    _ENDED[other.state], math.nan if other.value is None else other.value
                )
        return None

    def evaluate(
        self, trial: Trial, params: dict[str, Any], must_stop: Callable[[], bool]
    ) -> Outcome:
        """Learn with some parameters on every fold, and return the mean value."""
        values = []
        for i, fold in enumerate(self.folds):
            if must_stop():
                return Outcome("cut")
            watch = EpochWatch(trial if i == 0 else None, self.metric.sign, must_stop)
            train, validation = fold.parts(self.rows)
            model = self.candidate.learn(params, train, watch)
            watch.finish()
            if watch.is_cut or watch.is_pruned:
                return Outcome("cut" if watch.is_cut else "pruned")
            values.append(self.metric.of(model, train, validation))
        value = float(np.mean(values))
        if math.isnan(value):
            raise ValueError(
                f"{self.metric.name} is not defined on the validation rows (NaN). Are they too few?"
            )
        return Outcome("complete", value)
