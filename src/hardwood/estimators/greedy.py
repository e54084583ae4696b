"""Greedy trees for scikit-learn: axis-aligned, random, OC1 and CO2 splits, as baselines.

The methods are in `hardwood.learn.greedy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sklearn.base import is_regressor

from hardwood.estimators.base import SingleTreeClassifier, SingleTreeRegressor, TreeEstimator
from hardwood.learn.greedy import CRITERIA, Greedy, Splitter
from hardwood.learn.learner import Learner
from hardwood.parameters import choice, parameters_of


@dataclass(kw_only=True, eq=False, repr=False)
class _GreedyParameters:
    splitter: Splitter = "axis"
    max_depth: int | None = 6
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    n_candidates: int = 64
    n_split_restarts: int = 5
    n_jumps: int = 5
    n_coordinates: int = 50
    max_sweeps: int = 10
    nu: float | Literal["auto"] = "auto"
    learning_rate: float = 0.3
    momentum: float = 0.9
    batch_size: int = 128
    max_epochs: int = 100
    n_jobs: int | None = None
    random_state: Any = None


class _GreedyFit(TreeEstimator):
    """How greedy trees are fitted: by a criterion of their own task, which must be given."""

    _learner_type = Greedy
    criterion: Any

    def _learner(self) -> Learner:
        allowed = CRITERIA["regression" if is_regressor(self) else "classification"]
        criterion = choice("criterion", self.criterion, allowed)
        return parameters_of(Greedy, self, criterion=criterion)


@dataclass(kw_only=True, eq=False, repr=False)
class GreedyTreeClassifier(_GreedyParameters, _GreedyFit, SingleTreeClassifier):
    """A decision tree for classes that is grown from the root, split by split.

    Tables may be NumPy arrays, SciPy sparse matrices, pandas, polars or Arrow frames, with
    categories and missing entries. Neither the order of the rows nor a repeated row instead of a
    weight changes the tree.

    Parameters
    ----------
    splitter : "axis", "random", "oc1" or "co2", default="axis"
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
        splitter="random": hyperplanes tried at a node.
    n_split_restarts : int, default=5
        splitter="oc1": starts at a node, the first of them from the best axis split.
    n_jumps : int, default=5
        splitter="oc1": random directions tried where no coordinate helps any more.
    n_coordinates : int, default=50
        splitter="oc1": coordinates tried in a pass, drawn from those that vary at the node.
    max_sweeps : int, default=10
        splitter="oc1": passes over coordinates from one start.
    nu : float or "auto", default="auto"
        splitter="co2": largest squared norm of a split's weights and bias, in standard units;
        between 1e-6 and 1e6. "auto": 10, and 0.1 at nodes where that finds no
        better split than the best one on a single column.
    learning_rate : float, default=0.3
        splitter="co2": the largest step size; it falls along a cosine.
    momentum : float, default=0.9
        splitter="co2": of the steps, in [0, 1).
    batch_size : int, default=128
        splitter="co2": rows per step.
    max_epochs : int, default=100
        splitter="co2": epochs over the rows of a node; fewer at large ones, 10,000 steps in all.
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

    loss = "log_loss"

    criterion: Literal["entropy", "gini"] = "entropy"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class GreedyTreeRegressor(_GreedyParameters, _GreedyFit, SingleTreeRegressor):
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

    loss = "squared_error"

    criterion: Literal["variance"] = "variance"
