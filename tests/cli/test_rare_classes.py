"""Rare classes on the command line: notes, a threshold, `--threshold` and class weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hardwood

QUICK = ["--max-depth", 2, "--max-trials", 4, "--time-limit", "none", "--teacher", "none"]


@pytest.fixture
def rare_csv(tmp_path):
    """One row in thirty is "yes"."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 900))
    chance = 1 / (1 + np.exp(4.6 - 1.5 * a))
    answers = np.where(rng.random(900) < chance, "yes", "no")
    path = tmp_path / "rare.csv"
    rows = [f"{x:.4f},{y:.4f},{answer}" for x, y, answer in zip(a, b, answers, strict=True)]
    path.write_text("\n".join(["a,b,answer", *rows]) + "\n")
    return path


@pytest.mark.parametrize("proba", [[], ["--proba"]])
def test_predict_takes_a_threshold(run, classifier_file, answers_csv, proba):
    for threshold, expected in ((0.05, ["yes"] * 5), (0.8, ["no"] * 5)):
        options = ["--threshold", threshold, "--json", *proba]
        payload = json.loads(run("predict", classifier_file, answers_csv, *options).stdout)
        assert payload["columns"]["prediction"] == expected


def test_evaluate_takes_a_threshold(run, classifier_file, answers_csv):
    options = ["-t", "answer", "--threshold", "0.05", "--json"]
    payload = json.loads(run("evaluate", classifier_file, answers_csv, *options).stdout)
    assert payload["confusion"] == [[0, 1], [0, 4]]
    assert payload["metrics"]["accuracy"]["value"] == 0.8


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_threshold_needs_a_tree_of_two_classes(
    run, regressor, classifier, answers_csv, command, tmp_path
):
    regressor.save(tmp_path / "numbers.hardwood")
    hardwood.ObliqueForest([classifier]).save(tmp_path / "forest.hardwood")
    target = [] if command == "predict" else ["-t", "answer"]
    for name, words in (
        ("numbers", "numbers.hardwood: a threshold is for two classes"),
        ("forest", "forest.hardwood holds a forest"),
    ):
        arguments = [command, tmp_path / f"{name}.hardwood", answers_csv, *target]
        result = run(*arguments, "--threshold", "0.3")
        assert result.exit_code == 2
        assert words in result.stderr


@pytest.mark.parametrize("threshold", ["0", "1", "2", "nan"])
def test_a_threshold_is_a_probability(run, classifier_file, answers_csv, threshold):
    result = run("predict", classifier_file, answers_csv, "--threshold", threshold)
    assert result.exit_code == 2
    assert "threshold" in result.stderr


def test_fit_notes_a_rare_class_and_a_threshold(run, rare_csv, tmp_path):
    result = run("fit", rare_csv, "-t", "answer", *QUICK)
    assert result.exit_code == 0
    for words in ("average precision of yes", "Note: yes is rare", "Threshold: yes where"):
        assert words in result.stdout
    found = json.loads(run("fit", rare_csv, "-t", "answer", *QUICK, "--json").stdout)["search"]
    threshold = found["threshold"]
    assert found["held_out"]["rarest"] == "yes"
    options = ["-t", "answer", "--json"]
    model = tmp_path / "rare.hardwood"
    plain, better = (
        json.loads(run("evaluate", model, rare_csv, *options, *further).stdout)["metrics"]
        for further in ([], ["--threshold", threshold])
    )
    assert better["balanced accuracy"]["value"] > plain["balanced accuracy"]["value"] + 0.1
    assert better["average precision"] == plain["average precision"]


def test_balanced_classes_count_in_decisions_and_not_in_probabilities(run, rare_csv, tmp_path):
    options = ["--class-weight", "balanced", "--test-fraction", 0]
    assert run("fit", rare_csv, "-t", "answer", *QUICK, *options).exit_code == 0
    payload = json.loads(
        run("predict", tmp_path / "rare.hardwood", rare_csv, "--proba", "--json").stdout
    )["columns"]
    share = np.mean(payload["probability of yes"])
    truth = np.array([line.endswith("yes") for line in rare_csv.read_text().splitlines()[1:]])
    assert abs(share - truth.mean()) < 0.015
    assert np.mean(np.array(payload["prediction"]) == "yes") > 3 * truth.mean()
    described = run("describe", tmp_path / "rare.hardwood").stdout
    assert "yes where p(yes) >" in described


def test_calibrate_is_an_option_of_classification(run, rare_csv):
    assert run("fit", rare_csv, "-t", "answer", "--calibrate", *QUICK).exit_code == 0
    result = run("fit", rare_csv, "-t", "a", "--calibrate", *QUICK)
    assert result.exit_code == 2
    assert "--calibrate is an option of TreeClassifier" in result.stderr
