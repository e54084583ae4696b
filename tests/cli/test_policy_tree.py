"""The commands that use a model, for policy trees."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hardwood.model import ObliqueTree, PolicyTree, load
from hardwood.table import Schema


def fork(**options):
    """Three branches on the width: no below -1, yes above 1; sometimes no between."""
    arguments = {
        "parents": [-1, 0, 0, 0],
        "weights": [[0.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]],
        "bias": [0.0, -1.0, 0.0, -1.0],
        "scores": np.log([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]),
        "schema": Schema.numeric(2, ["width", "height"]),
        "task": "classification",
        "classes": ["no", "yes"],
        "target_names": "answer",
        "counts": [10.0, 3.0, 3.0, 4.0],
        "record": {"learner": "by hand"},
    }
    return PolicyTree(**(arguments | options))


@pytest.fixture
def fork_file(tmp_path):
    path = tmp_path / "fork.hardwood"
    fork().save(path)
    return path


@pytest.fixture
def two_branches_file(tmp_path):
    path = tmp_path / "two.hardwood"
    tree = fork(
        parents=[-1, 0, 0],
        weights=[[0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]],
        bias=[0.0, 0.0, 0.0],
        scores=np.log([[0.9, 0.1], [0.2, 0.8]]),
        counts=None,
    )
    tree.save(path)
    return path


@pytest.fixture
def rows_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("width,height,answer\n-3,0,no\n0,0,no\n3,0,yes\n", encoding="utf-8")
    return path


def test_predict(run, fork_file, rows_file):
    done = run("predict", fork_file, rows_file)
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == ['"prediction"', '"no"', '"no"', '"yes"']
    done = run("predict", fork_file, rows_file, "--path", "most_probable", "--proba", "--json")
    columns = json.loads(done.stdout)["columns"]
    assert columns["probability of yes"] == pytest.approx([0.1, 0.4, 0.8])


def test_a_path_is_for_policy_trees(run, rows_file, tmp_path):
    tree = ObliqueTree.of([[1.0, 0.0]], thresholds=[0.0], values=[1.0, 2.0])
    tree.save(tmp_path / "tree.hardwood")
    done = run("predict", tmp_path / "tree.hardwood", rows_file, "--path", "greedy")
    assert done.exit_code != 0
    assert "--path is for policy trees" in done.output


def test_describe(run, fork_file, tmp_path):
    done = run("describe", fork_file)
    assert done.exit_code == 0, done.output
    assert "Policy tree: classification of answer, 2 classes" in done.stdout
    assert "branch 3 of 3, score 2*width:" in done.stdout
    assert "Not used: height" in done.stdout
    assert "format 1" in done.stdout
    found = json.loads(run("describe", fork_file, "--json").stdout)
    assert (found["kind"], found["n_splits"], found["n_leaves"]) == ("PolicyTree", 1, 3)
    assert [term["branch"] for term in found["terms"][0]] == [2, 3]
    assert found["n_weights"] == 2
    assert found["features"][0] == {
        "name": "width",
        "n_splits": 1,
        "importance": 1.0,
        "n_linear_leaves": 0,
    }


def test_a_drawing(run, fork_file, tmp_path):
    pytest.importorskip("matplotlib")
    done = run("describe", fork_file, "--plot", "fork.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "fork.png").stat().st_size > 1000


@pytest.mark.parametrize("command", ["evaluate", "analyze"])
def test_reports_on_rows(run, fork_file, two_branches_file, rows_file, command):
    for path in (fork_file, two_branches_file):
        done = run(command, path, rows_file, "--target", "answer")
        assert done.exit_code == 0, done.output
        assert "answer" in done.output


def test_benchmark(run, fork_file):
    done = run("benchmark", fork_file, "--rows", "100", "--seconds", "0.01", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tree"]["n_leaves"] == 3


def test_pages_exports_and_pruning_need_two_branches(run, fork_file, two_branches_file, rows_file):
    commands = (
        ["show"],
        ["export", "--to", "python"],
        ["prune", rows_file, "--output", "small.hardwood"],
    )
    for name, *options in commands:
        done = run(name, two_branches_file, *options)
        assert done.exit_code == 0, done.output
        done = run(name, fork_file, *options)
        assert done.exit_code != 0
        assert "a split of 3" in done.output
        assert "Traceback" not in done.output
    assert isinstance(load("small.hardwood"), ObliqueTree)
