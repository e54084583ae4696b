"""The commands that use a model."""

from __future__ import annotations

import inspect
import json
import math
import os
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import hardwood
from hardwood import report
from hardwood.cli import app as cli
from hardwood.model import ObliqueTree
from hardwood.report.description import readable_record
from hardwood.report.feature_use import feature_use
from hardwood.table.sample import sample_rows


def test_predict_writes_csv_to_stdout(run, classifier_file, answers_csv):
    result = run("predict", classifier_file, answers_csv)
    assert result.exit_code == 0
    assert result.stdout.replace('"', "").splitlines() == [
        "prediction",
        "yes",
        "no",
        "yes",
        "yes",
        "no",
    ]


def test_predict_keeps_columns_and_adds_probabilities(run, classifier_file, answers_csv, tmp_path):
    out = tmp_path / "out.csv"
    options = ["--proba", "--keep", "number", "-o", out]
    result = run("predict", classifier_file, answers_csv, *options)
    assert result.exit_code == 0
    assert "5 predictions" in result.stdout
    lines = out.read_text().replace('"', "").splitlines()
    assert lines[0] == "number,prediction,probability of no,probability of yes"
    assert lines[1] == "1,yes,0.25,0.75"


def test_predict_writes_parquet_and_regression(run, regressor_file, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("b,a\n0,-0.5\n0,2\n")
    result = run("predict", regressor_file, table, "-o", "out.parquet")
    assert result.exit_code == 0
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"prediction": [-1.0, 1.0]}


def test_predict_json_is_one_object(run, classifier_file, answers_csv):
    payload = json.loads(run("predict", classifier_file, answers_csv, "--json").stdout)
    assert payload["n_rows"] == 5
    assert payload["columns"]["prediction"] == ["yes", "no", "yes", "yes", "no"]


def test_predict_refuses_to_write_over_its_input(run, classifier_file, answers_csv):
    before = answers_csv.read_text()
    result = run("predict", classifier_file, answers_csv, "-o", answers_csv)
    assert result.exit_code == 2
    assert "is an input" in result.stderr
    assert answers_csv.read_text() == before


def test_predict_does_not_replace_a_device(run, classifier_file, answers_csv):
    result = run("predict", classifier_file, answers_csv, "-o", "/dev/null")
    assert result.exit_code == 2
    assert "is a device" in result.stderr


