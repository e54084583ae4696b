"""Trees by alternating optimisation for scikit-learn: every split solved for, given all others.

The method is in `hardwood.learn.tao`; `exercise` makes a problem of table, target and parameters.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, get_args

from sklearn.utils.validation import validate_data

from hardwood.estimators import exercise as exercises
from hardwood.estimators import parameters
from hardwood.estimators.base import TreeClassifier, TreeRegressor
from hardwood.estimators.exercise import Exercise
from hardwood.learn.finish import assemble
from hardwood.learn.greedy import SPLITS
from hardwood.learn.losses import Custom, Loss, Misclassification, loss_of
from hardwood.learn.start import start_of
from hardwood.learn.tao import Alternated, Alternation, Leaves, Start, learn
from hardwood.learn.task import Problem
from hardwood.model import ObliqueTree

_MAX_DEPTH = 32


class TAOClassifier(TreeClassifier):
    """A hard oblique decision tree for classes, by alternating optimisation of its splits.

    Starts from any tree and makes it better: split by split, depth by depth, each is replaced by
    the best one found for it while all others stay, and the loss on the training rows never rises.

    Parameters that are not here have the meaning they have for `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=8
        Of the start, 1 to 32. Splits that decide nothing are dropped when learning ends.
    init : "axis", "random", "oc1", "co2", ObliqueTree or fitted estimator, default="axis"
        How a greedy start searches its splits (see `GreedyTreeClassifier`), or a tree to start
        from, with the same columns and classes.
    l1, l2 : float or "auto", default="auto"
        Penalties on the weights of a split, and on half their squares, in the logistic regression
        that finds it, in standard units and against a loss summed over rows: nodes with fewer rows
        are penalised more. "auto": several are tried, with the best of them starts that are less
        deep, and what is best on the validation part is used to learn from all rows.
    leaves : "constant" or "linear", default="constant"
        What leaves predict: a constant, or a linear function of the columns.
    leaf_l2 : float, default=1.0
        Penalty on half the squared weights of linear leaves, in standard units and against a loss
        summed over rows.
    leaf_rows : float, default=1.0
        Rows of the mean target that each leaf counts besides its own: no probability is zero.
    max_sweeps : int, default=20
        Passes over all splits; fewer where none of them changes any more.
    max_features_per_split : int, default=None
        Features that a split may weigh; None for all.
    loss : "auto", "misclassification", "log_loss" or Loss, default="auto"
        What is minimised, exactly. "auto": misclassification, and the log loss of linear leaves and
        of several labels. Leaves give probabilities in any case, the shares of their rows; for good
        ones rather than the right class give "log_loss". A loss must be evaluated for single rows:
        no function.
    early_stopping : bool or "auto", default="auto"
        Whether the tree of the sweep that was best on a validation part is kept. "auto": of tables
        with at least 100 different rows. Where `l1` is chosen, so many sweeps are then taken over
        all rows.
    verbose : int, default=0
        As of `DGTClassifier`. The values that "auto" tries are runs, numbered from 0 as they are in
        `trials_`; the last run learns from all rows. To `callbacks` these are `Epoch.restart`, and
        sweeps are epochs.
    warm_start : bool, default=False
        Whether a second `fit` starts from the tree of the first.

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
    l1_, l2_ : float
        The penalties that were used.
    trials_ : list of (l1, l2, depth of the start, validation loss)
        What "auto" has tried; empty where nothing was.
    objective_ : list of float
        What is minimised (`hardwood.learn.tao`), of the start and after each sweep: never rises.
    history_ : list of Epoch
        One record per sweep of the run that was kept.
    n_iter_ : int
        Its sweeps.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import TAOClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TAOClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        max_depth: int = 8,
        init: Any = "axis",
        l1: float | Literal["auto"] = "auto",
        l2: float | Literal["auto"] = "auto",
        leaves: Leaves = "constant",
        leaf_l2: float = 1.0,
        leaf_rows: float = 1.0,
        max_sweeps: int = 20,
        max_features_per_split: int | None = None,
        loss: Any = "auto",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.max_depth = max_depth
        self.init = init
        self.l1 = l1
        self.l2 = l2
        self.leaves = leaves
        self.leaf_l2 = leaf_l2
        self.leaf_rows = leaf_rows
        self.max_sweeps = max_sweeps
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TAOClassifier:
        """Learn a tree; arguments are those of `DGTClassifier.fit`."""
        loss_of = partial(_class_loss, self.leaves)
        exercise = exercises.classification(self, X, y, sample_weight, loss_of=loss_of)
        tree, grown = _learn(self, exercise)
        _adopt(self, X, tree, grown)
        self.classes_ = exercise.classes
        self._keep_classes_of_leaves()
        exercises.warn_if_interrupted([grown], "the best tree")
        return self


class TAORegressor(TreeRegressor):
    """A hard oblique decision tree for numbers, by alternating optimisation of its splits.

    Parameters and attributes are those of `TAOClassifier`, without `class_weight` and `classes_`,
    and:

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
    >>> from hardwood import TAORegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TAORegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    def __init__(
        self,
        *,
        max_depth: int = 8,
        init: Any = "axis",
        l1: float | Literal["auto"] = "auto",
        l2: float | Literal["auto"] = "auto",
        leaves: Leaves = "constant",
        leaf_l2: float = 1.0,
        leaf_rows: float = 1.0,
        max_sweeps: int = 20,
        max_features_per_split: int | None = None,
        loss: Any = "squared_error",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.max_depth = max_depth
        self.init = init
        self.l1 = l1
        self.l2 = l2
        self.leaves = leaves
        self.leaf_l2 = leaf_l2
        self.leaf_rows = leaf_rows
        self.max_sweeps = max_sweeps
        self.max_features_per_split = max_features_per_split
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TAORegressor:
        """Learn a tree; arguments are those of `DGTRegressor.fit`."""
        exercise = exercises.regression(self, X, y, sample_weight)
        tree, grown = _learn(self, exercise)
        _adopt(self, X, tree, grown)
        self.n_outputs_ = exercise.n_targets
        exercises.warn_if_interrupted([grown], "the best tree")
        return self


Estimator = TAOClassifier | TAORegressor


def _class_loss(leaves: Any, spec: object, task: str, n_classes: int | None = None) -> Loss:
    """Find a loss, among them the one that other learners cannot descend on."""
    is_name = isinstance(spec, str)
    if is_name and spec == "auto":
        spec = "log_loss" if task == "multilabel" or leaves == "linear" else "misclassification"
    is_asked = isinstance(spec, Misclassification) or (is_name and spec == "misclassification")
    if is_asked and task == "classification":
        return Misclassification()
    return loss_of(spec, task, n_classes)


def _learn(estimator: Estimator, exercise: Exercise) -> tuple[ObliqueTree, Alternated]:
    """Check the parameters, pose the problem, learn, and make the tree."""
    if isinstance(exercise.loss, Custom):
        raise ValueError(
            "Alternation evaluates its loss for single rows, so loss must be a name or a loss "
            "object, not a function. DGTClassifier and DGTRegressor take functions."
        )
    seed = exercises.drawn_seed(estimator.random_state)
    n_jobs = parameters.n_threads(estimator.n_jobs)
    stops_early = exercises.stops_early(estimator, exercise, compares=False, by_default=True)
    config = _config_of(estimator, exercise, stops_early)
    start = _start_of(estimator, exercise, n_jobs, seed)
    grown = learn(
        exercises.problem_of(estimator, exercise, stops_early or config.is_searched, seed),
        config,
        start,
        whole=exercises.problem_of(estimator, exercise, False, seed),
        cuts_start=isinstance(estimator.init, str),
        n_jobs=n_jobs,
        callbacks=exercises.callbacks_of(estimator, "run"),
    )
    return _tree_of(estimator, exercise, grown, n_jobs), grown


def _config_of(estimator: Estimator, exercise: Exercise, stops_early: bool) -> Alternation:
    most = estimator.max_features_per_split
    leaves = parameters.choice("leaves", estimator.leaves, get_args(Leaves))
    if leaves == "linear" and isinstance(exercise.loss, Misclassification):
        raise ValueError(
            "leaves='linear' learns probabilities that depend on the columns, but "
            "loss='misclassification' looks at the largest one only. Give loss='log_loss'."
        )
    searched = [name for name in ("l1", "l2") if exercises.is_auto(getattr(estimator, name))]
    if searched and estimator.validation_fraction == 0:
        raise ValueError(
            f"{searched[0]}='auto' is judged on a validation part, but validation_fraction is 0. "
            f"Give a fraction, or a number for {' and '.join(searched)}."
        )

    def real(name: str) -> float:
        return parameters.real(name, getattr(estimator, name), 0.0, math.inf)

    return Alternation(
        l1="auto" if "l1" in searched else real("l1"),
        l2="auto" if "l2" in searched else real("l2"),
        leaves=leaves,
        leaf_l2=real("leaf_l2"),
        leaf_rows=real("leaf_rows"),
        max_sweeps=parameters.integer("max_sweeps", estimator.max_sweeps, 0, 2**31 - 1),
        max_features_per_split=None
        if most is None
        else parameters.integer("max_features_per_split", most, 1, 2**31 - 1),
        early_stopping=stops_early,
    )


def _start_of(estimator: Estimator, exercise: Exercise, n_jobs: int, seed: int) -> Start:
    """Return what grows the start tree from a problem."""
    max_depth = parameters.integer("max_depth", estimator.max_depth, 1, _MAX_DEPTH)
    is_warm = parameters.flag("warm_start", estimator.warm_start) and "tree_" in vars(estimator)
    init = estimator.tree_ if is_warm else estimator.init
    if init is None:
        raise ValueError(f"init must be one of {list(SPLITS)}, or a tree, got None.")

    def start(problem: Problem) -> ObliqueTree:
        tree = start_of(init, exercise, problem, max_depth, n_jobs=n_jobs, seed=seed)
        assert tree is not None
        if tree.depth > max_depth:
            raise ValueError(
                f"The start tree has depth {tree.depth}, more than max_depth={max_depth}."
            )
        return tree

    return start


def _tree_of(
    estimator: Estimator, exercise: Exercise, grown: Alternated, n_jobs: int
) -> ObliqueTree:
    """Make the tree of what was learned: counted and simplified."""
    record = exercises.record_of(estimator, exercise, grown.problem, grown)
    if grown.trials:
        record["resolved"] = {"l1": grown.l1, "l2": grown.l2}
    tree = grown.tree
    return assemble(
        exercise.data,
        tree.weights,
        tree.bias,
        tree.children,
        tree.values,
        task=exercise.task,
        classes=exercise.labels,
        target_names=exercise.target_names,
        record=record,
        leaf_weights=tree.leaf_weights,
        link=tree.link,
        n_jobs=n_jobs,
    )


def _adopt(estimator: Estimator, X: Any, tree: ObliqueTree, grown: Alternated) -> None:
    """Set what was learned, all at once: a failed `fit` leaves an earlier one as it was."""
    validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = tree.n_features
    estimator.tree_ = tree
    estimator.l1_, estimator.l2_ = grown.l1, grown.l2
    estimator.trials_ = list(grown.trials)
    estimator.objective_ = list(grown.objective)
    estimator.history_ = list(grown.history)
    estimator.n_iter_ = exercises.n_passes(grown)
