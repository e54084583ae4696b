"""Sizes of exported trees and forests, and how many rows they predict as the model does.

    python -m benchmarks.quality.exports --data FOLDER [--names a,b] [--quick]

FOLDER holds ``NAME.npz`` (`parts.py`). A tree of depth 6 and a forest of 10 trees of depth 4 are
trained on the training and validation rows of a table and exported in every form, with these rows
as data. On the test rows, the predictions of compiled C and of ONNX Runtime are compared with the
model's; the other forms were checked when they were written. Size: in C, of the tables that a
prediction reads; otherwise of the file.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.dgt_paper import TASKS, Task
from benchmarks.quality.parts import Parts, parts
from benchmarks.quality.trials import some_of
from benchmarks.record import Column, Table, verdict
from benchmarks.timing import one_thread
from hardwood import DGTClassifier, DGTForestClassifier, DGTForestRegressor, DGTRegressor
from hardwood.export import to_c, to_onnx, to_python, to_rules, to_sql
from hardwood.export.c.compiler import Compiler, compiled_predictions
from hardwood.export.onnx.writer import run_graph
from hardwood.export.plan import plan_of
from hardwood.export.probes import Probes
from hardwood.export.verify import Check, Predictions, measured

NAMES = ("segment", "satimage", "pendigits", "cpu_act")
FORMS: dict[str, Callable[..., Any]] = {
    "c": to_c,
    "c, int16": to_c,
    "c, int8": to_c,
    "onnx": to_onnx,
    "sql": to_sql,
    "python": to_python,
    "rules": to_rules,
}
FLOORS = {"c, int16": 0.99, "c, int8": 0.9}
COLUMNS = [
    Column("name", "data", width=10, words=True),
    Column("model", "model", width=8, words=True),
    Column("form", "form", width=8, words=True),
    Column("n_bytes", "bytes", ",d", width=9),
    Column("n_rows", "rows checked", ",d"),
    Column("n_on_edge", "on an edge"),
    Column("agreement", "same, training", ".2%"),
    Column("test_agreement", "same, test", ".2%"),
    Column("test_leaf", "same leaf, test", ".2%"),
    Column("seconds", "s", ".1f"),
    Column("verdict", ""),
]


def models(task: Task, table: Parts) -> Iterator[tuple[str, Any]]:
    """Train a tree and a forest."""
    tree, forest = (
        (DGTClassifier, DGTForestClassifier)
        if task.has_classes
        else (DGTRegressor, DGTForestRegressor)
    )
    X, y = table.X[table.learnable], table.y[table.learnable]
    yield "tree", tree(max_depth=6, random_state=0).fit(X, y).tree_
    yield "forest", forest(n_estimators=10, max_depth=4, random_state=0).fit(X, y).forest_


def measure(name: str, kind: str, model: Any, X: np.ndarray, X_test: np.ndarray) -> Iterator[dict]:
    """Export a model in every form, and yield the results."""
    test = Probes(plan_of(model), X_test.astype(np.float64), len(X_test), are_given=True)
    for form, export in FORMS.items():
        options = {"precision": form[3:], "min_agreement": 0.0} if "int" in form else {}
        start = time.perf_counter()
        content = export(model, data=X, **options)
        seconds = time.perf_counter() - start
        check: Check = content.check
        on_test = _on_test(form, content, test)
        share = None if on_test is None else on_test.agreement
        passed = share is None or share >= FLOORS.get(form, 1.0)
        yield {
            "name": name,
            "model": kind,
            "form": form,
            "n_bytes": check.n_bytes
            or len(content.encode() if isinstance(content, str) else content),
            "n_rows": check.n_rows,
            "n_on_edge": check.n_on_edge,
            "agreement": 1.0 if check.agreement is None else check.agreement,
            "test_agreement": share,
            "test_leaf": None if on_test is None else on_test.same_leaf,
            "seconds": seconds,
            "method": check.method,
            **verdict(passed),
        }


def _on_test(form: str, content: Any, test: Probes) -> Check | None:
    if form not in ("c", "c, int16", "c, int8", "onnx"):
        return None
    found: Predictions
    if form == "onnx":
        found, _ = run_graph(test, content, as_matrix=True)
    else:
        compiler = Compiler.find()
        if compiler is None:
            sys.exit("these figures need a C compiler")
        real = "double" if form == "c" else "float"
        found = compiled_predictions(compiler, test, "model", content, real=real)
    return measured(test, found, target=form, method="")


def main() -> int:
    one_thread()
    warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--names", type=some_of(TASKS), default="", help=", ".join(TASKS))
    parser.add_argument("--quick", action="store_true", help="few rows, not recorded")
    arguments = parser.parse_args()
    report = Table(
        "exports",
        "Exports of a tree of depth 6 and of a forest of 10 trees of depth 4: bytes, and rows "
        "that are answered as by the model (numbers: within 1 % of their range).",
        COLUMNS,
        {"floors": FLOORS},
        kept=not arguments.quick,
    )
    for name in arguments.names or NAMES:
        table = parts(arguments.data, TASKS[name], 0, max_rows=500 if arguments.quick else None)
        for kind, model in models(TASKS[name], table):
            X, X_test = table.X[table.learnable], table.X[table.test]
            for row in measure(name, kind, model, X, X_test):
                report.add(**row)
    return 0 if report.finish("Seconds include the export and its check.") else 1


if __name__ == "__main__":
    sys.exit(main())
