"""Non-greedy trees for scikit-learn: all splits and leaves of one tree, learned together.

The method is in `hardwood.learn.non_greedy`; `exercise` makes a problem of table, target and
parameters.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

from sklearn.utils.validation import validate_data

from hardwood.estimators import exercise as exercises
from hardwood.estimators import parameters
from hardwood.estimators.base import TreeClassifier, TreeRegressor
from hardwood.estimators.exercise import Exercise
from hardwood.learn.finish import assemble
from hardwood.learn.greedy import SPLITS
from hardwood.learn.losses import Custom
from hardwood.learn.non_greedy import (
    GrownNonGreedy,
    Inference,
    NonGreedy,
    Solver,
    Start,
    StartTree,
    default_training,
    learn,
    start_from,
)
from hardwood.learn.start import start_of
from hardwood.learn.task import Problem
from hardwood.learn.units import splits_in_raw_units
from hardwood.model import ObliqueTree

_MAX_DEPTH = 32


class NonGreedyTreeClassifier(TreeClassifier):
    """A hard oblique decision tree for classes, all of it learned together, from a greedy start.

    Splits and leaves descend on a bound of the tree's loss. A step concerns the paths of its rows
    and nothing else, so deep trees and wide tables are learned in minutes.

    Parameters that are not here have the meaning they have for `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=8
        Of the greedy start, 1 to 32. Splits that decide nothing are dropped when learning ends.
    nu : float or "auto", default=43.0
        Largest squared norm of a split, its bias included, in standard units. A smaller one keeps
        rows away from the splits and uses fewer leaves. "auto": each of 0.1, 1, 4, 10, 43 and 100
        is tried, and the best one on the validation part used to learn from all rows.
    learning_rate : float or "auto", default=0.1
        The largest step size of the schedule. "auto": a few are tried, as of `nu`, with each of its
        values.
    inference : "exact", "fast" or "exhaustive", default="exact"
        Which leaves a row's own is compared with: all of them, by branch and bound; those reached
        by changing one decision; or all of them one by one, which gives the same tree as "exact"
        and takes as much longer as there are leaves.
    solver : "ssgd" or "sgd", default="ssgd"
        "ssgd": rows keep their leaves until an epoch improves the bound no more, which leaves fewer
        leaves unused. "sgd": rows go where the splits send them.
    init : "co2", "axis", "oc1", "random", ObliqueTree or fitted estimator, default="co2"
        How the greedy start searches its splits (see `GreedyTreeClassifier`), or a tree to start
        from, with the same columns and classes.
    batch_size : int, default=128
        Rows per step.
    momentum : float, default=0.9
        In [0, 1); of the splits and leaves that a step concerns.
    max_epochs : int or "auto", default="auto"
        Passes over the rows; "auto": 30 to 400, fewer for larger tables.
    l1 : float, default=0.0
        Penalty on the weights of the splits that a step concerns, in standard units; makes weights
        exactly zero.
    max_features_per_split : int, default=None
        Features that a split may weigh; None for all.
    loss : "log_loss" or Loss, default="log_loss"
        As of `DGTClassifier`, but no function: it is evaluated for leaves, not for batches.
    early_stopping : bool or "auto", default="auto"
        As of `DGTClassifier`, but "auto" is False: as in the paper, the last pass is returned.
    verbose : int, default=0
        As of `DGTClassifier`. The pairs that "auto" tries are runs, numbered from 0 as they are in
        `trials_`; the last run learns from all rows. To `callbacks` these are `Epoch.restart`.
    warm_start : bool, default=False
        Whether a second `fit` starts from the tree of the first.
    training : Training, default=None
        The remaining options of the training loop; None for one cosine, without a limit on
        gradients. The optimizer is always "sgd".

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, simplified: what predicts, reads, draws and saves.
    classes_ : ndarray of shape (n_classes,)
        The classes; where there are several labels, their numbers.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are text.
    nu_, learning_rate_ : float
        Those that were used.
    trials_ : list of (nu, learning rate, validation loss)
        What "auto" has tried; empty where nothing was.
    history_ : list of Epoch
        One record per pass of the run that was kept; `train_bound` is the bound.
    n_iter_ : int
        Its passes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import NonGreedyTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = NonGreedyTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        max_depth: int = 8,
        nu: float | Literal["auto"] = 43.0,
        learning_rate: float | Literal["auto"] = 0.1,
        inference: Inference = "exact",
        solver: Solver = "ssgd",
        init: Any = "co2",
        batch_size: int = 128,
        momentum: float = 0.9,
        max_epochs: int | Literal["auto"] = "auto",
        l1: float = 0.0,
        max_features_per_split: int | None = None,
        loss: Any = "log_loss",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        warm_start: bool = False,
        training: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.nu = nu
        self.learning_rate = learning_rate
        self.inference = inference
        self.solver = solver
        self.init = init
        self.batch_size = batch_size
        self.momentum = momentum
        self.max_epochs = max_epochs
        self.l1 = l1
        self.max_features_per_split = max_features_per_split
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NonGreedyTreeClassifier:
        """Learn a tree; arguments are those of `DGTClassifier.fit`."""
        exercise = exercises.classification(self, X, y, sample_weight)
        tree, grown = _learn(self, exercise)
        _adopt(self, X, tree, grown)
        self.classes_ = exercise.classes
        self._keep_classes_of_leaves()
        exercises.warn_if_interrupted([grown], "the best tree")
        return self


class NonGreedyTreeRegressor(TreeRegressor):
    """A hard oblique decision tree for numbers, all of it learned together, from a greedy start.

    Parameters and attributes are those of `NonGreedyTreeClassifier`, without `class_weight` and
    `classes_`, and:

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        As of `DGTRegressor`, but no function.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import NonGreedyTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = NonGreedyTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    def __init__(
        self,
        *,
        max_depth: int = 8,
        nu: float | Literal["auto"] = 43.0,
        learning_rate: float | Literal["auto"] = 0.1,
        inference: Inference = "exact",
        solver: Solver = "ssgd",
        init: Any = "co2",
        batch_size: int = 128,
        momentum: float = 0.9,
        max_epochs: int | Literal["auto"] = "auto",
        l1: float = 0.0,
        max_features_per_split: int | None = None,
        loss: Any = "squared_error",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        warm_start: bool = False,
        training: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.nu = nu
        self.learning_rate = learning_rate
        self.inference = inference
        self.solver = solver
        self.init = init
        self.batch_size = batch_size
        self.momentum = momentum
        self.max_epochs = max_epochs
        self.l1 = l1
        self.max_features_per_split = max_features_per_split
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NonGreedyTreeRegressor:
        """Learn a tree; arguments are those of `DGTRegressor.fit`."""
        exercise = exercises.regression(self, X, y, sample_weight)
        tree, grown = _learn(self, exercise)
        _adopt(self, X, tree, grown)
        self.n_outputs_ = exercise.n_targets
        exercises.warn_if_interrupted([grown], "the best tree")
        return self


Estimator = NonGreedyTreeClassifier | NonGreedyTreeRegressor


def _learn(estimator: Estimator, exercise: Exercise) -> tuple[ObliqueTree, GrownNonGreedy]:
    """Check the parameters, pose the problem, learn, and make the tree."""
    if isinstance(exercise.loss, Custom):
        raise ValueError(
            "Non-greedy trees evaluate their loss for single leaves, so loss must be a name or a "
            "loss object, not a function. DGTClassifier and DGTRegressor take functions."
        )
    seed = exercises.drawn_seed(estimator.random_state)
    n_jobs = parameters.n_threads(estimator.n_jobs)
    stops_early = exercises.stops_early(estimator, exercise, compares=False, by_default=False)
    config = _config_of(estimator, stops_early)
    start = _start_of(estimator, exercise, n_jobs, seed)
    _check_search(estimator, config)
    has_part = stops_early or config.is_searched
    problem = exercises.problem_of(estimator, exercise, has_part, seed)
    grown = learn(
        problem,
        config,
        start,
        whole=exercises.problem_of(estimator, exercise, False, seed)
        if config.is_searched
        else None,
        n_jobs=n_jobs,
        seed=seed,
        callbacks=exercises.callbacks_of(estimator, "run"),
    )
    return _tree_of(estimator, exercise, problem, config, grown, n_jobs), grown


def _config_of(estimator: Estimator, stops_early: bool) -> NonGreedy:
    most = estimator.max_features_per_split
    return NonGreedy(
        nu=_number_or_auto("nu", estimator.nu, 1e-6, 1e6),
        learning_rate=_number_or_auto("learning_rate", estimator.learning_rate, 0.0, math.inf),
        inference=parameters.choice("inference", estimator.inference, get_args(Inference)),
        solver=parameters.choice("solver", estimator.solver, get_args(Solver)),
        batch_size=parameters.integer("batch_size", estimator.batch_size, 1),
        max_epochs=exercises.max_epochs(estimator.max_epochs),
        momentum=parameters.real("momentum", estimator.momentum, 0.0, 1.0),
        l1=parameters.real("l1", estimator.l1, 0.0, math.inf),
        max_features_per_split=None
        if most is None
        else parameters.integer("max_features_per_split", most, 1, 2**31 - 1),
        early_stopping=stops_early,
        training=parameters.training_options(estimator.training, default_training()),
    )


def _number_or_auto(name: str, value: Any, low: float, high: float) -> float | Literal["auto"]:
    if exercises.is_auto(value):
        return "auto"
    return parameters.real(name, value, low, high, open_low=True)


def _check_search(estimator: Estimator, config: NonGreedy) -> None:
    """Refuse to search without anything to judge by."""
    if not config.is_searched or estimator.validation_fraction != 0:
        return
    name = "nu" if config.nu == "auto" else "learning_rate"
    raise ValueError(
        f"{name}='auto' is judged on a validation part, but validation_fraction is 0. Give a "
        f"fraction, or a number for {name}."
    )


def _start_of(estimator: Estimator, exercise: Exercise, n_jobs: int, seed: int) -> Start:
    """Return what grows the start tree from a problem."""
    max_depth = parameters.integer("max_depth", estimator.max_depth, 1, _MAX_DEPTH)
    is_warm = parameters.flag("warm_start", estimator.warm_start) and "tree_" in vars(estimator)
    init = estimator.tree_ if is_warm else estimator.init
    if init is None:
        raise ValueError(f"init must be one of {list(SPLITS)}, or a tree, got None.")

    def start(problem: Problem) -> StartTree:
        tree = start_of(init, exercise, problem, max_depth, n_jobs=n_jobs, seed=seed)
        assert tree is not None
        if tree.depth > max_depth:
            raise ValueError(
                f"The start tree has depth {tree.depth}, more than max_depth={max_depth}."
            )
        return start_from(tree, problem, n_jobs=n_jobs)

    return start


def _tree_of(
    estimator: Estimator,
    exercise: Exercise,
    problem: Problem,
    config: NonGreedy,
    grown: GrownNonGreedy,
    n_jobs: int,
) -> ObliqueTree:
    """Make the tree of what was learned: in raw units, counted and simplified."""
    weights, bias = splits_in_raw_units(grown.weights, grown.bias, problem, is_sparse=config.l1 > 0)
    record = exercises.record_of(estimator, exercise, problem, grown)
    if config.is_searched:
        record["resolved"] = {"nu": grown.nu, "learning_rate": grown.learning_rate}
    return assemble(
        exercise.data,
        weights,
        bias,
        grown.children,
        problem.leaf_values(grown.scores),
        task=exercise.task,
        classes=exercise.labels,
        target_names=exercise.target_names,
        record=record,
        n_jobs=n_jobs,
    )


def _adopt(estimator: Estimator, X: Any, tree: ObliqueTree, grown: GrownNonGreedy) -> None:
    """Set what was learned, all at once: a failed `fit` leaves an earlier one as it was."""
    validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = tree.n_features
    estimator.tree_ = tree
    estimator.nu_, estimator.learning_rate_ = grown.nu, grown.learning_rate
    estimator.trials_ = list(grown.trials)
    estimator.history_ = list(grown.history)
    estimator.n_iter_ = exercises.n_passes(grown)
