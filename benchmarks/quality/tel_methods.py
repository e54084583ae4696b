"""The methods of TEL's Tables 2 and 3, and their hyperparameter search spaces.

Spaces are those of Appendix D.1 of the paper, for all methods. Each has the same number of rounds
with the same sampler. The first round is the library's own default of the searched parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from hardwood import TELClassifier
from hardwood.selection import Range, space_of

Setting = dict[str, Any]

N_AVERAGED = 5
_RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_PENALTY = Range(1e-8, 1e2, log=True, or_zero=True)
_LOGISTIC_WIDTH = Range(1e-4, 1e4, log=True)


@dataclass(frozen=True)
class Method:
    """A classifier and its search space.

    Attributes
    ----------
    make
        Returns an estimator, given a setting, a seed and a number of threads.
    space
        Search space, in the form that `hardwood.tune` takes.
    default
        The library's defaults of these parameters: the setting of the first round.
    setting_of
        The method whose chosen settings this one uses instead of choosing its own.
    """

    name: str
    title: str
    make: Callable[[Setting, int, int], Any]
    space: dict[str, Any]
    default: Setting
    setting_of: str | None = None


def _tel(setting: Setting, seed: int, n_jobs: int) -> Any:
    # The number of epochs is searched, as in the paper: no rows are held out for early stopping.
    return TELClassifier(**setting, early_stopping=False, random_state=seed, n_jobs=n_jobs)


def _tel_mean(setting: Setting, seed: int, n_jobs: int) -> Any:
    return _tel(setting, seed, n_jobs).set_params(n_restarts=N_AVERAGED, combine_runs="mean")


def _xgboost(setting: Setting, seed: int, n_jobs: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(**setting, min_child_weight=0, random_state=seed, n_jobs=n_jobs)


def _logistic(setting: Setting, seed: int, n_jobs: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(**setting, max_iter=1000))


def _cart(setting: Setting, seed: int, n_jobs: int) -> Any:
    return DecisionTreeClassifier(**setting, random_state=seed)


def _paper_space(method: Any, **changes: Any) -> dict[str, Any]:
    return {**space_of(method, None).entries, **changes}


# Sec. 4.1: 10 trees of depth 4 with either activation; gamma of the logistic function is the
# paper's alpha.
_SMALL = {
    key: values
    for key, values in _paper_space(TELClassifier()).items()
    if key in ("learning_rate", "batch_size", "max_epochs", "gamma")
}


def _small_tel(activation: str) -> Callable[[Setting, int, int], Any]:
    def make(setting: Setting, seed: int, n_jobs: int) -> Any:
        fixed = {"n_estimators": 10, "max_depth": 4, "activation": activation}
        return _tel({**fixed, **setting}, seed, n_jobs)

    return make


# TELClassifier's own; of passes, whose default depends on the table, about the middle of the space.
_TEL_DEFAULT = {
    "learning_rate": 0.01,
    "batch_size": 128,
    "max_epochs": 50,
    "gamma": 1.0,
    "max_depth": 4,
    "n_estimators": 10,
    "l2": 0.0,
}
_SMALL_DEFAULT = {key: _TEL_DEFAULT[key] for key in _SMALL}

METHODS = {
    method.name: method
    for method in (
        Method("tel", "TEL", _tel, _paper_space(TELClassifier()), _TEL_DEFAULT),
        Method(
            "tel_mean",
            f"TEL, {N_AVERAGED} starts averaged",
            _tel_mean,
            {},
            _TEL_DEFAULT,
            setting_of="tel",
        ),
        Method(
            "xgboost",
            "XGBoost",
            _xgboost,
            {
                "learning_rate": _RATES,
                "max_depth": Range(2, 20),
                "n_estimators": Range(1, 500),
                "reg_lambda": _PENALTY,
            },
            {"learning_rate": 0.3, "max_depth": 6, "n_estimators": 100, "reg_lambda": 1.0},
        ),
        Method(
            "logistic",
            "logistic regression",
            _logistic,
            {"C": Range(1e-8, 1e4, log=True)},
            {"C": 1.0},
        ),
        Method("cart", "CART", _cart, {"max_depth": Range(2, 20)}, {"max_depth": None}),
        Method("smooth", "smooth step", _small_tel("smooth_step"), _SMALL, _SMALL_DEFAULT),
        Method(
            "sigmoid",
            "logistic",
            _small_tel("logistic"),
            _SMALL | {"gamma": _LOGISTIC_WIDTH},
            _SMALL_DEFAULT,
        ),
    )
}
