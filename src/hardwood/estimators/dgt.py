"""DGT for scikit-learn: one hard oblique tree, learned by gradient descent.

The method is in `hardwood.learn.dgt`; here a table, a target and parameters are checked, posed as a
problem, learned from, and what was learned is made into a tree.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from hardwood.errors import FitInterruptedWarning
from hardwood.estimators import parameters
from hardwood.estimators.base import TreeClassifier, TreeRegressor
from hardwood.estimators.progress import printer
from hardwood.estimators.target import class_target, number_target
from hardwood.estimators.weights import class_weights, row_weights
from hardwood.learn.assemble import assemble
from hardwood.learn.dgt import DGT, Grown, fold, learn
from hardwood.learn.losses import Custom, Logistic, Loss, Poisson, loss_of
from hardwood.learn.problem import Problem, TrainingSet
from hardwood.model import ObliqueTree
from hardwood.table import Table

# early_stopping="auto": so many different rows make a validation part that is worth its cost.
_EARLY_STOPPING_FROM = 100
# restarts="auto": so many trees for a validation part to choose from (what that is worth:
# benchmarks/quality/defaults.py).
_VALIDATED_RESTARTS = 4
_MAX_DEPTH = 16
_MAX_EPOCHS = 2**31 - 1
_MAX_RESTARTS = 10_000
# A tree's record tells the parameters that may change the tree and can be written down.
_UNRECORDED = {"n_jobs", "verbose", "callbacks", "init", "training"}


class DGTClassifier(TreeClassifier):
    """A hard oblique decision tree for classes, learned by gradient descent (DGT).

    Every split weighs all columns of the table: numbers, levels of categories, and whether an entry
    is missing. Tables may be NumPy arrays, SciPy sparse matrices, pandas, polars or Arrow frames.
    Neither the order of the rows nor a repeated row instead of a weight changes the tree.

    Parameters
    ----------
    max_depth : int, default=6
        Splits on the way from the root to a leaf, 1 to 16. Those that decide nothing are dropped
        when learning ends.
    layers : int, default=1
        Linear layers whose product the weights of the splits are while they are learned; this
        version accepts 1 only, the splits themselves.
    learning_rate : float, default=0.01
        The largest step size of the schedule.
    batch_size : int, default=128
        Rows per step.
    max_epochs : int or "auto", default="auto"
        Passes over the rows; "auto": 30 to 400, fewer for larger tables.
    momentum : float, default=None
        Of the optimiser, in [0, 1); for Adam its beta_1. None: 0.9 for Adam, else 0.
    l1, l2 : float, default=0.0
        Penalties on the weights of the splits, in standard units; l1 makes weights exactly zero.
    loss : "log_loss", Loss or function, default="log_loss"
        What is minimised. A function takes the scores (B, n_classes) and the class indices (B, 1)
        of a batch and returns the gradient by the scores, or a pair of losses (B,) and gradient.
    restarts : int or "auto", default="auto"
        Trees learned from different random starts; the one with the smallest loss is kept, on the
        validation part where there is one. "auto": 4 where there is one, else 1, since the
        training loss alone prefers the tree that overfits most.
    validation_fraction : float, default=0.1
        Part of the rows that is kept apart when stopping early; drawn from every class alike.
    early_stopping : bool or "auto", default="auto"
        Whether to keep a validation part, to stop when its loss no longer falls, and to return to
        the pass where it was smallest. "auto": for tables with at least 100 different rows.
    class_weight : dict, "balanced" or None, default=None
        What the weight of every row is multiplied by, by class. "balanced": such that all classes
        have the same total weight.
    init : ObliqueTree or fitted estimator, default=None
        A tree to start from instead of random splits, with the same columns and classes.
    n_jobs : int, default=None
        Threads, -1 for all processors; they share the restarts. The tree does not depend on them.
    random_state : int, RandomState instance or None, default=None
        Of the start, the order of rows and the choice of the validation part.
    verbose : int, default=0
        1 prints some 20 lines per restart, 2 one line per pass.
    callbacks : function or list of functions, default=None
        Called with an `Epoch` after every pass; a true answer ends that restart, whose best tree is
        kept.
    training : Training, default=None
        The remaining options of the training loop.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, simplified: what predicts, reads, draws and saves.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are text.
    history_ : list of Epoch
        One record per pass, restart by restart.
    n_iter_ : int
        Passes that the restart which was kept has taken.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import DGTClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = DGTClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        max_depth: int = 6,
        layers: int = 1,
        learning_rate: float = 0.01,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        momentum: float | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        loss: Any = "log_loss",
        restarts: int | Literal["auto"] = "auto",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        class_weight: Any = None,
        init: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        training: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.layers = layers
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.momentum = momentum
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.class_weight = class_weight
        self.init = init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DGTClassifier:
        """Learn a tree.

        Parameters
        ----------
        X
            The table, (n, p).
        y
            One label per row: text, integers or booleans of at least two classes.
        sample_weight
            (n,) >= 0, what each row counts; None for rows that count the same.
        """
        table = Table.of(X)
        target = class_target(y, table.n_rows)
        weight = row_weights(sample_weight, table.n_rows)
        loss = _loss(self.loss, "classification", len(target.classes))
        factor = class_weights(self.class_weight, target, weight)
        data = TrainingSet.of(table, target.index[:, None].astype(np.float64), weight, factor)
        _check_two_classes(target.classes, target.index[data.rows.index])
        labels = tuple(target.classes.tolist())
        problem, grown = _grow(self, data, loss, len(labels), labels)
        tree = _tree(self, data, problem, grown, labels, target.names)
        _adopt(self, X, tree, grown)
        self.classes_ = target.classes
        self._leaf_labels = target.classes[tree.values.argmax(axis=1)]
        _warn_if_interrupted(grown)
        return self


