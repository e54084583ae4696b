"""The commands that print reports of `hardwood.report`, with files and drawings."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from hardwood import DGTClassifier
from hardwood.model import ObliqueForest, ObliqueTree, TreeEnsemble
from hardwood.report import analyze, evaluate
from hardwood.table import Schema

PNG = b"\x89PNG"


@pytest.fixture
def learned_file(tmp_path):
    """A learned tree with its learning curve."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["x0", "x1"])
    model = DGTClassifier(max_depth=2, max_epochs=5, random_state=0)
    model.fit(X, np.where(X.x0 > 0, "yes", "no"))
    model.save(tmp_path / "learned.hardwood")
    return tmp_path / "learned.hardwood"


def test_evaluate_prints_the_report_of_the_library(run, classifier, classifier_file, answers_csv):
    arguments = ["evaluate", classifier_file, answers_csv, "-t", "answer", "--seed", 3]
    payload = json.loads(run(*arguments, "--json").stdout)
    X = [[1.0, "red", 0], [1.0, "blue", 0], [3.5, "blue", 0], [None, "red", 0], [0.0, "blue", 0]]
    report = evaluate(classifier, X, ["yes", "no", "yes", "yes", "yes"], random_state=3)
    expected = report.to_dict()
    assert {name: payload[name] for name in expected} == expected
    assert str(report) in run(*arguments).stdout


def test_evaluate_draws(run, classifier_file, answers_csv, tmp_path):
    arguments = ["evaluate", classifier_file, answers_csv, "-t", "answer", "--plot"]
    result = run(*arguments, "scores.png")
    assert result.exit_code == 0
    assert "Drew scores.png" in result.stdout
    assert (tmp_path / "scores.png").read_bytes().startswith(PNG)
    assert json.loads(run(*arguments, "s.svg", "--json").stdout)["picture"] == "s.svg"
    assert "unknown image format" in run(*arguments, "s.docx").stderr
    assert "is an input" in run(*arguments, answers_csv).stderr


def test_text_classes_match_the_numbers_of_a_file(run, tmp_path):
    tree = ObliqueTree.of(
        [[1.0]], thresholds=[0.0], values=[[1, 0], [0, 1]], classes=["1", "2"], feature_names=["a"]
    )
    tree.save(tmp_path / "m.hardwood")
    (tmp_path / "t.csv").write_text("a,y\n-1,1\n1,2\n2,1\n")
    payload = json.loads(run("evaluate", "m.hardwood", "t.csv", "-t", "y", "--json").stdout)
    assert payload["metrics"]["accuracy"]["value"] == pytest.approx(2 / 3)


def test_analyze_prints_the_report_of_the_library(run, classifier, classifier_file, answers_csv):
    arguments = ["analyze", classifier_file, answers_csv, "-t", "answer", "--repeats", 4]
    result = run(*arguments)
    assert result.exit_code == 0
    X = [[1.0, "red", 0], [1.0, "blue", 0], [3.5, "blue", 0], [None, "red", 0], [0.0, "blue", 0]]
    report = analyze(classifier, X, ["yes", "no", "yes", "yes", "yes"], n_repeats=4)
    assert str(report) in result.stdout
    payload = json.loads(run(*arguments, "--json").stdout)
    expected = report.to_dict()
    assert {name: payload[name] for name in expected} == expected
    assert payload["target"] == ["answer"]


