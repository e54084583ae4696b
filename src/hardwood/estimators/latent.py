"""Latent trees for scikit-learn: a tree and a predictor on top of it, learned together.

The method is in `hardwood.learn.latent`; `exercise` makes a problem of a table and a target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from hardwood.estimators import exercise as exercises
from hardwood.estimators import parameters
from hardwood.estimators.base import ModelClassifier, ModelEstimator, ModelRegressor
from hardwood.estimators.exercise import Exercise
from hardwood.learn.latent import GrownLatentTree, Latent, Split, learn
from hardwood.learn.task import Problem
from hardwood.learn.units import leaves_in_raw_units, splits_in_raw_units
from hardwood.model import LatentTreeModel, ObliqueTree
from hardwood.model.edit.harden import HardeningCost

_MAX_DEPTH = 12
_MAX_WIDTH = 100_000


class LatentEstimator(ModelEstimator):
    """An estimator whose answer is a latent tree, `model_`."""

    model_: LatentTreeModel
    _model_attribute = "model_"

    def apply(self, X: Any) -> np.ndarray:
        """Return the last active node on the hard path of each row, (n,), by its heap number."""
        self._check_predictable(X)
        return self.model_.apply(X, n_jobs=self.n_jobs)

    def traversals(self, X: Any) -> np.ndarray:
        """Return how much of each row passes each node of `model_.nodes`, (n, n_nodes)."""
        self._check_predictable(X)
        return self.model_.traversals(X, n_jobs=self.n_jobs)

    def harden(
        self,
        X: Any,
        y: Any = None,
        *,
        leaves: Literal["constant", "linear"] = "constant",
        sample_weight: Any = None,
    ) -> ObliqueTree:
        """Make a hard tree whose leaves are fitted to rows: see `LatentTreeModel.harden`."""
        check_is_fitted(self)
        return self.model_.harden(X, y, leaves=leaves, sample_weight=sample_weight)

    def hardening_cost(
        self, tree: ObliqueTree, X: Any, y: Any, sample_weight: Any = None
    ) -> HardeningCost:
        """Compare the model with a tree that `harden` made, on rows whose answers are known."""
        self._check_predictable(X)
        return self.model_.hardening_cost(tree, X, y, sample_weight)


class LatentTreeClassifier(LatentEstimator, ModelClassifier):
    """A latent tree for classes: traversals and pruning by a program, a predictor on top.

    Scores of oblique splits make, by a quadratic program, shares of every row at every node, and
    how active the nodes are; a predictor f(x, z) of the row and its shares gives the answer. Splits
    and predictor are learned together, through the program. Nodes that are not active are removed.
    `fit` needs torch (``pip install '.[torch]'``); all else does not.

    Parameters that are not here have the meaning they have for `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=5
        Splits on the way from the root to a leaf before pruning, 1 to 12.
    pruning : float, default=1.0
        Price of a node, lambda, for a batch of rows, any number >= 0. The higher, the less active
        are nodes that few rows reach, and the more of them are removed; 0 prunes nothing.
    head : "linear" or sequence of int, default="linear"
        The predictor: linear, or hidden layers of these widths with ELU between them.
    skip : bool, default=True
        Whether the predictor sees the columns of the row beside its shares.
    split : "linear" or "elu", default="linear"
        Scores are linear, or linear within an ELU.
    dropout : float, default=0.0
        Part of each hidden layer's values that is left out in each step of learning, below 1.
    weight_decay : float, default=0.1
        All that is learned is made smaller by the learning rate times this in each step, which
        together are 1 at most.
    learning_rate : float, default=0.01
        The largest step size of the schedule, which is half a cosine. Steps are QHAdam's.
    batch_size : int, default=256
        Rows per step, for which the program is solved.
    max_epochs : int or "auto", default="auto"
        Passes over the rows; "auto": 20 to 200, fewer for larger tables.
    loss : "log_loss", Loss or function, default="log_loss"
        As of `DGTClassifier`.
    early_stopping : bool or "auto", default="auto"
        Whether the pass with the smallest loss on a validation part is kept, and learning ends when
        0.3 of all passes went by without a smaller one; "auto": with at least 100 different rows.
    n_jobs : int, default=None
        Threads that predict; -1 for all processors. Learning runs on one, since torch's sums
        depend on their number.

    Attributes
    ----------
    model_ : LatentTreeModel
        The tree and the predictor: what predicts, saves, and makes a hard tree (`harden`).
    classes_ : ndarray of shape (n_classes,)
        The classes; where there are several labels, their numbers.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are text.
    history_ : list of Epoch
        One record per pass; `active_nodes` is the share of nodes that are active after it.
    n_iter_ : int
        Passes taken.

    Notes
    -----
    `sample_weight` and `class_weight` weigh the loss. The program counts every distinct row once: a
    row of weight two is the row given twice, but twice the weight makes a node no more active.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import LatentTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LatentTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> tree = model.harden(X, y)
    >>> print(model.hardening_cost(tree, X, y))  # doctest: +ELLIPSIS
    log loss: ...
    """

    def __init__(
        self,
        *,
        max_depth: int = 5,
        pruning: float = 1.0,
        head: Literal["linear"] | Sequence[int] = "linear",
        skip: bool = True,
        split: Split = "linear",
        dropout: float = 0.0,
        weight_decay: float = 0.1,
        learning_rate: float = 0.01,
        batch_size: int = 256,
        max_epochs: int | Literal["auto"] = "auto",
        loss: Any = "log_loss",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.pruning = pruning
        self.head = head
        self.skip = skip
        self.split = split
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LatentTreeClassifier:
        """Learn a latent tree; arguments are those of `DGTClassifier.fit`.

        Raises
        ------
        MissingExtraError
            Where torch is not installed; the message says how to.
        """
        exercise = exercises.classification(self, X, y, sample_weight)
        model, grown = learn_model(self, exercise)
        _adopt(self, X, model, grown)
        self.classes_ = exercise.classes
        exercises.warn_if_interrupted([grown], "the best tree")
        return self


class LatentTreeRegressor(LatentEstimator, ModelRegressor):
    """A latent tree for numbers: traversals and pruning by a program, a predictor on top.

    Parameters and attributes are those of `LatentTreeClassifier`, without `class_weight` and
    `classes_`, and:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        As of `DGTRegressor`.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import LatentTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = LatentTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    def __init__(
        self,
        *,
        max_depth: int = 5,
        pruning: float = 1.0,
        head: Literal["linear"] | Sequence[int] = "linear",
        skip: bool = True,
        split: Split = "linear",
        dropout: float = 0.0,
        weight_decay: float = 0.1,
        learning_rate: float = 0.01,
        batch_size: int = 256,
        max_epochs: int | Literal["auto"] = "auto",
        loss: Any = "squared_error",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.pruning = pruning
        self.head = head
        self.skip = skip
        self.split = split
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LatentTreeRegressor:
        """Learn a latent tree; arguments are those of `DGTRegressor.fit`.

        Raises
        ------
        MissingExtraError
            Where torch is not installed; the message says how to.
        """
        exercise = exercises.regression(self, X, y, sample_weight)
        model, grown = learn_model(self, exercise)
        _adopt(self, X, model, grown)
        self.n_outputs_ = exercise.n_targets
        exercises.warn_if_interrupted([grown], "the best tree")
        return self


Estimator = LatentTreeClassifier | LatentTreeRegressor


def learn_model(
    estimator: Estimator, exercise: Exercise, **further: Any
) -> tuple[LatentTreeModel, GrownLatentTree]:
    """Check the parameters, pose the problem, learn, and make the model.

    `further` are hyper-parameters of `Latent` that the estimators have not.
    """
    parameters.n_threads(estimator.n_jobs)
    seed = exercises.drawn_seed(estimator.random_state)
    stops_early = exercises.stops_early(estimator, exercise, compares=False, by_default=True)
    config = replace(config_of(estimator, stops_early), **further)
    problem = exercises.problem_of(estimator, exercise, stops_early, seed)
    grown = learn(problem, config, seed=seed, callbacks=exercises.callbacks_of(estimator))
    record = exercises.record_of(estimator, exercise, problem, grown)
    return model_of(exercise, problem, config, grown, record), grown


def config_of(estimator: Any, stops_early: bool) -> Latent:
    """Check the parameters that all estimators of latent trees share."""
    learning_rate = parameters.real(
        "learning_rate", estimator.learning_rate, 0.0, math.inf, open_low=True
    )
    weight_decay = parameters.real("weight_decay", estimator.weight_decay, 0.0, math.inf)
    if learning_rate * weight_decay > 1:  # a step would turn what was learned around
        raise ValueError(
            "weight_decay times learning_rate must be at most 1, got "
            f"{weight_decay:g} times {learning_rate:g}."
        )
    return Latent(
        max_depth=parameters.integer("max_depth", estimator.max_depth, 1, _MAX_DEPTH),
        pruning=parameters.real("pruning", estimator.pruning, 0.0, 1e30, open_high=False),
        split=parameters.choice("split", estimator.split, ("linear", "elu")),
        head=_widths(estimator.head),
        skip=parameters.flag("skip", estimator.skip),
        dropout=parameters.real("dropout", estimator.dropout, 0.0, 1.0),
        weight_decay=weight_decay,
        learning_rate=learning_rate,
        batch_size=parameters.integer("batch_size", estimator.batch_size, 1),
        max_epochs=exercises.max_epochs(estimator.max_epochs),
        early_stopping=stops_early,
    )


def _widths(value: Any) -> tuple[int, ...]:
    if isinstance(value, str) and value == "linear":
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise ValueError(f"head must be 'linear' or a list of widths, got {value!r}.")
    return tuple(
        parameters.integer(f"head[{i}]", width, 1, _MAX_WIDTH) for i, width in enumerate(value)
    )


def model_of(
    exercise: Exercise,
    problem: Problem,
    config: Latent,
    grown: GrownLatentTree,
    record: dict[str, Any],
) -> LatentTreeModel:
    """Make the model of what was learned, in raw units."""
    weights, bias = splits_in_raw_units(grown.weights, grown.bias, problem)
    layers = list(grown.layers)
    last, constants = layers[-1]
    values, slopes = problem.linear_leaves(constants[None], last[None])
    layers[-1] = slopes[0], values[0]
    if config.skip:
        first, constants = layers[0]
        n_nodes = len(grown.nodes)
        moved, raw = leaves_in_raw_units(constants[None], first[None, :, n_nodes:], problem)
        layers[0] = np.hstack([first[:, :n_nodes], raw[0]]), moved[0]
    return LatentTreeModel(
        grown.nodes,
        grown.activity,
        weights,
        bias,
        np.concatenate([layer[0].ravel() for layer in layers]),
        np.concatenate([layer[1] for layer in layers]),
        widths=config.head,
        skip=config.skip,
        activation=config.split,
        schema=problem.schema,
        task=exercise.task,
        link=problem.loss.link_name,
        classes=exercise.labels,
        target_names=exercise.target_names,
        record=record,
    )


def _adopt(estimator: Estimator, X: Any, model: LatentTreeModel, grown: GrownLatentTree) -> None:
    """Set what was learned, all at once: a failed `fit` leaves an earlier one as it was."""
    validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = model.n_features
    estimator.model_ = model
    estimator.history_ = list(grown.history)
    estimator.n_iter_ = exercises.n_passes(grown)
