"""Greedy trees for scikit-learn: axis-aligned, random, OC1 and CO2 splits.

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
    """Fit greedy trees, with a criterion that belongs to the task."""

    _learner_type = Greedy
    criterion: Any

    def _learner(self) -> Learner:
        allowed = CRITERIA["regression" if is_regressor(self) else "classification"]
        criterion = choice("criterion", self.criterion, allowed)
        return parameters_of(Greedy, self, criterion=criterion)


@dataclass(kw_only=True, eq=False, repr=False)
class GreedyTreeClassifier(_GreedyParameters, _GreedyFit, SingleTreeClassifier):
    """A greedy decision tree for classification, grown from the root, split by split.

    Tables may be NumPy arrays, SciPy sparse matrices, or pandas, polars or Arrow frames, with
    categories and missing values. The tree does not depend on the order of the rows, and a row of
    weight 2 is the same as the row twice.

    Parameters
    ----------
    splitter : "axis", "random", "oc1" or "co2", default="axis"
        How to search for splits. "axis": all thresholds on all columns; a categorical column is
        split into one category and the rest, and missing values go to the better side. "random":
        the best of several random hyperplanes. "oc1": coordinate descent on hyperplanes, from the
        best axis-aligned split and from random ones. "co2": gradient descent on a bound of the
        loss, from the best axis-aligned split. OC1 and CO2 splits are never worse than the best
        axis-aligned split.
    criterion : "entropy" or "gini", default="entropy"
        Impurity that splits reduce.
    max_depth : int or None, default=6
        Splits on the way from the root to a leaf. None: grow until
        leaves are pure. Splits between leaves with the same prediction are dropped.
    min_samples_split, min_samples_leaf : float, default=2 and 1
        Smallest number of rows in a node to be split, and on each side of a split, counted by
        `sample_weight`. The defaults set no limit, whatever the weights.
    min_weight_fraction_leaf : float, default=0.0
        Smallest fraction of the total weight on each side of a split, in [0, 0.5]. Weights include
        `class_weight` here.
    min_impurity_decrease : float, default=0.0
        A split must reduce the mean impurity of all rows by at least this much.
    n_candidates : int, default=64
        splitter="random": number of hyperplanes tried at each node.
    n_split_restarts : int, default=5
        splitter="oc1": number of starts at each node; the first is the best axis-aligned split.
    n_jumps : int, default=5
        splitter="oc1": number of random directions tried when no coordinate helps.
    n_coordinates : int, default=50
        splitter="oc1": number of coordinates tried in a sweep, drawn from those that vary at the
        node.
    max_sweeps : int, default=10
        splitter="oc1": largest number of sweeps over coordinates from one start.
    nu : float or "auto", default="auto"
        splitter="co2": largest squared norm of a split's weights and bias, in standard units,
        between 1e-6 and 1e6. "auto": 10, then 0.1 at nodes where 10 finds no split better than the
        best axis-aligned one.
    learning_rate : float, default=0.3
        splitter="co2": largest step size of a cosine schedule.
    momentum : float, default=0.9
        splitter="co2": momentum, in [0, 1).
    batch_size : int, default=128
        splitter="co2": rows per gradient step.
    max_epochs : int, default=100
        splitter="co2": largest number of epochs over the rows of a node, and at most 10,000 steps.
    class_weight : dict, "balanced" or None, default=None
        Factor for the weights of the rows of each class. "balanced": factors that give all classes
        the same total weight. With several labels only "balanced": the factors of a row's labels
        are multiplied. Probabilities are those of the weighted rows.
    n_jobs : int, default=None
        Number of threads; -1 for all processors. The tree does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of random directions and coordinates.

    Attributes
    ----------
    tree_ : ObliqueTree
        The learned tree, simplified. It predicts, prints, draws and saves itself.
    classes_ : ndarray of shape (n_classes,)
        The classes; for several labels, their indices.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the variance of the predictions.

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
    """A greedy decision tree for regression, grown from the root, split by split.

    Parameters and attributes are those of `GreedyTreeClassifier`, without `class_weight` and
    `classes_`, and:

    Parameters
    ----------
    criterion : "variance", default="variance"
        Impurity that splits reduce. For several targets, the mean of their variances, each relative
        to its variance in the table. `min_impurity_decrease` has the same units.

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
