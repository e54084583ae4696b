"""Models of other libraries, on the columns that our trees see.

A table of any kind is encoded as for our own learners: numbers in standard units, a column of 0
and 1 for every level of a category and for every column with missing entries. So every model gets
the same columns, and none fails on text or on what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from hardwood.selection.rows import LabeledRows, folds_of
from hardwood.table import Schema, Table
from hardwood.table.subset import n_rows
from hardwood.table.target import class_target, number_target

if TYPE_CHECKING:
    from hardwood.selection.models import Settings

CART_HEIGHTS = (2, 3, 4, 6, 8, 10, 14, None)
CART_LEAF_ROWS = (1, 10)
_INNER_FOLDS = 3
_RIDGE_ALPHAS = tuple(10.0**power for power in range(-3, 5))


class _Encoded(BaseEstimator):
    """A model on encoded columns; it is copied and never changed."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def _learn(self, X: Any, target: np.ndarray, sample_weight: Any) -> None:
        table = Table.of(X)
        self.schema_ = Schema.learn(table, sample_weight)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.model_ = clone(self.model).fit(self.encode(table), target, **options)

    def encode(self, X: Any) -> np.ndarray:
        """Return the columns (n, c) float32 that the model learns from."""
        matrix = self.schema_.read(X, who=type(self.model).__name__)
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        encoded: np.ndarray = self.schema_.encoder.encode(np.ascontiguousarray(dense))
        return encoded


class EncodedClassifier(ClassifierMixin, _Encoded):
    """A classifier of another library, trained on class indices instead of labels."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> EncodedClassifier:
        """Learn from a table of any kind."""
        target = class_target(y, n_rows(X))
        self.classes_ = target.classes
        self._learn(X, target.index, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return labels."""
        return self.classes_[np.asarray(self.model_.predict(self.encode(X)), dtype=np.int64)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities (n, classes)."""
        return np.asarray(self.model_.predict_proba(self.encode(X)))


class EncodedRegressor(RegressorMixin, _Encoded):
    """A regressor of another library."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> EncodedRegressor:
        """Learn from a table of any kind."""
        self._learn(X, number_target(y, n_rows(X)).values.ravel(), sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return numbers."""
        return np.asarray(self.model_.predict(self.encode(X)), dtype=np.float64).ravel()


class _InnerFolds:
    """A splitter that divides the rows of a model in the same way as the comparison."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return min(_INNER_FOLDS, len(y))

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[np.ndarray, Any]]:
        rng = np.random.default_rng(self._settings.seed)
        is_classifier = self._settings.has_classes
        rows, n = LabeledRows(X, y, None), self.get_n_splits(y=y)
        for fold in folds_of(n, rows, is_classifier=is_classifier, rng=rng):
            yield fold.train, fold.validation


def constant(settings: Settings) -> Any:
    """Return the best constant prediction."""
    return _encoded(settings, DummyClassifier(strategy="prior"), DummyRegressor())


def linear(settings: Settings) -> Any:
    """Return logistic regression, or ridge regression with a penalty chosen on its own rows."""
    return _encoded(settings, LogisticRegression(max_iter=1000), RidgeCV(alphas=_RIDGE_ALPHAS))


def cart(settings: Settings) -> Any:
    """Return one axis-aligned tree, with depth and rows per leaf tuned on its training rows."""
    kind = DecisionTreeClassifier if settings.has_classes else DecisionTreeRegressor
    search = GridSearchCV(
        kind(random_state=settings.seed),
        {"max_depth": CART_HEIGHTS, "min_samples_leaf": CART_LEAF_ROWS},
        scoring=settings.scoring if isinstance(settings.scoring, str) else None,
        cv=_InnerFolds(settings),
    )
    return _encoded(settings, search, search)


def random_forest(settings: Settings) -> Any:
    """Return scikit-learn's forest of 100 trees."""
    return _of_kind(settings, RandomForestClassifier, RandomForestRegressor, n_jobs=settings.n_jobs)


def boosting(settings: Settings) -> Any:
    """Return scikit-learn's histogram gradient boosting, up to 100 rounds."""
    return _of_kind(settings, HistGradientBoostingClassifier, HistGradientBoostingRegressor)


def xgboost(settings: Settings) -> Any:
    """Return XGBoost at its default."""
    import xgboost as library

    kinds = library.XGBClassifier, library.XGBRegressor
    return _of_kind(settings, *kinds, n_jobs=settings.n_jobs)


def lightgbm(settings: Settings) -> Any:
    """Return LightGBM at its default."""
    import lightgbm as library

    kinds = library.LGBMClassifier, library.LGBMRegressor
    return _of_kind(settings, *kinds, n_jobs=settings.n_jobs, verbose=-1)


def _of_kind(settings: Settings, classifier: Any, regressor: Any, **options: Any) -> Any:
    kind = classifier if settings.has_classes else regressor
    model = kind(random_state=settings.seed, **options)
    return _encoded(settings, model, model)


def _encoded(settings: Settings, classifier: Any, regressor: Any) -> Any:
    """Return the model of the task on encoded columns."""
    return EncodedClassifier(classifier) if settings.has_classes else EncodedRegressor(regressor)


def is_there(package: str) -> bool:
    """Whether a library is installed; it is not imported."""
    return find_spec(package) is not None