def test_analyze_takes_groups_features_metrics_and_weights(
    run, classifier_file, answers_csv, tmp_path
):
    arguments = ["analyze", classifier_file, answers_csv, "-t", "answer"]
    arguments += ["--group", "both=width, color", "--feature", "unused", "--metric", "log loss"]
    result = run(*arguments, "--weight", "number", "--plot", "why.png", "--json")
    payload = json.loads(result.stdout)
    assert {entry["name"] for entry in payload["importance"]} == {"both", "unused"}
    assert [entry["feature"] for entry in payload["dependence"]] == ["unused"]
    assert payload["metric"] == "log loss"
    assert payload["picture"] == "why.png"
    assert (tmp_path / "why.png").read_bytes().startswith(PNG)
    leaves = {leaf["node"]: leaf["rows"] for leaf in payload["leaves"]}
    assert leaves == {0: 7.0, 1: 8.0}  # numbers 2 + 5 and 1 + 3 + 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--group", "width,color"], "expected a name and columns"),
        (["--group", "g=height"], "the model does not have"),
        (["--feature", "height"], "the model does not have"),
        (["--metric", "R2"], "metric must be one of"),
        (["--target", "color"], "Is this the right column?"),
    ],
)
def test_analyze_explains_wrong_options(run, classifier_file, answers_csv, options, words):
    target = [] if "--target" in options else ["-t", "answer"]
    result = run("analyze", classifier_file, answers_csv, *target, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_analyze_notes_the_training_table(run, classifier, answers_csv, tmp_path):
    record = {"table": "answers.csv", "table_rows": 5}
    classifier.replace(record=record).save(tmp_path / "m.hardwood")
    result = run("analyze", "m.hardwood", answers_csv, "-t", "answer")
    assert "training rows are too optimistic" in result.stderr


def test_describe_draws_the_learning_curves(run, learned_file, tmp_path):
    result = run("describe", learned_file, "--curves", "curves.png")
    assert result.exit_code == 0
    assert "Drew curves.png" in result.stdout
    assert (tmp_path / "curves.png").read_bytes().startswith(PNG)
    assert "train_loss" not in result.stdout
    payload = json.loads(run("describe", learned_file, "--curves", "c.svg", "--json").stdout)
    assert payload["curves_picture"] == "c.svg"
    assert payload["record"]["curves"]["epoch"] == [1, 2, 3, 4, 5]


def test_a_tree_without_a_record_has_no_curves(run, classifier_file, tmp_path):
    result = run("describe", classifier_file, "--curves", "curves.png")
    assert result.exit_code == 2
    assert "no learning curve" in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "curves.png").exists()


def test_report_writes_one_page(run, learned_file, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    lines = [f"{a},{b},{'yes' if a > 0 else 'no'}" for a, b in X.tolist()]
    (tmp_path / "t.csv").write_text("\n".join(["x0,x1,y", *lines]) + "\n")
    result = run("report", learned_file)
    assert result.exit_code == 0
    assert "Wrote" in result.stdout
    alone = (tmp_path / "learned.html").read_text()
    assert alone.count("<img") == 1  # the learning curve
    assert "Evaluation" not in alone
    result = run("report", learned_file, "t.csv", "-t", "y", "-o", "all.html", "--json")
    payload = json.loads(result.stdout)
    assert payload["output"] == "all.html"
    whole = (tmp_path / "all.html").read_text()
    assert whole.count("<img") == 3
    for part in ("description", "learning curves", "evaluation", "analysis"):
        assert part in payload
    assert payload["evaluation"]["n_rows"] == 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t.csv"], "Give both a table and --target"),
        (["-t", "y"], "Give both a table and --target"),
        (["-o", "page.pdf"], "must end in .html"),
        (["-o", "nowhere/page.html"], "does not exist"),
    ],
)
def test_report_explains_wrong_arguments(run, classifier_file, tmp_path, arguments, words):
    result = run("report", classifier_file, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".hardwood"]


@pytest.fixture
def soft():
    return TreeEnsemble(
        [[[1.0, 0.5]], [[0.0, 1.0]]],
        [[0.0], [0.5]],
        [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 0.5]]],
        gamma=1.0,
        schema=Schema.numeric(2, ["a", "b"]),
        task="classification",
        classes=["no", "yes"],
    )


def test_soft_ensembles_are_reported_on(run, soft, tmp_path):
    soft.save(tmp_path / "soft.hardwood")
    (tmp_path / "t.csv").write_text("a,b,y\n1,0,yes\n-1,0,no\n2,1,yes\n0,-3,yes\n")
    described = run("describe", "soft.hardwood")
    assert described.exit_code == 0
    assert "To print one of the trees" in described.stdout
    one = run("describe", "soft.hardwood", "--tree", 2)
    assert one.exit_code == 0
    assert "b >= -0.5" in one.stdout
    assert "has trees 1 to 2" in run("describe", "soft.hardwood", "--tree", 3).stderr
    payload = json.loads(run("evaluate", "soft.hardwood", "t.csv", "-t", "y", "--json").stdout)
    assert payload["confusion"] == [[1, 0], [1, 2]]
    result = run("analyze", "soft.hardwood", "t.csv", "-t", "y")
    assert result.exit_code == 0
    assert "harden()" in result.stderr
    timed = run("benchmark", "soft.hardwood", "--rows", 10, "--seconds", 0.01, "--json")
    assert json.loads(timed.stdout)["ensemble"]["n_trees"] == 2


def test_a_forest_draws_the_curves_of_all_or_of_one(run, learned_file, tmp_path):
    from hardwood import load

    tree = load(learned_file)
    ObliqueForest([tree, tree]).save(tmp_path / "forest.hardwood")
    for options in ([], ["--tree", 2]):
        result = run("describe", "forest.hardwood", "--curves", "c.png", *options)
        assert result.exit_code == 0
        assert (tmp_path / "c.png").read_bytes().startswith(PNG)
