"""The methods of the DGT tables, ours and the paper's, each with its grid.

A setting is a dictionary that JSON can represent. The grids are data at the top. After a change to
a grid, only the missing fits are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from hardwood.learn import Relaxation, Training

Setting = dict[str, Any]
Grid = list[dict[str, list[Any]]]

# --- ours: Table 11, and what proved itself beside it on validation rows -----------------------
# Table 11: momentum {0, 0.3}, and 0.8 for classification; L in {1, 3} with the hidden sizes of
# Table 12; with L = 3 also lambda_1 or lambda_2. A step with those sizes reads up to 5 million
# weights for any table (speed/dgt_layers.py), and narrow layers with lambda_2 are at least as good
# on validation rows. Table 12's own sizes are in the ablations.
_CLIP = {"clip_norm": 0.1}
_SCALED = {"quantizer": "scaled"}
_PRODUCT = {"path": "product"}
_ONE_LAYER_NUMBERS: Grid = [{"layers": [1], "momentum": [0.0, 0.3]}]
_ONE_LAYER_CLASSES: Grid = [{"layers": [1], "momentum": [0.0, 0.3, 0.8]}]
_LARGE_CLASSES: Grid = [
    {"layers": [1], "momentum": [0.3, 0.8]},
    {
        "layers": [[64]],
        "l2": [1e-5],
        "batch_size": [256],
        "relaxation": [_SCALED],
        "training": [_CLIP],
    },
]
_NARROW_NUMBERS: Grid = [
    {
        "layers": [[32, 32]],
        "momentum": [0.3],
        "learning_rate": [0.003, 0.01],
        "l2": [1e-5, 1e-4, 3e-4],
        "batch_size": [256],
        "relaxation": [_SCALED, _PRODUCT],
        "training": [_CLIP],
    }
]
_NARROW_CLASSES: Grid = [
    {
        "layers": [[64, 64]],
        "l2": [1e-5, 1e-4],
        "batch_size": [256],
        "relaxation": [_SCALED],
        "training": [_CLIP],
    }
]
_BACE: Grid = [
    {
        "layers": [[64], [64, 64]],
        "momentum": [0.0, 0.3],
        "l2": [1e-5, 1e-4, 3e-4],
        "batch_size": [256],
        "relaxation": [_SCALED],
        "training": [_CLIP],
    }
]
_HIV: Grid = [  # 2048 columns and 1,400 rows of the rarer class: strong penalties
    {"layers": [1], "momentum": [0.3]},
    {
        "layers": [[64]],
        "l2": [3e-4, 1e-3, 3e-3],
        "batch_size": [256],
        "relaxation": [_SCALED],
        "training": [_CLIP],
    },
]
_MORE_NARROW_CLASSES: Grid = [  # for tables on which a fit takes seconds
    *_BACE,
    {"layers": [1], "momentum": [0.8], "relaxation": [_SCALED]},
    {
        "layers": [[64]],
        "l2": [1e-5, 1e-4],
        "batch_size": [256],
        "relaxation": [_PRODUCT],
        "training": [_CLIP],
    },
]
# Test digits are of other writers than training and validation digits.
_NOISY: Grid = [
    {"layers": [1], "momentum": [0.3], "noise": [0.1, 0.2, 0.35]},
    {
        "layers": [[64]],
        "l2": [1e-5],
        "batch_size": [256],
        "noise": [0.1, 0.2, 0.35],
        "relaxation": [_SCALED],
        "training": [_CLIP],
    },
]
_DGT: dict[str, Grid] = {
    "": _ONE_LAYER_CLASSES + _MORE_NARROW_CLASSES,
    "pendigits": _ONE_LAYER_CLASSES + _MORE_NARROW_CLASSES + _NOISY,
    "bace": _ONE_LAYER_CLASSES + _BACE,
    "letter": _ONE_LAYER_CLASSES + _NARROW_CLASSES,
    "hiv": _HIV,
    "mnist": _ONE_LAYER_CLASSES,  # narrow layers: 93.8 against 93.7 on validation rows, 4x the time
    **dict.fromkeys(("connect4", "covtype"), _LARGE_CLASSES),
    **dict.fromkeys(("ailerons", "abalone", "cpu_act"), _ONE_LAYER_NUMBERS + _NARROW_NUMBERS),
}
_LINEAR: dict[str, Grid] = {
    "": [
        {"layers": [1], "momentum": [0.0, 0.3], "l2": [0.0, 1e-4, 1e-3]},
        {
            "layers": [[32, 32]],
            "momentum": [0.3],
            "learning_rate": [0.003],
            "l2": [1e-4, 1e-3],
            "batch_size": [256],
            "relaxation": [_PRODUCT],
            "training": [_CLIP],
        },
    ],
}
# Appendix C.3.1: sample sizes {0.7, 0.85, 0.9, 1}, momentum {0, 0.2, 0.3, 0.4, 0.6}, and a penalty
# also when L = 1.
_FOREST: dict[str, Grid] = {
    "": [
        {
            "layers": [1],
            "momentum": [0.0, 0.3],
            "l1": [0.0, 1e-5],
            "sample_fraction": [1.0],
        },
        {
            "layers": [[32, 32]],
            "momentum": [0.3],
            "learning_rate": [0.003, 0.01],
            "l2": [1e-5, 1e-4],
            "batch_size": [256],
            "relaxation": [_SCALED, _PRODUCT],
            "training": [_CLIP],
            "sample_fraction": [1.0],
        },
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

# A CART of mnist, covtype or hiv takes up to half a minute: fewer settings.
_FEW: Grid = [{"max_depth": [6, 10], "min_samples_leaf": [2, 12, 50, 150]}]
_FEW_FREE: Grid = [{"max_depth": [None], "min_samples_leaf": [1, 5, 20]}]
_LARGE = ("mnist", "covtype", "hiv", "connect4")
_CART: dict[str, Grid] = {
    "": [{"max_depth": _HEIGHTS, "min_samples_leaf": _LEAF_ROWS}],
    **dict.fromkeys(_LARGE, _FEW),
}
_CART_FREE: dict[str, Grid] = {
    "": [{"max_depth": [None], "min_samples_leaf": [1, *_LEAF_ROWS]}],
    **dict.fromkeys(_LARGE, _FEW_FREE),
}
_RIDGE: dict[str, Grid] = {"": [{"alpha": _ALPHAS}]}
_XGBOOST: dict[str, Grid] = {"": [{"max_depth": [4, 7, 10], "learning_rate": [0.01, 0.03]}]}
_ADABOOST: dict[str, Grid] = {"": [{"max_depth": [10, 15], "learning_rate": [0.1, 1.0]}]}

# Fits per setting whose validation scores are averaged: with few rows one score is noisy.
_REPEATS = {
    "bace": 3,
    "hiv": 3,
    **dict.fromkeys(("pendigits", "satimage", "segment", "optdigits"), 3),
}
# Added to a setting of ours while settings are compared, to save time: the final fits keep the
# best of several random starts.
_ONE_START: Setting = {"n_restarts": 1}


@dataclass(frozen=True)
class Method:
    """A method: its name, its estimator and its grids.

    Parameters
    ----------
    name, title
        In the records, and in print.
    make
        Returns an unfitted estimator, given a task, a setting, a seed and a number of threads.
    grids
        Grids by data set; "" for all that are not named.
    is_ours
        Whether it is hardwood's, and therefore has the depths of the task.
    is_random
        Whether the model depends on the seed.
    choosing
        Added to a setting while settings are compared.
    quick
        Added to a setting in a smoke run.
    """

    name: str
    title: str
    make: Callable[[Task, Setting, int, int], BaseEstimator]
    grids: Mapping[str, Grid]
    is_ours: bool = False
    is_random: bool = True
    choosing: Setting = field(default_factory=dict)
    quick: Setting = field(default_factory=dict)

    def settings(self, task: Task) -> list[Setting]:
        """Return the settings to try on a data set."""
        grid = self.grids.get(task.name) or self.grids.get("")
        if grid is None:
            raise KeyError(f"{self.name!r} has no grid for {task.name!r}")
        if self.is_ours:
            is_forest = self.name == "forest" and task.forest_height
            heights = [task.forest_height] if is_forest else list(task.heights)
            grid = [{"max_depth": heights, **one} for one in grid]
        return list(ParameterGrid(grid))

    def repeats(self, task: Task) -> int:
        """Return the number of fits per setting that are averaged when settings are compared."""
        return _REPEATS.get(task.name, 1) if self.is_ours else 1


def _options(setting: Setting) -> dict[str, Any]:
    """Return an estimator's arguments; nested dictionaries become option objects."""
    options = dict(setting)
    if "training" in options:
        options["training"] = Training(**options["training"])
    if "relaxation" in options:
        relaxation = dict(options["relaxation"])
        if "sharpness" in relaxation:
            relaxation["sharpness"] = tuple(relaxation["sharpness"])
        options["relaxation"] = Relaxation(**relaxation)
    return options


