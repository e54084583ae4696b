"""Steps of `fit` that all estimators share: from parameters and a table to a model.

This is the only code between scikit-learn's interface and `hardwood.learn`, which knows no
estimators.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from hardwood import parameters
from hardwood.clock import Clock, beginning
from hardwood.errors import FitInterruptedWarning
from hardwood.learn.greedy import SPLITTERS, Greedy, Splitter
from hardwood.learn.learner import Learned, Learner, Run, Start, writable
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.model.base import Model
from hardwood.progress import Progress, watched_stream

# The record of a model has the parameters that may change it and that JSON can hold. The forest
# itself says how many trees it has and how it combines them.
_UNRECORDED = {
    "n_estimators",
    "combine",
    "n_jobs",
    "verbose",
    "callbacks",
    "warm_start",
    "oob_score",
}


def clock_of(estimator: Any) -> Clock:
    """Check `time_limit`, if there is one, and start the clock."""
    limit = getattr(estimator, "time_limit", None)
    if limit is not None:
        limit = parameters.real("time_limit", limit, 0.0, 1e9, open_low=True)
    return Clock(limit, begun=beginning())


def run_of(estimator: Any, learner: Learner, task: Task, clock: Clock, seed: int) -> Run:
    """Return the settings of a run."""
    callbacks = parameters.callback_list(getattr(estimator, "callbacks", None))
    verbose = parameters.level("verbose", getattr(estimator, "verbose", 0))
    stream = None if verbose else watched_stream()
    progress = Progress(type(estimator).__name__, lambda: clock.left, stream)
    if verbose:
        callbacks.append(learner.printer(task, verbose))
    elif stream is not None:
        if any(map(_may_print, callbacks)):
            callbacks.insert(0, lambda _: progress.erase())
        callbacks.append(learner.follower(task, progress))
    return Run(
        seed=seed,
        n_jobs=parameters.n_threads(estimator.n_jobs),
        callbacks=tuple(callbacks),
        clock=clock,
        progress=progress,
    )


def _may_print(callback: Any) -> bool:
    """Whether a callback may print, which is not to stand behind the line of progress."""
    return not str(getattr(callback, "__module__", "")).startswith("hardwood.")


def divided(estimator: Any, learner: Learner, task: Task, seed: int) -> Task:
    """Hold out validation rows if the learner wants them.

    Raises
    ------
    ValueError
        If the learner needs validation rows, but `validation_fraction` is 0.
    """
    fraction = getattr(estimator, "validation_fraction", 0.0)
    fraction = parameters.real("validation_fraction", fraction, 0.0, 1.0)
    if fraction == 0 and learner.needs_validation:
        raise ValueError(
            f"{learner.needs_validation} needs validation rows, but validation_fraction is 0. "
            "Set a fraction, or change the other parameter."
        )
    return task.divided(fraction if learner.wants_validation(task) else 0.0, seed)


def start_of(estimator: Any) -> Start:
    """Return the start of an estimator: its own tree (`warm_start`), or `init`.

    Raises
    ------
    TypeError
        For an invalid `init`. The message says how to use other trees, forests and unfitted
        estimators.
    """
    goes_on = parameters.flag("warm_start", getattr(estimator, "warm_start", False))
    init = getattr(estimator, "init", None)
    if goes_on and "tree_" in vars(estimator):
        init = estimator.tree_
    if init is None or isinstance(init, Learner):
        return init
    if isinstance(init, str) and init in SPLITTERS:
        max_depth = getattr(estimator, "max_depth", Greedy.max_depth)
        return Greedy(splitter=cast(Splitter, init), max_depth=max_depth)
    tree = getattr(init, "tree_", init)
    if isinstance(tree, Model):
        tree = tree.hard("init")
    if not isinstance(tree, ObliqueTree):
        raise TypeError(
            "init must be None, an ObliqueTree, a fitted estimator with one, or one of "
            f"{list(SPLITTERS)}, got {init!r:.200}.{_advice(init)}"
        )
    return tree


def _advice(init: Any) -> str:
    if hasattr(init, "tree_"):
        return " hardwood.from_sklearn(init) converts a tree of scikit-learn."
    if hasattr(init, "estimators_"):
        return " A learner starts from one tree: pass one of init.estimators_."
    is_estimator = hasattr(init, "fit") and not isinstance(init, type)
    if is_estimator and not any(name.endswith("_") for name in vars(init)):
        return (
            " It is not fitted: cross-validation clones estimators, and clones are not fitted. "
            "Fit it and pass its tree_."
        )
    return ""


def warn_of_labels(y: Any, task: Task) -> None:
    """Warn as scikit-learn does, about a column vector and about too many classes."""
    if task.kind != "classification" or task.classes is None:
        return
    if np.asarray(y).ndim == 2:
        column_or_1d(y, warn=True)
    check_classification_targets(task.classes[task.target[:, 0].astype(np.int64)])


def parameter_record(estimator: Any) -> dict[str, Any]:
    """Return the name and the parameters of an estimator, for JSON."""
    return {
        "learner": type(estimator).__name__,
        "parameters": recorded_parameters(estimator.get_params(deep=False)),
    }


def recorded_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a record has, for JSON."""
    return {name: writable(value) for name, value in values.items() if name not in _UNRECORDED}


def warn_if_interrupted(learned: Learned, learner: Learner, *, stacklevel: int) -> None:
    """Warn at the very end, so that the estimator is complete even if warnings are errors."""
    if learned.interrupted:
        warnings.warn(
            learner.interrupted_message(learned), FitInterruptedWarning, stacklevel=stacklevel + 1
        )
