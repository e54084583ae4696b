"""Plain Python: one file that imports math, and the same predictions."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import pytest

from hardwood import ObliqueTree
from hardwood.errors import ExportError
from hardwood.export import python as python_module
from hardwood.export import to_python
from hardwood.export.plan import plan_of
from trees import make_rows, make_tree


def program(model):
    names = {}
    exec(to_python(model), names)
    return names


def test_every_kind_of_model(model):
    text = to_python(model)
    assert text.check.n_on_edge <= 5
    assert text.check.largest_difference < 1e-5
    imports = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert [alias.name for node in imports for alias in node.names] == ["math"]


@pytest.mark.parametrize("mixed", [False, True])
def test_rows_in_all_their_forms(mixed):
    tree = make_tree(2, n_splits=20, n_features=6, mixed=mixed)
    run, rows = program(tree), make_rows(1, tree.schema, 300)
    expected = tree.predict(rows).tolist()
    assert [run["predict"](row) for row in rows] == expected
    by_name = [dict(zip(tree.feature_names, row, strict=True)) for row in rows]
    assert [run["predict"](row) for row in by_name] == expected
    nan = [[np.nan if x is None else x for x in row] for row in rows]
    assert [run["predict"](tuple(row)) for row in nan] == expected
    assert [run["leaves"](row)[0] for row in rows] == tree.apply(rows).tolist()
    np.testing.assert_allclose(
        [run["predict_proba"](row) for row in rows], tree.predict_proba(rows), rtol=0
    )


def test_wrong_rows_are_refused():
    run = program(make_tree(1))
    with pytest.raises(ValueError, match="a row has 4 values, found 3"):
        run["predict"]([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="infinite"):
        run["predict"]([1.0, 2.0, 3.0, float("inf")])
    with pytest.raises(KeyError):
        run["predict"]({"f0": 1.0})


def test_it_runs_without_hardwood_and_numpy(tmp_path):
    tree = make_tree(2, mixed=True)
    to_python(tree, tmp_path / "shipped.py")
    rows = make_rows(1, tree.schema, 20)
    command = (
        f"import sys, shipped; print([shipped.predict(row) for row in {rows!r}]); "
        "assert not {'numpy', 'hardwood'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", command], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == tree.predict(rows).tolist()


def test_many_columns_and_levels_are_tables_not_long_sums():
    """Sums of thousands of terms would exhaust the compiler's stack."""
    tree = make_tree(1, n_splits=3, n_features=150, mixed=True, sparsity=0.0)
    run, rows = program(tree), make_rows(1, tree.schema, 5)
    assert [run["predict"](row) for row in rows] == tree.predict(rows).tolist()


def test_a_split_is_written_in_the_units_of_the_table():
    tree = ObliqueTree.of(
        [[1.0, 0.0], [0.5, -2.0], [0.0, 1.0]],
        thresholds=[4.0, 1.0, 7.5],
        values=[1.0, 2.0, 3.0, 4.0],
        feature_names=["petal length", "class"],
    )
    text = to_python(tree)
    assert "if petal_length >= 4.0:" in text
    assert "if class_2 >= 7.5:" in text
    assert "if 0.5 * petal_length - 2.0 * class_2 - 1.0 >= 0.0:" in text


def test_a_program_that_differs_is_refused(monkeypatch, tmp_path):
    tree = make_tree(1, n_splits=7, n_features=4)
    plan = plan_of(tree.replace(bias=tree.bias + 0.01))
    object.__setattr__(plan, "model", tree)
    monkeypatch.setattr(python_module, "plan_of", lambda model: plan)
    with pytest.raises(ExportError, match=r"was not written: run by this Python.*differs"):
        to_python(tree, tmp_path / "m.py")
    assert list(tmp_path.iterdir()) == []
