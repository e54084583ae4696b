"""The methods of the DGT tables: ours and the paper's peers, each with the settings it may have.

A setting is a dictionary that JSON can hold. `GRIDS` has all of them; whoever changes a grid
changes what is chosen, and only the fits that are then missing are made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import hardwood
from benchmarks.quality.dgt_paper import Task

Setting = dict[str, Any]
Grid = list[dict[str, list[Any]]]

# --- ours: Table 11, shortened where a fit is long ---------------------------------------------
# Table 11: momentum {0, 0.3}, and 0.8 for classes; L in {1, 3}; with L = 3 also lambda_1 or
# lambda_2 in {5e-5, 1e-5, 5e-6, 1e-6, 0}. An overparameterised step costs a pass over up to 5
# million weights whatever the table, so that L = 3 is tried at height 6, and on small tables.
_ONE_LAYER_NUMBERS: Grid = [{"layers": [1], "momentum": [0.0, 0.3]}]
_ONE_LAYER_CLASSES: Grid = [{"layers": [1], "momentum": [0.0, 0.3, 0.8]}]
_THREE_LAYERS: Grid = [{"layers": [3], "momentum": [0.0, 0.3], "l1": [1e-5, 1e-6, 0.0]}]
_DGT: dict[str, Grid] = {
    "pendigits": _ONE_LAYER_CLASSES,
    "satimage": _ONE_LAYER_CLASSES + _THREE_LAYERS,
    "segment": _ONE_LAYER_CLASSES + [{"layers": [3], "momentum": [0.0, 0.3], "l1": [1e-5]}],
    "letter": _ONE_LAYER_CLASSES,
    "mnist": _ONE_LAYER_CLASSES,
    "connect4": _ONE_LAYER_CLASSES,
    "covtype": _ONE_LAYER_CLASSES,
    "hiv": _ONE_LAYER_CLASSES,
    "bace": _ONE_LAYER_CLASSES + [{"layers": [3], "momentum": [0.0], "l1": [1e-5, 1e-6]}],
    "optdigits": _ONE_LAYER_CLASSES,
    "ailerons": _ONE_LAYER_NUMBERS + _THREE_LAYERS,
    "abalone": _ONE_LAYER_NUMBERS + _THREE_LAYERS,
    "cpu_act": _ONE_LAYER_NUMBERS + _THREE_LAYERS,
}
_LINEAR: dict[str, Grid] = {
    "": [{"layers": [1], "momentum": [0.0, 0.3], "l2": [0.0, 1e-4, 1e-3]}],
}
# Appendix C.3.1: sample sizes {0.7, 0.85, 0.9, 1}, momentum {0, 0.2, 0.3, 0.4, 0.6}, and a penalty
# also when L = 1.
_FOREST: dict[str, Grid] = {
    "": [
        {
            "layers": [1],
            "momentum": [0.0, 0.3],
            "l1": [0.0, 1e-5],
            "sample_fraction": [0.7, 1.0],
        }
    ],
}
# Appendix C.3.1: linear and logarithmic schedules over these ranges, and momentum.
_PAT: dict[str, Grid] = {
    "": [
        {
            "layers": [1],
            "momentum": [0.0, 0.3],
            "relaxation": [
                {
                    "path": "product",
                    "routing": "annealed",
                    "sharpness": sharpness,
                    "annealing": annealing,
                }
                for sharpness in ([1, 100], [1, 1000], [10, 100], [10, 1000])
                for annealing in ("linear", "log")
            ],
        }
    ],
}

# --- the peers ---------------------------------------------------------------------------------
_LEAF_ROWS = [2, 3, 5, 8, 12, 20, 30, 50, 80, 110, 150]  # between 2 and 150
_HEIGHTS = [2, 4, 6, 8, 10]  # of all tree methods
_ALPHAS = [float(f"{alpha:.3g}") for alpha in np.geomspace(1e-6, 0.5, 16)]
N_BOOSTED = 1000

GRIDS: dict[str, dict[str, Grid]] = {
    "dgt": _DGT,
    "linear": _LINEAR,
    "forest": _FOREST,
    "pat": _PAT,
    "cart": {"": [{"max_depth": _HEIGHTS, "min_samples_leaf": _LEAF_ROWS}]},
    "cart_free": {"": [{"max_depth": [None], "min_samples_leaf": [1, *_LEAF_ROWS]}]},
    "ridge": {"": [{"alpha": _ALPHAS}]},
    "xgboost": {"": [{"max_depth": [4, 7, 10], "learning_rate": [0.01, 0.03, 0.1]}]},
    "adaboost": {"": [{"max_depth": [10, 15], "learning_rate": [0.1, 1.0]}]},
}

# What is added to a setting while settings are compared, so that the comparison is affordable: one
# random start, fewer trees. The fits that count have neither.
_CHOOSING: dict[str, Setting] = {
    "dgt": {"restarts": 1},
    "linear": {"restarts": 1},
    "pat": {"restarts": 1},
    "forest": {"restarts": 1, "n_estimators": 10},
    "adaboost": {"n_estimators": 100},
}
# Fits per setting whose validation scores are averaged: few rows make a noisy choice.
_REPEATS = {"bace": 3, "segment": 2, "abalone": 2}


@dataclass(frozen=True)
class Method:
    """How a method is called, made and sized.

    Parameters
    ----------
    name, title
        In files, and in print.
    make
        From a task, a setting, a seed and a number of threads, an estimator that is not fitted yet.
    is_ours
        Whether it is hardwood's.
    is_random
        Whether another seed may give another model.
    """

    name: str
    title: str
    make: Callable[[Task, Setting, int, int], BaseEstimator]
    is_ours: bool = False
    is_random: bool = True


def settings(method: str, task: Task) -> list[Setting]:
    """Return what a method is tuned over on a data set, in the order of `GRIDS`."""
    grids = GRIDS[method]
    grid = grids.get(task.name, grids.get(""))
    if grid is None:
        raise KeyError(f"no grid of {method!r} for {task.name!r}: add one to GRIDS")
    if METHODS[method].is_ours:
        height = [task.forest_height] if method == "forest" and task.forest_height else task.heights
        grid = [{"max_depth": list(height), **one} for one in grid]
    return list(ParameterGrid(grid))


def choosing_options(method: str) -> Setting:
    """Return what is added to a setting while settings are compared."""
    return _CHOOSING.get(method, {})


def repeats(method: str, task: Task) -> int:
    """Return how many fits of a setting are averaged before settings are compared."""
    return _REPEATS.get(task.name, 1) if METHODS[method].is_random else 1


def _options(setting: Setting) -> dict[str, Any]:
    """Return an estimator's arguments: nested dictionaries become option objects."""
    options = dict(setting)
    if "training" in options:
        options["training"] = hardwood.Training(**options["training"])
    if "relaxation" in options:
        relaxation = dict(options["relaxation"])
        if "sharpness" in relaxation:
            relaxation["sharpness"] = tuple(relaxation["sharpness"])
        options["relaxation"] = hardwood.Relaxation(**relaxation)
    return options


