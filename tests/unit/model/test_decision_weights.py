"""A tree with decision weights: probabilities as before, classes by probability times weight."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from hardwood import ObliqueForest, ObliqueTree
from hardwood.errors import ModelFileError
from hardwood.explain import path
from hardwood.model import dumps, loads
from hardwood.report import evaluate
from trees import make_rows, make_tree

KINDS = [(linear, k) for linear in (False, True) for k in (2, 3)]


def decided(linear=False, k=3, seed=0):
    return make_tree(seed, n_splits=7, k=k, mixed=True, linear=linear, decides=True)


@pytest.mark.parametrize(("linear", "k"), KINDS)
def test_classes_follow_the_weights_and_probabilities_do_not(linear, k):
    tree = decided(linear, k)
    plain = tree.replace(decision_weights=None)
    rows = make_rows(1, tree.schema, 300)
    p = tree.predict_proba(rows)
    assert (p == plain.predict_proba(rows)).all()
    expected = np.array(tree.classes)[(p * tree.decision_weights).argmax(axis=1)]
    assert tree.predict(rows).tolist() == expected.tolist()
    assert tree.predict(rows).tolist() != plain.predict(rows).tolist()
    assert [tree.predict_one(row) for row in rows] == expected.tolist()
    assert [path(tree, row).prediction for row in rows[:20]] == expected[:20].tolist()


def test_a_threshold_of_two_classes_is_a_pair_of_weights():
    tree = ObliqueTree.of(
        [[1.0], [1.0], [1.0]],
        thresholds=[2.0, 1.0, 3.0],
        values=[[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]],
        classes=["no", "yes"],
    ).with_threshold(0.15)
    assert tree.decision_weights.tolist() == [0.15, 0.85]
    assert tree.predict([[0.5], [1.5], [2.5], [3.5]]).tolist() == ["no", "yes", "yes", "yes"]
    assert "predicts yes where p(yes) > 0.15" in tree.to_text()


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.5, np.nan])
def test_a_threshold_is_a_probability(threshold):
    with pytest.raises(ValueError, match="threshold must be between 0 and 1"):
        make_tree(0, k=2).with_threshold(threshold)


@pytest.mark.parametrize(("task", "k"), [("classification", 3), ("regression", 2)])
def test_a_threshold_is_for_two_classes(task, k):
    with pytest.raises(ValueError, match="a threshold is for two classes, but this tree predicts"):
        make_tree(0, task=task, k=k).with_threshold(0.5)


@pytest.mark.parametrize(("linear", "k"), KINDS)
def test_weights_survive_files_json_pickles_and_edits(linear, k):
    tree = decided(linear, k)
    for again in (
        loads(dumps(tree)),
        ObliqueTree.from_json(tree.to_json()),
        pickle.loads(pickle.dumps(tree)),
    ):
        assert again == tree
        assert again.decision_weights.tolist() == tree.decision_weights.tolist()
    assert tree != tree.replace(decision_weights=None)
    assert tree.simplify().decision_weights.tolist() == tree.decision_weights.tolist()
    assert tree.to_perfect().decision_weights.tolist() == tree.decision_weights.tolist()


def test_a_text_from_before_there_were_weights_is_read():
    tree = make_tree(0)
    content = json.loads(tree.to_json())
    assert content.pop("decision_weights") is None
    assert ObliqueTree.from_json(json.dumps(content)) == tree


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 0.0, 1.0], r"must be above 0, but decision_weights\[1\] is 0"),
        ([1.0, -2.0, 1.0], r"must be above 0, but decision_weights\[1\] is -2"),
        ([1.0, np.nan, 1.0], "must be finite"),
        ([1.0, 1.0], r"must have shape \(3\)"),
        (["a", "b", "c"], "must hold real numbers"),
    ],
)
def test_other_weights_are_refused(weights, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make_tree(0).replace(decision_weights=weights)


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_weights_are_for_classes(task):
    with pytest.raises(ValueError, match=f"decision_weights are for classes, but this is a {task}"):
        make_tree(0, task=task).replace(decision_weights=[1.0, 2.0, 3.0])


def test_a_forest_takes_no_tree_with_weights():
    with pytest.raises(ValueError, match=r"tree 1 has decision_weights.*replace\(decision_weights"):
        ObliqueForest([make_tree(0), make_tree(0, decides=True)])
    content = json.loads(ObliqueForest([make_tree(0)]).to_json())
    content["trees"][0]["decision_weights"] = [1.0, 1.0, 1.0]
    with pytest.raises(ModelFileError, match="unknown keys"):
        ObliqueForest.from_json(json.dumps(content))


@pytest.mark.parametrize("linear", [False, True])
def test_reports_and_pruning_count_the_predicted_classes(linear):
    tree = decided(linear)
    rows = make_rows(1, tree.schema, 400)
    y = np.random.default_rng(0).choice(tree.classes, 400)
    predicted = tree.predict(rows)
    report = evaluate(tree, rows, y)
    assert report["accuracy"].value == pytest.approx((predicted == y).mean())
    assert report.confusion.sum(axis=0).tolist() == [
        int((predicted == label).sum()) for label in tree.classes
    ]
    prunings = tree.prune_path(rows, y, criterion="misclassification")
    assert prunings.risks[0] == pytest.approx((prunings[0].predict(rows) != y).mean())


def test_texts_name_the_weights():
    words = decided(k=3).to_text()
    assert "predicts the class with the largest p * weight (weights: class 0 " in words
    many = make_tree(0, k=9, decides=True)
    assert "class 3 " in many.to_text().splitlines()[0]
    assert "5 more)" in many.to_text().splitlines()[0]
