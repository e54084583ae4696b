"""Models of other libraries, on the columns that our trees see.

A table of any kind is encoded as for our own learners: numbers in standard units, a column of 0
and 1 for every level of a category and for every column with missing entries. So every model gets
the same columns, and none fails on text or on what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import get_scorer
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from hardwood.search.known_predictions import KnownClasses, KnownNumbers
from hardwood.selection.rows import Fold, LabeledRows, folds_of
from hardwood.table import Schema, Table
from hardwood.table.dense_size import check_dense_size
from hardwood.table.subset import n_rows
from hardwood.table.target import class_target, number_target

if TYPE_CHECKING:
    from hardwood.selection.models import Settings

CART_HEIGHTS = (2, 3, 4, 6, 8, 10, 14, None)
CART_LEAF_ROWS = (1, 10)
_INNER_FOLDS = 3
_MOST_INNER_ROWS = 20_000  # that the depth of CART is chosen on; more hardly improve the choice
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
        name = type(self.model).__name__
        check_dense_size(matrix.shape[0], self.schema_.n_columns, bytes_per_value=4, learner=name)
        rows = np.ascontiguousarray(matrix) if isinstance(matrix, np.ndarray) else matrix
        encoded: np.ndarray = self.schema_.encoder.encode(rows)
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


class TunedCART(BaseEstimator):
    """One axis-aligned tree, with depth and rows per leaf chosen by folds of its training rows.

    A tree that is grown to the end holds the trees of all smaller depths, so that a fold costs one
    fit for each number of rows per leaf.

    Parameters
    ----------
    tree
        A decision tree of scikit-learn.
    scoring
        The name of a scorer; None for accuracy or R2.
    seed
        Of the folds.
    """

    def __init__(self, tree: Any, scoring: str | None, seed: int) -> None:
        self.tree = tree
        self.scoring = scoring
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> TunedCART:
        """Choose, and learn from all rows."""
        rows = LabeledRows(X, y, sample_weight)
        rng = np.random.default_rng(self.seed)
        is_large = len(rows) > _MOST_INNER_ROWS
        few = rows.take(rng.permutation(len(rows))[:_MOST_INNER_ROWS]) if is_large else rows
        scores = np.zeros((len(CART_HEIGHTS), len(CART_LEAF_ROWS)))
        for fold in self._folds(few, rng):
            train, valid = fold.parts(few)
            for j, least in enumerate(CART_LEAF_ROWS):
                scores[:, j] += self._scores(train.teach(self._tree(None, least)), valid)
        best, j = divmod(int(scores.argmax()), len(CART_LEAF_ROWS))
        self.best_estimator_ = rows.teach(self._tree(CART_HEIGHTS[best], CART_LEAF_ROWS[j]))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict with the chosen tree."""
        return np.asarray(self.best_estimator_.predict(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of the chosen tree."""
        return np.asarray(self.best_estimator_.predict_proba(X))

    def _folds(self, rows: LabeledRows, rng: np.random.Generator) -> tuple[Fold, ...]:
        n_folds = min(_INNER_FOLDS, len(rows))
        return folds_of(n_folds, rows, is_classifier=is_classifier(self.tree), rng=rng)

    def _tree(self, height: int | None, least: int) -> Any:
        return clone(self.tree).set_params(max_depth=height, min_samples_leaf=least)

    def _scores(self, tree: Any, rows: LabeledRows) -> list[float]:
        """Score a tree, cut at each depth, on other rows."""
        has_classes = is_classifier(tree)
        scorer = get_scorer(self.scoring or ("accuracy" if has_classes else "r2"))
        outputs = _cut(tree, rows.X, CART_HEIGHTS)
        return [
            scorer(
                KnownClasses(found, tree.classes_) if has_classes else KnownNumbers(found, None),
                rows.X,
                rows.y,
            )
            for found in outputs
        ]


def _cut(tree: Any, X: np.ndarray, heights: Sequence[int | None]) -> list[np.ndarray]:
    """Return what a tree predicts if it is cut at each of these depths, (n, k) each."""
    grown = tree.tree_
    parent = np.zeros(grown.node_count, dtype=np.int64)
    depth = np.zeros(grown.node_count, dtype=np.int64)
    for node, children in enumerate(zip(grown.children_left, grown.children_right, strict=True)):
        if children[0] != children[1]:  # of a split, which comes before its branches
            parent[list(children)], depth[list(children)] = node, depth[node] + 1
    leaves, outputs = tree.apply(X), []
    for height in heights:
        at = leaves
        while height is not None and (depth[at] > height).any():
            at = np.where(depth[at] > height, parent[at], at)
        outputs.append(grown.value[at, 0])
    return outputs


def constant(settings: Settings) -> Any:
    """Return the best constant prediction."""
    return _encoded(settings, DummyClassifier(strategy="prior"), DummyRegressor())


def linear(settings: Settings) -> Any:
    """Return logistic regression, or ridge regression with a penalty chosen on its own rows."""
    return _encoded(settings, LogisticRegression(max_iter=1000), RidgeCV(alphas=_RIDGE_ALPHAS))


def cart(settings: Settings) -> Any:
    """Return one axis-aligned tree, with depth and rows per leaf tuned on its training rows."""
    kind = DecisionTreeClassifier if settings.has_classes else DecisionTreeRegressor
    scoring = settings.scoring if isinstance(settings.scoring, str) else None
    tuned = TunedCART(kind(random_state=settings.seed), scoring, settings.seed)
    return _encoded(settings, tuned, tuned)


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
