"""Greedy trees for scikit-learn: axis-aligned, random, OC1 and CO2 splits, as baselines.

The methods are in `hardwood.learn.greedy`; `exercise` makes a problem of table, target and
parameters.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import validate_data

from hardwood.errors import FitInterruptedWarning
from hardwood.estimators import exercise as exercises
from hardwood.estimators import parameters
from hardwood.estimators.base import TreeClassifier, TreeRegressor
from hardwood.estimators.exercise import Exercise
from hardwood.learn.finish import assemble
from hardwood.learn.greedy import SPLITS, Greedy, GrownTree, SplitSearch, learn, one_hot
from hardwood.learn.task import Problem
from hardwood.learn.units import splits_in_raw_units
from hardwood.model import ObliqueTree

_MANY = 2**20 - 1


class GreedyTreeClassifier(TreeClassifier):
    """A decision tree for classes that is grown from the root, split by split.

    Tables may be NumPy arrays, SciPy sparse matrices, pandas, polars or Arrow frames, with
    categories and missing entries. Neither the order of the rows nor a repeated row instead of a
    weight changes the tree.

    Parameters
    ----------
    split : "axis", "random", "oc1" or "co2", default="axis"
        How splits are searched. "axis": all thresholds on all columns; a categorical column is
        split into one level and the others, missing entries go to the better side. "random": the
        best of random hyperplanes. "oc1": hyperplanes by coordinate descent, from the best axis
        split and from random ones. "co2": by gradient descent on a bound of the loss, from the best
        axis split. The last two are kept where they are better than that.
    criterion : "entropy" or "gini", default="entropy"
        What splits are to lower.
    max_depth : int or None, default=6
        Splits on the way from the root to a leaf; None: until leaves are pure. Splits between
        leaves that answer alike are dropped.
    min_samples_split, min_samples_leaf : float, default=2 and 1
        Rows that a node needs to be split, and each of its sides to be one, counted by their
        `sample_weight`. 2 and 1 set no limit, whatever the weights.
    min_weight_fraction_leaf : float, default=0.0
        Part of the weight of all rows that each side of a split needs, in [0, 0.5]; here weights
        include those of classes.
    min_impurity_decrease : float, default=0.0
        A split must lower the mean impurity of all rows by this much.
    n_candidates : int, default=64
        split="random": hyperplanes tried at a node.
    n_restarts : int, default=5
        split="oc1": starts at a node, the first of them from the best axis split.
    n_jumps : int, default=5
        split="oc1": random directions tried where no coordinate helps any more.
    n_coordinates : int, default=50
        split="oc1": coordinates tried in a pass, drawn from those that vary at the node.
    max_passes : int, default=10
        split="oc1": passes over coordinates from one start.
    nu : float or "auto", default="auto"
        split="co2": largest squared norm of a split's weights and bias, in standard units;
        between 1e-6 and 1e6. "auto": 10, and 0.1 at nodes where that finds no
        better split than the best one on a single column.
    learning_rate : float, default=0.3
        split="co2": the largest step size; it falls along a cosine.
    momentum : float, default=0.9
        split="co2": of the steps, in [0, 1).
    batch_size : int, default=128
        split="co2": rows per step.
    max_epochs : int, default=100
        split="co2": passes over the rows of a node; fewer at large ones, for 10,000 steps in all.
    class_weight : dict, "balanced" or None, default=None
        What the weight of every row is multiplied by, by class. "balanced": such that all classes
        have the same total weight.
    n_jobs : int, default=None
        Threads, -1 for all processors. The tree does not depend on them.
    random_state : int, RandomState instance or None, default=None
        Of random directions and coordinates.

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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import GreedyTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> GreedyTreeClassifier(max_depth=2).fit(X, y).score(X, y) > 0.9
    True
    """

    loss: ClassVar[str] = "log_loss"

    def __init__(
        self,
        *,
        split: SplitSearch = "axis",
        criterion: Literal["entropy", "gini"] = "entropy",
        max_depth: int | None = 6,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        n_candidates: int = 64,
        n_restarts: int = 5,
        n_jumps: int = 5,
        n_coordinates: int = 50,
        max_passes: int = 10,
        nu: float | Literal["auto"] = "auto",
        learning_rate: float = 0.3,
        momentum: float = 0.9,
        batch_size: int = 128,
        max_epochs: int = 100,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.split = split
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.n_candidates = n_candidates
        self.n_restarts = n_restarts
        self.n_jumps = n_jumps
        self.n_coordinates = n_coordinates
        self.max_passes = max_passes
        self.nu = nu
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GreedyTreeClassifier:
        """Grow a tree.

        Parameters
        ----------
        X
            The table, (n, p).
        y
            One class per row: text, integers or booleans, of at least two. Or several labels,
            (n, n_labels), 1 or True where a row has a label.
        sample_weight
            (n,) >= 0, what each row counts; None for rows that count the same.
        """
        config = _config_of(self, ("entropy", "gini"))
        exercise = exercises.classification(self, X, y, sample_weight)
        tree, grown = _grow(self, config, exercise)
        _adopt(self, X, tree)
        assert exercise.classes is not None
        self.classes_ = exercise.classes
        self._keep_classes_of_leaves()
        _warn_if_interrupted(grown)
        return self


class GreedyTreeRegressor(TreeRegressor):
    """A decision tree for numbers that is grown from the root, split by split.

    Parameters and attributes are those of `GreedyTreeClassifier`, without `class_weight` and
    `classes_`, and:

    Parameters
    ----------
    criterion : "variance", default="variance"
        What splits are to lower; of several targets, the mean of their variances, each in units of
        its variance in the table. `min_impurity_decrease` is in these units too.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import GreedyTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> GreedyTreeRegressor(max_depth=2).fit(X, y).score(X, y) > 0.4
    True
    """

    loss: ClassVar[str] = "squared_error"

    def __init__(
        self,
        *,
        split: SplitSearch = "axis",
        criterion: Literal["variance"] = "variance",
        max_depth: int | None = 6,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        n_candidates: int = 64,
        n_restarts: int = 5,
        n_jumps: int = 5,
        n_coordinates: int = 50,
        max_passes: int = 10,
        nu: float | Literal["auto"] = "auto",
        learning_rate: float = 0.3,
        momentum: float = 0.9,
        batch_size: int = 128,
        max_epochs: int = 100,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.split = split
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.n_candidates = n_candidates
        self.n_restarts = n_restarts
        self.n_jumps = n_jumps
        self.n_coordinates = n_coordinates
        self.max_passes = max_passes
        self.nu = nu
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GreedyTreeRegressor:
        """Grow a tree.

        Parameters
        ----------
        X
            The table, (n, p).
        y
            Finite numbers, (n,) or (n, k).
        sample_weight
            (n,) >= 0, what each row counts; None for rows that count the same.
        """
        config = _config_of(self, ("variance",))
        exercise = exercises.regression(self, X, y, sample_weight)
        tree, grown = _grow(self, config, exercise)
        _adopt(self, X, tree)
        self.n_outputs_ = exercise.n_targets
        _warn_if_interrupted(grown)
        return self


def _config_of(
    estimator: GreedyTreeClassifier | GreedyTreeRegressor, criteria: tuple[str, ...]
) -> Greedy:
    """Check the parameters."""
    depth = estimator.max_depth
    if depth is not None:
        depth = parameters.integer("max_depth", depth, 1, 2**31 - 1)

    def many(name: str) -> int:
        return parameters.integer(name, getattr(estimator, name), 1, _MANY)

    def real(name: str, low: float, high: float = math.inf, *, open_low: bool = False) -> float:
        return parameters.real(name, getattr(estimator, name), low, high, open_low=open_low)

    return Greedy(
        split=parameters.choice("split", estimator.split, SPLITS),
        criterion=parameters.choice("criterion", estimator.criterion, criteria),
        max_depth=depth,
        min_samples_split=real("min_samples_split", 2),
        min_samples_leaf=real("min_samples_leaf", 1),
        min_weight_fraction_leaf=parameters.real(
            "min_weight_fraction_leaf", estimator.min_weight_fraction_leaf, 0, 0.5, open_high=False
        ),
        min_impurity_decrease=real("min_impurity_decrease", 0),
        n_candidates=many("n_candidates"),
        n_restarts=many("n_restarts"),
        n_jumps=parameters.integer("n_jumps", estimator.n_jumps, 0, _MANY),
        n_coordinates=many("n_coordinates"),
        max_passes=many("max_passes"),
        nu="auto" if exercises.is_auto(estimator.nu) else real("nu", 1e-6, 1e6, open_low=True),
        learning_rate=real("learning_rate", 0, open_low=True),
        momentum=real("momentum", 0, 1),
        batch_size=many("batch_size"),
        max_epochs=many("max_epochs"),
    )


def _grow(
    estimator: GreedyTreeClassifier | GreedyTreeRegressor, config: Greedy, exercise: Exercise
) -> tuple[ObliqueTree, GrownTree]:
    """Pose the problem, grow, and make the tree."""
    n_jobs = parameters.n_threads(estimator.n_jobs)
    seed = exercises.drawn_seed(estimator.random_state)
    data = exercise.data
    problem = Problem.of(data, exercise.loss, n_outputs=exercise.n_outputs)
    count = np.zeros(len(data.target))
    count[data.rows.index] = data.rows.weight
    grown = learn(problem, config, count=count, n_jobs=n_jobs, seed=seed)
    weights, bias = splits_in_raw_units(grown.weights, grown.bias, problem)
    # Means of the target as it came: the problem has it rounded, in other units.
    target = data.target[data.rows.index]
    if exercise.task == "classification":
        target = one_hot(target[:, 0], exercise.n_targets)
    tree = assemble(
        data,
        weights,
        bias,
        grown.children,
        grown.means(target, data.weight),
        task=exercise.task,
        classes=exercise.labels,
        target_names=exercise.target_names,
        record={**exercises.parameter_record(estimator), "distinct_rows": len(data.rows)},
        n_jobs=n_jobs,
    )
    return tree, grown


def _adopt(
    estimator: GreedyTreeClassifier | GreedyTreeRegressor, X: Any, tree: ObliqueTree
) -> None:
    """Set what was learned, all at once: a failed `fit` leaves an earlier one as it was."""
    validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = tree.n_features
    estimator.tree_ = tree


def _warn_if_interrupted(grown: GrownTree) -> None:
    if grown.interrupted:
        warnings.warn(
            "Growing was interrupted; the tree so far is kept, with leaves where it was still to "
            "be split.",
            FitInterruptedWarning,
            stacklevel=3,
        )
