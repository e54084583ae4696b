from __future__ import annotations

import json

import numpy as np
import pytest

from hardwood.selection import run_models

QUICK = ["--model", "constant", "--model", "linear", "--model", "CART", "--folds", 2]


@pytest.fixture
def table(tmp_path):
    """Numbers, text and missing values; two columns determine the class and the amount."""
    rng = np.random.default_rng(0)
    lines = ["width,color,junk,answer,amount,weight"]
    for i in range(160):
        width, color = rng.normal(), ["red", "blue", ""][rng.integers(3)]
        answer = "yes" if width + (color == "red") > 0.5 else "no"
        lines.append(f"{width:.4f},{color},{rng.normal():.3f},{answer},{3 * width:.3f},{1 + i % 3}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_compare_says_which_model_is_better(run, table):
    result = run("compare", table, "-t", "answer", "--drop", "amount", "--model", "DGT", *QUICK)
    assert result.exit_code == 0
    for words in (
        "classification of 'answer', because it holds text",
        "Is an oblique tree worth it here?",
        "Scores, the best first",
        "DGT is better by",
        "Cost and size",
    ):
        assert words in result.stdout
    assert result.stderr == ""  # nobody watches a line of progress


def test_json_of_compare_is_one_object(run, table):
    result = run("compare", table, "-t", "amount", "--drop", "answer", "--json", *QUICK)
    payload = json.loads(result.stdout)
    assert (payload["task"], payload["metric"]) == ("regression", "RMSE")
    assert {model["name"] for model in payload["models"]} == {"constant", "linear", "CART"}
    assert payload["models"][0]["name"] == "linear"
    assert payload["answer"] is None
    assert payload["n_folds"] == 2
    assert payload["target"] == "amount"


def test_metrics_weights_and_files(run, table, tmp_path):
    result = run(
        *("compare", table, "-t", "answer", "--drop", "amount", "--scoring", "roc_auc"),
        *("--weight", "weight", "-o", "c.html", "--plot", "c.png", *QUICK),
    )
    assert result.exit_code == 0
    assert "Wrote c.html" in result.stdout
    assert "Drew c.png" in result.stdout
    assert "AUC" in (tmp_path / "c.html").read_text()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_notes_are_printed_once_on_stderr(run, table):
    result = run(
        *("compare", table, "-t", "answer", "--time-limit", 0.001, "--folds", 3),
        *("--model", "constant", "--model", "linear"),
    )
    assert "note: time was up after 2 of 3 folds" in result.stderr
    assert "time was up" not in result.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "Cart"], "'Cart' is not known"),
        (["--scoring", "speed"], "is not a scikit-learn scorer"),
        (["-o", "c.pdf"], "must end in .html, .json, .txt"),
        (["--plot", "c.xyz"], "unknown image format"),
        (["-t", "amount,junk"], "several columns"),
        (["--folds", 1000], "number of rows, 160"),
    ],
)
def test_errors_are_explained(run, table, options, words):
    result = run("compare", table, "-t", "answer", *QUICK, *options)
    assert result.exit_code == 2
    assert words in result.stderr


def test_ctrl_c_keeps_the_complete_folds(run, table, monkeypatch):
    run_one, n_begun = run_models.ModelRuns._run_one, iter(range(100))

    def interrupted(*arguments):
        if next(n_begun) == 2:
            raise KeyboardInterrupt
        return run_one(*arguments)

    monkeypatch.setattr(run_models.ModelRuns, "_run_one", interrupted)
    result = run("compare", table, "-t", "answer", "--model", "constant", "--folds", 4)
    assert result.exit_code == 130
    assert "2 of 4 folds are complete" in result.stderr
    assert "2 folds" in result.stdout
