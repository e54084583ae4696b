"""The models that the ledger exports, explains, prunes and draws: one of every kind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import hardwood
from ledger import tables
from ledger.tables import Table


@dataclass(frozen=True)
class Subject:
    """A model and the table that it was learned from."""

    model: Any
    table: Table
    named: Any  # the other rows, with the names of the model's features


def subject(name: str) -> Subject:
    """Return a model of the list; it is learned at the first call."""
    return _learned(name)


@functools.cache
def _learned(name: str) -> Subject:
    task, table_name, make = KINDS[name]
    table = tables.numbers(table_name) if task == "numbers" else tables.classes(table_name)
    model = make(table)
    rows = table.X_other
    if isinstance(rows, pd.DataFrame):
        return Subject(model, table, rows)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    return Subject(model, table, pd.DataFrame(rows, columns=list(model.feature_names)))


def _tree(kind: str, **settings: Any) -> Callable[[Table], Any]:
    def learn(table: Table) -> Any:
        estimator = getattr(hardwood, kind)(random_state=0, **settings)
        return _model_of(estimator.fit(table.X, table.y, sample_weight=table.weight))

    return learn


def _model_of(estimator: Any) -> Any:
    names = ("policy_", "model_", "ensemble_", "forest_", "tree_")
    return next(getattr(estimator, name) for name in names if hasattr(estimator, name))


def _hardened(kind: str, **settings: Any) -> Callable[[Table], Any]:
    return lambda table: _tree(kind, **settings)(table).harden()


def _from_sklearn(kind: Any) -> Callable[[Table], Any]:
    return lambda table: hardwood.from_sklearn(
        kind(max_depth=3, random_state=0).fit(table.X, table.y)
    )


_DGT: Mapping[str, Any] = {"max_depth": 3, "max_epochs": 15}
_TEL: Mapping[str, Any] = {"n_estimators": 3, "max_depth": 3, "max_epochs": 8}
_LATENT: Mapping[str, Any] = {"max_depth": 2, "max_epochs": 8}

KINDS: Mapping[str, tuple[str, str, Callable[[Table], Any]]] = {
    "tree of classes": ("classes", "iris", _tree("DGTClassifier", **_DGT)),
    "tree of numbers": ("numbers", "diabetes", _tree("DGTRegressor", **_DGT)),
    "tree of a data frame": ("classes", "shop", _tree("GreedyTreeClassifier", max_depth=4)),
    "tree of two numbers": ("numbers", "two", _tree("TAORegressor", max_depth=3, max_sweeps=3)),
    "tree of labels": ("classes", "labels", _tree("DGTClassifier", **_DGT)),
    "tree of gaps": ("classes", "gaps", _tree("GreedyTreeClassifier", max_depth=3)),
    "tree of a sparse table": ("numbers", "words", _tree("DGTRegressor", **_DGT)),
    "linear leaves": ("classes", "iris", _tree("DGTClassifier", leaves="linear", **_DGT)),
    "linear leaves of a data frame": (
        "numbers",
        "shop",
        _tree("DGTRegressor", leaves="linear", max_depth=2, max_epochs=15),
    ),
    "forest of classes": ("classes", "gaps", _tree("DGTForestClassifier", n_estimators=3, **_DGT)),
    "forest of numbers": ("numbers", "shop", _tree("DGTForestRegressor", n_estimators=3, **_DGT)),
    "forest that votes": (
        "classes",
        "iris",
        _tree("DGTForestClassifier", n_estimators=3, combine="vote", **_DGT),
    ),
    "soft ensemble": ("classes", "iris", _tree("TELClassifier", **_TEL)),
    "soft ensemble of numbers": ("numbers", "shop", _tree("TELRegressor", **_TEL)),
    "hardened ensemble": ("classes", "shop", _hardened("TELClassifier", **_TEL)),
    "policy tree": (
        "classes",
        "iris",
        _tree("ReinforcedTreeClassifier", parents=[-1, 0, 0, 0, 1, 1, 1], max_epochs=10),
    ),
    "policy tree of two branches": (
        "numbers",
        "diabetes",
        _tree("ReinforcedTreeRegressor", max_depth=2, max_epochs=10),
    ),
    "latent tree": ("classes", "gaps", _tree("LatentTreeClassifier", **_LATENT)),
    "latent tree of numbers": ("numbers", "shop", _tree("LatentTreeRegressor", **_LATENT)),
    "CART of classes": ("classes", "iris", _from_sklearn(DecisionTreeClassifier)),
    "CART of numbers": ("numbers", "gaps", _from_sklearn(DecisionTreeRegressor)),
}
