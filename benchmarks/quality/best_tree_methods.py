"""The methods of the best-tree table, ours, CART and XGBoost, with their grids.

DGT alone, DGT with linear leaves and CART of any depth are the recorded runs of `dgt_tables.py`,
with the same data, parts, seeds and procedure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split

import hardwood
from benchmarks.quality.best_tree_aims import tasks
from benchmarks.quality.dgt_paper import Task
from benchmarks.quality.learners import METHODS as DGT_METHODS
from benchmarks.quality.learners import QUICK_TREE, Grid, Method, Setting, tree
from benchmarks.quality.ledger import Ledger
from benchmarks.record import file_of

DGT_TABLES = file_of("dgt_tables")
DGT = {name: DGT_METHODS[name] for name in ("dgt", "linear", "cart_free")}
_HELD_OUT = 0.2  # of the rows: they decide which stage of the refinement is kept
_LARGE = ("mnist", "covtype", "hiv", "connect4")


def _estimator(task: Task, name: str) -> Any:
    return getattr(hardwood, f"{name}{'Classifier' if task.has_classes else 'Regressor'}")


def _tao(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    return _estimator(task, "TAO")(random_state=seed, n_jobs=n_jobs, **setting)


def _default(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    return _estimator(task, "Tree")(random_state=seed, n_jobs=n_jobs, **setting)


class Refined(BaseEstimator):
    """DGT with a given setting, then TAO from its tree: `hardwood.refine`.

    Some rows are held out from both and decide whether TAO's tree is kept.
    """

    def __init__(self, task: Task, setting: Setting, seed: int, n_jobs: int) -> None:
        self.task = task
        self.setting = setting
        self.seed = seed
        self.n_jobs = n_jobs

    def fit(self, X: np.ndarray, y: np.ndarray) -> Refined:
        rows, held_out = train_test_split(
            np.arange(len(y)),
            test_size=_HELD_OUT,
            random_state=self.seed,
            stratify=y if self.task.has_classes else None,
        )
        start = tree(self.task, self.setting, self.seed, self.n_jobs).fit(X[rows], y[rows])
        self.refinement_ = hardwood.refine(
            start,
            X[rows],
            y[rows],
            learners=["tao"],
            X_val=X[held_out],
            y_val=y[held_out],
            scoring="roc_auc" if self.task.measure == "auc" else None,
            n_jobs=self.n_jobs,
            random_state=self.seed,
        )
        self.tree_ = self.refinement_.tree_
        self.max_depth = self.setting["max_depth"]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.tree_.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.tree_.predict_proba(X)


def recorded_setting(task: Task, method: str) -> Setting | None:
    """Return the recorded setting that validation rows chose; None if there is none."""
    runs = Ledger(DGT_TABLES, {"name": task.name, "method": method}).runs
    return runs[0]["setting"] if runs else None


def _recorded_grids(method: str, **more: Any) -> dict[str, Grid]:
    """Return grids of one setting each: the one DGT's tables chose for the first split."""
    found = {task.name: recorded_setting(task, method) for task in tasks()}
    return {
        name: [{key: [value] for key, value in (setting | more).items()}]
        for name, setting in found.items()
        if setting is not None
    }


def _default_grids(**more: Any) -> dict[str, Grid]:
    """Return the depth of the table, a minute and, if the measure is AUC, that scoring."""
    grids: dict[str, Grid] = {}
    for task in tasks():
        of_task = {"scoring": ["roc_auc"]} if task.measure == "auc" else {}
        options = {"leaves": ["constant"], "time_limit": [60.0], **of_task, **more}
        grids[task.name] = [{"max_depth": [max(task.heights)], **options}]
    return grids


_STARTS: Grid = [{"init": ["axis", "random"]}]
_ONE_START: Grid = [{"init": ["axis"]}]
_TAO: dict[str, Grid] = {"": _STARTS, **dict.fromkeys(_LARGE, _ONE_START)}
_LINEAR = {"leaves": ["linear"]}
# 1,000 rounds are 1,000 trees per class: one setting, XGBoost's own depth, a third of its rate.
_XGBOOST: dict[str, Grid] = {
    task.name: [{"max_depth": [6], "learning_rate": [0.1]}] for task in tasks() if task.has_classes
}

_QUICK_TREE: Setting = {"time_limit": None, "max_trials": 2, "teacher": None}
_QUICK_SWEEPS: Setting = {"max_sweeps": 2}

METHODS = {
    method.name: method
    for method in (
        Method("default", "Tree, default", _default, _default_grids(), quick=_QUICK_TREE),
        Method(
            "default_linear",
            "Tree, linear leaves",
            _default,
            _default_grids(**_LINEAR),
            quick=_QUICK_TREE,
        ),
        Method("refine", "DGT then TAO", Refined, _recorded_grids("dgt"), quick=QUICK_TREE),
        Method(
            "refine_linear",
            "DGT then TAO, linear leaves",
            Refined,
            _recorded_grids("linear", leaves="linear"),
            quick=QUICK_TREE,
        ),
        Method("tao", "TAO", _tao, _TAO, is_ours=True, quick=_QUICK_SWEEPS),
        Method(
            "tao_linear",
            "TAO, linear leaves",
            _tao,
            {"": [one | _LINEAR for one in _STARTS]},
            is_ours=True,
            quick=_QUICK_SWEEPS,
        ),
        replace(DGT_METHODS["cart"], title="CART, tuned"),
        replace(
            DGT_METHODS["xgboost"],
            grids={**DGT_METHODS["xgboost"].grids, **_XGBOOST},
        ),
    )
}


def methods_of(task: Task) -> list[Method]:
    """Return the methods for a data set; linear leaves only for regression."""
    return [
        method
        for method in METHODS.values()
        if not (task.has_classes and method.name.endswith("_linear"))
    ]
