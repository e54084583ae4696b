"""Error messages: invalid data, parameters, files and calls."""

from __future__ import annotations

import functools
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hardwood
from hardwood import bandit, explain, export, report
from hardwood.learn import Huber, Quantile, Relaxation, Training
from hardwood.report import dendrogram_purity
from ledger import fits, models, tables
from ledger.cases import Case, each_of

_X = np.arange(24.0).reshape(12, 2)
_Y = np.arange(12) % 2


def cases() -> Iterator[Case]:
    """Return cases of estimators with invalid data and parameters; of models, files, reports."""
    for name in fits.estimators():
        yield Case(f"errors/data/{name}", functools.partial(_data, name), is_quick=True)
        yield Case(f"errors/parameters/{name}", functools.partial(_parameters, name), True)
        yield Case(f"pickle/{name}", functools.partial(_pickled, name), is_quick=True)
    yield Case("errors/models", functools.partial(each_of, _OF_MODELS), is_quick=True)
    yield Case("errors/files", _files, is_quick=True)
    yield Case("errors/bandits", functools.partial(each_of, _OF_BANDITS), is_quick=True)
    yield Case("errors/values", functools.partial(each_of, _OF_VALUES), is_quick=True)


def _fit(name: str, X: Any, y: Any, weight: Any = None, **given: Any) -> Any:
    estimator = getattr(hardwood, name)(**given)
    if fits.task_of(name) == "clusters":
        return type(estimator.fit(X)).__name__
    return type(estimator.fit(X, y, sample_weight=weight)).__name__


_few = {"max_epochs": 2, "max_sweeps": 1, "max_trials": 1}


def _data(name: str) -> dict[str, Any]:
    kind = getattr(hardwood, name)
    given = {key: few for key, few in _few.items() if key in kind().get_params()}
    fit = functools.partial(_fit, name, **given)
    gaps = np.where(np.eye(12, dtype=bool), np.nan, _Y.astype(float))[0]
    return each_of(
        {
            "no rows": lambda: fit(_X[:0], _Y[:0]),
            "one row": lambda: fit(_X[:1], _Y[:1]),
            "no columns": lambda: fit(_X[:, :0], _Y),
            "one number": lambda: fit(3.0, _Y),
            "infinite": lambda: fit(np.where(_X == 3, np.inf, _X), _Y),
            "other lengths": lambda: fit(_X, _Y[:5]),
            "one value": lambda: fit(_X, np.zeros(12)),
            "missing target": lambda: fit(_X, gaps),
            "no target": lambda: fit(_X, None),
            "target of three axes": lambda: fit(_X, np.zeros((12, 1, 1))),
            "complex": lambda: fit(_X * 1j, _Y),
            "objects": lambda: fit(np.full((12, 2), object()), _Y),
            "negative weight": lambda: fit(_X, _Y, np.full(12, -1.0)),
            "zero weights": lambda: fit(_X, _Y, np.zeros(12)),
            "weights of another length": lambda: fit(_X, _Y, np.ones(3)),
            "same names": lambda: fit(pd.DataFrame(_X, columns=["a", "a"]), _Y),
            "not fitted": lambda: kind().predict(_X),
            "other columns": lambda: kind(**given).fit(_X, _Y).predict(_X[:, :1]),
        }
    )


def _parameters(name: str) -> dict[str, Any]:
    """Return cases of parameters with invalid values."""
    table = (
        tables.numbers("diabetes") if fits.task_of(name) == "numbers" else tables.classes("iris")
    )
    calls: dict[str, Callable[[], Any]] = {}
    for parameter in sorted(getattr(hardwood, name)().get_params()):
        if parameter in ("random_state", "verbose", "callbacks", "time_limit"):
            continue
        for number, wrong in enumerate((-1, "no such thing", [])):
            calls[f"{parameter} {number}"] = functools.partial(
                _fit, name, table.X, table.y, **{parameter: wrong}
            )
    return {"said": each_of(calls)}


def _pickled(name: str) -> dict[str, Any]:
    kind = getattr(hardwood, name)
    given = {key: few for key, few in _few.items() if key in kind().get_params()}
    table = (
        tables.numbers("diabetes") if fits.task_of(name) == "numbers" else tables.classes("iris")
    )
    given |= {"random_state": 0}
    estimator = kind(**given).fit(table.X, table.y)
    again = pickle.loads(pickle.dumps(estimator))
    return {"same": np.array_equal(again.predict(table.X_other), estimator.predict(table.X_other))}


def _tree() -> Any:
    return models.subject("tree of classes").model


