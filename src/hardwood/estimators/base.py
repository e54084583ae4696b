"""What every estimator of one tree does once it is fitted: scikit-learn's contract over `tree_`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hardwood.learn.training import Epoch
from hardwood.model import ObliqueTree

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.utils import Tags


class TreeEstimator(BaseEstimator):
    """An estimator whose answer is one `ObliqueTree`.

    Attributes
    ----------
    tree_
        The tree, simplified.
    n_features_in_
        Number of columns of the training table.
    feature_names_in_
        Their names, where all are text.
    history_
        One `Epoch` per pass over the training rows, restart by restart.
    n_iter_
        Number of passes that the restart which was kept has taken.
    """

    tree_: ObliqueTree
    n_features_in_: int
    feature_names_in_: np.ndarray
    history_: list[Epoch]
    n_iter_: int
    n_jobs: int | None

    def apply(self, X: Any) -> np.ndarray:
        """Return the number of the leaf that each row reaches, (n,) int32."""
        self._check_predictable(X)
        return self.tree_.apply(X, n_jobs=self.n_jobs)

    def decision_path(self, X: Any) -> csr_array:
        """Return the nodes that each row visits: 0/1 CSR (n, n_nodes), splits before leaves."""
        self._check_predictable(X)
        return self.tree_.decision_path(X, n_jobs=self.n_jobs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to a file that `hardwood.load` reads; whole or not at all."""
        check_is_fitted(self)
        self.tree_.save(path)

    def _check_predictable(self, X: Any) -> None:
        """Raise and warn as scikit-learn does, and leave the entries of X to the tree.

        A plain float array of the right width has nothing to warn of unless the training table had
        names. It is let through at once: checks would take many times as long as one row's answer.
        """
        known = self.__dict__
        if (
            type(X) is np.ndarray
            and "tree_" in known
            and "feature_names_in_" not in known
            and X.ndim == 2
            and X.dtype.char in "fd"
            and X.shape[1] == known["n_features_in_"]
            and X.shape[0] > 0
        ):
            return
        check_is_fitted(self)
        # What has no width is refused by the tree, in words that say how to reshape it.
        if getattr(X, "ndim", 2) == 2 and not (isinstance(X, list | tuple) and len(X) == 0):
            validate_data(self, X, reset=False, skip_check_array=True)

    def __sklearn_is_fitted__(self) -> bool:
        return "tree_" in self.__dict__

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class TreeClassifier(ClassifierMixin, TreeEstimator):
    """A classifier whose answer is one tree; further attribute: `classes_`, the sorted labels."""

    classes_: np.ndarray
    _leaf_labels: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label of each row."""
        self._check_predictable(X)
        return self._leaf_labels[self.tree_.apply(X, n_jobs=self.n_jobs)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class, (n, n_classes), in the order of `classes_`."""
        self._check_predictable(X)
        return self.tree_.predict_proba(X, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict the logarithm of the probabilities; -inf where one is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class TreeRegressor(RegressorMixin, TreeEstimator):
    """A regressor whose answer is one tree; further attribute: `n_outputs_`, how many targets."""

    n_outputs_: int

    def predict(self, X: Any) -> np.ndarray:
        """Predict each row, (n,), or (n, n_outputs) where several targets were learned."""
        self._check_predictable(X)
        return self.tree_.predict(X, n_jobs=self.n_jobs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
