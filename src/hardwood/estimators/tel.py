"""TEL for scikit-learn: an ensemble of soft oblique trees, learned jointly.

The method is in `hardwood.learn.tel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hardwood.estimators.base import EnsembleClassifier, EnsembleRegressor, EpochParameters
from hardwood.learn.learner import Learner
from hardwood.learn.tel import TEL, Activation


@dataclass(kw_only=True, eq=False, repr=False)
class _TELParameters(EpochParameters):
    _learner_type: ClassVar[type[Learner]] = TEL

    n_estimators: int = 10
    max_depth: int = 4
    gamma: float = 1.0
    activation: Activation = "smooth_step"
    learning_rate: float = 0.01
    batch_size: int = 128
    max_epochs: int | Literal["auto"] = "auto"
    l2: float = 0.0
    batch_norm: bool = True
    n_restarts: int = 1
    combine_runs: Literal["best", "mean"] = "best"
    training: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class TELClassifier(_TELParameters, EnsembleClassifier):
    """An ensemble of soft oblique trees for classification, learned jointly (TEL).

    A row near a split goes to both sides. After some learning, a row reaches few leaves, and the
    cost of learning and predicting depends only on the nodes that are reached.

    Parameters that are not listed here are the same as in `DGTClassifier`.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees; their scores are added.
    max_depth : int, default=4
        Largest number of splits on a path from the root to a leaf, 1 to 12.
    gamma : float, default=1.0
        Width of the band around a split in which a row goes to both sides, in units of the splits'
        scores. With a smaller value, a row reaches fewer leaves, and a split learns from fewer rows
        near it.
    activation : "smooth_step", "smooth_step_5" or "logistic", default="smooth_step"
        Function from the score of a split to the share of a row that goes right: a polynomial of
        degree 3 or 5, which is 0 or 1 outside the band, or, for comparison, the logistic function
        of score / gamma, with which every row reaches every leaf.
    learning_rate : float, default=0.01
        Largest step size of the schedule.
    batch_size : int, default=128
        Rows per gradient step.
    max_epochs : int or "auto", default="auto"
        Largest number of epochs. "auto": 30 to 400, fewer for larger tables.
    l2 : float, default=0.0
        L2 penalty on the weights of the splits, in standard units.
    batch_norm : bool, default=True
        Whether columns are normalized by the mean and variance of each batch during learning, and
        of all training rows afterwards. Otherwise they have the units of the table's encoding.
    loss : "log_loss", Loss or function, default="log_loss"
        Same as in `DGTClassifier`.
    n_restarts : int, default=1
        Number of ensembles learned from different random starts, in parallel on `n_jobs` threads.
        Threads are used for nothing else.
    combine_runs : "best" or "mean", default="best"
        With several restarts: keep the ensemble with the smallest (validation) loss, or average all
        of them into one larger ensemble, which varies less.
    training : Training, default=None
        Further settings of the training loop. None: Adam without gradient clipping, and one
        cosine cycle.

    Attributes
    ----------
    ensemble_ : TreeEnsemble
        The learned ensemble. It predicts, saves, and converts itself to hard trees (`harden`).
    classes_ : ndarray of shape (n_classes,)
        The classes; for several labels, their indices.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the variance of the predictions.
    history_ : list of Epoch
        One record per epoch, restart by restart; `reachable_leaves` is the mean number of leaves
        that a row reached in a tree during the epoch.
    n_iter_ : int
        Number of epochs of the best restart.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import TELClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TELClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> print(model.hardening_cost(X, y))  # doctest: +ELLIPSIS
    log loss: ...
    """

    loss: Any = "log_loss"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class TELRegressor(_TELParameters, EnsembleRegressor):
    """An ensemble of soft oblique trees for regression, learned jointly (TEL).

    Parameters and attributes are those of `TELClassifier`, without `class_weight` and `classes_`,
    and:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        Same as in `DGTRegressor`.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import TELRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TELRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    loss: Any = "squared_error"
