"""Tree alternating optimization (TAO) for scikit-learn.

The method is in `hardwood.learn.tao`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hardwood.estimators.base import (
    EpochParameters,
    SingleTreeClassifier,
    SingleTreeRegressor,
    TreeEstimator,
)
from hardwood.learn.learner import Learner
from hardwood.learn.tao import TAO, Leaves
from hardwood.parameters import parameters_of


@dataclass(kw_only=True, eq=False, repr=False)
class _TAOParameters(EpochParameters):
    _learner_type: ClassVar[type[Learner]] = TAO

    max_depth: int = 8
    init: Any = "axis"
    l1: float | Literal["auto"] = "auto"
    l2: float | Literal["auto"] = "auto"
    leaves: Leaves = "constant"
    leaf_l2: float = 1.0
    leaf_prior: float = 1.0
    max_sweeps: int = 20
    max_features_per_split: int | None = None
    warm_start: bool = False


class _TAOEstimator(TreeEstimator):
    init: Any

    def _learner(self) -> TAO:
        # A greedy start may be too deep, and so may a tree of an earlier fit with a greedy start.
        return parameters_of(TAO, self, cuts_start=isinstance(self.init, str))


@dataclass(kw_only=True, eq=False, repr=False)
class TAOClassifier(_TAOParameters, _TAOEstimator, SingleTreeClassifier):
    """A hard oblique decision tree for classification, by alternating optimization (TAO).

    Starts from any tree and improves it, split by split and depth by depth: each split is replaced
    by the best one found while all others stay fixed. The training objective never increases.

    Parameters that are not listed here are the same as in `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=8
        Largest depth of the start, 1 to 32. Splits that change no prediction are dropped after
        learning.
    init : "axis", "random", "oc1", "co2", ObliqueTree or fitted estimator, default="axis"
        The splits of a greedy start (see `GreedyTreeClassifier`), or a tree to start from, with the
        same columns and classes.
    l1, l2 : float or "auto", default="auto"
        L1 and L2 penalties on the weights in the logistic regression that finds a split, in
        standard units. The loss is a sum over rows, so nodes with fewer rows are regularized more.
        "auto": tries several penalties, then shallower starts with the best of them, and fits the
        best on the validation rows to all rows.
    leaves : "constant" or "linear", default="constant"
        What leaves predict: a constant, or a linear function of the columns.
    leaf_l2 : float, default=1.0
        L2 penalty on the slopes of linear leaves, in standard units. The loss is a sum over rows.
    leaf_prior : float, default=1.0
        Pseudo-count: rows with the mean target that are added to each leaf. With a positive value,
        no probability is zero.
    max_sweeps : int, default=20
        Largest number of sweeps over all splits. Learning stops when no split changes.
    max_features_per_split : int, default=None
        Largest number of features in a split; None for no limit.
    loss : "auto", "misclassification", "log_loss" or Loss, default="auto"
        The loss to minimize. "auto": misclassification, or log loss for linear leaves and several
        labels. Leaves always have probabilities, the shares of their rows; "log_loss" optimizes
        them. Functions are not accepted, because the loss is needed row by row.
    early_stopping : bool or "auto", default="auto"
        Whether to hold out validation rows and keep the tree of the best sweep on them. "auto": for
        tables with at least 100 distinct rows. If penalties are "auto", the final fit on all rows
        takes that number of sweeps.
    verbose : int, default=0
        Same as in `DGTClassifier`. With "auto" penalties, each trial is a run, numbered as in
        `trials_`, and the last run is the fit on all rows. `callbacks` see the number of the run as
        `Epoch.restart`, and sweeps as epochs.
    warm_start : bool, default=False
        Whether a second `fit` starts from the tree of the first.

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
    l1_, l2_ : float
        The penalties that were used.
    trials_ : list of (l1, l2, depth of the start, validation loss)
        The penalties tried by "auto"; empty without "auto".
    objective_ : list of float
        The objective (`hardwood.learn.tao`) of the start and after each sweep; it never increases.
    history_ : list of Epoch
        One record per sweep of the best run.
    n_iter_ : int
        Number of sweeps of the best run.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import TAOClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TAOClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    loss: Any = "auto"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class TAORegressor(_TAOParameters, _TAOEstimator, SingleTreeRegressor):
    """A hard oblique decision tree for regression, by alternating optimization (TAO).

    Parameters and attributes are those of `TAOClassifier`, without `class_weight` and `classes_`,
    and:

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        Same as in `DGTRegressor`, except that functions are not accepted.

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

    loss: Any = "squared_error"
