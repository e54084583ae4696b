"""Headers in C: strict compilers accept them, and they predict as the library does, bit for bit."""

from __future__ import annotations

import platform
import shutil
import subprocess

import numpy as np
import pytest

from forests import make_forest
from hardwood import ObliqueTree, _native
from hardwood.errors import ExportError
from hardwood.export import to_c
from hardwood.export.c import header as c_module
from hardwood.export.c.compiler import Compiler
from hardwood.export.plan import plan_of
from trees import make_tree

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
# Without fused multiply-add the engine's last bits differ from those of the header.
is_fused = _native.instruction_set() != "baseline" or "arm" in platform.machine().lower()
needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc here")

SHIPPED = {
    "species": lambda: make_tree(1, n_splits=63, n_features=40),
    "price": lambda: make_tree(3, n_splits=40, n_features=17, task="regression", k=1),
    "mixed": lambda: make_tree(2, n_splits=40, n_features=10, mixed=True),
    "wood": lambda: make_forest(1, sizes=(15, 0, 31, 7), n_features=20, mixed=True),
    "labels": lambda: make_tree(4, task="multilabel", mixed=True, linear=True),
    "sparse": lambda: make_tree(9, n_splits=40, n_features=30, sparsity=0.97),
}


def rows_of(model, n=10_000):
    """Rows of a table, a third of them on or within a few roundings of a split."""
    rng, schema = np.random.default_rng(5), model.schema
    center = schema.column_center[schema.first_column]
    scale = schema.column_scale[schema.first_column]
    rows = center + scale * rng.normal(size=(n, schema.n_features))
    levels = rng.integers(-1, np.maximum(schema.n_levels, 1) + 1, size=rows.shape)
    rows = np.where(schema.n_levels > 0, levels, rows)
    rows[rng.random(rows.shape) < 0.05] = np.nan
    plan = plan_of(model)
    tree, encoding = plan.trees[0], plan.encoding
    moved = np.arange(0, n, 3)
    split = rng.integers(tree.n_splits, size=len(moved))
    values, on = encoding.encode(rows[moved])
    weights = tree.weights[split].astype(np.float64)  # (r, n)
    score = (weights * values).sum(axis=1) + (tree.indicators[split] * on).sum(axis=1)
    score += tree.bias[split]
    usable = (weights != 0) & ~np.isnan(rows[moved][:, encoding.numeric])
    column = (usable * rng.random(usable.shape)).argmax(axis=1)
    r = np.flatnonzero(usable.any(axis=1))
    shift = (score * (1 + rng.normal(size=len(score)) * 1e-7))[r] / weights[r, column[r]]
    rows[moved[r], encoding.numeric[column[r]]] -= shift
    return rows


PROGRAM = """
#include <stdio.h>
#define RUN(name, CAPS, ANSWER)                                              \\
  {{                                                                         \\
    static double row[CAPS##_N_FEATURES], out[CAPS##_N_OUTPUTS];             \\
    static int32_t leaves[CAPS##_N_TREES];                                   \\
    while (fread(row, sizeof(double), CAPS##_N_FEATURES, stdin) == CAPS##_N_FEATURES) {{ \\
      name##_leaves(row, leaves);                                            \\
      ANSWER;                                                                \\
      fwrite(leaves, sizeof(int32_t), CAPS##_N_TREES, stdout);               \\
      fwrite(out, sizeof(double), CAPS##_N_OUTPUTS, stdout);                 \\
    }}                                                                       \\
  }}
int main(int argc, char **argv) {{
  const char *which = argc > 1 ? argv[1] : "";
{cases}
  return 0;
}}
"""


def one_case(name, model):
    answer = f"{name}_predict_proba(row, out)"
    if model.task == "regression":
        answer = f"out[0] = {name}_predict(row)"
    return f'  if (strcmp(which, "{name}") == 0) RUN({name}, {name.upper()}, {answer})'


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """One program with all headers in it, each twice, by gcc as strict C99."""
    folder = tmp_path_factory.mktemp("c")
    models = {name: make() for name, make in SHIPPED.items()}
    for name, model in models.items():
        to_c(model, folder / f"{name}.h")
    includes = "".join(f'#include "{name}.h"\n#include "{name}.h"\n' for name in models)
    cases = "\n".join(one_case(name, model) for name, model in models.items())
    (folder / "main.c").write_text(includes + PROGRAM.format(cases=cases))
    compiled("gcc", "-std=c99", "main.c", "-o", "main", "-lm", folder=folder)
    return folder, models


