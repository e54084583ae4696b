from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import hardwood
from hardwood.cli.tune import TrialCallbacks, doubt_of_last_fit
from hardwood.report.resampling import Score
from hardwood.selection import FinishedTrial, TuningResult

QUICK = ["--max-depth", 2, "--n-restarts", 1, "--n-trials", 3]


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


def test_tune_writes_a_model_that_predicts(run, table, tmp_path):
    result = run("tune", table, "--target", "answer", "--drop", "amount", *QUICK)
    assert result.exit_code == 0
    for words in (
        "classification of 'answer', because it holds text",
        "Best of 3 trials (3 complete): log loss",
        "layers",
        "momentum",
        "Test score on 32 rows",
        "most frequent class",
        "Wrote t.hardwood",
    ):
        assert words in result.stdout
    assert "max_depth" not in result.stdout  # it was given
    tree = hardwood.load(tmp_path / "t.hardwood")
    assert tree.target_names == ("answer",)
    assert tree.depth <= 2
    evaluated = run("evaluate", "t.hardwood", table, "-t", "answer", "--json")
    assert json.loads(evaluated.stdout)["metrics"]["accuracy"]["value"] > 0.8


def test_json_of_tune_is_one_object(run, table):
    result = run("tune", table, "-t", "amount", "--drop", "answer", "--json", *QUICK)
    payload = json.loads(result.stdout)
    assert payload["task"] == "regression"
    assert set(payload["best_params"]) == {"layers", "l1", "l2", "momentum"}
    assert payload["validation"]["metric"] == "squared error"
    assert payload["trials"] == {"complete": 3, "pruned": 0, "failed": 0}
    assert payload["test"]["RMSE"]["value"] < payload["baseline"]["test"]["RMSE"]["value"]
    assert payload["interrupted"] is False
    model = hardwood.load("t.hardwood")
    assert model.record["parameters"]["momentum"] == payload["best_params"]["momentum"]
    assert model.record["parameters"]["n_restarts"] == "auto"  # --n-restarts 1 was for the trials


def test_metrics_folds_and_weights(run, table):
    result = run(
        *("tune", table, "-t", "answer", "--scoring", "accuracy", "--folds", 2, "--weight"),
        *(
            "weight",
            "--max-depth",
            1,
            "--n-restarts",
            1,
            "--n-trials",
            2,
            "--pruner",
            "none",
            "--json",
        ),
    )
    payload = json.loads(result.stdout)
    assert payload["validation"]["metric"] == "accuracy"
    assert 0.5 < payload["validation"]["value"] <= 1
    assert payload["depth"] <= 1


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("dgt-forest", ["--n-estimators", 2, "--max-epochs", 3]),
        ("greedy", ["--splitter", "axis"]),
        ("latent", ["--max-epochs", 2, "--max-depth", 2]),
        ("non-greedy", ["--max-epochs", 3, "--max-depth", 2]),
        ("reinforced", ["--max-epochs", 3, "--max-depth", 2]),
        ("semantic", ["--max-epochs", 3, "--max-depth", 2]),
        ("tao", ["--max-sweeps", 2, "--l1", 0.1, "--l2", 1]),
        ("tel", ["--n-estimators", 2, "--max-epochs", 3]),
    ],
)
def test_every_method_is_tuned(run, table, tmp_path, method, options):
    if method == "latent":
        pytest.importorskip("torch")
    result = run(
        *("tune", table, "-t", "answer", "--drop", "amount", "--json", "--n-trials", 2),
        *("--method", method, *options),
    )
    assert result.exit_code == 0, result.stderr
    payload = json.loads(result.stdout)
    assert payload["trials"]["complete"] == 2
    given = {str(option).removeprefix("--").replace("-", "_") for option in options[::2]}
    assert not given & set(payload["best_params"])
    recorded = hardwood.load(tmp_path / "t.hardwood").record["parameters"]
    assert (
        recorded.items()
        >= {
            name: value for name, value in payload["best_params"].items() if name in recorded
        }.items()
    )


