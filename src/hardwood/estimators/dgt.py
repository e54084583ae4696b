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
    """Parameters of DGT, which its forests have, too."""

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
    init: Any = None
    relaxation: Any = None
    training: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class DGTClassifier(DGTParameters, SingleTreeClassifier):
    """A hard oblique decision tree for classes, learned by gradient descent (DGT).

    Every split weighs all columns of the table: numbers, levels of categories, and whether an entry
    is missing. Tables may be NumPy arrays, SciPy sparse matrices, pandas, polars or Arrow frames.
    Neither the order of the rows nor a repeated row instead of a weight changes the tree.

    Parameters
    ----------
    max_depth : int, default=6
        Splits on the way from the root to a leaf, 1 to 16. Those that decide nothing are dropped
        when learning ends.
    layers : int or sequence of int, default=1
        Linear layers whose product the weights of the splits are while they are learned: more than
        one changes the way of the descent, not what can be learned, and takes longer. The sizes
        between them are the paper's for this depth, or the ones given.
    leaves : "constant" or "linear", default="constant"
        What a leaf answers: one value per output, or a linear function of the columns.
    learning_rate : float, default=0.01
        The largest step size of the schedule.
    batch_size : int, default=128
        Rows per step.
    max_epochs : int or "auto", default="auto"
        Passes over the rows; "auto": 30 to 400, fewer for larger tables.
    momentum : float, default=None
        Of the optimizer, in [0, 1); for Adam its beta_1. None: 0.9 for Adam, else 0.
    l1, l2 : float, default=0.0
        Penalties on the weights of the splits, and on the slopes of linear leaves, in standard
        units; l1 makes weights exactly zero. With several layers they apply to the layers, whose
        product is not sparse.
    loss : "log_loss", Loss or function, default="log_loss"
        What is minimized. A function takes the scores (B, n_classes) and the class indices (B, 1)
        of a batch and returns the gradient by the scores, or a pair of losses (B,) and gradient.
        With several labels, the scores (B, n_labels) and their zeros and ones.
    n_restarts : int or "auto", default="auto"
        Trees learned from different random starts; the one with the smallest loss is kept, on the
        validation part where there is one. "auto": 4 where there is one, else 1, since the
        training loss alone prefers the tree that overfits most.
    validation_fraction : float, default=0.1
        Part of the rows that is kept apart when stopping early; drawn from every class alike.
    early_stopping : bool or "auto", default="auto"
        Whether to keep a validation part, to stop when its loss no longer falls, and to return to
        the pass where it was smallest. "auto": for tables with at least 100 different rows.
    class_weight : dict, "balanced" or None, default=None
        What the weight of every row is multiplied by, by class. "balanced": such that all classes
        have the same total weight.
    init : ObliqueTree, fitted estimator, "axis", "random", "oc1" or "co2", default=None
        A tree to start from instead of random splits, with the same columns and classes; or how to
        grow one greedily (see `GreedyTreeClassifier`), from the rows that are not kept apart.
    n_jobs : int, default=None
        Threads, -1 for all processors; they share the restarts. The tree does not depend on them.
    random_state : int, RandomState instance or None, default=None
        Of the start, the order of rows and the choice of the validation part.
    verbose : int, default=0
        1 prints some 20 lines per restart, 2 one line per pass.
    callbacks : function or list of functions, default=None
        Called with an `Epoch` after every pass; a true answer ends that restart, whose best tree is
        kept.
    relaxation : Relaxation, default=None
        How gradients get through the decisions; None for the paper's way.
    training : Training, default=None
        The remaining options of the training loop.

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
    history_ : list of Epoch
        One record per pass, restart by restart.
    n_iter_ : int
        Passes that the restart which was kept has taken.

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
    """A hard oblique decision tree for numbers, learned by gradient descent (DGT).

    Parameters and attributes are those of `DGTClassifier`, without `class_weight` and `classes_`,
    and:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        "squared_error", "absolute_error", "huber", "quantile" or "poisson"; `hardwood.learn.Huber`
        and `hardwood.learn.Quantile` for another bend or level. A function takes predictions (B, k)
        and targets (B, k) and returns the gradient by the prediction, or a pair of losses (B,) and
        gradient.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Notes
    -----
    Targets are learned in units of their standard deviation, except by the Poisson loss and by
    functions.

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
