"""`hardwood prune`: the model file that it writes, and its output."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hardwood
from hardwood.cli.prune import _size
from hardwood.model import ObliqueTree
from hardwood.model.edit import cost_complexity_path, prune_unreached, sparsify


@pytest.fixture
def overgrown():
    """Seven splits: the root splits on a >= 0, and the six below it fit noise in b."""
    weights = [[1.0, 0.0]] + [[0.001, 1.0]] * 6
    return ObliqueTree.of(
        weights,
        thresholds=[0.0, -1.0, 1.0, -2.0, 0.5, -0.5, 2.0],
        values=[[p, 1 - p] for p in (0.9, 0.4, 0.9, 0.8, 0.1, 0.6, 0.2, 0.1)],
        feature_names=["a", "b"],
        classes=["no", "yes"],
        record={"learner": "by hand", "test": {"accuracy": 0.5}},
    )


@pytest.fixture
def model(overgrown, tmp_path):
    path = tmp_path / "overgrown.hardwood"
    overgrown.save(path)
    return path


@pytest.fixture
def data(tmp_path, rng):
    """400 rows; a tenth of the targets is wrong, and one is missing."""
    X = np.round(rng.normal(size=(400, 2)), 3)
    y = np.where((X[:, 0] >= 0) ^ (rng.random(400) < 0.1), "yes", "no")
    weight = rng.integers(0, 3, 400)
    lines = [f"{a},{b},{answer},{w}" for (a, b), answer, w in zip(X, y, weight, strict=True)]
    lines[7] = "0.5,0.5,,1"
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b,answer,count", *lines]) + "\n")
    keep = np.arange(400) != 7
    return path, X[keep], y[keep], weight[keep]


def test_held_out_rows_choose_a_small_tree(run, model, data, overgrown):
    result = run("prune", model, data[0], "--target", "answer", "-o", "small.hardwood")
    assert result.exit_code == 0
    small = hardwood.load("small.hardwood")
    assert small.n_leaves < overgrown.n_leaves
    assert np.mean(small.predict(data[1]) == data[2]) > 0.85
    for words in ("before", "after", "leaves", "accuracy", "119 held-out rows", "Wrote small"):
        assert words in result.stdout
    assert "1 row in which 'answer' is missing" in result.stderr
    record = small.record
    assert record["pruned"] == {
        "table": "rows.csv",
        "rows": 399,
        "splits before": 7,
        "validation fraction": 0.3,
    }
    assert "test" not in record
    assert record["learner"] == "by hand"


def test_splits_are_rewritten_to_be_readable(run, model, data, overgrown):
    path, X, _, _ = data
    result = run("prune", model, path, "--readable", "0")
    assert result.exit_code == 0
    found = overgrown.prune(X).readable(X)
    written = hardwood.load("overgrown-pruned.hardwood")
    assert (written.apply(X) == overgrown.prune(X).apply(X)).all()
    assert np.count_nonzero(written.weights) < np.count_nonzero(overgrown.weights)
    assert written.record["pruned"]["readable"] == 0
    assert found.splits[0].condition in result.stdout
    assert "reach the same leaf as before" in result.stdout
    payload = json.loads(run("prune", model, path, "--readable", "0.05", "--json").stdout)
    assert payload["readable"]["share_same"] >= 0.95
    assert len(payload["readable"]["splits"]) == payload["after"]["n_splits"]


def test_alpha_prunes_with_all_rows(run, model, data, overgrown):
    path, X, y, weight = data
    options = ["--target", "answer", "--alpha", "0.01", "--weight", "count", "--json"]
    result = run("prune", model, path, *options, "--criterion", "squared_error")
    payload = json.loads(result.stdout)
    expected = cost_complexity_path(
        overgrown, X, y, sample_weight=weight, criterion="squared_error"
    ).at(0.01)
    found = hardwood.load("overgrown-pruned.hardwood")
    assert found.replace(record=None) == expected.replace(record=None)
    assert payload["model"] == "overgrown-pruned.hardwood"
    assert payload["n_rows"] == np.count_nonzero(weight)
    assert payload["n_validation"] == 0
    assert payload["before"]["n_leaves"] == 8
    assert payload["after"]["n_leaves"] == expected.n_leaves < 8
    accuracy = payload["after"]["scores"]["accuracy"]["value"]
    assert accuracy == pytest.approx(np.average(expected.predict(X) == y, weights=weight))


def test_without_a_target_only_unreached_nodes_are_removed(run, model, data, overgrown):
    path, X, _, _ = data
    everything = np.vstack([X, [[0.5, 0.5]]])
    payload = json.loads(run("prune", model, path, "--min-samples", 20, "--json").stdout)
    expected = prune_unreached(overgrown, everything, min_samples=20)
    found = hardwood.load("overgrown-pruned.hardwood")
    assert found.replace(record=None) == expected.replace(record=None)
    assert payload["after"]["scores"] == {}
    assert payload["after"]["n_splits"] == expected.n_splits < 7
    assert "Sizes, by the paths of 400 rows" in run("prune", model, path).stdout


def test_terms_are_removed_on_request(run, model, data, overgrown):
    path, X, _, _ = data
    everything = np.vstack([X, [[0.5, 0.5]]])
    payload = json.loads(run("prune", model, path, "--sparsify", 0, "--json").stdout)
    shorter = sparsify(prune_unreached(overgrown, everything), everything).tree
    assert payload["before"]["n_weights"] == 13
    assert payload["after"]["n_weights"] == np.count_nonzero(shorter.weights) < 13
    found = hardwood.load("overgrown-pruned.hardwood")
    assert found.record["pruned"]["sparsify"] == 0
    assert (found.apply(everything) == overgrown.apply(everything)).all()


def test_one_standard_error_gives_no_larger_tree(run, model, data):
    sizes = []
    for more in ([], ["--one-standard-error"]):
        arguments = ["prune", model, data[0], "-t", "answer", "--json", *more]
        sizes.append(json.loads(run(*arguments).stdout)["after"]["n_leaves"])
    assert sizes[1] <= sizes[0]
    assert sizes[1] == 2


def test_regression_trees_are_pruned(run, tmp_path, rng):
    tree = ObliqueTree.of([[1.0], [1.0], [1.0]], thresholds=[0, -1, 1], values=[-1, -1.1, 1, 1.1])
    tree = tree.replace(schema=hardwood.table.Schema.numeric(1, ["a"]))
    tree.save(tmp_path / "m.hardwood")
    a = rng.normal(size=300)
    y = np.sign(a) + rng.normal(size=300) / 10
    lines = [f"{x},{t}" for x, t in zip(a, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *lines]) + "\n")
    result = run("prune", "m.hardwood", "t.csv", "-t", "y", "--alpha", "0.05")
    assert result.exit_code == 0
    assert "RMSE" in result.stdout
    assert hardwood.load("m-pruned.hardwood").n_leaves == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--alpha", "0.1"], "--target"),
        (["--criterion", "log_loss"], "--target"),
        (["--one-standard-error"], "--target"),
        (["-t", "answer", "--alpha", "0.1", "--validation-fraction", "0.2"], "leave out"),
        (["-t", "answer", "--alpha", "0.1", "--one-standard-error"], "leave out"),
        (["-t", "answer", "--alpha", "-1"], "--alpha"),
        (["-t", "answer", "--alpha", "nan"], "--alpha"),
        (["-t", "answer", "--alpha", "inf"], "not a finite number"),
        (["--sparsify", "1.5"], "0.99"),
        (["-t", "answers"], "Did you mean 'answer'?"),
        (["-t", "a", "--alpha", "0"], "is a class of the model"),
        (["-t", "answer", "--criterion", "absolute_error"], "classification tree must be one of"),
        (["-o", "rows.csv"], "is an input"),
        (["-o", "overgrown.hardwood"], "is an input"),
    ],
)
def test_errors_are_explained(run, model, data, options, words):
    result = run("prune", model, data[0], *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_rows_of_unknown_classes_are_left_out(run, model, tmp_path):
    rows = "1,1,yes\n-1,1,no\n1,0,perhaps\n2,1,yes\n"
    (tmp_path / "t.csv").write_text("a,b,answer\n" + rows)
    result = run("prune", model, "t.csv", "-t", "answer", "--alpha", "0")
    assert result.exit_code == 0
    assert "1 row of a class that the model does not know" in result.stderr


def test_too_few_rows_to_hold_some_out(run, model, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,answer\n1,1,yes\n-1,1,no\n")
    result = run("prune", model, "t.csv", "-t", "answer")
    assert result.exit_code == 2
    assert "--alpha" in result.stderr


def test_training_rows_are_noted(run, overgrown, data, tmp_path):
    overgrown.replace(record={"table": "rows.csv", "table_rows": 400}).save(tmp_path / "m.hardwood")
    assert "prune on other rows" in run("prune", "m.hardwood", data[0], "-t", "answer").stderr
    assert "other rows" not in run("prune", "m.hardwood", data[0]).stderr


def test_several_outputs_have_several_targets(run, tmp_path, rng):
    X = rng.normal(size=(200, 2))
    y = np.column_stack([X[:, 0] >= 0, X[:, 0] >= 0]).astype(int)
    lines = [f"{a},{b},{u},{v}" for (a, b), (u, v) in zip(X, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,u,v", *lines]) + "\n")
    for task in ("regression", "multilabel"):
        tree = ObliqueTree.of(
            [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
            thresholds=[0.0, 0.0, 0.0],
            values=[[0.1, 0.1], [0.2, 0.2], [0.8, 0.8], [0.9, 0.9]],
            task=task,
            target_names=["u", "v"],
            feature_names=["a", "b"],
        )
        tree.save(tmp_path / "two.hardwood")
        options = ["--alpha", "0.02", "--criterion", "squared_error"]
        result = run("prune", "two.hardwood", "t.csv", "-t", "v,u", *options)
        assert result.exit_code == 0
        pruned = hardwood.load("two-pruned.hardwood")
        assert pruned.n_leaves == 2
        assert pruned.values == pytest.approx(np.array([[0.0, 0.0], [1.0, 1.0]]))
        result = run("prune", "two.hardwood", "t.csv", "-t", "u", "--alpha", "0.1")
        assert result.exit_code == 2
        assert "predicts 2 columns" in result.stderr


def test_a_forest_is_refused(run, overgrown, data, tmp_path):
    hardwood.ObliqueForest([overgrown, overgrown]).save(tmp_path / "f.hardwood")
    result = run("prune", "f.hardwood", data[0])
    assert result.exit_code == 2
    assert "holds a forest" in result.stderr


@pytest.mark.parametrize(
    ("value", "words"), [(30, "30"), (29.9999999996, "30"), (1234.56, "1,234.6"), (0.0, "0")]
)
def test_sizes_are_formatted(value, words):
    assert _size(value) == words
