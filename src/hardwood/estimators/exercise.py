"""What fitting any estimator begins and ends with, whatever the learner.

From parameters and a table to a problem, and from a run to the record of a model.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from hardwood.errors import FitInterruptedWarning
from hardwood.estimators import parameters
from hardwood.estimators.progress import printer
from hardwood.estimators.target import (
    class_target,
    has_several_labels,
    label_target,
    number_target,
)
from hardwood.estimators.weights import class_weights, row_weights
from hardwood.learn.curves import MAX_POINTS, learning_curve
from hardwood.learn.losses import Custom, Logistic, Loss, Poisson, loss_of
from hardwood.learn.task import Problem, TrainingSet
from hardwood.learn.training import Callback, Epoch
from hardwood.model.structure import TaskKind
from hardwood.table import Table

# early_stopping="auto": so many different rows make a validation part that is worth its cost.
_EARLY_STOPPING_FROM = 100
_MAX_EPOCHS = 2**31 - 1
# A tree's record tells the parameters that may change the tree and can be written down. How many
# trees a forest has and how it combines them is told by the forest itself.
_UNRECORDED = {
    "n_estimators",
    "combine",
    "n_jobs",
    "verbose",
    "callbacks",
    "warm_start",
    "oob_score",
}


class Learned(Protocol):
    """What a learner says of its runs, besides what it learned."""

    @property
    def history(self) -> tuple[Epoch, ...]:
        """One record per pass, run by run."""

    @property
    def best_restart(self) -> int:
        """The run that was kept."""

    @property
    def best_epoch(self) -> int:
        """The pass of it that was kept; -1 where none was."""

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped by the user."""


@dataclass(frozen=True)
class Exercise:
    """What is to be learned, before it is known how.

    Attributes
    ----------
    data
        The rows in canonical order, with their target in numbers.
    task, loss
        What the tree is for, and what is minimised.
    classes
        The distinct labels of a classification, sorted; of several labels, their numbers; None for
        a regression.
    labels
        The classes as a tree holds them.
    target_names
        Names of the targets, where they have some.
    n_targets
        Classes, labels or numbers to be predicted.
    """

    data: TrainingSet
    task: TaskKind
    loss: Loss
    classes: np.ndarray | None
    labels: tuple[Any, ...] | None
    target_names: tuple[str, ...] | None
    n_targets: int

    @property
    def n_outputs(self) -> int:
        """Scores per leaf."""
        return self.loss.n_outputs(self.n_targets)


def classification(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    loss_of: Callable[..., Loss] = loss_of,
) -> Exercise:
    """Read a table and labels: one column of classes, or several of yes and no.

    `loss_of` finds what the estimator's ``loss`` names, for learners that take others than most.
    """
    table = Table.of(X)
    if has_several_labels(y):
        return _several_labels(estimator, table, y, sample_weight, loss_of)
    target = class_target(y, table.n_rows)
    weight = row_weights(sample_weight, table.n_rows)
    loss = loss_of(estimator.loss, "classification", len(target.classes))
    if isinstance(loss, Logistic) and len(target.classes) != 2:
        raise ValueError(f"The logistic loss is for two classes, found {len(target.classes)}.")
    factor = class_weights(estimator.class_weight, target, weight)
    data = TrainingSet.of(table, target.index[:, None].astype(np.float64), weight, factor)
    _check_two_classes(target.classes, target.index[data.rows.index])
    labels = tuple(target.classes.tolist())
    return Exercise(data, "classification", loss, target.classes, labels, target.names, len(labels))


def _several_labels(
    estimator: Any, table: Table, y: Any, sample_weight: Any, loss_of: Callable[..., Loss]
) -> Exercise:
    if estimator.class_weight is not None:
        raise ValueError(
            f"class_weight={estimator.class_weight!r} is for one column of classes, but y has "
            "several labels. Use sample_weight."
        )
    target = label_target(y, table.n_rows)
    data = TrainingSet.of(table, target.values, row_weights(sample_weight, table.n_rows))
    n_labels = target.values.shape[1]
    loss = loss_of(estimator.loss, "multilabel")
    return Exercise(data, "multilabel", loss, np.arange(n_labels), None, target.names, n_labels)


