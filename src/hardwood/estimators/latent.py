"""Latent trees for scikit-learn: a tree and a predictor on top of it, learned together.

The method is in `hardwood.learn.latent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hardwood.estimators.base import (
    EpochParameters,
    ModelClassifier,
    ModelEstimator,
    ModelRegressor,
)
from hardwood.learn.latent import Activation, Latent
from hardwood.learn.learner import Learner
from hardwood.model import LatentTreeModel, ObliqueTree
from hardwood.model.edit.harden import HardeningCost


class LatentEstimator(ModelEstimator):
    """An estimator whose answer is a latent tree, `model_`."""

    model_: LatentTreeModel
    _model_attribute = "model_"

    def apply(self, X: Any) -> np.ndarray:
        """Return the last active node on the hard path of each row, (n,), by its heap number."""
        self._check_predictable(X)
        return self.model_.apply(X, n_jobs=self.n_jobs)

    def traversals(self, X: Any) -> np.ndarray:
        """Return how much of each row passes each node of `model_.nodes`, (n, n_nodes)."""
        self._check_predictable(X)
        return self.model_.traversals(X, n_jobs=self.n_jobs)

    def harden(
        self,
        X: Any,
        y: Any = None,
        *,
        leaves: Literal["constant", "linear"] = "constant",
        sample_weight: Any = None,
    ) -> ObliqueTree:
        """Make a hard tree whose leaves are fitted to rows: see `LatentTreeModel.harden`."""
        check_is_fitted(self)
        return self.model_.harden(X, y, leaves=leaves, sample_weight=sample_weight)

    def hardening_cost(
        self, tree: ObliqueTree, X: Any, y: Any, sample_weight: Any = None
    ) -> HardeningCost:
        """Compare the model with a tree that `harden` made, on rows whose answers are known."""
        self._check_predictable(X)
        return self.model_.hardening_cost(tree, X, y, sample_weight)


@dataclass(kw_only=True, eq=False, repr=False)
class _LatentParameters(EpochParameters):
    _learner_type: ClassVar[type[Learner]] = Latent

    max_depth: int = 5
    pruning: float = 1.0
    head: Literal["linear"] | Sequence[int] = "linear"
    skip_connection: bool = True
    activation: Activation = "linear"
    dropout: float = 0.0
    weight_decay: float = 0.1
    learning_rate: float = 0.01
    batch_size: int = 256
    max_epochs: int | Literal["auto"] = "auto"


@dataclass(kw_only=True, eq=False, repr=False)
class LatentTreeClassifier(_LatentParameters, LatentEstimator, ModelClassifier):
    """A latent tree for classes: traversals and pruning by a program, a predictor on top.

    Scores of oblique splits make, by a quadratic program, shares of every row at every node, and
    how active the nodes are; a predictor f(x, z) of the row and its shares gives the answer. Splits
    and predictor are learned together, through the program. Nodes that are not active are removed.
    `fit` needs torch (``pip install '.[torch]'``); all else does not.

    Parameters that are not listed here are the same as in `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=5
        Splits on the way from the root to a leaf before pruning, 1 to 12.
    pruning : float, default=1.0
        Price of a node, lambda, for a batch of rows, any number >= 0. The higher, the less active
        are nodes that few rows reach, and the more of them are removed; 0 prunes nothing.
    head : "linear" or sequence of int, default="linear"
        The predictor: linear, or hidden layers of these widths with ELU between them.
    skip_connection : bool, default=True
        Whether the predictor sees the columns of the row beside its shares.
    activation : "linear" or "elu", default="linear"
        Scores are linear, or linear within an ELU.
    dropout : float, default=0.0
        Part of each hidden layer's values that is left out in each step of learning, below 1.
    weight_decay : float, default=0.1
        All that is learned is made smaller by the learning rate times this in each step, which
        together are 1 at most.
    learning_rate : float, default=0.01
        The largest step size of the schedule, which is half a cosine. Steps are QHAdam's.
    batch_size : int, default=256
        Rows per step, for which the program is solved.
    max_epochs : int or "auto", default="auto"
        Passes over the rows; "auto": 20 to 200, fewer for larger tables.
    loss : "log_loss", Loss or function, default="log_loss"
        Same as in `DGTClassifier`.
    early_stopping : bool or "auto", default="auto"
        Whether the pass with the smallest loss on a validation part is kept, and learning ends when
        0.3 of all passes went by without a smaller one; "auto": with at least 100 different rows.
    n_jobs : int, default=None
        Threads that predict; -1 for all processors. Learning runs on one, since torch's sums
        depend on their number.

    Attributes
    ----------
    model_ : LatentTreeModel
        The tree and the predictor: what predicts, saves, and makes a hard tree (`harden`).
    classes_ : ndarray of shape (n_classes,)
        The classes; for several labels, their indices.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.
    history_ : list of Epoch
        One record per pass; `active_nodes` is the share of nodes that are active after it.
    n_iter_ : int
        Passes taken.

    Notes
    -----
    `sample_weight` and `class_weight` weigh the loss. The program counts every distinct row once: a
    row of weight two is the row given twice, but twice the weight makes a node no more active.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import LatentTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LatentTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> tree = model.harden(X, y)
    >>> print(model.hardening_cost(tree, X, y))  # doctest: +ELLIPSIS
    log loss: ...
    """

    loss: Any = "log_loss"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class LatentTreeRegressor(_LatentParameters, LatentEstimator, ModelRegressor):
    """A latent tree for numbers: traversals and pruning by a program, a predictor on top.

    Parameters and attributes are those of `LatentTreeClassifier`, without `class_weight` and
    `classes_`, and:

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
    >>> from hardwood import LatentTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = LatentTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    loss: Any = "squared_error"