def tree(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    """Return one tree of ours, with constant leaves unless the setting says otherwise."""
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


QUICK_TREE: Setting = {"max_epochs": 3, "n_restarts": 1}
METHODS = {
    method.name: method
    for method in (
        Method("dgt", "DGT", tree, _DGT, True, choosing=_ONE_START, quick=QUICK_TREE),
        Method(
            "linear",
            "DGT, linear leaves",
            _linear_leaves,
            _LINEAR,
            True,
            choosing=_ONE_START,
            quick=QUICK_TREE,
        ),
        Method(
            "forest",
            "DGT-Forest, 30 trees",
            _forest,
            _FOREST,
            True,
            choosing={"n_estimators": 10},
            quick={"max_epochs": 3, "n_estimators": 3},
        ),
        Method("pat", "PAT", tree, _PAT, True, choosing=_ONE_START, quick=QUICK_TREE),
        Method("cart", "CART, depth up to 10", _cart, _CART),
        Method("cart_free", "CART, any depth", _cart, _CART_FREE),
        Method("ridge", "Ridge", _ridge, _RIDGE, is_random=False),
        # All rows and columns in every tree: deterministic.
        Method(
            "xgboost",
            "XGBoost, 1000 trees",
            _xgboost,
            _XGBOOST,
            is_random=False,
            quick={"n_estimators": 5},
        ),
        Method(
            "adaboost",
            "AdaBoost, 1000 trees",
            _adaboost,
            _ADABOOST,
            choosing={"n_estimators": 100},
            quick={"n_estimators": 5},
        ),
    )
}


def sizes(model: BaseEstimator) -> dict[str, Any]:
    """Return the size of a fitted model: splits, and operations per prediction.

    ``splits_grown`` counts the splits of the perfect trees that were learned, ``splits`` those left
    after removing the ones that no training row reaches (Appendix C.2 of the paper).
    """
    if isinstance(model, DecisionTreeClassifier | DecisionTreeRegressor):
        return {"splits": int(model.get_n_leaves()) - 1, "depth": int(model.get_depth())}
    names = ("forest_", "tree_", "model_")
    grown = next((getattr(model, name) for name in names if hasattr(model, name)), None)
    if grown is None:
        return {}
    cost = grown.flops()
    facts = {
        "splits_grown": getattr(grown, "n_trees", 1) * (2**model.max_depth - 1),
        "splits": grown.n_splits,
        "flops": None if cost.mean is None else cost.mean.total,
        "flops_worst": cost.worst.total,
    }
    record = grown.record or {}
    return facts | {
        name: record[name]
        for name in ("passes", "best_pass", "validation_loss", "hardening_loss")
        if name in record
    }
