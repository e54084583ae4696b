"""The commands that use a model, for forests, linear leaves and several targets."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.table import Schema


def step(threshold, **options):
    """A tree that predicts 'yes' where width >= threshold."""
    return ObliqueTree.of(
        [[1.0, 0.0]],
        thresholds=[threshold],
        values=[[0.8, 0.2], [0.4, 0.6]],
        feature_names=["width", "height"],
        classes=["no", "yes"],
        target_names="answer",
        **options,
    )


@pytest.fixture
def forest():
    trees = [step(1.0, record={"seed": 1}), step(2.0), step(9.0)]
    return ObliqueForest(trees, combine="vote", record={"learner": "by hand", "n_estimators": 3})


@pytest.fixture
def forest_file(forest, tmp_path):
    path = tmp_path / "forest.hardwood"
    forest.save(path)
    return path


@pytest.fixture
def labels():
    """tall: height >= 1, with certainty; wide: width >= 1, with 0.9 or 0.2."""
    return ObliqueTree(
        [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]],
        [-1.0, -1.0, -1.0],
        [[1, 2], [-1, -2], [-3, -4]],
        [[0.0, 0.2], [0.0, 0.9], [1.0, 0.2], [1.0, 0.9]],
        schema=Schema.numeric(2, ["width", "height"]),
        task="multilabel",
        target_names=["tall", "wide"],
    )


@pytest.fixture
def labels_file(labels, tmp_path):
    path = tmp_path / "labels.hardwood"
    labels.save(path)
    return path


@pytest.fixture
def linear():
    """2 width + 1 where height >= 0, else 0; a single output, leaves linear in width alone."""
    return ObliqueTree(
        [[0.0, 1.0]],
        [0.0],
        [[-1, -2]],
        [[0.0], [1.0]],
        schema=Schema.numeric(2, ["width", "height"]),
        task="regression",
        leaf_weights=[[[0.0, 0.0]], [[2.0, 0.0]]],
    )


@pytest.fixture
def linear_file(linear, tmp_path):
    path = tmp_path / "linear.hardwood"
    linear.save(path)
    return path


@pytest.fixture
def pair_file(tmp_path):
    """Predicts two numbers: (1, 10) where width >= 0, else (2, 20)."""
    path = tmp_path / "pair.hardwood"
    ObliqueTree.of(
        [[1.0, 0.0]],
        thresholds=[0.0],
        values=[[2.0, 20.0], [1.0, 10.0]],
        feature_names=["width", "height"],
        target_names=["north", "south"],
    ).save(path)
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "height,width,answer,tall,wide,north,south\n"
        "2,0,no,1,0,1,10\n"
        "0,1.5,no,0,1,1,13\n"
        "1,2.5,yes,1,1,1,10\n"
        "0,9.5,yes,0,0,1,\n"
    )
    return path


def columns(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["columns"]


# Forests


def test_a_forest_predicts(run, forest_file, table):
    found = columns(run("predict", forest_file, table, "--proba", "--json"))
    assert found["prediction"] == ["no", "no", "yes", "yes"]
    np.testing.assert_allclose(found["probability of yes"], [0, 1 / 3, 2 / 3, 1])
    assert (
        columns(run("predict", forest_file, table, "--json"))["prediction"] == found["prediction"]
    )


def test_a_forest_is_scored(run, forest_file, table):
    payload = json.loads(run("evaluate", forest_file, table, "-t", "answer", "--json").stdout)
    assert payload["metrics"]["accuracy"]["value"] == 1
    assert payload["confusion"] == [[2, 0], [0, 2]]
    assert payload["target"] == ["answer"]
    assert "Confusion" in run("evaluate", forest_file, table, "-t", "answer").stdout


def test_a_forest_is_described(run, forest_file):
    result = run("describe", forest_file)
    assert result.exit_code == 0
    for words in ("votes of 3 trees", "width", "3 of 3", "Not used: height", "by hand", "--tree 1"):
        assert words in result.stdout
    payload = json.loads(run("describe", forest_file, "--json").stdout)
    assert (payload["kind"], payload["combine"], payload["n_trees"]) == ("ObliqueForest", "vote", 3)
    assert (payload["n_splits"], payload["n_leaves"], payload["depth"]) == (3, 6, 1)
    assert payload["trees"] == [{"depth": 1, "n_splits": 1, "n_leaves": 2}] * 3
    assert payload["features"][0] == {
        "name": "width",
        "n_splits": 3,
        "importance": 1.0,
        "n_linear_leaves": 0,
    }


def test_one_tree_of_a_forest_is_described_and_drawn(run, forest_file, tmp_path):
    result = run("describe", forest_file, "--tree", 1, "--plot", "tree.svg")
    assert result.exit_code == 0
    assert "if width >= 1" in result.stdout
    assert "seed: 1" in result.stdout
    assert b"<svg" in (tmp_path / "tree.svg").read_bytes()
    payload = json.loads(run("describe", forest_file, "--tree", 3, "--json").stdout)
    assert payload["kind"] == "ObliqueTree"
    assert payload["splits"] == ["width >= 9"]


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        ("forest_file", ["--tree", 4], "has trees 1 to 3"),
        ("forest_file", ["--tree", 0], "--tree"),
        ("forest_file", ["--plot", "tree.svg"], "choose it with --tree N"),
        ("labels_file", ["--tree", 1], "holds a single tree"),
    ],
)
def test_describe_refuses_other_trees(run, request, tmp_path, model, arguments, words):
    result = run("describe", request.getfixturevalue(model), *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "tree.svg").exists()


def test_the_trees_of_a_large_forest_are_summarized(run, tmp_path):
    path = tmp_path / "many.hardwood"
    ObliqueForest([step(i) for i in range(25)]).save(path)
    text = run("describe", path).stdout
    assert "... and 15 more trees" in text
    assert "mean of 25 trees" in text
    leaves = ObliqueTree.of(np.empty((0, 1)), thresholds=[], values=[1.5])
    ObliqueForest([leaves, leaves]).save(path)
    assert "Every tree is a single leaf and uses no feature." in run("describe", path).stdout


@pytest.mark.parametrize("model", ["forest_file", "labels_file", "linear_file"])
def test_benchmark_names_what_it_timed(run, request, model):
    path = request.getfixturevalue(model)
    kind = "ObliqueForest" if model == "forest_file" else "ObliqueTree"
    result = run("benchmark", path, "--rows", 50, "--seconds", 0.01)
    assert result.exit_code == 0
    assert f"{kind}.predict(float64 array)" in result.stdout
    assert f"{kind}.predict_one(dict)" in result.stdout
    payload = json.loads(run("benchmark", path, "--rows", 50, "--seconds", 0.01, "--json").stdout)
    if model == "forest_file":
        assert "3 trees, depth up to 1, 3 splits and 6 leaves in all" in result.stdout
        assert payload["forest"] == {"n_trees": 3, "depth": 1, "n_leaves": 6, "n_features": 2}
    else:
        assert payload["tree"]["n_features"] == 2


def test_a_forest_was_learned_from_its_table(run, forest, table, tmp_path):
    path = tmp_path / "learned.hardwood"
    origin = {"table": "t.csv", "table_rows": 4, "test": {"accuracy": 0.9}}
    ObliqueForest(forest.trees, record=origin).save(path)
    result = run("evaluate", path, table, "-t", "answer")
    assert "training rows are too optimistic; `describe` shows" in result.stderr


# Labels


def test_each_label_is_predicted(run, labels_file, table, tmp_path):
    found = columns(run("predict", labels_file, table, "--proba", "--keep", "answer", "--json"))
    assert list(found) == [
        "answer",
        "prediction of tall",
        "prediction of wide",
        "probability of tall",
        "probability of wide",
    ]
    assert found["prediction of tall"] == [1, 0, 1, 0]
    assert found["prediction of wide"] == [0, 1, 1, 1]
    assert found["probability of wide"] == [0.2, 0.9, 0.9, 0.9]
    run("predict", labels_file, table, "-o", "p.parquet")
    assert pq.read_table(tmp_path / "p.parquet").column_names == [
        "prediction of tall",
        "prediction of wide",
    ]


def test_labels_without_names_are_numbered(run, labels, table, tmp_path):
    path = tmp_path / "unnamed.hardwood"
    labels.replace(target_names=None).save(path)
    found = columns(run("predict", path, table, "--json"))
    assert list(found) == ["prediction of 0", "prediction of 1"]
    payload = json.loads(run("evaluate", path, table, "-t", "tall,wide", "--json").stdout)
    assert payload["metrics"]["accuracy of wide"]["value"] == 0.75


@pytest.mark.parametrize("order", ["tall,wide", "wide, tall"])
def test_labels_are_scored_in_any_order_of_their_names(run, labels_file, table, order):
    payload = json.loads(run("evaluate", labels_file, table, "-t", order, "--json").stdout)
    metrics = {name: entry["value"] for name, entry in payload["metrics"].items()}
    assert metrics["subset accuracy"] == 0.75
    assert metrics["accuracy of tall"] == 1
    assert metrics["accuracy of wide"] == 0.75
    assert metrics["AUC of tall"] == 1
    assert (payload["task"], payload["target"]) == ("multilabel", ["tall", "wide"])
    assert payload["confusion"] is None
    assert "subset accuracy" in run("evaluate", labels_file, table, "-t", order).stdout


def test_a_single_label_works(run, tmp_path, table):
    path = tmp_path / "one.hardwood"
    ObliqueTree(
        [[0.0, 1.0]],
        [-1.0],
        [[-1, -2]],
        [[0.1], [0.8]],
        schema=Schema.numeric(2, ["width", "height"]),
        task="multilabel",
        target_names=["tall"],
    ).save(path)
    payload = json.loads(run("evaluate", path, table, "-t", "tall", "--json").stdout)
    assert payload["metrics"]["accuracy of tall"]["value"] == 1
    assert columns(run("predict", path, table, "--json")) == {"prediction of tall": [1, 0, 1, 0]}


@pytest.mark.parametrize(
    ("model", "target", "words"),
    [
        ("labels_file", "tall", r"predicts 2 columns (tall, wide), but --target names 1"),
        ("labels_file", "tall,answer", "Column 'answer' contains 'no', which is not 0"),
        ("labels_file", "tall,south", "Column 'south' contains 10"),
        ("labels_file", "tall,tall", "twice"),
        ("labels_file", "tall,gone", "no column 'gone'"),
        ("pair_file", "north", "predicts 2 columns (north, south)"),
        ("pair_file", "north,answer", "contains text"),
        ("forest_file", "answer,tall", "predicts 1 column (answer), but --target names 2"),
    ],
)
def test_evaluate_says_which_columns_it_needs(run, request, table, model, target, words):
    result = run("evaluate", request.getfixturevalue(model), table, "-t", target)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


# Numbers


def test_each_of_several_targets_is_scored(run, pair_file, table):
    payload = json.loads(run("evaluate", pair_file, table, "-t", "south,north", "--json").stdout)
    metrics = {name: entry["value"] for name, entry in payload["metrics"].items()}
    assert (payload["n_rows"], payload["n_missing_target"]) == (3, 1)
    assert metrics["MAE of north"] == 0
    assert metrics["MAE of south"] == 1
    assert metrics["RMSE of south"] == pytest.approx(3**0.5)


def test_linear_leaves_are_described(run, linear_file, table):
    result = run("describe", linear_file)
    assert result.exit_code == 0
    assert "linear leaves" in result.stdout
    assert "1 of 2" in result.stdout  # width, in one of the leaves
    assert "Not used" not in result.stdout
    payload = json.loads(run("describe", linear_file, "--json").stdout)
    assert payload["has_linear_leaves"]
    assert {u["name"]: (u["n_splits"], u["n_linear_leaves"]) for u in payload["features"]} == {
        "height": (1, 0),
        "width": (0, 1),
    }
    assert columns(run("predict", linear_file, table, "--json"))["prediction"] == [1, 4, 6, 20]


def test_a_single_linear_leaf_uses_its_features(run, tmp_path):
    path = tmp_path / "line.hardwood"
    ObliqueTree(
        np.empty((0, 2)),
        [],
        np.empty((0, 2), int),
        [[1.0]],
        schema=Schema.numeric(2, ["width", "height"]),
        task="regression",
        leaf_weights=[[[2.0, 0.0]]],
    ).save(path)
    text = run("describe", path).stdout
    assert "1 of 1" in text
    assert "Not used: height" in text
    assert "single leaf and uses" not in text


def test_sizes_mention_linear_leaves(linear, forest):
    assert linear.size_words == "depth 1, 1 split, 2 linear leaves, 2 features"
    assert forest.size_words == "depth up to 1, 3 splits and 6 leaves in all, 2 features"
