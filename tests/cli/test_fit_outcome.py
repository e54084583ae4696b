"""What `fit` says of a new model: the score asked for, other models beside it, its frontier."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import hardwood

GREEDY = ["--method", "greedy", "--max-depth", 3]
SEARCH = ["--max-trials", 3, "--time-limit", "none", "--teacher", "none"]
ALONE = [*GREEDY, "--no-baselines"]


@pytest.fixture
def table(tmp_path):
    """Numbers, text and gaps; targets of every kind that follow the first two columns."""
    rng = np.random.default_rng(0)
    lines = ["width,color,junk,answer,size,amount,north,south"]
    for _ in range(160):
        width, color = rng.normal(), ["red", "blue", ""][rng.integers(3)]
        score = width + (color == "red")
        answer, size = "yes" if score > 0.5 else "no", "SML"[(score > 0) + (score > 1)]
        labels = f"{score > 0:d},{width > 0:d}"
        lines.append(
            f"{width:.4f},{color},{rng.normal():.3f},{answer},{size},{3 * score:.3f},{labels}"
        )
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return "t.csv"


def asked(target: str) -> list[str]:
    """Return the options for a target, which leave out the other targets."""
    others = {"answer", "size", "amount", "north", "south"} - set(target.split(","))
    return ["-t", target, *(word for other in sorted(others) for word in ("--drop", other))]


# --- the metric -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "metric", "shown", "scorer"),
    [
        ("answer", "accuracy", "accuracy", "accuracy"),
        ("answer", "balanced_accuracy", "balanced accuracy", "balanced_accuracy"),
        ("answer", "log_loss", "log loss", None),
        ("answer", "brier_score", "Brier score", "neg_brier_score"),
        ("answer", "auc", "AUC", "roc_auc"),
        ("answer", "average_precision", "average precision", "average_precision"),
        ("size", "auc", "AUC (mean over classes)", "roc_auc_ovr"),
        ("size", "brier_score", "Brier score", None),
        ("amount", "rmse", "RMSE", None),
        ("amount", "mae", "MAE", "neg_mean_absolute_error"),
        ("amount", "r2", "R2", None),
        ("north,south", "accuracy", "subset accuracy", "accuracy"),
        ("north,south", "brier_score", "Brier score", None),
    ],
)
def test_the_metric_comes_first_and_guides_the_search(run, table, target, metric, shown, scorer):
    options = [*asked(target), "--metric", metric, "-o", "m.hardwood", "--no-baselines"]
    result = run("fit", table, *options, *SEARCH)
    lines = result.stdout.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("Test score"))
    assert lines[place + 3].strip().startswith(f"{shown}  ")
    assert hardwood.load("m.hardwood").record["parameters"]["scoring"] == scorer
    payload = json.loads(run("fit", table, *options, *ALONE, "--json").stdout)
    assert next(iter(payload["test"])) == next(iter(payload["baseline"]["test"])) == shown


def test_scoring_takes_precedence(run, table):
    options = [*asked("answer"), "--metric", "auc", "--scoring", "accuracy", "-o", "m.hardwood"]
    run("fit", table, *options, "--no-baselines", *SEARCH)
    assert hardwood.load("m.hardwood").record["parameters"]["scoring"] == "accuracy"


def test_of_several_numbers_each_has_the_metric(run, table):
    options = ["-t", "amount,width", "--task", "regression", "--metric", "mae", *ALONE]
    payload = json.loads(run("fit", table, *options, "--json").stdout)
    assert list(payload["test"])[:2] == ["MAE of amount", "MAE of width"]


@pytest.mark.parametrize(
    ("target", "metric", "words"),
    [
        ("amount", "auc", "does not measure 'amount', which has numbers; use rmse, mae, r2."),
        ("answer", "rmse", "which has two classes; use accuracy, balanced_accuracy, log_loss,"),
        ("size", "average_precision", "which has 3 classes; use accuracy, balanced_accuracy,"),
        ("north,south", "auc", "which has several labels; use accuracy, log_loss, brier_score."),
        ("answer", "f1", "f1"),
    ],
)
def test_a_metric_for_something_else_is_refused(run, table, target, metric, words, tmp_path):
    result = run("fit", table, *asked(target), "--metric", metric, *ALONE)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert not (tmp_path / "t.hardwood").exists()


# --- other models -----------------------------------------------------------------------------


@pytest.fixture
def unhurried(monkeypatch):
    """Other models may take their time, however busy the machine is."""
    monkeypatch.setattr("hardwood.cli.fit._SECOND", math.inf)


@pytest.mark.parametrize(
    ("target", "options", "metric", "linear"),
    [
        ("answer", [], "accuracy", "logistic regression"),
        ("answer", ["--metric", "log_loss"], "log loss", "logistic regression"),
        ("size", [], "accuracy", "logistic regression"),
        ("amount", ["--metric", "r2"], "R2", "ridge regression"),
    ],
)
def test_other_models_have_a_line_each(run, table, unhurried, target, options, metric, linear):
    result = run("fit", table, *asked(target), *GREEDY, *options)
    assert result.exit_code == 0
    *_, title, own, first, second = result.stdout.splitlines()
    assert title == "Other models on the same 32 rows:"
    assert own.startswith(f"  this one: {metric} ")
    assert first.startswith(f"  {linear}: {metric} ")
    assert second.startswith("  CART, depth ")
    assert f" leaves: {metric} " in second
    for line in (own, first, second):
        assert ", 95 % interval " in line


def test_json_has_all_their_scores(run, table, unhurried):
    payload = json.loads(run("fit", table, *asked("answer"), *GREEDY, "--json").stdout)
    linear, cart = payload["baselines"]
    assert linear["name"] == "logistic regression"
    assert linear["test"].keys() == cart["test"].keys() == payload["test"].keys()
    assert linear["test"]["accuracy"]["value"] > payload["baseline"]["test"]["accuracy"]["value"]
    assert linear["not_measured"] is None


def test_a_model_that_is_not_measured_says_why(run, table):
    result = run("fit", table, *asked("north,south"), *GREEDY)
    assert "  logistic regression: not measured: there are several targets" in result.stdout
    assert "  CART: not measured: there are several targets" in result.stdout


@pytest.mark.parametrize("options", [["--no-baselines"], ["--test-fraction", 0]])
def test_they_can_be_left_out(run, table, options):
    result = run("fit", table, *asked("answer"), *GREEDY, *options)
    assert "Other models" not in result.stdout
    payload = json.loads(run("fit", table, *asked("answer"), *GREEDY, *options, "--json").stdout)
    assert payload["baselines"] == []


def test_they_have_as_much_time_as_the_fit(run, table, monkeypatch):
    given = []

    def other_models(model, data, rng, settings, seconds):
        given.append((seconds, settings))
        return []

    monkeypatch.setattr("hardwood.cli.fit.other_models", other_models)
    monkeypatch.setattr("hardwood.cli.fit.Clock", lambda limit: Spent(7.5))
    run("fit", table, *asked("answer"), *GREEDY, "--metric", "log_loss", "--seed", 3)
    ((seconds, settings),) = given
    assert seconds == 7.5
    assert (settings.has_classes, settings.seed, settings.scoring) == (True, 3, "neg_log_loss")


class Spent:
    """A clock that shows the same time."""

    def __init__(self, spent: float) -> None:
        self.spent = spent


def test_ctrl_c_ends_them_and_keeps_the_model(run, table, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardwood.cli.fit.other_models", interrupted)
    result = run("fit", table, *asked("answer"), *GREEDY)
    assert result.exit_code == 130
    assert "Wrote t.hardwood" in result.stdout
    assert "other models were not measured" in result.stderr
    assert hardwood.load("t.hardwood").task == "classification"


# --- the frontier -----------------------------------------------------------------------------


def test_the_frontier_is_drawn(run, table, tmp_path):
    options = [*asked("answer"), *SEARCH, "--no-baselines", "--frontier", "f.png"]
    result = run("fit", table, *options)
    assert "Drew f.png" in result.stdout
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    payload = json.loads(run("fit", table, *options, "--json").stdout)
    assert payload["picture"] == "f.png"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--frontier", "f.png", *GREEDY], "--frontier needs --method tree with --leaves auto"),
        (["--frontier", "f.png", "--leaves", "constant"], "--frontier needs --method tree"),
        (["--frontier", "f.doc"], "f.doc: unknown image format"),
        (["--frontier", "t.csv"], "t.csv"),
    ],
)
def test_a_frontier_that_cannot_be_drawn_is_refused_at_once(run, table, tmp_path, options, words):
    result = run("fit", table, *asked("answer"), *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]
