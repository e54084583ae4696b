"""Rules: one for each leaf, read back from their text with the same predictions."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hardwood import ObliqueTree
from hardwood.errors import ExportError
from hardwood.export import to_json, to_rules
from hardwood.export.plan import plan_of
from hardwood.export.rules import writer as rules_module
from hardwood.table import Feature, Schema
from trees import make_tree


def test_every_kind_of_model_in_full_and_rounded(model):
    text = to_rules(model)
    plan = plan_of(model)
    assert text.check.n_on_edge <= 5
    assert len(re.findall(r"^rule \d+: leaf \d+$", text, re.M)) == plan.model.n_leaves
    check = to_rules(model, digits=4).check
    assert check.agreement > 0.98
    assert "4 digits" in check.method


def rules(tree, **options):
    return to_rules(tree, **options).partition("\n\nrule 1")[2]


def test_conditions_on_one_column_are_merged():
    tree = ObliqueTree.of(
        [[1.0], [1.0], [-1.0]],
        thresholds=[30.0, 10.0, -50.0],
        values=[1.0, 2.0, 3.0, 4.0],
        feature_names=["age"],
        target_names="price",
        counts=[10, 4, 6, 1, 3, 2, 4],
    )
    text = rules(tree)
    assert '\n  if "age" < 10 or missing\n  then "price" = 1; n = 1\n' in text
    assert '\n  if 10 <= "age" < 30\n  then "price" = 2; n = 3\n' in text
    assert '\n  if "age" > 50\n  then "price" = 3; n = 2\n' in text
    assert '\n  if 30 <= "age" <= 50\n  then "price" = 4; n = 4\n' in text


def test_sums_have_their_largest_term_first_and_positive():
    tree = ObliqueTree.of(
        [[0.8, -1.1]],
        thresholds=[2.3],
        values=[[1, 0], [0.25, 0.75]],
        feature_names=["length", "width"],
        classes=["no", "yes"],
    )
    text = rules(tree, digits=3)
    assert '\n  if 1.1*"width" - 0.8*"length" > -2.3\n' in text
    assert '\n  if 1.1*"width" - 0.8*"length" <= -2.3\n' in text
    assert '\n  then class "yes", p of "no" = 0.25, p of "yes" = 0.75\n' in text


def test_categories_missing_values_and_dates():
    schema = Schema(
        (
            Feature("joined", "numeric", center=1.55e9, scale=2.0**24, origin="date"),
            Feature("delay", "numeric", center=9e4, scale=2.0**16, origin="duration"),
            Feature("color", "categorical", levels=("blue", "red", "green"), has_missing=True),
        )
    )
    weights = np.zeros((3, schema.n_columns))
    weights[0, 0] = weights[1, 1] = 1.0
    weights[2, 2:] = [1.0, -1.0, -1.0, 1.0]
    thresholds = [1548115200.0, 3.5 * 86400, 0.0]
    tree = ObliqueTree.of(weights, thresholds=thresholds, values=[1.0, 2, 3, 4], schema=schema)
    text = rules(tree, digits=3)
    assert '"joined" < 2019-01-22\n  and "delay" >= 3.5 days\n' in text
    assert '"joined" >= 2019-01-22 or missing\n  and "color" is one of "blue", missing\n' in text
    assert '"color" is one of "red", "green"\n' in text
    assert to_rules(tree, digits=3).check.same_leaf == 1.0
    assert '"joined" >= 1548115200 or missing' in rules(tree)


def test_labels_with_an_exponent_or_many_digits_are_read_back():
    options = {"thresholds": [0.0], "values": np.eye(2)}
    text = rules(ObliqueTree.of([[1.0, 1.0]], **options, classes=[1e16, 2.0]))
    assert "then class 1e+16, p of" in text
    text = rules(ObliqueTree.of([[1.0, 1.0]], **options, classes=[10**17, 10**17 + 1]))
    assert "class 100000000000000001, p of" in text
    schema = Schema((Feature("x", "categorical", levels=(1e20, 0.5)), Feature("y", "numeric")))
    tree = ObliqueTree.of(
        [[1.0, -1.0, 0.0], [1.0, -1.0, 1.0]],
        bias=[-0.1, 0.1],
        children=[[-1, 1], [-2, -3]],
        values=[0.0, 1.0, 2.0],
        schema=schema,
    )
    text = rules(tree)
    assert '"x" is one of 1e+20' in text
    assert '("x" is 1e+20)' in text


def test_numbers_far_from_zero_keep_their_digits():
    features = (Feature("t", "numeric", center=1.7e15), Feature("x", "numeric"))
    tree = ObliqueTree.of([[1.0, 2.0]], bias=[0.25], values=[0.0, 1.0], schema=Schema(features))
    assert '2*"x" + 1*("t" - 1700000000000000) >= -0.25' in rules(tree)


def test_a_leaf_that_no_row_can_reach_is_marked():
    tree = ObliqueTree.of(
        [[1.0], [1.0], [1.0]], thresholds=[5.0, 9.0, 1.0], values=[1.0, 2.0, 3.0, 4.0]
    )
    assert rules(tree).count("if never") == 2


def test_rules_that_differ_are_refused(monkeypatch, tmp_path):
    tree = make_tree(1, n_splits=7, n_features=4)
    plan = plan_of(tree.replace(bias=tree.bias + 0.01))
    object.__setattr__(plan, "model", tree)
    monkeypatch.setattr(rules_module, "plan_of", lambda model: plan)
    with pytest.raises(ExportError, match=r"was not written: read back from the text.*differs"):
        to_rules(tree, tmp_path / "m.txt")
    assert list(tmp_path.iterdir()) == []


def test_rules_that_overlap_are_refused(monkeypatch):
    honest = rules_module._RulesWriter.text
    monkeypatch.setattr(
        rules_module._RulesWriter, "text", lambda self: honest(self).replace(" < ", " <= ")
    )
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0], feature_names=["x"])
    with pytest.raises(ExportError, match="none of them, or several"):
        to_rules(tree, data=[[0.0], [1.0]])


def test_digits_are_at_least_one():
    with pytest.raises(ValueError, match="at least 1"):
        to_rules(make_tree(1), digits=0)


# JSON, whose text is the model's own


def test_json_reads_back(model, tmp_path):
    path = tmp_path / "m.json"
    text = to_json(model, path)
    assert type(model).from_json(path.read_text()) == model
    assert text.check.n_rows > 500


def test_json_of_another_model_is_refused(monkeypatch):
    tree = make_tree(1)
    other = make_tree(2).to_json()
    monkeypatch.setattr(ObliqueTree, "to_json", lambda self: other)
    with pytest.raises(ExportError, match="another model"):
        to_json(tree)