def test_given_parameters_are_fixed(run, table, tmp_path):
    options = ["--layers", 1, "--leaves", "linear", "--max-depth", 1, "--n-restarts", 5]
    result = run("tune", table, "-t", "amount", "--drop", "answer", *options, "--json")
    payload = json.loads(result.stdout)
    assert set(payload["best_params"]) == {"l1", "l2", "momentum"}
    assert payload["trials"]["complete"] == 2  # momenta
    model = hardwood.load(tmp_path / "t.hardwood")
    assert model.has_linear_leaves
    assert model.record["parameters"]["n_restarts"] == 5  # more than by default
    assert payload["notes"] == []


def scored(**values):
    return [Score(name.replace("_", " "), v, v, v, "") for name, v in values.items()]


def result_of(metric, value, direction="minimize"):
    return TuningResult({}, value, None, (), metric, direction, study=None)


LOGS = scored(accuracy=0.56, log_loss=0.68)


@pytest.mark.parametrize(
    ("found", "scores", "baseline", "words"),
    [
        (
            result_of("log loss", 0.19),
            scored(log_loss=0.66),
            LOGS,
            "0.6600, but its trial had 0.1900",
        ),
        (result_of("log loss", 0.19), scored(log_loss=0.68), LOGS, "no better than the guess (0.6"),
        (result_of("log loss", 0.19), scored(log_loss=0.25), LOGS, None),
        (result_of("log loss", 0.99), scored(log_loss=0.5), LOGS, None),
        (result_of("accuracy", 0.9, "maximize"), scored(accuracy=0.6), LOGS, "its trial had 0.9"),
        (result_of("f1", 0.9, "maximize"), scored(accuracy=0.1), LOGS, None),
        (result_of("accuracy", 0.9, "maximize"), [], [], None),
        (
            result_of("squared error", 1.0),
            scored(RMSE_of_a=3.0, RMSE_of_b=1.0),
            scored(RMSE_of_a=4.0, RMSE_of_b=1.0),
            "squared error 5.000, but its trial had 1.000",
        ),
    ],
)
def test_a_last_fit_that_is_worse_than_its_trial_is_noted(found, scores, baseline, words):
    doubt = doubt_of_last_fit(found, scores, baseline, "guess")
    assert doubt is None if words is None else words in doubt


@pytest.fixture
def keep(run, table):
    """Search with a number of trials in a file, and return the result of the command."""

    def continued(n_trials, *more):
        options = ["--max-depth", 2, "--n-restarts", 1, "--n-trials", n_trials, "--storage", "s.db"]
        result = run("tune", table, "-t", "answer", *options, *more)
        assert result.exit_code == 0, result.stderr
        return result

    return continued


def test_a_search_is_continued(keep, tmp_path):
    keep(2)
    again = keep(3)
    assert "Continuing 't.csv: answer' in s.db: 2 trials done" in again.stdout
    assert "Best of 3 trials" in again.stdout
    continued = (tmp_path / "t.hardwood").read_bytes()
    whole = json.loads(keep(3, "--json", "--study-name", "another", "-o", "w.hardwood").stdout)
    assert whole["study"] == "another"
    assert (tmp_path / "w.hardwood").read_bytes() == continued


def test_another_seed_does_not_continue_a_search(keep, run, table):
    keep(1)
    result = run(
        *("tune", table, "-t", "answer", "--max-depth", 2, "--n-restarts", 1, "--seed", 1),
        *("--storage", "s.db"),
    )
    assert result.exit_code == 2
    assert "random_state was 0, is 1" in result.stderr