def tree(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    """Return one tree of ours; its leaves are constant unless the setting says otherwise."""
    estimator = hardwood.DGTClassifier if task.has_classes else hardwood.DGTRegressor
    return estimator(random_state=seed, n_jobs=n_jobs, **_options(setting))


def _linear_leaves(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    return tree(task, {"leaves": "linear", **setting}, seed, n_jobs)


def _forest(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    estimator = hardwood.DGTForestClassifier if task.has_classes else hardwood.DGTForestRegressor
    options = {"n_estimators": 30, **_options(setting)}
    return estimator(random_state=seed, n_jobs=n_jobs, **options)


def _cart(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    estimator = DecisionTreeClassifier if task.has_classes else DecisionTreeRegressor
    return estimator(random_state=seed, **setting)


def _ridge(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    return make_pipeline(StandardScaler(), Ridge(solver="svd", **setting))


def _xgboost(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    import xgboost

    estimator = xgboost.XGBClassifier if task.has_classes else xgboost.XGBRegressor
    options = {"n_estimators": N_BOOSTED, **setting}
    return estimator(random_state=seed, n_jobs=n_jobs, tree_method="hist", **options)


def _adaboost(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    boosted = AdaBoostClassifier if task.has_classes else AdaBoostRegressor
    options = {"n_estimators": N_BOOSTED, **setting}
    base = _cart(task, {"max_depth": options.pop("max_depth")}, seed, n_jobs)
    return boosted(base, random_state=seed, **options)


METHODS = {
    method.name: method
    for method in (
        Method("dgt", "DGT", tree, is_ours=True),
        Method("linear", "DGT, linear leaves", _linear_leaves, is_ours=True),
        Method("forest", "DGT-Forest, 30 trees", _forest, is_ours=True),
        Method("pat", "PAT", tree, is_ours=True),
        Method("cart", "CART, height up to 10", _cart),
        Method("cart_free", "CART, any height", _cart),
        Method("ridge", "Ridge", _ridge, is_random=False),
        # All rows and columns in every tree: nothing is drawn.
        Method("xgboost", "XGBoost, 1000 trees", _xgboost, is_random=False),
        Method("adaboost", "AdaBoost, 1000 trees", _adaboost),
    )
}


def sizes(model: BaseEstimator) -> dict[str, Any]:
    """Return what is known of the size of a fitted model: splits, and operations per prediction."""
    if hasattr(model, "forest_"):
        forest, perfect = model.forest_, 2**model.max_depth - 1
        return {
            "n_trees": forest.n_trees,
            "splits_grown": perfect * forest.n_trees,
            "splits": forest.n_splits,
            "flops": forest.flops(),
        }
    if isinstance(model, hardwood.DGTClassifier | hardwood.DGTRegressor):
        return {
            "splits_grown": 2**model.max_depth - 1,
            "splits": model.tree_.n_splits,
            "flops": model.tree_.flops(),
            "passes": model.n_iter_,
        }
    if isinstance(model, DecisionTreeClassifier | DecisionTreeRegressor):
        return {"splits": int(model.get_n_leaves()) - 1, "depth": int(model.get_depth())}
    return {}
