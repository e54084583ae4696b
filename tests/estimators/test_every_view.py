"""Every kind of model, learned from messy tables, in every view: equal answers."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from hardwood import explain, export, report
from hardwood.errors import ModelKindError
from hardwood.model import dumps, loads
from hardwood.model.base import Model
from hardwood.report.curves import NoLearningCurve
from messy import KINDS, N_ROWS, NEED_TORCH, TABLES, Messy, fitted, table, truth
from pages import content_in, unpacked

FEW = 4  # rows to explain


@pytest.fixture(autouse=True)
def close_figures():
    plt = pytest.importorskip("matplotlib.pyplot")
    yield
    plt.close("all")


def shown(found: Any) -> None:
    """Show a report in every form."""
    assert str(found).strip()
    assert found.to_html()
    assert found.to_json()
    for name in found.tables:
        found.to_frame(name)


def text(model: Model, messy: Messy) -> None:
    whole = model.to_text()
    assert whole == model.to_text(max_depth=None)
    cut = model.to_text(max_depth=0)
    assert "not shown" in cut or cut == whole or cut.count("\n") <= whole.count("\n")
    assert "left out" not in model.to_text(max_terms=None, digits=None).replace("outputs left", "")


def description(model: Model, messy: Messy) -> None:
    found = report.describe(model)
    shown(found)
    assert found.to_dict()["n_leaves"] == model.n_leaves


def plot(model: Model, messy: Messy) -> None:
    model.plot().figure.savefig(io.BytesIO(), format="png")


def page(model: Model, messy: Messy) -> None:
    content = content_in(model.show(None, messy.X, truth(model, messy)).html)
    outputs = unpacked(content["rows"]["outputs"]).reshape(N_ROWS, -1)
    np.testing.assert_array_equal(outputs, model.outputs(messy.X))
    assert len(content["trees"]) == model.n_trees


def notebook(model: Model, messy: Messy) -> None:
    model.hard("a page")  # where there is none, a notebook shows the model's name
    assert model._repr_html_().startswith("<iframe")


def file(model: Model, messy: Messy) -> None:
    for copy in (loads(dumps(model)), type(model).from_json(model.to_json())):
        assert copy == model
        np.testing.assert_array_equal(copy.outputs(messy.X), model.outputs(messy.X))


def exported(write: Callable[..., Any], **options: Any) -> Callable[[Model, Messy], None]:
    def view(model: Model, messy: Messy) -> None:
        if write is export.to_onnx:
            pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
        check = write(model, data=messy.X, **options).check  # differences are refused
        assert check.n_rows >= N_ROWS
        assert check.are_given

    return view


def path(model: Model, messy: Messy) -> None:
    hard = model.hard("an explanation")
    leaves = hard.apply(messy.X[:FEW]).reshape(FEW, -1).tolist()
    for i in range(FEW):
        row = messy.X[i : i + 1]
        found = explain.path(model, row)
        ways = found.trees if hard.is_ensemble else (found,)
        assert [way.leaf for way in ways] == leaves[i]
        np.testing.assert_array_equal(found.outputs, model.outputs(row)[0])
        for decision in (decision for way in ways for decision in way):
            total = decision.bias + sum(term.contribution for term in decision.terms)
            assert decision.score == pytest.approx(total, abs=1e-9)
    shown(found)


def shapley(model: Model, messy: Messy) -> None:
    found = explain.shapley(model, messy.X[:FEW], messy.X[:8])
    total = found.base + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model.outputs(messy.X[:FEW]), rtol=1e-9, atol=1e-9)
    shown(found)


def counterfactual(model: Model, messy: Messy) -> None:
    outputs, wanted = model.outputs(messy.X), None
    if model.task == "regression":
        middle = [(float(number), None) for number in np.median(outputs, axis=0)]
        wanted = middle if len(middle) > 1 else middle[0]
    elif model.task == "multilabel":
        wanted = [1] + [None] * (model.n_outputs - 1)
    found = explain.counterfactual(model, messy.X, wanted=wanted)
    np.testing.assert_array_equal(model.predict(found.X), found.predictions)
    for one in (one for one in found if one.found):
        np.testing.assert_array_equal(model.predict_one(one.x), one.prediction)
    assert str(found).count("\n") <= N_ROWS
    found.to_frame()


def evaluation(model: Model, messy: Messy) -> None:
    shown(report.evaluate(model, messy.X, truth(model, messy)))


def analysis(model: Model, messy: Messy) -> None:
    shown(report.analyze(model, messy.X, truth(model, messy), n_repeats=2, n_grid=3))


def curves(model: Model, messy: Messy) -> None:
    shown(report.learning_curves(model))


CHEAP: dict[str, Callable[[Model, Messy], None]] = {
    "text": text,
    "description": description,
    "page": page,
    "notebook": notebook,
    "file": file,
    "path": path,
    "counterfactual": counterfactual,
    "rules": exported(export.to_rules),
    "JSON": exported(export.to_json),
}
"""Views that take milliseconds."""

VIEWS = CHEAP | {
    "plot": plot,
    "rules of 3 digits": exported(export.to_rules, digits=3),
    "SQL": exported(export.to_sql),
    "Python": exported(export.to_python),
    "ONNX": exported(export.to_onnx),
    "C": exported(export.to_c),
    "C of 16 bits": exported(export.to_c, precision="int16", min_agreement=0.0),
    "C of 8 bits": exported(export.to_c, precision="int8", min_agreement=0.0),
    "Shapley values": shapley,
    "evaluation": evaluation,
    "analysis": analysis,
    "learning curves": curves,
}

# Refusals. A soft model, and one with splits of more than two branches, has no hard oblique tree.

NO_HARD_TREE = {
    "soft": r"pass the result of its harden\(\)$",
    "soft numbers": r"pass the result of its harden\(\)$",
    "latent": r"pass the result of its harden\(X, y\)$",
    "three branches": r"a split of 3\. Read it with to_text\(\), draw it with plot\(\)$",
}
FOR_ANY_TREE = {
    *("text", "description", "file", "plot", "evaluation", "analysis", "learning curves")
}
FOREST = {
    "plot": r"draw one of them, such as hard_tree\(0\)\.plot\(\)$",
    "counterfactual": r"Pass one of its trees \(forest\.trees\[0\]\)",
}
REFUSALS: dict[tuple[str, str], tuple[type[Exception], str]] = {
    **{
        (kind, view): (ModelKindError, words)
        for kind, words in NO_HARD_TREE.items()
        for view in VIEWS.keys() - FOR_ANY_TREE
    },
    **{
        (kind, view): (ModelKindError, words)
        for kind in ("forest", "forest numbers", "hardened")
        for view, words in FOREST.items()
    },
    **{(kind, "plot"): (ModelKindError, FOREST["plot"]) for kind in ("soft", "soft numbers")},
    ("latent", "plot"): (ModelKindError, NO_HARD_TREE["latent"]),
    **{
        (kind, "learning curves"): (NoLearningCurve, "has no learning curve")
        for kind in ("axis-aligned", "axis-aligned numbers", "search", "search numbers")
    },
}
NOT_LEARNED = {("clusters", "one leaf")}  # equal rows have no clusters


def look(kind: str, name: str, views: dict[str, Callable[[Model, Messy], None]]) -> None:
    """Look at a model in several views."""
    if kind in NEED_TORCH and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if (kind, name) in NOT_LEARNED:
        with pytest.raises(ValueError, match="needs at least two distinct rows"):
            fitted(kind, table(name))
        return
    model = fitted(kind, table(name))
    for view, see in views.items():
        if (kind, view) in REFUSALS:
            error, words = REFUSALS[kind, view]
            with pytest.raises(error, match=words):
                see(model, table(name))
        else:
            see(model, table(name))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["axis-aligned", "axis-aligned numbers", "linear", "forest"])
def test_every_table_in_cheap_views(kind, name):
    look(kind, name, CHEAP)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_cheap_views(kind):
    look(kind, "mixed", CHEAP)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_table_in_every_view(kind, name):
    look(kind, name, VIEWS)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["search", "search numbers"])
def test_every_table_has_a_frontier(kind, name):
    estimator = KINDS[kind](table(name))
    frontier = estimator.frontier_
    shown(frontier)
    assert [point.is_chosen for point in frontier.points].count(True) == 1
    chosen = next(point.tree for point in frontier.points if point.is_chosen)
    np.testing.assert_array_equal(
        chosen.outputs(table(name).X), estimator.tree_.outputs(table(name).X)
    )
