"""Latent trees for scikit-learn: a tree and a predictor on top of it, learned jointly.

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
    """An estimator that learns a latent tree, `model_`."""

    model_: LatentTreeModel
    _model_attribute = "model_"

    def apply(self, X: Any) -> np.ndarray:
        """Return the last active node on the hard path of each row, (n,), by its heap number."""
        self._check_predictable(X)
        return self.model_.apply(X, n_jobs=self.n_jobs)

    def traversals(self, X: Any) -> np.ndarray:
        """Return the share of each row that passes each node of `model_.nodes`, (n, n_nodes)."""
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
        """Compare the model with a tree from `harden`, on rows with known targets."""
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
    """A latent tree for classification, with a predictor on top.

    From the scores of oblique splits, a quadratic program computes the share z of each row at each
    node, and the activity of each node. A predictor f(x, z) of the row and its shares makes the
    prediction. Splits and predictor are learned jointly, by gradients through the program. Inactive
    nodes are removed. Only `fit` needs torch (``pip install '.[torch]'``).

    Parameters that are not listed here are the same as in `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=5
        Largest number of splits on a path from the root to a leaf before pruning, 1 to 12.
    pruning : float, default=1.0
        Price lambda of a node for a batch of rows, >= 0. With a higher price, more nodes that few
        rows reach become inactive and are removed; 0 prunes nothing.
    head : "linear" or sequence of int, default="linear"
        The predictor: linear, or hidden layers of these widths with ELU between them.
    skip_connection : bool, default=True
        Whether the predictor sees the columns of the row in addition to its shares.
    activation : "linear" or "elu", default="linear"
        "elu" applies an ELU to the linear scores.
    dropout : float, default=0.0
        Fraction of each hidden layer's values that is dropped in each step, in [0, 1).
    weight_decay : float, default=0.1
        Decoupled weight decay: each step shrinks all parameters by the learning rate times this.
        The product must be at most 1.
    learning_rate : float, default=0.01
        Largest step size of the schedule, half a cosine. The optimizer is QHAdam.
    batch_size : int, default=256
        Rows per gradient step; the program is solved for each batch.
    max_epochs : int or "auto", default="auto"
        Largest number of epochs. "auto": 20 to 200, fewer for larger tables.
    loss : "log_loss", Loss or function, default="log_loss"
        Same as in `DGTClassifier`.
    early_stopping : bool or "auto", default="auto"
        Whether to hold out validation rows, stop after 0.3 `max_epochs` without a smaller loss on
        them, and return to the best epoch. "auto": for tables with at least 100 distinct rows.
    n_jobs : int, default=None
        Number of threads for predictions; -1 for all processors. Learning uses one thread, because
        sums in torch depend on the number of threads.

    Attributes
    ----------
    model_ : LatentTreeModel
        The tree and the predictor. It predicts, saves, and converts itself to a hard tree
        (`harden`).
    classes_ : ndarray of shape (n_classes,)
        The classes; for several labels, their indices.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the variance of the predictions.
    history_ : list of Epoch
        One record per epoch; `active_nodes` is the fraction of nodes that are active after it.
    n_iter_ : int
        Number of epochs.

    Notes
    -----
    `sample_weight` and `class_weight` apply to the loss. The program counts each distinct row once,
    so weights do not make a node more active. A row of weight two is still the same as the row
    twice.

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
    """A latent tree for regression, with a predictor on top.

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