def regression(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Exercise:
    """Read a table and numbers."""
    table = Table.of(X)
    target = number_target(y, table.n_rows)
    weight = row_weights(sample_weight, table.n_rows)
    loss = loss_of(estimator.loss, "regression")
    if isinstance(loss, Poisson) and (target.values < 0).any():
        raise ValueError(
            f"The Poisson loss is for y >= 0, found {target.values.min():g}. "
            "Use loss='squared_error' or another one for targets of any sign."
        )
    data = TrainingSet.of(table, target.values, weight)
    n_targets = target.values.shape[1]
    return Exercise(data, "regression", loss, None, None, target.names, n_targets)


def _check_two_classes(classes: np.ndarray, index: np.ndarray) -> None:
    left = np.unique(index)
    if len(left) < 2:
        raise ValueError(
            "A classifier needs rows of at least 2 classes, found 1 class among the rows whose "
            f"weight is not zero: {classes[left[0]].item()!r}."
        )


def drawn_seed(random_state: Any) -> int:
    """Return the one number that all random choices of a fit follow from."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def problem_of(estimator: Any, exercise: Exercise, stops_early: bool, seed: int) -> Problem:
    """Pose the problem: draw the validation part, put the target into the loss's units."""
    fraction = parameters.real("validation_fraction", estimator.validation_fraction, 0.0, 1.0)
    return Problem.of(
        exercise.data,
        exercise.loss,
        n_outputs=exercise.n_outputs,
        is_classified=exercise.task == "classification",
        validation_fraction=fraction if stops_early else 0.0,
        seed=seed,
    )


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to the estimator."""
    return isinstance(value, str) and value == "auto"


def max_epochs(value: Any) -> int | None:
    """Return how many passes are asked for; None for "auto"."""
    if is_auto(value):
        return None
    return parameters.integer("max_epochs", value, 1, _MAX_EPOCHS)


def stops_early(estimator: Any, exercise: Exercise, *, compares: bool, by_default: bool) -> bool:
    """Decide whether to keep a validation part.

    Parameters
    ----------
    estimator, exercise
        Parameters and rows.
    compares
        Whether trees are to be compared by their losses (several restarts).
    by_default
        What ``early_stopping="auto"`` means for a table that is large enough.
    """
    asked = parameters.switch("early_stopping", estimator.early_stopping)
    if isinstance(exercise.loss, Custom) and not _has_values(exercise):
        for asked_for, needs in (("early_stopping=True", asked), ("restarts > 1", compares)):
            if needs:
                raise ValueError(
                    f"{asked_for} compares trees by their losses, but the loss function returns a "
                    "gradient only. Let it return (losses, gradient)."
                )
        return False
    has_part = estimator.validation_fraction != 0
    if asked and not has_part:
        raise ValueError(
            "early_stopping=True needs a validation part, but validation_fraction is 0. Give a "
            "fraction, or early_stopping=False."
        )
    if asked is None:
        asked = by_default and len(exercise.data.rows) >= _EARLY_STOPPING_FROM
    return has_part and asked


def _has_values(exercise: Exercise) -> bool:
    """Ask a custom loss once, for two rows, what it returns."""
    assert isinstance(exercise.loss, Custom)
    target = exercise.data.target[exercise.data.rows.index[:2]].astype(np.float32)
    scores = np.zeros((len(target), exercise.n_outputs), dtype=np.float32)
    values, _ = exercise.loss(scores, target)
    return values is not None


def callbacks_of(estimator: Any, run: str = "restart") -> list[Callback]:
    """Return the user's callbacks, and the one that prints; `run` is what it calls one."""
    callbacks = parameters.callback_list(estimator.callbacks)
    verbose = parameters.level("verbose", estimator.verbose)
    if verbose:
        callbacks.append(printer(verbose, run))
    return callbacks


def record_of(
    estimator: Any,
    exercise: Exercise,
    problem: Problem,
    grown: Learned,
    *,
    max_points: int = MAX_POINTS,
) -> dict[str, Any]:
    """How a model came about: the same for every way of giving the same rows and any n_jobs.

    `max_points` is how many passes its learning curve may show.
    """
    record = {
        **parameter_record(estimator),
        "distinct_rows": len(exercise.data.rows),
        "validation_rows": len(problem.valid),
        "passes": n_passes(grown),
        "best_pass": grown.best_epoch + 1,
    }
    best = [
        e for e in grown.history if (e.restart, e.epoch) == (grown.best_restart, grown.best_epoch)
    ]
    for name in ("train_loss", "validation_loss"):
        if best and math.isfinite(getattr(best[0], name)):
            record[name] = getattr(best[0], name)
    kept_run = [e for e in grown.history if e.restart == grown.best_restart]
    curves = learning_curve(
        kept_run, best=kept_run.index(best[0]) if best else None, max_points=max_points
    )
    if curves:
        record["curves"] = curves
    return record


def parameter_record(estimator: Any) -> dict[str, Any]:
    """Which estimator, with which parameters, as JSON can hold them."""
    return {
        "learner": type(estimator).__name__,
        "parameters": {
            name: _writable(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in _UNRECORDED
        },
    }


def _writable(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): _writable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(entry) for entry in value]
    if is_dataclass(value):
        options = {field.name: _writable(getattr(value, field.name)) for field in fields(value)}
        return {type(value).__name__: options} if options else type(value).__name__
    return getattr(value, "__qualname__", None) or type(value).__name__


def n_passes(grown: Learned) -> int:
    """Return how many passes the run which was kept has taken."""
    return sum(epoch.restart == grown.best_restart for epoch in grown.history)


def warn_if_interrupted(grown: Sequence[Learned], what: str) -> None:
    """Say so, last of all: where warnings are errors, the estimator is whole already."""
    if any(one.interrupted for one in grown):
        n_epochs = sum(len(one.history) for one in grown)
        warnings.warn(
            f"Learning was interrupted after {n_epochs} epoch(s); {what} so far is kept.",
            FitInterruptedWarning,
            stacklevel=3,
        )
