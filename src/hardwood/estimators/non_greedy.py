"""Non-greedy trees for scikit-learn: all splits and leaves learned jointly, from a greedy start.

The method is in `hardwood.learn.non_greedy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hardwood.estimators.base import EpochParameters, SingleTreeClassifier, SingleTreeRegressor
from hardwood.learn.learner import Learner
from hardwood.learn.non_greedy import Inference, NonGreedy, Solver


@dataclass(kw_only=True, eq=False, repr=False)
class _NonGreedyParameters(EpochParameters):
    _learner_type: ClassVar[type[Learner]] = NonGreedy

    max_depth: int = 8
    nu: float | Literal["auto"] = 43.0
    learning_rate: float | Literal["auto"] = 0.1
    inference: Inference = "exact"
    solver: Solver = "ssgd"
    init: Any = "co2"
    batch_size: int = 128
    momentum: float = 0.9
    max_epochs: int | Literal["auto"] = "auto"
    l1: float = 0.0
    max_features_per_split: int | None = None
    early_stopping: bool | Literal["auto"] = False
    warm_start: bool = False
    training: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class NonGreedyTreeClassifier(_NonGreedyParameters, SingleTreeClassifier):
    """A hard oblique decision tree for classification, learned jointly from a greedy start.

    Splits and leaves descend on an upper bound of the tree's loss. Each step updates only the paths
    of its rows, so deep trees on wide tables take minutes.

    Parameters that are not listed here are the same as in `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=8
        Largest depth of the greedy start, 1 to 32. Splits that change no prediction are dropped
        after learning.
    nu : float or "auto", default=43.0
        Largest squared norm of a split, including its bias, in standard units. A smaller value uses
        fewer leaves. "auto": tries 0.1, 1, 4, 10, 43 and 100, and uses the best on the validation
        rows to learn from all rows.
    learning_rate : float or "auto", default=0.1
        Largest step size of the schedule. "auto": tries three values with each value of `nu`.
    inference : "exact", "fast" or "exhaustive", default="exact"
        Which leaves the leaf of a row is compared with. "exact": all leaves, by branch and bound.
        "fast": leaves that are one decision away. "exhaustive": all leaves, one by one; the same
        tree as "exact", but much slower.
    solver : "ssgd" or "sgd", default="ssgd"
        "ssgd": rows keep their leaves until an epoch no longer improves the bound, so that fewer
        leaves stay unused. "sgd": rows follow the splits at every step.
    init : "co2", "axis", "oc1", "random", ObliqueTree or fitted estimator, default="co2"
        The splits of the greedy start (see `GreedyTreeClassifier`), or a tree to start from, with
        the same columns and classes.
    batch_size : int, default=128
        Rows per gradient step.
    momentum : float, default=0.9
        Momentum of the splits and leaves that a step updates, in [0, 1).
    max_epochs : int or "auto", default="auto"
        Largest number of epochs. "auto": 30 to 400, fewer for larger tables.
    l1 : float, default=0.0
        L1 penalty on the weights of the splits that a step updates, in standard units. It makes
        weights exactly zero.
    max_features_per_split : int, default=None
        Largest number of features in a split; None for no limit.
    loss : "log_loss" or Loss, default="log_loss"
        Same as in `DGTClassifier`, except that functions are not accepted: the loss is evaluated
        for leaves.
    early_stopping : bool or "auto", default=False
        As in `DGTClassifier`. False: the tree of the last epoch is kept, as in the paper.
    verbose : int, default=0
        Same as in `DGTClassifier`. With "auto", each trial is a run, numbered as in `trials_`, and
        the last run learns from all rows. `callbacks` see the number of the run as `Epoch.restart`.
    warm_start : bool, default=False
        Whether a second `fit` starts from the tree of the first.
    training : Training, default=None
        Further settings of the training loop. None: one cosine cycle without gradient
        clipping. The optimizer is always "sgd".

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
    nu_, learning_rate_ : float
        The values that were used.
    trials_ : list of (nu, learning rate, validation loss)
        The values tried by "auto"; empty without "auto".
    history_ : list of Epoch
        One record per epoch of the best run; `train_bound` is the bound.
    n_iter_ : int
        Number of epochs of the best run.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import NonGreedyTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = NonGreedyTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    loss: Any = "log_loss"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class NonGreedyTreeRegressor(_NonGreedyParameters, SingleTreeRegressor):
    """A hard oblique decision tree for regression, learned jointly from a greedy start.

    Parameters and attributes are those of `NonGreedyTreeClassifier`, without `class_weight` and
    `classes_`, and:

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
    >>> from hardwood import NonGreedyTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = NonGreedyTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    loss: Any = "squared_error"