def test_predict_names_an_absent_column(run, classifier_file, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("color,unused\nred,1\n")
    result = run("predict", classifier_file, table)
    assert result.exit_code == 2
    assert "width" in result.stderr
    assert "Traceback" not in result.stderr


def test_predict_proba_needs_classes(run, regressor_file, answers_csv):
    result = run("predict", regressor_file, answers_csv, "--proba")
    assert result.exit_code == 2
    assert "classification" in result.stderr


def test_evaluate_scores_and_confusion(run, classifier_file, answers_csv):
    result = run("evaluate", classifier_file, answers_csv, "--target", "answer")
    assert result.exit_code == 0
    for words in ("accuracy", "log loss", "AUC", "0.8", "Confusion"):
        assert words in result.stdout
    payload = json.loads(
        run("evaluate", classifier_file, answers_csv, "--target", "answer", "--json").stdout
    )
    assert payload["metrics"]["accuracy"]["value"] == 0.8
    assert payload["confusion"] == [[1, 0], [1, 3]]
    assert payload["classes"] == ["no", "yes"]
    log_loss = -(3 * math.log(0.75) + math.log(0.9) + math.log(0.1)) / 5
    assert payload["metrics"]["log loss"]["value"] == pytest.approx(log_loss)


def test_evaluate_weights_count(run, classifier_file, answers_csv):
    arguments = ["evaluate", classifier_file, answers_csv, "-t", "answer", "--json"]
    payload = json.loads(run(*arguments, "--weight", "number").stdout)
    assert payload["metrics"]["accuracy"]["value"] == pytest.approx(10 / 15)


def test_evaluate_counts_unknown_classes_and_missing_targets(run, classifier_file, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("width,color,unused,answer\n1,red,0,yes\n1,red,0,perhaps\n1,red,0,\n")
    result = run("evaluate", classifier_file, table, "-t", "answer", "--json")
    payload = json.loads(result.stdout)
    assert (payload["n_rows"], payload["n_missing_target"], payload["n_unknown_class"]) == (2, 1, 1)
    assert payload["metrics"]["accuracy"]["value"] == 0.5
    assert "does not know" in result.stderr


def test_evaluate_refuses_a_column_of_other_values(run, classifier_file, answers_csv):
    result = run("evaluate", classifier_file, answers_csv, "-t", "color")
    assert result.exit_code == 2
    assert "'red'" in result.stderr
    assert "'no', 'yes'" in result.stderr


def test_evaluate_regression(run, regressor_file, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b,y\n1,0,1.5\n-1,0,-1\n2,0,1\n")
    payload = json.loads(run("evaluate", regressor_file, table, "-t", "y", "--json").stdout)
    assert payload["metrics"]["MAE"]["value"] == pytest.approx(0.5 / 3)
    assert payload["confusion"] is None


def test_describe_prints_tree_sizes_feature_use_and_record(run, classifier_file):
    result = run("describe", classifier_file)
    assert result.exit_code == 0
    for words in ("classification of answer", "depth 1", "width", "Not used: unused", "by hand"):
        assert words in result.stdout
    payload = json.loads(run("describe", classifier_file, "--json").stdout)
    assert (payload["depth"], payload["n_leaves"], payload["n_features"]) == (1, 2, 3)
    assert payload["splits"] == ["width + (2 if color is red) >= 3"]
    assert payload["record"] == {"learner": "by hand"}


def test_feature_use_is_in_standard_units(classifier):
    use = {entry.name: entry for entry in feature_use(classifier)}
    assert use["width"].importance == pytest.approx(0.5)  # weight 1, spread 2; a level adds 2
    assert use["color"].importance == pytest.approx(0.5)
    assert [use[name].n_splits for name in ("width", "color", "unused")] == [1, 1, 0]


def test_a_single_leaf_can_be_described(run, tmp_path):
    path = tmp_path / "leaf.hardwood"
    ObliqueTree.of(np.empty((0, 2)), thresholds=[], values=[1.5]).save(path)
    result = run("describe", path)
    assert result.exit_code == 0
    assert "single leaf" in result.stdout


@pytest.mark.parametrize(
    ("model", "single_rows"),
    [("classifier_file", ["dict"]), ("regressor_file", ["1-D float64 array", "dict"])],
)
def test_benchmark_names_the_calls_it_timed(run, request, model, single_rows):
    path = request.getfixturevalue(model)
    arguments = ["benchmark", path, "--rows", 50, "--seconds", 0.01]
    result = run(*arguments)
    assert result.exit_code == 0
    for what in single_rows:
        assert f"ObliqueTree.predict_one({what})" in result.stdout
    payload = json.loads(run(*arguments, "--json").stdout)
    timings = payload["timings"]
    assert payload["file_bytes"] == path.stat().st_size
    assert [t["n_rows"] for t in timings] == [50] + [1] * len(single_rows)
    for t in timings:
        assert 0 < t["p50_us"] <= t["p99_us"]
        assert t["rows_per_second"] == pytest.approx(1e6 * t["n_rows"] / t["p50_us"])


def test_simulated_rows_fit_the_schema(classifier):
    rows, kind = sample_rows(classifier.schema, 200, np.random.default_rng(0))
    assert kind == "Arrow table"
    assert set(rows["color"].to_pylist()) == {"blue", "red"}
    assert np.isnan(rows["width"].to_numpy()).sum() > 0
    assert set(classifier.predict(rows)) == {"no", "yes"}


@pytest.mark.parametrize("command", ["describe", "benchmark"])
@pytest.mark.parametrize(
    ("content", "words"), [(None, "does not exist"), (b"not a model", "bad.hardwood")]
)
def test_bad_model_files_are_explained(run, tmp_path, command, content, words):
    path = tmp_path / "bad.hardwood"
    if content is not None:
        path.write_bytes(content)
    result = run(command, path)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_a_directory_is_not_a_model(run, tmp_path):
    result = run("describe", tmp_path)
    assert result.exit_code == 2
    assert "is a directory" in result.stderr


def test_describe_draws(run, classifier_file, tmp_path):
    result = run("describe", classifier_file, "--plot", "tree.svg")
    assert result.exit_code == 0
    assert "Drew tree.svg" in result.stdout
    assert b"<svg" in (tmp_path / "tree.svg").read_bytes()
    payload = json.loads(run("describe", classifier_file, "--plot", "tree.png", "--json").stdout)
    assert payload["picture"] == "tree.png"
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(run("describe", classifier_file, "--json").stdout)["picture"] is None


@pytest.mark.parametrize(
    ("plot", "words"),
    [
        ("tree.docx", "unknown image format"),
        ("yes.hardwood", "choose another --plot"),
        (".", "--plot needs the name of a file"),
    ],
)
def test_describe_refuses_what_cannot_be_drawn(run, classifier_file, plot, words):
    before = classifier_file.read_bytes()
    result = run("describe", classifier_file, "--plot", plot)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
    assert classifier_file.read_bytes() == before


def test_drawing_without_matplotlib_names_the_extra(run, classifier_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    result = run("describe", classifier_file, "--plot", "tree.png")
    assert result.exit_code == 2
    assert "'matplotlib'" in result.stderr
    assert "pip install '.[plot]'" in result.stderr


def test_a_failed_drawing_leaves_the_old_picture(run, classifier_file, tmp_path, monkeypatch):
    picture = tmp_path / "tree.png"
    picture.write_bytes(b"the picture of yesterday")

    def disk_full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    result = run("describe", classifier_file, "--plot", picture)
    assert result.exit_code == 2
    assert "tree.png cannot be written" in result.stderr
    assert picture.read_bytes() == b"the picture of yesterday"
    assert sorted(os.listdir(tmp_path)) == ["tree.png", "yes.hardwood"]


def test_records_are_printed_in_order_with_resolved_values():
    record = {
        "best_pass": 7,
        "learner": "DGTClassifier",
        "note": "mine",
        "parameters": {"n_restarts": "auto", "class_weight": None, "l1": 0.0},
        "resolved": {"n_restarts": 4},
        "train_loss": 0.5859381308158239,
    }
    assert readable_record(record) == {
        "learner": "DGTClassifier",
        "best epoch": "7",
        "training loss": "0.5859",
        "parameters": "n_restarts 4, class_weight none, l1 0",
        "note": "mine",
    }


def test_sizes_agree_with_their_numbers(classifier):
    assert classifier.size_words == "depth 1, 1 split, 2 leaves, 3 features"
    leaf = ObliqueTree.of(np.empty((0, 1)), thresholds=[], values=[1.5])
    assert leaf.size_words == "depth 0, 0 splits, 1 leaf, 1 feature"


@pytest.mark.parametrize("name", ["p.txt", "p", "p.csv.gz"])
def test_predict_refuses_names_of_other_formats(run, classifier_file, answers_csv, name, tmp_path):
    result = run("predict", classifier_file, answers_csv, "-o", name)
    assert result.exit_code == 2
    assert ".csv or .parquet" in result.stderr
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    "arguments",
    [["fit"], ["fly"], ["predict", "m", "t", "--jobs", "0"], ["demo", "--seed", "-1"]],
)
def test_wrong_arguments_exit_with_2(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr != ""


def test_version_and_help(run):
    assert run("--version").stdout.startswith("hardwood 0")
    help_text = run("--help").stdout
    for command in ("fit", "predict", "evaluate", "describe", "benchmark", "demo", "130"):
        assert command in help_text


def test_help_names_arguments_and_defaults(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    help_text = run("fit", "--help").stdout
    assert "fit [OPTIONS] TABLE" in help_text
    assert "COLUMN" in help_text
    for ugly in ("list[str]", "{", "<str>"):
        assert ugly not in help_text


def test_describe_prints_the_cost_and_cuts_long_tables(run, classifier_file, tmp_path):
    result = run("describe", classifier_file)
    assert "  mean: 1 multiplication, 2 additions, 1 comparison" in result.stdout
    payload = json.loads(run("describe", classifier_file, "--json").stdout)
    assert payload["cost"]["worst"] == {"multiplications": 1, "additions": 2, "comparisons": 1}
    tree = ObliqueTree.of(np.ones((1, 12)), thresholds=[0.0], values=[0.0, 1.0])
    tree.save(tmp_path / "wide.hardwood")
    printed = run("describe", "wide.hardwood").stdout
    assert printed.count("1 of 1") == 10
    assert "... and 2 more features" in printed
    assert "mean:" not in printed  # it knows no rows
    assert len(json.loads(run("describe", "wide.hardwood", "--json").stdout)["features"]) == 12


@pytest.mark.parametrize(
    ("command", "function", "names"),
    [
        (cli.compare, hardwood.compare, {"folds": "cv", "time_limit": "time_limit"}),
        (
            cli.tune,
            hardwood.tune,
            {"validation_fraction": "validation", "sampler": "sampler", "pruner": "pruner"},
        ),
        (cli.analyze, report.analyze, {"repeats": "n_repeats"}),
        (cli.benchmark, report.benchmark, {"seconds": "seconds"}),
        (cli.describe, report.describe, {"terms": "max_terms"}),
        (cli.show, ObliqueTree.show, {"rows": "max_rows"}),
        (cli.prune, ObliqueTree.prune, {"min_samples": "min_samples"}),
    ],
    ids=["compare", "tune", "analyze", "benchmark", "describe", "show", "prune"],
)
def test_defaults_are_those_of_the_library(command, function, names):
    options, arguments = (inspect.signature(each).parameters for each in (command, function))
    for option, argument in names.items():
        assert options[option].default == arguments[argument].default
