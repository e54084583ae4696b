"""The decisions of a path are those that the model makes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from forests import make_forest
from hardwood import ObliqueTree
from hardwood.errors import TableError
from hardwood.explain import ForestPath, TreePath, path
from hardwood.table import Feature, Schema
from trees import LINKS, make_rows, make_tree


@pytest.fixture
def tree() -> ObliqueTree:
    features = (
        Feature("mass", "numeric", center=4000.0, scale=512.0, spread=(800.0,)),
        Feature("bill", "numeric", center=44.0, scale=4.0, spread=(5.0,)),
        Feature("island", "categorical", levels=("Dream", "Biscoe"), spread=(0.4, 0.3)),
    )
    return ObliqueTree.of(
        [[0.002, 0.1, 0.0, 0.0], [0.0, 0.5, 1.0, -2.0], [0.001, 0.0, 0.0, 0.0]],
        bias=[-0.5, 0.25, 3.0],
        values=[[1, 0], [0, 1], [0.3, 0.7], [0.4, 0.6]],
        classes=["no", "yes"],
        schema=Schema(features),
        target_names="flies",
        counts=[10, 6, 4, 3, 3, 2, 2],
    )


def test_decisions_by_hand(tree):
    route = path(tree, [3900.0, 46.0, "Biscoe"])
    assert isinstance(route, TreePath)
    first, second = route
    # 0.002 (3900 - 4000) + 0.1 (46 - 44) - 0.5
    assert first.split == 0
    assert first.score == pytest.approx(-0.5)
    assert not first.holds
    assert first.condition == tree.split(0).condition
    assert first.standard_deviation == pytest.approx(math.hypot(0.002 * 800, 0.1 * 5))
    assert first.margin == pytest.approx(0.5 / first.standard_deviation)
    # 0.5 (46 - 44) - 2 + 0.25
    assert second.split == 1
    assert second.score == pytest.approx(-0.75)
    assert [(t.feature, t.value, t.text) for t in second.terms] == [
        ("island", "Biscoe", "Biscoe"),
        ("bill", 46.0, "46"),
    ]
    assert [t.contribution for t in second.terms] == pytest.approx([-2.0, 1.0])
    assert second.bias == 0.25
    assert (route.leaf, route.prediction, route.outputs) == (0, "no", (1.0, 0.0))
    assert route[1] is second
    assert route.narrowest is second


def test_the_margin_is_in_standard_deviations_over_given_rows(tree, rng):
    X = [[float(m), float(b), "Dream"] for m, b in rng.normal([4000, 44], [700, 4], size=(50, 2))]
    first = path(tree, X[0], X=X)[0]
    scores = [0.002 * (m - 4000) + 0.1 * (b - 44) for m, b, _ in X]
    assert first.standard_deviation == pytest.approx(np.std(scores), rel=1e-5)


def test_scores_that_never_vary_have_an_infinite_margin(tree):
    row = [3900.0, 46.0, "Biscoe"]
    assert path(tree, row, X=[row, row])[0].margin == math.inf
    tie = ObliqueTree.of([[1.0]], thresholds=[2.0], values=[0.0, 1.0])
    assert path(tie, [2.0], X=[[2.0]])[0].margin == 0.0


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("task", sorted(LINKS))
def test_every_path_ends_where_the_model_does(rng, task, linear):
    tree = make_tree(rng, n_splits=12, n_features=5, task=task, mixed=True, linear=linear)
    rows = make_rows(rng, tree.schema, 40)
    leaves, visited = tree.apply(rows), tree.decision_path(rows).toarray()
    for i, row in enumerate(rows):
        route = path(tree, row, X=rows)
        assert route.leaf == leaves[i]
        assert [d.split for d in route] == np.flatnonzero(visited[i][: tree.n_splits]).tolist()
        node = 0
        for decision in route:
            assert decision.holds == (decision.score >= 0)
            assert decision.margin >= 0
            total = decision.bias + sum(term.contribution for term in decision.terms)
            assert decision.score == pytest.approx(total, abs=1e-9)
            node = int(tree.children[node, int(decision.holds)])
        assert ~node == route.leaf
        outputs = tree.predict if task == "regression" else tree.predict_proba
        np.testing.assert_array_equal(route.outputs, outputs([row])[0])
        np.testing.assert_array_equal(route.prediction, tree.predict_one(row))


def test_a_single_leaf_has_no_decisions(rng):
    tree = make_tree(rng, n_splits=0)
    route = path(tree, make_rows(rng, tree.schema, 1)[0])
    assert len(route) == 0
    assert route.narrowest is None
    assert "single leaf" in str(route)
    assert len(route.to_frame()) == 0


@pytest.mark.parametrize("n_splits", [0, 4])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("task", sorted(LINKS))
def test_the_scores_of_a_linear_leaf_explain_its_outputs(rng, task, k, n_splits):
    if task == "classification" and k == 1:
        k = 4
    tree = make_tree(rng, n_splits=n_splits, k=k, task=task, mixed=True, linear=True)
    for row in make_rows(rng, tree.schema, 10):
        route = path(tree, row)
        scores = [each.score for each in route.scores]
        for each in route.scores:
            total = each.bias + sum(term.contribution for term in each.terms)
            assert each.score == pytest.approx(total, abs=1e-9)
        if task == "classification":
            scores = scores if k > 2 else [0.0, *scores]
            odds = np.exp(np.array(scores) - max(scores))
            np.testing.assert_allclose(route.outputs, odds / odds.sum(), rtol=1e-5)
        elif task == "multilabel":
            np.testing.assert_allclose(route.outputs, 1 / (1 + np.exp(-np.array(scores))), 1e-5)
        else:
            assert tree.link == "identity"
            np.testing.assert_allclose(route.outputs, scores, rtol=1e-5, atol=1e-6)
        text = str(route)
        assert "single leaf" not in text
        assert all(each.equation in text for each in route.scores)
        assert len(route.to_dict()["scores"]) == len(route.scores)


def test_rows_in_any_form(tree):
    import pandas as pd

    row: dict[str, Any] = {"mass": 3900.0, "bill": 46.0, "island": "Biscoe"}
    expected = path(tree, list(row.values()))
    for x in (row, pd.Series(row), pd.DataFrame([row]), tuple(row.values())):
        assert path(tree, x) == expected
    with pytest.raises(TableError, match="path takes one row, found a table of 2 rows"):
        path(tree, pd.DataFrame([row, row]))
    with pytest.raises(TableError, match="path takes a row"):
        path(tree, 4.0)
    with pytest.raises(TableError, match="no value for 'bill'"):
        path(tree, {"mass": 1.0, "island": "Dream"})


def test_missing_values_and_indicators(rng):
    schema = Schema((Feature("a", "numeric", has_missing=True), Feature("b", "numeric")))
    tree = ObliqueTree.of([[1.0, 3.0, 2.0]], bias=[-1.0], values=[0.0, 1.0], schema=schema)
    (decision,) = path(tree, [None, 0.5])
    assert [(t.feature, t.value, t.text, t.contribution) for t in decision.terms] == [
        ("a", None, "missing", 3.0),
        ("b", 0.5, "0.5", 1.0),
    ]
    assert decision.score == 3.0


def test_forests_have_a_path_for_every_tree(rng):
    forest = make_forest(rng, sizes=(5, 0, 3, 2, 2, 1, 1), mixed=True, combine="vote")
    rows = make_rows(rng, forest.schema, 10)
    route = path(forest, rows[3], X=rows)
    assert isinstance(route, ForestPath)
    assert len(route) == 7
    assert [member.leaf for member in route] == forest.apply(rows)[3].tolist()
    assert route[2] == path(forest.trees[2], rows[3], X=rows)
    assert route.prediction == forest.predict(rows)[3]
    np.testing.assert_array_equal(route.outputs, forest.predict_proba(rows)[3])
    text = str(route)
    assert "vote of 7 trees" in text
    assert "... and 2 more trees" in text
    frame = route.to_frame()
    assert set(frame.tree) <= set(range(7))
    assert len(frame) == sum(map(len, route))


def test_text_and_html_say_the_same(tree):
    route = path(tree, [3900.0, 46.0, "Biscoe"], max_terms=1)
    text = str(route)
    assert "2 decisions to leaf 0: flies = no (p = 1, n = 3)" in text
    assert "1. no: " in text
    assert "standard deviations from the threshold" in text
    assert "1 smaller term" in text
    html = route._repr_html_()
    assert "standard deviations" in html


def test_hostile_names_stay_text():
    name = "<img src=x onerror=alert(1)>\n*/ ';--"
    tree = ObliqueTree.of(
        [[1.0, 2.0]], thresholds=[0.0], values=[0.0, 1.0], feature_names=[name, "b"]
    )
    route = path(tree, [1.0, 2.0])
    assert "<img" not in route._repr_html_()
    assert len(str(route).splitlines()) == len(str(path(tree.replace(), [1.0, 2.0])).splitlines())
    assert "\\n" in str(route)


def test_json_and_frames(tree):
    route = path(tree, [3900.0, 46.0, "Biscoe"])
    content = json.loads(route.to_json())
    assert content["decisions"][1]["terms"][0]["value"] == "Biscoe"
    terms = route.to_frame("terms")
    assert terms.columns.tolist() == ["split", "feature", "text", "contribution"]
    assert terms.contribution.tolist() == [t.contribution for d in route for t in d.terms]


def test_max_terms_and_digits_reach_the_text(tree):
    condition = path(tree, [3900.0, 46.0, "Dream"], max_terms=None, digits=None)[0].condition
    assert condition == tree.split(0).describe(max_terms=None, digits=None)
    with pytest.raises(ValueError, match="max_terms"):
        path(tree, [3900.0, 46.0, "Dream"], max_terms=0)
