"""Files are written completely or not at all, by every function that writes one."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hardwood
from hardwood import GreedyTreeClassifier, TreeRegressor, export, learn_from_rewards, report
from hardwood.bandit import DGTBandit
from trees import make_tree

SOURCE = Path(hardwood.__file__).parent
ROWS = np.arange(40.0).reshape(20, 2)


@cache
def estimator() -> Any:
    return GreedyTreeClassifier(max_depth=2).fit(ROWS, ROWS[:, 0] > 20)


@cache
def searched() -> Any:
    options = {"time_limit": None, "max_trials": 2, "random_state": 0}
    return TreeRegressor(max_depth=2, **options).fit(ROWS, ROWS[:, 0] ** 2)


@cache
def rewarded() -> Any:
    def reward(rows: Any, actions: Any) -> np.ndarray:
        return (actions == "a") == (ROWS[rows, 0] > 20)

    return learn_from_rewards(
        ROWS, reward, actions=["a", "b"], max_depth=2, max_epochs=2, random_state=0
    )


def tree() -> Any:
    return make_tree(1)


# By the name of the function that takes the path, and the name of the file.
WRITERS: dict[tuple[str, str], Callable[[Path], Any]] = {
    ("hardwood.model.base.Model.save", "m.hardwood"): lambda path: tree().save(path),
    ("hardwood.model.base.Model.show", "m.html"): lambda path: tree().show(path),
    ("hardwood.model.files.file.save", "m.hardwood"): lambda path: hardwood.model.save(
        tree(), path
    ),
    ("hardwood.show.page.document.Page.save", "m.html"): lambda path: tree().show(None).save(path),
    ("hardwood.show.page.document.show", "m.html"): lambda path: importlib.import_module(
        "hardwood.show.page.document"
    ).show(tree(), path),
    ("hardwood.estimators.base.ModelEstimator.save", "m.hardwood"): lambda path: estimator().save(
        path
    ),
    ("hardwood.estimators.base.ModelEstimator.show", "m.html"): lambda path: estimator().show(path),
    ("hardwood.estimators.rewards.RewardedTree.save", "m.hardwood"): lambda path: rewarded().save(
        path
    ),
    ("hardwood.estimators.tree._Searched.plot_frontier", "m.png"): lambda path: (
        searched().plot_frontier(path)
    ),
    ("hardwood.search.frontier.Frontier.plot", "m.svg"): lambda path: searched().frontier_.plot(
        path
    ),
    ("hardwood.search.frontier.Frontier.show", "m.html"): lambda path: searched().frontier_.show(
        path
    ),
    ("hardwood.bandit.online.OnlineLearner.save", "m.hardwood"): lambda path: bandit().save(path),
    ("hardwood.bandit.policy.DGTBandit.to_rules", "m.json"): lambda path: bandit().to_rules(path),
    ("hardwood.bandit.file.save", "m.hardwood"): lambda path: importlib.import_module(
        "hardwood.bandit.file"
    ).save(bandit(), path),
    ("hardwood.text.report.Report.save", "m.html"): lambda path: report.describe(tree()).save(path),
    ("hardwood.text.report.Report.save", "m.json"): lambda path: report.describe(tree()).save(path),
    ("hardwood.text.report.Report.save", "m.txt"): lambda path: report.describe(tree()).save(path),
    ("hardwood.text.report.PlottedReport.plot", "m.pdf"): lambda path: report.evaluate(
        estimator(), ROWS, ROWS[:, 0] > 20
    ).plot(path),
    ("hardwood.text.report.write_figure", "m.png"): lambda path: importlib.import_module(
        "hardwood.text.report"
    ).write_figure(report.evaluate(estimator(), ROWS, ROWS[:, 0] > 20).plot(), path),
    ("hardwood.export.c.header.to_c", "m.h"): lambda path: export.to_c(tree(), path),
    ("hardwood.export.json.to_json", "m.json"): lambda path: export.to_json(tree(), path),
    ("hardwood.export.onnx.writer.to_onnx", "m.onnx"): lambda path: export.to_onnx(tree(), path),
    ("hardwood.export.python.to_python", "m.py"): lambda path: export.to_python(tree(), path),
    ("hardwood.export.rules.writer.to_rules", "m.txt"): lambda path: export.to_rules(tree(), path),
    ("hardwood.export.sql.statement.to_sql", "m.sql"): lambda path: export.to_sql(tree(), path),
}


def bandit() -> Any:
    learner = DGTBandit(2, max_depth=2, random_state=0)
    learner.learn(learner.decide(ROWS[0]).token, 1.0)
    return learner


def needs(name: str) -> None:
    if name.endswith(".onnx"):
        pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")


@pytest.fixture(autouse=True)
def close_figures():
    plt = pytest.importorskip("matplotlib.pyplot")
    yield
    plt.close("all")


@pytest.mark.parametrize("writer", WRITERS, ids="-".join)
def test_a_file_gets_its_name_when_it_is_whole(writer, tmp_path, monkeypatch):
    """A process that is killed before leaves the old file; there is nothing to do after it."""
    needs(writer[1])
    path, given = tmp_path / writer[1], []
    path.write_bytes(b"old")
    replace = os.replace

    def watched(part: Path, target: Path) -> None:
        assert path.read_bytes() == b"old"
        given.append(Path(part).read_bytes())
        replace(part, target)

    monkeypatch.setattr(os, "replace", watched)
    WRITERS[writer](path)
    assert given == [path.read_bytes()]
    assert os.listdir(tmp_path) == [writer[1]]


@pytest.mark.parametrize("writer", WRITERS, ids="-".join)
def test_a_failed_write_leaves_the_old_file(writer, tmp_path, monkeypatch):
    needs(writer[1])
    path = tmp_path / writer[1]
    path.write_bytes(b"old")

    def fail(part: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        WRITERS[writer](path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [writer[1]]


def takes_path(function: Any) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any("PathLike" in str(each.annotation) and each.name == "path" for each in parameters)


def test_every_function_that_takes_a_path_is_known():
    readers = {"load", "load_as", "checked_target", "whole_file", "picture_format", "header_name"}
    found = set()
    for module in pkgutil.walk_packages([str(SOURCE)], "hardwood."):
        if not module.name.startswith(("hardwood.cli", "hardwood.nn")):
            for thing in vars(importlib.import_module(module.name)).values():
                if str(getattr(thing, "__module__", "")).startswith("hardwood."):
                    members = vars(thing).values() if inspect.isclass(thing) else [thing]
                    found |= {each for each in members if inspect.isfunction(each)}
    names = {
        f"{each.__module__}.{each.__qualname__}"
        for each in found
        if takes_path(each) and each.__name__ not in readers and each.__name__[0] != "_"
    }
    assert names == {name for name, _ in WRITERS}


# Writes that are no results: the sources of a compiler in a folder of their own, and streams.
ALLOWED = {
    ("atomic_file.py", "fdopen"),
    ("cli/process/streams.py", "fdopen"),
    ("export/c/compiler.py", "write_bytes"),
}


def test_no_other_code_opens_files_to_write():
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (name := writing_call(node)):
                found.add((path.relative_to(SOURCE).as_posix(), name))
    assert found == ALLOWED


def writing_call(node: ast.Call) -> str | None:
    """The name of a function that writes a file, if this is a call of one."""
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if name in ("write_text", "write_bytes", "to_csv", "savetxt", "copyfile", "fdopen"):
        return name
    modes = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    modes = [each for each in modes if isinstance(each, str) and 0 < len(each) <= 3]
    writes = any(set(each) <= set("rwaxbt+") and set(each) & set("wax+") for each in modes)
    return name if name == "open" and writes else None
