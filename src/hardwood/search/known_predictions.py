"""Estimators that return known predictions, for the scorers of scikit-learn.

A module of its own because its classes need scikit-learn, and `hardwood fit --help`, which imports
the search, does not load it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class _KnownPredictions(BaseEstimator):
    """An estimator whose predictions are known."""

    def __init__(self, outputs: np.ndarray, classes: np.ndarray | None) -> None:
        self.outputs = outputs
        self.classes = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True


class KnownClasses(ClassifierMixin, _KnownPredictions):
    """Probabilities of classes or labels, (n, k)."""

    @property
    def classes_(self) -> np.ndarray:
        return np.arange(self.outputs.shape[1]) if self.classes is None else self.classes

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.outputs

    def predict(self, X: Any) -> np.ndarray:
        if self.classes is None:
            return (self.outputs >= 0.5).astype(np.int64)
        labels: np.ndarray = self.classes[self.outputs.argmax(axis=1)]
        return labels


class KnownNumbers(RegressorMixin, _KnownPredictions):
    """Numbers, (n, k)."""

    def predict(self, X: Any) -> np.ndarray:
        return self.outputs[:, 0] if self.outputs.shape[1] == 1 else self.outputs
