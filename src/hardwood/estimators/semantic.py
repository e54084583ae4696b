"""Semantic logits for scikit-learn: one hard oblique tree, trained exactly by gradient descent.

The method is in `hardwood.learn.semantic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hardwood.estimators.base import EpochParameters, SingleTreeClassifier, SingleTreeRegressor
from hardwood.learn.learner import Learner
from hardwood.learn.semantic import Semantic


@dataclass(kw_only=True, eq=False, repr=False)
class _SemanticParameters(EpochParameters):
    _learner_type: ClassVar[type[Learner]] = Semantic

    max_depth: int = 6
    layers: Any = 1
    leaves: Literal["auto", "dealt", "constant", "linear"] = "auto"
    noise: float = 0.0
    n_mixed: int = 1
    learning_rate: float = 0.01
    batch_size: int = 128
    max_epochs: int | Literal["auto"] = "auto"
    momentum: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    early_stopping: bool | Literal["auto"] = False
    init: Any = None
    training: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class SemanticTreeClassifier(_SemanticParameters, SingleTreeClassifier):
    """A hard oblique decision tree for classification, trained exactly (semantic logits).

    A leaf's score is minus the sum of the decisions that a row violates on the way to it, so the
    leaf of the hard tree has the largest score. Each leaf stands for one class, and plain gradient
    descent on the scores trains the hard tree itself: nothing is soft, and nothing is hardened.

    Parameters that are not listed here are the same as in `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=6
        Largest number of splits on a path from the root to a leaf, 1 to 16. Splits that change no
        prediction are dropped after learning.
    layers : int or sequence of int, default=1
        Number of linear layers whose product gives the weights of the splits during learning, or
        the hidden sizes between them (overparameterization).
    leaves : "auto", "dealt", "constant" or "linear", default="auto"
        What a leaf stands for. "dealt": one class; classes are dealt to the leaves in turn.
        "constant": scores of all classes, which it learns. "linear": scores that are linear
        functions of the columns. "auto": "dealt" for the log loss of one class per row, if there
        are as many leaves as classes; else "constant".
    noise : float, default=0.0
        Standard deviation of Gaussian noise that each gradient step adds to its rows, in standard
        units.
    n_mixed : int, default=1
        For leaves that learn their values: how many of the best leaves a prediction mixes at first.
        The number falls to 1 during learning, and the tree is hard. 1: hard from the start, with
        the gradient of a mixture of the best two leaves.
    early_stopping : bool or "auto", default=False
        Whether to hold out validation rows, stop when their loss no longer falls, and return to the
        best epoch. Of dealt leaves that is the loss of the scores of classes, which often rises
        while the tree still improves.
    training : Training, default=None
        Further settings of the training loop.

    Attributes
    ----------
    tree_ : ObliqueTree
        The learned tree, simplified.
    history_ : list of Epoch
        One record per epoch, restart by restart.
    n_iter_ : int
        Number of epochs of the best restart.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import SemanticTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SemanticTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    n_restarts: int | Literal["auto"] = "auto"
    loss: Any = "log_loss"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class SemanticTreeRegressor(_SemanticParameters, SingleTreeRegressor):
    """A hard oblique decision tree for regression, learned by semantic logits.

    Parameters and attributes are those of `SemanticTreeClassifier`, without `class_weight` and
    `classes_`, and:

    Parameters
    ----------
    leaves : "auto", "constant" or "linear", default="auto"
        What a leaf predicts: one value per output, or a linear function of the columns. "auto":
        "constant".
    loss : str, Loss or function, default="squared_error"
        See `DGTRegressor`.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import SemanticTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SemanticTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    n_restarts: int | Literal["auto"] = "auto"
    loss: Any = "squared_error"