class DGTRegressor(TreeRegressor):
    """A hard oblique decision tree for numbers, learned by gradient descent (DGT).

    Parameters and attributes are those of `DGTClassifier`, except for:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        "squared_error", "absolute_error", "huber", "quantile" or "poisson"; `hardwood.Huber` and
        `hardwood.Quantile` for another bend or level. A function takes predictions (B, k)
        and targets (B, k) and returns the gradient by the prediction, or a pair of losses (B,) and
        gradient.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Notes
    -----
    Targets are learned in units of their standard deviation, except by the Poisson loss and by
    functions.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import DGTRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = DGTRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    def __init__(
        self,
        *,
        max_depth: int = 6,
        layers: int = 1,
        learning_rate: float = 0.01,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        momentum: float | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        loss: Any = "squared_error",
        restarts: int | Literal["auto"] = "auto",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        init: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        training: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.layers = layers
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.momentum = momentum
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.init = init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DGTRegressor:
        """Learn a tree.

        Parameters
        ----------
        X
            The table, (n, p).
        y
            Finite numbers, (n,) or (n, k).
        sample_weight
            (n,) >= 0, what each row counts; None for rows that count the same.
        """
        table = Table.of(X)
        target = number_target(y, table.n_rows)
        weight = row_weights(sample_weight, table.n_rows)
        loss = _loss(self.loss, "regression", None)
        if isinstance(loss, Poisson) and (target.values < 0).any():
            raise ValueError(
                f"The Poisson loss is for y >= 0, found {target.values.min():g}. "
                "Use loss='squared_error' or another one for targets of any sign."
            )
        data = TrainingSet.of(table, target.values, weight)
        problem, grown = _grow(self, data, loss, target.values.shape[1])
        tree = _tree(self, data, problem, grown, None, target.names)
        _adopt(self, X, tree, grown)
        self.n_outputs_ = target.values.shape[1]
        _warn_if_interrupted(grown)
        return self


Estimator = DGTClassifier | DGTRegressor


def _loss(spec: Any, task: Literal["classification", "regression"], n_classes: int | None) -> Loss:
    loss = loss_of(spec, task, n_classes)
    if isinstance(loss, Logistic) and n_classes != 2:
        raise ValueError(f"The logistic loss is for two classes, found {n_classes}.")
    if isinstance(loss, Custom):
        return dataclasses.replace(loss, classification=task == "classification")
    return loss


def _check_two_classes(classes: np.ndarray, index: np.ndarray) -> None:
    left = np.unique(index)
    if len(left) < 2:
        raise ValueError(
            "A classifier needs rows of at least 2 classes, found 1 class among the rows whose "
            f"weight is not zero: {classes[left[0]].item()!r}."
        )


def _grow(
    estimator: Estimator,
    data: TrainingSet,
    loss: Loss,
    n_targets: int,
    labels: tuple[Any, ...] | None = None,
) -> tuple[Problem, Grown]:
    """Check the parameters, pose the problem and learn."""
    seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    n_outputs = loss.n_outputs(n_targets)
    stops_early = _stops_early(estimator, data, loss, n_outputs)
    config = _config(estimator, stops_early)
    start = parameters.start_tree(estimator.init)
    if start is not None:
        _check_start(start, labels)
    fraction = parameters.real("validation_fraction", estimator.validation_fraction, 0.0, 1.0)
    problem = Problem.of(
        data,
        loss,
        n_outputs=n_outputs,
        is_classified=labels is not None,
        validation_fraction=fraction if stops_early else 0.0,
        seed=seed,
    )
    callbacks = parameters.callback_list(estimator.callbacks)
    verbose = parameters.level("verbose", estimator.verbose)
    if verbose:
        callbacks.append(printer(verbose))
    n_jobs = parameters.n_threads(estimator.n_jobs)
    return problem, learn(
        problem, config, start=start, n_jobs=n_jobs, seed=seed, callbacks=callbacks
    )


def _config(estimator: Estimator, stops_early: bool) -> DGT:
    is_auto = _is_auto(estimator.max_epochs)
    return DGT(
        max_depth=parameters.integer("max_depth", estimator.max_depth, 1, _MAX_DEPTH),
        layers=parameters.integer("layers", estimator.layers, 1),
        learning_rate=parameters.real(
            "learning_rate", estimator.learning_rate, 0.0, math.inf, open_low=True
        ),
        batch_size=parameters.integer("batch_size", estimator.batch_size, 1),
        max_epochs=None
        if is_auto
        else parameters.integer("max_epochs", estimator.max_epochs, 1, _MAX_EPOCHS),
        momentum=_momentum(estimator),
        l1=parameters.real("l1", estimator.l1, 0.0, math.inf),
        l2=parameters.real("l2", estimator.l2, 0.0, math.inf),
        restarts=_restarts(estimator, stops_early),
        early_stopping=stops_early,
        training=parameters.training_options(estimator.training),
    )


def _momentum(estimator: Estimator) -> float | None:
    if estimator.momentum is None:
        return None
    return parameters.real("momentum", estimator.momentum, 0.0, 1.0)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _restarts(estimator: Estimator, stops_early: bool) -> int:
    if _is_auto(estimator.restarts):
        return _VALIDATED_RESTARTS if stops_early and estimator.init is None else 1
    return parameters.integer("restarts", estimator.restarts, 1, _MAX_RESTARTS)


def _stops_early(estimator: Estimator, data: TrainingSet, loss: Loss, n_outputs: int) -> bool:
    asked = parameters.switch("early_stopping", estimator.early_stopping)
    if isinstance(loss, Custom) and not _has_values(loss, data, n_outputs):
        for asked_for, needs in (
            ("early_stopping=True", asked),
            ("restarts > 1", not _is_auto(estimator.restarts) and estimator.restarts > 1),
        ):
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
    return has_part and (len(data.rows) >= _EARLY_STOPPING_FROM if asked is None else asked)


def _has_values(loss: Custom, data: TrainingSet, n_outputs: int) -> bool:
    """Ask the function once, for two rows, what it returns."""
    target = data.target[data.rows.index[:2]].astype(np.float32)
    values, _ = loss(np.zeros((len(target), n_outputs), dtype=np.float32), target)
    return values is not None


def _check_start(start: ObliqueTree, labels: tuple[Any, ...] | None) -> None:
    if start.classes != labels:
        raise ValueError(
            f"init is a tree for {_task_of(start.classes)}, but the target has {_task_of(labels)}."
        )


def _task_of(labels: tuple[Any, ...] | None) -> str:
    if labels is None:
        return "numbers"
    shown = ", ".join(map(repr, labels[:10]))
    return f"the classes {shown}{', ...' if len(labels) > 10 else ''}"


def _tree(
    estimator: Estimator,
    data: TrainingSet,
    problem: Problem,
    grown: Grown,
    labels: tuple[Any, ...] | None,
    target_names: tuple[str, ...] | None,
) -> ObliqueTree:
    weights, bias = fold(grown, problem)
    return assemble(
        data,
        weights,
        bias,
        problem.leaf_values(grown.scores),
        task="regression" if labels is None else "classification",
        classes=labels,
        target_names=target_names,
        record=_record(estimator, data, problem, grown),
        n_jobs=parameters.n_threads(estimator.n_jobs),
    )


def _record(
    estimator: Estimator, data: TrainingSet, problem: Problem, grown: Grown
) -> dict[str, Any]:
    """How the tree came about: the same for every way of giving the same rows and any n_jobs."""
    record: dict[str, Any] = {
        "learner": type(estimator).__name__,
        "parameters": {
            name: _writable(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in _UNRECORDED
        },
        "distinct_rows": len(data.rows),
        "validation_rows": len(problem.valid),
        "passes": _n_passes(grown),
        "best_pass": grown.best_epoch + 1,
    }
    best = [
        e for e in grown.history if (e.restart, e.epoch) == (grown.best_restart, grown.best_epoch)
    ]
    for name in ("train_loss", "validation_loss"):
        if best and math.isfinite(getattr(best[0], name)):
            record[name] = getattr(best[0], name)
    return record


def _writable(value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): _writable(entry) for key, entry in value.items()}
    return getattr(value, "__qualname__", None) or type(value).__name__


def _n_passes(grown: Grown) -> int:
    return sum(epoch.restart == grown.best_restart for epoch in grown.history)


def _adopt(estimator: Estimator, X: Any, tree: ObliqueTree, grown: Grown) -> None:
    """Set what was learned, all at once: a failed `fit` leaves an earlier one as it was."""
    validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = tree.n_features
    estimator.tree_ = tree
    estimator.history_ = list(grown.history)
    estimator.n_iter_ = _n_passes(grown)


def _warn_if_interrupted(grown: Grown) -> None:
    """Say so, last of all: where warnings are errors, the estimator is whole already."""
    if grown.interrupted:
        warnings.warn(
            f"Learning was interrupted after {len(grown.history)} epoch(s); "
            "the best tree so far is kept.",
            FitInterruptedWarning,
            stacklevel=3,
        )
