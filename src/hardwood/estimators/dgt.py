"""DGT for scikit-learn: one hard oblique tree, learned by gradient descent.

The method is in `hardwood.learn.dgt`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hardwood.estimators.base import EpochParameters, SingleTreeClassifier, SingleTreeRegressor
from hardwood.learn.dgt import DGT
from hardwood.learn.learner import Learner


@dataclass(kw_only=True, eq=False, repr=False)
class DGTParameters(EpochParameters):
    """Parameters of DGT trees and of their forests."""

    _learner_type: ClassVar[type[Learner]] = DGT

    max_depth: int = 6
    layers: Any = 1
    leaves: Literal["constant", "linear"] = "constant"
    learning_rate: float = 0.01
    batch_size: int = 128
    max_epochs: int | Literal["auto"] = "auto"
    momentum: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    noise: float = 0.0
    init: Any = None
    relaxation: Any = None
    training: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class DGTClassifier(DGTParameters, SingleTreeClassifier):
    """A hard oblique decision tree for classification, learned by gradient descent (DGT).

    Each split is a weighted sum of all columns: numbers, categories, and missing indicators. Tables
    may be NumPy arrays, SciPy sparse matrices, or pandas, polars or Arrow frames. The tree does not
    depend on the order of the rows, and a row of weight 2 is the same as the row twice.

    Parameters
    ----------
    max_depth : int, default=6
        Largest number of splits on a path from the root to a leaf, 1 to 16. Splits that change no
        prediction are dropped after learning.
    layers : int or sequence of int, default=1
        Number of linear layers whose product gives the weights of the splits during learning, or
        the hidden sizes between them (overparameterization). More than one layer changes the path
        of the descent, not what can be learned, and takes longer. By default, hidden sizes are the
        paper's for this depth.
    leaves : "constant" or "linear", default="constant"
        What a leaf predicts: one value per output, or a linear function of the columns.
    learning_rate : float, default=0.01
        Largest step size of the schedule.
    batch_size : int, default=128
        Rows per gradient step.
    max_epochs : int or "auto", default="auto"
        Largest number of epochs. "auto": 30 to 400, fewer for larger tables.
    momentum : float, default=None
        Momentum of the optimizer (beta_1 of Adam), in [0, 1). None: 0.9 for Adam, else 0.
    l1, l2 : float, default=0.0
        Penalties on the weights of the splits, and on the slopes of linear leaves, in standard
        units. `l1` makes weights exactly zero. With several layers, the penalties apply to the
        layers, whose product is not sparse.
    noise : float, default=0.0
        Standard deviation of Gaussian noise that each gradient step adds to its rows, in standard
        units: a remedy against overfitting. The paper has none.
    loss : "log_loss", Loss or function, default="log_loss"
        The loss to minimize. A function takes the scores (B, n_classes) and class indices (B, 1)
        of a batch, or, for several labels, the scores (B, n_labels) and labels of 0 and 1. It
        returns the gradient with respect to the scores, or a pair of losses (B,) and gradient.
    n_restarts : int or "auto", default="auto"
        Number of trees learned from different random starts. The tree with the smallest loss is
        kept: the validation loss if rows are held out, else the training loss. "auto": 4 with
        validation rows, else 1, because the training loss prefers the tree that overfits most.
    validation_fraction : float, default=0.1
        Fraction of the rows held out for early stopping, stratified by class.
    early_stopping : bool or "auto", default="auto"
        Whether to hold out validation rows, stop when their loss no longer falls, and return to
        the best epoch. "auto": for tables with at least 100 distinct rows.
    class_weight : dict, "balanced" or None, default=None
        Factor for the weights of the rows of each class. "balanced": factors that give all classes
        the same total weight. With several labels only "balanced": the factors of a row's labels
        are multiplied. Probabilities are those of the weighted rows.
    init : ObliqueTree, fitted estimator, "axis", "random", "oc1" or "co2", default=None
        A tree to start from instead of random splits, with the same columns and classes; or how to
        grow a greedy tree to start from (see `GreedyTreeClassifier`), on the training rows.
    n_jobs : int, default=None
        Number of threads, which share the restarts; -1 for all processors. The tree does not depend
        on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the start, the order of the rows and the choice of the validation rows.
    verbose : int, default=0
        0 shows one line of progress, in a terminal or a notebook; 1 prints about 20 lines per
        restart, 2 one line per epoch.
    callbacks : function or list of functions, default=None
        Called with an `Epoch` after every epoch. Returning True ends that restart with its best
        tree.
    relaxation : Relaxation, default=None
        How gradients pass through the hard decisions; None for the paper's method.
    training : Training, default=None
        Further settings of the training loop.

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
    history_ : list of Epoch
        One record per epoch, restart by restart.
    n_iter_ : int
        Number of epochs of the best restart.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import DGTClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = DGTClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    n_restarts: int | Literal["auto"] = "auto"
    loss: Any = "log_loss"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class DGTRegressor(DGTParameters, SingleTreeRegressor):
    """A hard oblique decision tree for regression, learned by gradient descent (DGT).

    Parameters and attributes are those of `DGTClassifier`, without `class_weight` and `classes_`,
    and:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        "squared_error", "absolute_error", "huber", "quantile" or "poisson"; `hardwood.learn.Huber`
        and `hardwood.learn.Quantile` for another delta or quantile. A function takes predictions
        (B, k) and targets (B, k). It returns the gradient with respect to the predictions, or a
        pair of losses (B,) and gradient.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Notes
    -----
    Targets are standardized during learning, except with the Poisson loss and with functions.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import DGTRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = DGTRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    n_restarts: int | Literal["auto"] = "auto"
    loss: Any = "squared_error"
