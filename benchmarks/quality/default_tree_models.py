"""The models that are compared with the default tree, each prepared as its users would.

All models of a comparison get the same frame: numbers, text, dates and missing entries. Ours take
it as it is. For the others, dates become days, and:

- CART and FIGS: missing numbers become the median, with an indicator column; text becomes a column
  of 0 and 1 per level. Levels with fewer than `LEAST_ROWS_OF_LEVEL` rows, and all but the
  `MOST_LEVELS` most frequent ones, share a column.
- The linear model: the same, with numbers in standard units and as many levels as are frequent.
- LightGBM, XGBoost and EBM: text is declared as categories, and missing entries stay missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import hardwood

N_FOLDS = 3
CART_DEPTHS = (2, 3, 4, 6, 8, 12, None)
CART_LEAF_ROWS = (1, 5, 10, 20, 50, 100, 200)
MOST_LEVELS = 40
LEAST_ROWS_OF_LEVEL = 10
LOGISTIC_CS = tuple(10.0 ** (power / 2) for power in range(-8, 5))
RIDGE_ALPHAS = tuple(10.0 ** (power / 2) for power in range(-6, 11))
SMALL = (8, 12)
SMALL_TERMS = 3
_LONGEST_QUICK_FIT = 1.0  # seconds

Make = Callable[["Given"], Any]


@dataclass(frozen=True)
class Given:
    """What a model is made for; ``n_classes`` is 0 for numbers."""

    X: pd.DataFrame
    n_classes: int
    n_threads: int
    seed: int
    is_quick: bool = False


@dataclass(frozen=True)
class Model:
    """One model of the comparison; ``takes_labels``: classes are labels, not their numbers."""

    name: str
    title: str
    make: Make
    takes_labels: bool = False


# --- ours --------------------------------------------------------------------------------------


def _of_ours(name: str, **options: Any) -> Make:
    def make(given: Given) -> Any:
        kind = getattr(hardwood, f"{name}{'Classifier' if given.n_classes else 'Regressor'}")
        quick = {"time_limit": _LONGEST_QUICK_FIT} if given.is_quick and name == "Tree" else {}
        return kind(n_jobs=given.n_threads, random_state=given.seed, **options, **quick)

    return make


# --- preparation -------------------------------------------------------------------------------


def is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def dates_as_days(X: pd.DataFrame) -> pd.DataFrame:
    """Return a copy in which dates are days since 1970."""
    dates = X.select_dtypes("datetime").columns
    begin, day = pd.Timestamp(0), pd.Timedelta(days=1)
    return X.assign(**{name: (X[name] - begin) / day for name in dates})


class Declared(TransformerMixin, BaseEstimator):
    """Declare text columns as categories; levels that were not in training become missing.

    Columns are numbered, since XGBoost refuses some characters in names.
    """

    def fit(self, X: pd.DataFrame, y: Any = None) -> Declared:
        self.levels_ = {
            name: pd.CategoricalDtype(sorted(X[name].dropna().unique()))
            for name in X.columns
            if not is_number(X[name])
        }
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        text = {
            name: X[name].where(X[name].isin(levels.categories)).astype(levels)
            for name, levels in self.levels_.items()
        }
        return X.assign(**text).set_axis([f"x{i}" for i in range(X.shape[1])], axis=1)


def _encoded(given: Given, *, is_scaled: bool, most_levels: int | None) -> list[Any]:
    """Return the steps that make numbers of a table without missing entries."""
    X = dates_as_days(given.X)
    numbers = [name for name in X.columns if is_number(X[name])]
    text = [name for name in X.columns if not is_number(X[name])]
    median = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=LEAST_ROWS_OF_LEVEL,
        max_categories=most_levels,
        sparse_output=False,
        dtype=np.float32,
    )
    scaled = make_pipeline(median, StandardScaler()) if is_scaled else median
    parts = [("numbers", scaled, numbers), ("text", one_hot, text)]
    return [FunctionTransformer(dates_as_days), ColumnTransformer([p for p in parts if p[2]])]


def _folds(given: Given) -> Any:
    kind = StratifiedKFold if given.n_classes else KFold
    return kind(N_FOLDS, shuffle=True, random_state=given.seed)


def _loss(given: Given) -> str:
    return "neg_log_loss" if given.n_classes else "neg_mean_squared_error"


def _score(given: Given) -> str:
    """Return the score that the comparison reports."""
    if not given.n_classes:
        return "r2"
    return "roc_auc" if given.n_classes == 2 else "accuracy"


# --- other libraries ---------------------------------------------------------------------------


def _cart(scoring: Callable[[Given], str], **options: Any) -> Make:
    """Return a maker of CART; leaf size and, without a limit of leaves, depth are tuned."""
    grid: dict[str, Any] = {"min_samples_leaf": CART_LEAF_ROWS}
    if "max_leaf_nodes" not in options:
        grid["max_depth"] = CART_DEPTHS

    def make(given: Given) -> Any:
        kind = DecisionTreeClassifier if given.n_classes else DecisionTreeRegressor
        tree = kind(random_state=given.seed, **options)
        search = GridSearchCV(tree, grid, scoring=scoring(given), cv=_folds(given))
        return make_pipeline(*_encoded(given, is_scaled=False, most_levels=MOST_LEVELS), search)

    return make


def _linear(given: Given) -> Any:
    if given.n_classes:
        model = LogisticRegressionCV(
            Cs=LOGISTIC_CS, cv=_folds(given), scoring=_loss(given), max_iter=2000
        )
    else:
        model = RidgeCV(alphas=RIDGE_ALPHAS)
    return make_pipeline(*_encoded(given, is_scaled=True, most_levels=None), model)


def _boosted(given: Given, model: Any) -> Any:
    return make_pipeline(FunctionTransformer(dates_as_days), Declared(), model)


def _lightgbm(given: Given) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if given.n_classes else LGBMRegressor
    return _boosted(given, kind(n_jobs=given.n_threads, random_state=given.seed, verbose=-1))


def _xgboost(given: Given) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if given.n_classes else XGBRegressor
    model = kind(n_jobs=given.n_threads, random_state=given.seed, enable_categorical=True)
    return _boosted(given, model)


def _ebm(given: Given) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if given.n_classes else ExplainableBoostingRegressor
    X = dates_as_days(given.X)
    types = ["continuous" if is_number(X[name]) else "nominal" for name in X.columns]
    rounds = {"max_rounds": 10} if given.is_quick else {}
    model = kind(feature_types=types, n_jobs=given.n_threads, random_state=given.seed, **rounds)
    return _boosted(given, model)


def _figs(given: Given) -> Any:
    from imodels import FIGSClassifier, FIGSRegressor

    kind = FIGSClassifier if given.n_classes else FIGSRegressor
    return make_pipeline(
        *_encoded(given, is_scaled=False, most_levels=MOST_LEVELS), kind(random_state=given.seed)
    )


OURS = ("default", "accuracy", "readable")
PEERS = ("cart", "cart_score", "linear", "lightgbm", "xgboost", "ebm", "figs")
LEARNERS = ("greedy", "tao", "dgt", "non_greedy", "reinforced", "latent")
MODELS = {
    model.name: model
    for model in (
        Model("default", "default", _of_ours("Tree"), takes_labels=True),
        Model("accuracy", 'prefer="accuracy"', _of_ours("Tree", prefer="accuracy"), True),
        Model("readable", 'prefer="readable"', _of_ours("Tree", prefer="readable"), True),
        Model("cart", "CART by loss", _cart(_loss)),
        Model("cart_score", "CART by score", _cart(_score)),
        *(Model(f"cart_{n}", f"CART, {n} leaves", _cart(_score, max_leaf_nodes=n)) for n in SMALL),
        Model("linear", "linear", _linear),
        Model("lightgbm", "LightGBM", _lightgbm),
        Model("xgboost", "XGBoost", _xgboost),
        Model("ebm", "EBM", _ebm),
        Model("figs", "FIGS", _figs),
        Model("greedy", "greedy", _of_ours("GreedyTree"), takes_labels=True),
        Model("tao", "TAO", _of_ours("TAO"), takes_labels=True),
        Model("dgt", "DGT", _of_ours("DGT"), takes_labels=True),
        Model("non_greedy", "non-greedy", _of_ours("NonGreedyTree"), takes_labels=True),
        Model("reinforced", "reinforced", _of_ours("ReinforcedTree"), takes_labels=True),
        Model("latent", "latent", _of_ours("LatentTree"), takes_labels=True),
    )
}
COMPARED = tuple(name for name in MODELS if name not in LEARNERS)