def test_a_time_limit_ends_the_search(run, table):
    result = run(
        *("tune", table, "-t", "answer", "--time-limit", 0.01, "--max-depth", 1, "--n-restarts", 1),
        *("--json", "--storage", "s.db"),
    )
    payload = json.loads(result.stdout)
    n_trials = sum(payload["trials"].values())
    assert n_trials < 30
    words = f"{n_trials} of 30 trials: time is up; the same command continues from s.db"
    assert words in payload["notes"]


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (None, ["-t", "y"], "does not exist"),
        ("a,answer\n1,x\n2,y\n", ["-t", "anwser"], "Did you mean 'answer'"),
        ("a,y\n1,x\n2,x\n", ["-t", "y"], "single value, 'x'"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "-o", "no/m.hardwood"], "does not exist"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "--n-trials", "0"], "n-trials"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "--time-limit", "inf"], "finite"),
        (
            "a,y\n1,x\n2,z\n3,x\n4,z\n" * 9,
            ["-t", "y", "--scoring", "acuracy"],
            "not a scikit-learn scorer",
        ),
        (
            "a,y\n1,x\n2,z\n3,x\n4,z\n" * 9,
            ["-t", "y", "--scoring", "r2"],
            "scorer 'r2' cannot",
        ),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n" * 9, ["-t", "y", "--folds", "99"], "number of folds"),
        (
            "a,y\n1,x\n2,z\n3,x\n4,z\n" * 9,
            ["-t", "y", "--method", "tel", "--sampler", "grid"],
            "finite number of values",
        ),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n" * 9, ["-t", "y", "--storage", "s.xls"], "must end in"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n" * 9, ["-t", "y", "--storage", "no/s.db"], "no folder"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y"], "too small to hold out"),
    ],
)
def test_errors_are_explained_and_leave_nothing_behind(run, tmp_path, content, arguments, words):
    if content is not None:
        (tmp_path / "t.csv").write_text(content)
    before = os.listdir(tmp_path)
    result = run("tune", "t.csv", "--max-depth", 1, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == before


def test_without_optuna_the_install_line_is_shown(run, table, monkeypatch):
    monkeypatch.setattr("hardwood.cli.tune.find_spec", lambda name: None)
    result = run("tune", table, "-t", "answer")
    assert result.exit_code == 2
    assert "pip install '.[tune]'" in result.stderr


def test_the_line_of_progress_counts_trials_and_shows_the_best():
    def trial(number, value):
        return FinishedTrial(number, "complete" if value else "pruned", value, {}, 0.1)

    for is_loss, best in ((True, "0.2000"), (False, "0.9000")):
        shown = {}
        progress = SimpleNamespace(update=lambda words, share, of=shown: of.update({words: share}))
        calls = TrialCallbacks(progress, 5, 1, 0.5, is_loss=is_loss)
        for number, value in ((1, 0.9), (2, None), (3, 0.2)):
            calls.on_trial(trial(number, value))
        assert shown[f"4 of 5 trials, best so far {best}"] == 0.75


def test_ctrl_c_learns_with_the_best_so_far(table, tmp_path):
    command = [sys.executable, "-c", "from hardwood.cli import main; main()", "tune", "t.csv"]
    command += ["-t", "answer", "--n-trials", "1000", "--max-depth", "3", "--json"]
    command += ["--storage", "s.db"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"HARDWOOD_PROGRESS": "1", "COLUMNS": "200"},
    ) as process:
        shown = b""
        while b"best so far" not in shown:  # the first trial is complete
            byte = process.stderr.read(1)
            assert byte, shown
            shown += byte
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    payload = json.loads(stdout)
    assert payload["interrupted"] is True
    assert payload["trials"]["complete"] >= 1
    assert b"interrupted after" in stderr
    assert b"trial(s)" not in stderr
    assert b" of 30 trials: the same command continues from s.db" in stderr
    assert hardwood.load(tmp_path / "t.hardwood").n_features == 5


def test_ctrl_c_before_the_first_trial_says_how_to_continue(run, table, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardwood.selection.tune", interrupted)
    result = run("tune", table, "-t", "answer", "--storage", "s.db", *QUICK)
    assert result.exit_code == 130
    assert "no model was written. The same command continues from s.db" in result.stderr
    result = run("tune", table, "-t", "answer", *QUICK)
    assert "error: interrupted; nothing was written" in result.stderr
    assert os.listdir(tmp_path) == ["t.csv"]
