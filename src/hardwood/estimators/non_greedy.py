"""Non-greedy trees for scikit-learn: all splits and leaves learned together, from a greedy start.

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
    """A hard oblique decision tree for classes, all of it learned together, from a greedy start.

    Splits and leaves descend on a bound of the tree's loss. A step concerns the paths of its rows
    and nothing else, so deep trees and wide tables are learned in minutes.

    Parameters that are not listed here are the same as in `DGTClassifier`.

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
        Largest number of epochs. "auto": 30 to 400, fewer for larger tables.
    l1 : float, default=0.0
        Penalty on the weights of the splits that a step concerns, in standard units; makes weights
        exactly zero.
    max_features_per_split : int, default=None
        Largest number of features in a split; None for no limit.
    loss : "log_loss" or Loss, default="log_loss"
        As of `DGTClassifier`, but no function: it is evaluated for leaves, not for batches.
    early_stopping : bool or "auto", default=False
        As in `DGTClassifier`. False: the tree of the last epoch is kept, as in the paper.
    verbose : int, default=0
        As of `DGTClassifier`. The pairs that "auto" tries are runs, numbered from 0 as they are in
        `trials_`; the last run learns from all rows. To `callbacks` these are `Epoch.restart`.
    warm_start : bool, default=False
        Whether a second `fit` starts from the tree of the first.
    training : Training, default=None
        Further settings of the training loop. None: one cosine, without a limit on
        gradients. The optimizer is always "sgd".

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

    loss: Any = "log_loss"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class NonGreedyTreeRegressor(_NonGreedyParameters, SingleTreeRegressor):
    """A hard oblique decision tree for numbers, all of it learned together, from a greedy start.

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
