"""ONNX: standard operators, and the same leaves and predictions in ONNX Runtime."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from forests import make_forest
from hardwood import ObliqueTree
from hardwood.errors import ExportError, MissingExtraError
from hardwood.export import to_onnx
from hardwood.export.onnx import writer as onnx_module
from hardwood.export.plan import plan_of
from hardwood.table import Feature, Schema
from trees import make_rows, make_tree

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def run(content, feed):
    session = onnxruntime.InferenceSession(bytes(content), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def columns(schema, rows):
    """Raw rows as inputs; missing text is empty."""
    feed = {}
    for j, feature in enumerate(schema.features):
        column = [row[j] for row in rows]
        if feature.kind == "categorical":
            feed[feature.name] = np.array([[x or ""] for x in column], dtype=object)
        else:
            feed[feature.name] = np.array([[np.nan if x is None else x] for x in column])
    return feed


def test_every_kind_of_model_in_the_runtime_and_by_reference(model, monkeypatch):
    content = to_onnx(model)
    assert content.check.method.startswith("run by ONNX Runtime")
    assert content.check.n_on_edge <= 5
    assert content.check.largest_difference < 1e-12
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    again = to_onnx(model)
    assert again == content
    assert "reference evaluator" in again.check.method


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_tree(2, n_splits=40, n_features=10, mixed=True),
        lambda: make_forest(1, sizes=(15, 0, 31), n_features=12, mixed=True),
        lambda: make_tree(5, n_splits=15, n_features=6, mixed=True, linear=True),
    ],
    ids=["tree", "forest", "linear"],
)
def test_ten_thousand_rows_of_raw_columns(make):
    model = make()
    rows = make_rows(3, model.schema, 10_000)
    found = run(to_onnx(model), columns(model.schema, rows))
    np.testing.assert_array_equal(found["leaf"].reshape(len(rows), -1).squeeze(), model.apply(rows))
    np.testing.assert_array_equal(found["label"], model.predict(rows))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-13)


def test_only_standard_operators_of_old_sets(model):
    proto = onnx.load_from_string(to_onnx(model))
    onnx.checker.check_model(proto, full_check=True)
    assert {(s.domain, s.version) for s in proto.opset_import} == {("", 13), ("ai.onnx.ml", 2)}
    used = {(node.domain, node.op_type) for node in proto.graph.node}
    assert {domain for domain, _ in used} <= {"", "ai.onnx.ml"}
    assert {("", "MatMul"), ("ai.onnx.ml", "TreeEnsembleRegressor")} <= used


def test_numbers_without_names_are_a_matrix_input(rng):
    tree = ObliqueTree.of(rng.normal(size=(3, 5)), bias=[0.1, 0, 0], values=[1.0, 2.0, 3.0, 4.0])
    X = rng.normal(size=(200, 5))
    np.testing.assert_array_equal(run(to_onnx(tree), {"X": X})["prediction"][:, 0], tree.predict(X))
    single = run(to_onnx(tree, inputs="columns"), {f"x{j}": X[:, j : j + 1] for j in range(5)})
    np.testing.assert_array_equal(single["prediction"][:, 0], tree.predict(X))
    named = make_tree(1)
    assert {i.name for i in onnx.load_from_string(to_onnx(named)).graph.input} == {
        *named.feature_names
    }
    assert [i.name for i in onnx.load_from_string(to_onnx(named, inputs="matrix")).graph.input] == [
        "X"
    ]


def test_wrong_inputs_are_refused():
    with pytest.raises(ExportError, match="all numbers"):
        to_onnx(make_tree(1, mixed=True), inputs="matrix")
    with pytest.raises(ExportError, match="'auto', 'columns' or 'matrix', not 'rows'"):
        to_onnx(make_tree(1), inputs="rows")


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (["a", "b"], "object"),
        ([7, 3], "int64"),
        ([True, False], "bool"),
        ([0.5, 2], "float64"),
        (["a", 1], "object"),
    ],
)
def test_labels_have_the_type_of_the_classes(classes, kind):
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[[1, 0], [0, 1]], classes=classes)
    label = run(to_onnx(tree), {"X": np.array([[-1.0], [1.0]])})["label"]
    assert label.dtype == kind
    expected = [str(c) for c in classes] if classes == ["a", 1] else classes
    assert label.tolist() == expected


@pytest.mark.parametrize("name", ["y\0", "\0"])
def test_a_class_that_ends_in_nul_is_refused_by_name(name):
    options = {"thresholds": [0.0], "values": [[1, 0], [0, 1]]}
    with pytest.raises(ExportError, match="ends in the character NUL") as caught:
        to_onnx(ObliqueTree.of([[1.0]], **options, classes=["x", name]))
    assert repr(name) in str(caught.value)
    assert to_onnx(ObliqueTree.of([[1.0]], **options, classes=["x", "y\0z"])).check


@pytest.mark.parametrize("levels", [(10**17, 10**17 + 1), (10**400, 1)])
def test_integers_too_large_for_float64_are_refused(levels):
    schema = Schema((Feature("x", "categorical", levels=levels),))
    tree = ObliqueTree.of([[1.0, -1.0]], bias=[0.0], values=[0.0, 1.0], schema=schema)
    with pytest.raises(ExportError, match="'x' are integers too large for float64"):
        to_onnx(tree)


def test_categories_of_two_types_are_refused():
    schema = Schema((Feature("x", "categorical", levels=(1, "a")),))
    tree = ObliqueTree.of([[1.0, -1.0]], bias=[0.0], values=[0.0, 1.0], schema=schema)
    with pytest.raises(ExportError, match="'x' has categories that are text and categories"):
        to_onnx(tree)


def test_names_that_are_not_identifiers_are_in_the_metadata(hostile):
    proto = onnx.load_from_string(to_onnx(hostile))
    metadata = {
        entry.key: json.loads(entry.value)
        for entry in proto.metadata_props
        if "put" in entry.key or "feat" in entry.key
    }
    assert metadata["hardwood.features"] == list(hostile.feature_names)
    assert metadata["hardwood.inputs"] == [i.name for i in proto.graph.input]
    assert all(name.isidentifier() for name in metadata["hardwood.inputs"])


def test_a_graph_that_differs_is_refused(monkeypatch, tmp_path):
    tree = make_tree(1, n_splits=7, n_features=4)
    plan = plan_of(tree.replace(bias=tree.bias + 0.01))
    object.__setattr__(plan, "model", tree)
    monkeypatch.setattr(onnx_module, "plan_of", lambda model: plan)
    with pytest.raises(ExportError, match=r"was not written: run by ONNX.*differs"):
        to_onnx(tree, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_error_has_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install '.\[onnx\]'"):
        to_onnx(make_tree(1))


def test_a_file_is_written(tmp_path):
    path = tmp_path / "m.onnx"
    content = to_onnx(make_tree(1), path)
    assert path.read_bytes() == content
