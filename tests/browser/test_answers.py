"""The page answers as the library does: the same leaves, bit for bit, and the same values."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from forests import make_forest
from hardwood import _probes
from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.show.page import Page, show
from hardwood.table import Feature, Schema
from trees import make_rows, make_tree

N_ROWS = 200

MODELS = {
    "classification": lambda: make_tree(1, n_splits=15, n_features=6, k=3),
    "regression": lambda: make_tree(2, n_splits=15, n_features=20, k=1, task="regression"),
    "several outputs": lambda: make_tree(3, n_splits=6, k=3, task="regression"),
    "categories and missing": lambda: make_tree(4, n_splits=12, n_features=6, mixed=True),
    "labels": lambda: make_tree(5, n_splits=9, k=5, task="multilabel", mixed=True),
    "linear classes": lambda: make_tree(6, n_splits=5, mixed=True, linear=True),
    "weighted classes": lambda: make_tree(14, n_splits=15, mixed=True, decides=True),
    "weighted linear classes": lambda: make_tree(15, n_splits=5, linear=True, decides=True),
    "linear rates": lambda: make_tree(
        7, n_splits=5, k=1, task="regression", linear=True, link="exp"
    ),
    "one leaf": lambda: make_tree(8, n_splits=0),
    "wide": lambda: make_tree(9, n_splits=7, n_features=70, sparsity=0.8),
    "forest": lambda: make_forest(10, sizes=(7, 0, 5, 9), mixed=True),
    "voting forest": lambda: make_forest(11, sizes=(7, 5, 9), combine="vote", linear=(False, True)),
    "voting labels": lambda: make_forest(12, sizes=(7, 5), task="multilabel", combine="vote"),
    "sum of scores": lambda: make_sum(13),
}


def make_sum(seed):
    trees = make_forest(seed, sizes=(7, 3, 9), task="regression", mixed=True).trees
    classes = ["low", "middle", "high"]
    return ObliqueForest(trees, combine="sum", link="softmax", classes=classes, target_names="size")


def library(model, rows):
    """Leaves (n, T) and outputs (n, k)."""
    ask = model.predict if model.task == "regression" else model.predict_proba
    n = len(rows)
    return model.apply(rows).reshape(n, -1), ask(rows).reshape(n, -1)


# Rows are chosen by the page's own button, in one go: two hundred of them in a moment.
EVERY_ROW = """n => Array.from({ length: n }, () => {
  document.getElementById("row-after").click();
  const { leaves, outputs } = document.getElementById("prediction").dataset;
  return {
    leaves: JSON.parse(leaves),
    outputs: JSON.parse(outputs),
    answer: document.querySelector("#prediction .prediction").textContent,
    steps: document.querySelectorAll("#path li").length,
    end: [...document.querySelectorAll(".card.leaf.on-path")].map((card) => +card.dataset.node),
  };
})"""


@pytest.mark.parametrize("kind", MODELS)
def test_every_row_gets_the_leaves_and_the_values_of_the_library(kind, open_page):
    model = MODELS[kind]()
    rows = make_rows(1, model.schema, N_ROWS)
    reader = open_page(show(model, None, rows, max_rows=N_ROWS))
    reader.page.click("#tab-row")
    found = reader.evaluate(EVERY_ROW, N_ROWS)
    leaves, outputs = library(model, rows)
    assert [row["leaves"] for row in found] == leaves.tolist()
    np.testing.assert_allclose([row["outputs"] for row in found], outputs, rtol=1e-12, atol=1e-300)
    if not model.has_linear_leaves and getattr(model, "link", "identity") == "identity":
        assert [row["outputs"] for row in found] == outputs.tolist()
    tree = getattr(model, "trees", (model,))[0]  # the one that is drawn
    depths = tree.node_depths[tree.n_splits + leaves[:, 0]]
    assert [row["steps"] for row in found] == (depths + 1).tolist()
    assert [row["end"] for row in found] == (tree.n_splits + leaves[:, :1]).tolist()
    if model.classes is not None:
        assert [row["answer"] for row in found] == model.predict(rows).tolist()


def test_the_page_checks_itself_against_the_library(open_page):
    model = MODELS["forest"]()
    reader = open_page(show(model, None, make_rows(2, model.schema, 50)))
    reader.page.wait_for_selector("#check:not(:empty)", state="attached")
    assert reader.page.locator("#check").get_attribute("data-different") == "0"
    assert "all 50 rows" in reader.texts("#check")[0]


def test_a_page_with_wrong_predictions_says_so(open_page):
    model = make_tree(1)
    page = show(model, None, make_rows(2, model.schema, 50))
    before, data, after = re.split(
        '(?<=application/json">)(.*?)(?=</script>)', page.html, maxsplit=1
    )
    content = json.loads(data)
    content["trees"][0]["bias"] = [10.0] * model.n_splits  # all go right
    reader = open_page(Page(before + json.dumps(content) + after))
    reader.page.wait_for_selector("#check.warning", state="attached")
    assert int(reader.page.locator("#check").get_attribute("data-different")) > 0


@pytest.mark.parametrize("kind", ["classification", "categories and missing"])
def test_entered_rows_get_the_predictions_of_the_library(kind, open_page):
    model = MODELS[kind]()
    reader = open_page(show(model))
    reader.page.click("#tab-row")
    reader.page.click("#row-start")
    names = reader.texts(".field .name")
    used = [model.feature_names.index(name) for name in names]
    assert set(names) <= set(model.feature_names)
    for row in make_rows(5, model.schema, 6):
        for name, j in zip(names, used, strict=True):
            field = reader.page.locator("label.field", has_text=name).locator("input, select")
            type_entry(field, row[j], model.schema.features[j])
        leaves, outputs = reader.prediction()
        expected = library(model, [row])
        assert (leaves, outputs) == (expected[0][0].tolist(), expected[1][0].tolist())


def type_entry(field, entry, feature):
    if feature.kind == "numeric":
        field.fill("" if entry is None else repr(entry))
    elif entry in feature.levels:
        field.select_option(label=entry)
    else:  # missing, or a level that the model does not know
        field.select_option(value="")


def test_dates_booleans_and_durations_can_be_entered(open_page):
    origins = {"joined": "date", "member": "boolean", "delay": "duration"}
    day = 86400.0
    features = [
        Feature("joined", "numeric", center=18_000 * day, scale=2.0**26, origin="date"),
        Feature("member", "numeric", origin="boolean"),
        Feature("delay", "numeric", center=day, scale=2.0**17, origin="duration", has_missing=True),
    ]
    schema = Schema(tuple(features))
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(7, 4)) / schema.column_scale
    tree = ObliqueTree.of(weights, bias=rng.normal(size=7), values=np.arange(8.0), schema=schema)
    reader = open_page(show(tree))
    reader.page.click("#tab-row")
    reader.page.click("#row-start")
    fields = {name: reader.page.locator("label.field", has_text=name) for name in origins}
    for days, is_member, delay in [
        (18_500.25, True, 3600.5),
        (15_000, False, None),
        (17_900.5, True, 9 * day),
    ]:
        moment = datetime(1970, 1, 1) + timedelta(days=days)
        fields["joined"].locator("input").fill(str(moment))
        fields["member"].locator("select").select_option(label=str(is_member).lower())
        fields["delay"].locator("input").fill("" if delay is None else repr(delay))
        row = [moment, is_member, None if delay is None else timedelta(seconds=delay)]
        assert reader.prediction()[1] == [tree.predict_one(row)]


def test_an_invalid_number_changes_nothing_and_is_marked(open_page):
    reader = open_page(show(MODELS["classification"]()))
    reader.page.click("#tab-row")
    reader.page.click("#row-start")
    before = reader.prediction()
    field = reader.page.locator(".field input").first
    for text in ("tall", "1e999", "1,5"):
        field.fill(text)
        assert field.get_attribute("aria-invalid") is not None
        assert reader.prediction() == before
    field.fill("1.5")
    assert field.get_attribute("aria-invalid") is None


# Close to a threshold the order of a sum and the rounding of its products decide.

MAKE_CLOSE_ROWS = """
import json, sys
import numpy as np
from hardwood.model import ObliqueTree
from hardwood.show.page import show
rng = np.random.default_rng(3)
p = 21
weights = rng.normal(size=(1, p)).astype(np.float32)
tree = ObliqueTree.of(weights, bias=[0.25], values=[0.0, 1.0])
X = rng.normal(size=(600, p)).astype(np.float32)
rest = X[:, 1:].astype(float) @ weights[0, 1:].astype(float) + 0.25
X[:, 0] = -rest / weights[0, 0]  # the score is 0 but for rounding
show(tree, sys.argv[1], X, max_rows=len(X))
json.dump(tree.apply(X).tolist(), open(sys.argv[2], "w"))
"""


LEAVES = """n => Array.from({ length: n },
  (_, i) => predictionFor(model, model.rows.at(i)).trees[0].leaf)"""


@pytest.mark.parametrize("instruction_set", _probes.instruction_sets())
def test_rows_on_the_threshold_go_where_the_engine_sends_them(instruction_set, open_page, tmp_path):
    page, leaves = tmp_path / "close.html", tmp_path / "leaves.json"
    subprocess.run(
        [sys.executable, "-c", MAKE_CLOSE_ROWS, str(page), str(leaves)],
        env={**os.environ, "HARDWOOD_ISA": instruction_set},
        check=True,
        timeout=60,
    )
    expected = json.loads(leaves.read_text())
    assert 0.2 < np.mean(expected) < 0.9  # both sides: rounding decides indeed
    reader = open_page(Page(Path(page).read_text(encoding="utf-8")))
    found = reader.evaluate(LEAVES, 600)
    assert found == expected


@pytest.mark.parametrize("scale", [2.0**-60, 1.0, 2.0**60])
def test_extreme_scales_give_the_same_predictions(scale, open_page):
    rng = np.random.default_rng(0)
    features = [Feature(f"f{j}", "numeric", center=3.0 * scale, scale=scale) for j in range(3)]
    tree = ObliqueTree(
        rng.normal(size=(3, 3)) / scale,
        rng.normal(size=3),
        [[1, 2], [-1, -2], [-3, -4]],
        rng.normal(size=(4, 1)),
        schema=Schema(tuple(features)),
        task="regression",
    )
    X = (3.0 + rng.normal(size=(N_ROWS, 3))) * scale
    reader = open_page(show(tree, None, X))
    found = reader.evaluate(EVERY_ROW, N_ROWS)
    assert [row["leaves"][0] for row in found] == tree.apply(X).tolist()