def compiled(*command, folder):
    done = subprocess.run([*command, *STRICT], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_compiler
def test_the_same_headers_are_cpp(program):
    folder, _ = program
    shutil.copy(folder / "main.c", folder / "main.cpp")
    compiled("g++", "-std=c++11", "-fsyntax-only", "main.cpp", folder=folder)


@needs_compiler
@pytest.mark.skipif(not is_fused, reason="this processor has no fused multiply-add")
@pytest.mark.parametrize("name", SHIPPED)
def test_ten_thousand_rows_have_the_same_leaf_and_prediction(program, name):
    folder, models = program
    model = models[name]
    rows = rows_of(model)
    done = subprocess.run(
        [folder / "main", name], input=rows.tobytes(), capture_output=True, check=True
    )
    n_trees = getattr(model, "n_trees", 1)
    kind = np.dtype([("leaves", np.int32, n_trees), ("out", np.float64, model.n_outputs)])
    said = np.frombuffer(done.stdout, kind)
    table = model.schema.as_table(rows)
    leaves = model.apply(table)
    np.testing.assert_array_equal(said["leaves"].reshape(leaves.shape), leaves)
    out = model.predict(table) if model.task == "regression" else model.predict_proba(table)
    tolerance = 1e-14 if model.has_linear_leaves else 0
    np.testing.assert_allclose(said["out"].reshape(out.shape), out, rtol=0, atol=tolerance)
    assert len(np.unique(leaves)) > 4


def test_every_kind_of_model_compiled_or_interpreted(model, monkeypatch):
    header = to_c(model)
    monkeypatch.setattr(Compiler, "find", lambda: None)
    again = to_c(model)
    assert again == header
    assert "interpreted" in again.check.method
    for check in (header.check, again.check):
        assert check.n_on_edge == 0
        assert check.largest_difference < 1e-13
        assert check.n_bytes > 0
        assert check.agreement is None


def test_a_header_that_differs_is_refused(monkeypatch, tmp_path):
    """In one weight, by one part in a thousand; with a compiler and without."""
    tree = make_tree(1, n_splits=7, n_features=4, sparsity=0.0)
    other = tree.replace(weights=tree.weights * np.where(np.arange(4) == 2, 1.001, 1.0))
    plan = plan_of(other)
    object.__setattr__(plan, "model", tree)
    monkeypatch.setattr(c_module, "plan_of", lambda model: plan)
    path = tmp_path / "m.h"
    with pytest.raises(ExportError, match=r"was not written: compiled.*it differs from the model"):
        to_c(tree, path)
    monkeypatch.setattr(Compiler, "find", lambda: None)
    with pytest.raises(ExportError, match=r"was not written: its tables.*differs from the model"):
        to_c(tree, path)
    assert not path.exists()


@needs_compiler
def test_a_header_that_does_not_compile_is_refused(monkeypatch):
    monkeypatch.setattr(c_module, "float_header", lambda plan, prefix: ("int main( {", 0))
    with pytest.raises(ExportError, match="does not compile with"):
        to_c(make_tree(1))


def test_the_compiler_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("CC", "gcc -m64")
    assert Compiler.find() == Compiler(("gcc", "-m64"))
    monkeypatch.setenv("PATH", "")
    assert Compiler.find() is None


def test_the_name_is_given_or_that_of_the_file(tmp_path):
    tree = make_tree(1)
    assert "int model_predict(" in to_c(tree)
    assert "int iris_2_predict(" in to_c(tree, tmp_path / "Iris 2.h")
    assert "int model_2x_predict(" in to_c(tree, tmp_path / "2x.h")
    assert "int best_predict(" in to_c(tree, tmp_path / "iris.h", name="best")
    for bad in ("", "2x", "a b", "a-b", "x" * 41, "é"):
        with pytest.raises(ExportError, match="C identifier"):
            to_c(tree, name=bad)


def test_an_unknown_precision_is_refused():
    with pytest.raises(ExportError, match="'float32', 'int16' or 'int8', not 'int4'"):
        to_c(make_tree(1), precision="int4")


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="tree_ or forest_"):
        to_c("a tree")


@needs_compiler
def test_levels_and_classes_are_looked_up(tmp_path, zoo):
    to_c(zoo("one feature each"), tmp_path / "m.h")
    to_c(make_tree(2, mixed=True), tmp_path / "n.h")
    (tmp_path / "main.c").write_text(
        """#include "m.h"
#include "n.h"
#include <stdio.h>
int main(void) {
  printf("%d %d %d ", m_level(M_FEATURE_COLOR, "red"), m_level(M_FEATURE_COLOR, "re"),
         M_LEVEL_COLOR_RED);
  printf("%d %d ", m_level_of_number(M_FEATURE_GRADE, 5), m_level_of_number(M_FEATURE_GRADE, 4));
  printf("%d %d ", m_level(M_FEATURE_GRADE, "5"), m_level_of_number(M_FEATURE_CERTAIN, 1));
  printf("%s %g %s", m_class_name(M_CLASS_3), m_class_value(1), n_class_name(N_CLASS_CLASS_2));
  return 0;
}
"""
    )
    compiled("gcc", "-std=c99", "main.c", "-o", "main", "-lm", folder=tmp_path)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert said == "1 -1 1 2 -1 -1 1 3 1 class 2"


@needs_compiler
@pytest.mark.skipif(not is_fused, reason="this processor has no fused multiply-add")
def test_rows_of_floats(tmp_path):
    """With the type of values defined as float, floats reach the leaves of their doubles."""
    tree = make_tree(1, n_splits=20, n_features=10)
    to_c(tree, tmp_path / "m.h")
    (tmp_path / "main.c").write_text(
        """#define M_VALUE float
#include "m.h"
#include <stdio.h>
int main(void) {
  float row[M_N_FEATURES];
  int32_t leaf;
  while (fread(row, sizeof(float), M_N_FEATURES, stdin) == M_N_FEATURES) {
    m_leaves(row, &leaf);
    fwrite(&leaf, sizeof leaf, 1, stdout);
  }
  return 0;
}
"""
    )
    compiled("gcc", "-std=c99", "main.c", "-o", "main", "-lm", folder=tmp_path)
    rows = rows_of(tree, 2000).astype(np.float32)
    done = subprocess.run([tmp_path / "main"], input=rows.tobytes(), capture_output=True)
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.int32), tree.apply(rows))


def test_zero_weights_are_left_out_where_that_is_smaller():
    dense = ObliqueTree.of(np.ones((1, 64)), thresholds=[0.0], values=[0.0, 1.0])
    sparse = dense.replace(weights=np.eye(1, 64))
    assert "model_weights[64]" in to_c(dense)
    assert "model_term_weight[1]" in to_c(sparse)
    assert to_c(sparse).check.n_bytes < to_c(dense).check.n_bytes - 200