_OF_MODELS: Mapping[str, Callable[[], Any]] = {
    "too few columns": lambda: _tree().predict(_X),
    "text": lambda: _tree().predict([["a", "b", "c", "d"]]),
    "one axis": lambda: _tree().predict([1.0, 2.0]),
    "no such split": lambda: _tree().split(99),
    "no such row": lambda: _tree().predict_one({"a": 1}),
    "weights of two axes": lambda: hardwood.ObliqueTree.of([1.0], thresholds=[0.0], values=[0, 1]),
    "too few values": lambda: hardwood.ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0]),
    "a cycle": lambda: hardwood.model.ObliqueTree(
        [[1.0]], [0.0], [[0, -1]], [[0.0], [1.0]], schema=_tree().schema, task="regression"
    ),
    "an empty forest": lambda: hardwood.ObliqueForest([]),
    "prune without rows": lambda: _tree().prune(_X),
    "prune by a wrong criterion": lambda: _tree().prune(
        tables.classes("iris").X, tables.classes("iris").y, criterion="gini"
    ),
    "explain an unfitted estimator": lambda: explain.shapley(hardwood.DGTClassifier(), _X),
    "explain nothing": lambda: explain.path(3, _X),
    "counterfactual of an unknown class": lambda: explain.counterfactual(
        _tree(), tables.classes("iris").X[:1], wanted=7
    ),
    "export nothing": lambda: export.to_sql(None),
    "a wrong precision": lambda: export.to_c(_tree(), precision="int4"),
    "a wrong name": lambda: export.to_c(_tree(), name="2 x"),
    "report on nothing": lambda: report.describe("tree"),
    "a wrong metric": lambda: report.analyze(
        _tree(), tables.classes("iris").X, tables.classes("iris").y, metric="gini"
    ),
    "curves of a tree by hand": lambda: report.learning_curves(
        hardwood.ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0, 1])
    ),
    "from a forest of scikit-learn": lambda: hardwood.from_sklearn(3),
}

_OF_BANDITS: Mapping[str, Callable[[], Any]] = {
    "one action": lambda: bandit.DGTBandit(1),
    "a bandit's wrong method": lambda: bandit.DGTBandit(2, method="best"),
    "negative depth": lambda: bandit.DGTBandit(2, max_depth=-1),
    "exploration of text": lambda: bandit.DGTBandit(2, exploration="much"),
    "no such token": lambda: bandit.DGTBandit(2).learn(7, reward=1.0),
    "a perturbation of zero": lambda: bandit.DGTBanditRegressor(perturbation=0.0),
    "too few labels": lambda: bandit.classification_bandit(_X, _Y[:3]),
    "a loss of text": lambda: bandit.regression_bandit(_X, _Y, loss="cube"),
    "a wrong method": lambda: bandit.evaluate(
        np.full((12, 2), 0.5), _X, _Y, _Y, np.full(12, 0.5), method="best"
    ),
    "propensities of zero": lambda: bandit.evaluate(
        np.full((12, 2), 0.5), _X, _Y, _Y, np.zeros(12)
    ),
}

_OF_VALUES: Mapping[str, Callable[[], Any]] = {
    "a delta of zero": lambda: Huber(0.0),
    "a level of one": lambda: Quantile(1.0),
    "a wrong optimizer": lambda: Training("lbfgs"),
    "a wrong path": lambda: Relaxation("mean"),
    "a wrong sharpness": lambda: Relaxation(routing="annealed", sharpness=(5.0, 1.0)),
    "tuned by nothing": lambda: hardwood.tune(3, _X, _Y),
    "tuned in no space": lambda: hardwood.tune(hardwood.DGTClassifier(), _X, _Y, space={"a": [1]}),
    "compared with nothing": lambda: hardwood.compare(_X, _Y, models=["CARD"]),
    "refined by nothing": lambda: hardwood.refine(_tree(), _X, _Y, learners=["boosting"]),
    "rewarded by nothing": lambda: hardwood.learn_from_rewards(_X, None, actions=[0, 1]),
    "no purity": lambda: dendrogram_purity(_Y, None),
}


def _files() -> dict[str, Any]:
    content = hardwood.model.dumps(_tree())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hardwood"
        _tree().save(path)
        named = {
            "absent": lambda: hardwood.load("absent.hardwood"),
            "a folder": lambda: _tree().save("/"),
            "cut": lambda: hardwood.model.loads(content[:50]),
            "longer": lambda: hardwood.model.loads(content + b"x"),
            "empty": lambda: hardwood.model.loads(b""),
            "changed": lambda: hardwood.model.loads(content.replace(b"softmax", b"softmix")),
            "another format": lambda: hardwood.model.loads(content.replace(b'"kind"', b'"kine"')),
            "no JSON": lambda: hardwood.ObliqueTree.from_json("{"),
            "another JSON": lambda: hardwood.ObliqueTree.from_json("[]"),
            "a forest as a tree": lambda: hardwood.ObliqueForest.from_json(_tree().to_json()),
            "a bandit of a tree": lambda: bandit.load(path),
        }
        return each_of(named)
