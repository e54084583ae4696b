"""Trees by alternating optimization for scikit-learn: every split solved for, given all others.

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
        # A greedy start may be too deep, and so may the tree of an earlier fit that began with one.
        return parameters_of(TAO, self, cuts_start=isinstance(self.init, str))


@dataclass(kw_only=True, eq=False, repr=False)
class TAOClassifier(_TAOParameters, _TAOEstimator, SingleTreeClassifier):
    """A hard oblique decision tree for classes, by alternating optimization of its splits.

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
        are penalized more. "auto": several are tried, with the best of them starts that are less
        deep, and what is best on the validation part is used to learn from all rows.
    leaves : "constant" or "linear", default="constant"
        What leaves predict: a constant, or a linear function of the columns.
    leaf_l2 : float, default=1.0
        Penalty on half the squared weights of linear leaves, in standard units and against a loss
        summed over rows.
    leaf_prior : float, default=1.0
        Rows of the mean target that each leaf counts besides its own: no probability is zero.
    max_sweeps : int, default=20
        Passes over all splits; fewer where none of them changes any more.
    max_features_per_split : int, default=None
        Features that a split may weigh; None for all.
    loss : "auto", "misclassification", "log_loss" or Loss, default="auto"
        What is minimized, exactly. "auto": misclassification, and the log loss of linear leaves and
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
        What is minimized (`hardwood.learn.tao`), of the start and after each sweep: never rises.
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

    loss: Any = "auto"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class TAORegressor(_TAOParameters, _TAOEstimator, SingleTreeRegressor):
    """A hard oblique decision tree for numbers, by alternating optimization of its splits.

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

    loss: Any = "squared_error"
