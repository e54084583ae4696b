"""Fits of every estimator: model files, predictions for other rows, fitted attributes."""

from __future__ import annotations

import functools
import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import hardwood
from ledger import settings, tables
from ledger.cases import Case
from ledger.tables import Table
from ledger.values import fitted

SEEDS = (0, 1, 2)
_METHODS = ("predict", "predict_proba", "predict_log_proba", "apply", "decision_path")
_TASKS = {"Classifier": "classes", "Regressor": "numbers"}


def cases() -> Iterator[Case]:
    """Return cases of every estimator: defaults on six tables and three seeds, other settings."""
    for name in estimators():
        yield Case(f"signature/{name}", functools.partial(_signature, name), is_quick=True)
        yield from _of_tables(name)
        yield from _of_variants(name)
        yield Case(f"fit/{name}/many/seed0/few epochs", functools.partial(_fit_many, name))
    for name in settings.WARM:
        yield Case(f"fit/{name}/fitted twice", functools.partial(_warm, name), is_quick=True)


def estimators() -> list[str]:
    """Return the names of all public estimators."""
    return [name for name in hardwood.__all__ if hasattr(getattr(hardwood, name), "fit")]


def model_bytes(model: Any) -> bytes:
    """Return the file of a model, or of anything with a method `save`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hardwood"
        model.save(path)
        return path.read_bytes()


def task_of(name: str) -> str:
    """Return "classes", "numbers" or "clusters"."""
    return next((task for ending, task in _TASKS.items() if name.endswith(ending)), "clusters")


def table_of(task: str, name: str) -> Table:
    """Return a table by its name; clusters are found in the tables of classes."""
    return tables.numbers(name) if task == "numbers" else tables.classes(name)


def _of_tables(name: str) -> Iterator[Case]:
    names = tables.NUMBERS if task_of(name) == "numbers" else tables.CLASSES
    for number, table in enumerate(names):
        for seed in SEEDS:
            # In turn, so that every table is in the quick selection of some estimator.
            is_quick = seed == 0 and number in (0, 2 + len(name) % 4)
            run = functools.partial(_fit, name, table, seed, settings.fixed())
            yield Case(f"fit/{name}/{table}/seed{seed}/default", run, is_quick)


def _of_variants(name: str) -> Iterator[Case]:
    table = "diabetes" if task_of(name) == "numbers" else "iris"
    for variant, make in settings.VARIANTS.get(name, {}).items():
        run = functools.partial(_fit, name, table, 0, make)
        yield Case(f"fit/{name}/{table}/seed0/{variant}", run, variant in settings.QUICK)


def _fit(
    name: str, table_name: str, seed: int, make: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    given = {**settings.ALWAYS.get(name, {}), **make()}
    table = table_of(task_of(name), table_name)
    estimator = getattr(hardwood, name)(random_state=seed, **given)
    if task_of(name) == "clusters":
        estimator.fit(table.X)
    else:
        estimator.fit(table.X, table.y, sample_weight=table.weight)
    return parts_of_fit(estimator, table)


def _fit_many(name: str) -> dict[str, Any]:
    parameters = inspect.signature(getattr(hardwood, name)).parameters
    few = {"max_epochs": 3} if "max_epochs" in parameters else {}
    return _fit(name, "many", 0, settings.fixed(**few))


def parts_of_fit(estimator: Any, table: Table) -> dict[str, Any]:
    """Return the parts to record of a fitted estimator."""
    methods = {name: getattr(estimator, name, None) for name in _METHODS}
    answers = {name: method(table.X_other) for name, method in methods.items() if method}
    if hasattr(estimator, "score"):
        answers["score"] = estimator.score(table.X_other, table.y_other)
    return {"model": model_bytes(estimator), "answers": answers, "attributes": fitted(estimator)}


def _warm(name: str) -> dict[str, Any]:
    task = task_of(name)
    table = table_of(task, "iris" if task == "classes" else "diabetes")
    estimator = getattr(hardwood, name)(
        warm_start=True, random_state=0, **settings.ALWAYS.get(name, {})
    )
    estimator.fit(table.X, table.y)
    if "n_estimators" in estimator.get_params():
        estimator.set_params(n_estimators=estimator.n_estimators + 2)
    return parts_of_fit(estimator.fit(table.X, table.y), table)


def _signature(name: str) -> dict[str, Any]:
    kind = getattr(hardwood, name)
    parameters = inspect.signature(kind).parameters.values()
    public = [method for method in dir(kind) if not method.startswith("_")]
    return {
        "parameters": {
            each.name: each.default for each in sorted(parameters, key=lambda p: p.name)
        },
        "methods": [method for method in public if callable(getattr(kind, method))],
        "tags": repr(kind().__sklearn_tags__()),
        "text": repr(kind()),
    }
