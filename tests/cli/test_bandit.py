"""`hardwood bandit simulate`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from hardwood.bandit import DGTBandit, classification_bandit, simulate

PNG = b"\x89PNG"


@pytest.fixture
def flowers(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 2)), columns=["length", "width"])
    table["color"] = rng.choice(["red", "blue"], 120)
    table.loc[::10, "width"] = np.nan
    table["kind"] = np.where(table.length + (table.color == "red") > 0.5, "tall", "short")
    table["height"] = 100 * table.length + 1000
    table.to_csv(tmp_path / "flowers.csv", index=False)
    return table


def arguments(*more, target="kind"):
    return ["bandit", "simulate", "flowers.csv", "--target", target, "--max-depth", 2, *more]


def test_curves_are_printed_and_drawn(run, flowers, tmp_path):
    result = run(*arguments("--runs", 2, "--drop", "height"))
    assert result.exit_code == 0, result.stderr
    for words in (
        "flowers.csv: 120 rows, 3 features",
        "Actions: 2 values of 'kind'; the right one has reward 1",
        "Mean reward over 120 rounds, 2 runs each",
        "supervised tree",
        "Learning curve: mean reward so far",
        "Drew flowers_bandit.png",
    ):
        assert words in result.stdout
    assert (tmp_path / "flowers_bandit.png").read_bytes().startswith(PNG)


def test_json_has_the_runs_of_the_library(run, flowers, tmp_path):
    result = run(*arguments("--runs", 2, "--seed", 3, "--drop", "height", "--json"))
    payload = json.loads(result.stdout)
    assert payload["target"] == "kind"
    assert payload["method"] == "replay"
    assert payload["n_rounds"] == payload["n_rows"] == 120
    assert payload["picture"] == "flowers_bandit.png"
    assert payload["left_out"] == [{"column": "height", "reason": "--drop"}]
    by_name = {curve["name"]: curve for curve in payload["curves"]}
    assert set(by_name) == {"DGT", "linear", "random", "best constant", "supervised tree"}
    table = flowers.drop(columns=["kind", "height"])
    for seed, found in zip((3, 4), by_name["DGT"]["runs"], strict=True):
        environment = classification_bandit(table, flowers["kind"], random_state=seed)
        bandit = DGTBandit(environment.actions, max_depth=2, features=table, random_state=seed)
        assert simulate(bandit, environment).mean_reward[-1] == pytest.approx(found)
    again = run(*arguments("--runs", 2, "--seed", 3, "--drop", "height", "--json"))
    assert again.stdout == result.stdout


def test_environments_with_delays_masks_and_drift(run, flowers):
    more = ["--delay", 5, "--lost", 0.2, "--allowed", 0.7, "--drift", 60, "--no-baselines"]
    result = run(*arguments("--runs", 1, "--rounds", 150, "--method", "paper", "--json", *more))
    payload = json.loads(result.stdout)
    assert payload["method"] == "paper"
    assert payload["n_rounds"] == 150
    assert [curve["name"] for curve in payload["curves"]] == ["DGT"]
    options = ["--exploration", 0.5, "--learning-rate", 0.1, "--buffer", "recent"]
    options += ["--buffer-size", 50, "--batch-size", 16, "--updates-per-round", 0.5]
    other = json.loads(run(*arguments("--runs", 1, "--json", "--no-baselines", *options)).stdout)
    assert other["curves"][0]["runs"] != payload["curves"][0]["runs"]


def test_a_network_has_options_of_its_own(run, flowers):
    more = ["--runs", 1, "--no-baselines", "--json", "--method", "network", "--hidden-size", 8]
    by_network = json.loads(run(*arguments(*more)).stdout)
    assert by_network["method"] == "network"
    more += ["--who-decides", "tree", "--loss", "squared", "--min-propensity", 0.1]
    more += ["--explore-by", "epsilon", "--epsilon", 0.2, "--no-detect-change"]
    by_tree = json.loads(run(*arguments(*more)).stdout)
    assert by_tree["curves"][0]["runs"] != by_network["curves"][0]["runs"]
    result = run(*arguments("--hidden-size", 8))
    assert result.exit_code != 0
    assert "--hidden-size is not used with --method replay." in result.stderr


@pytest.mark.parametrize("method", ["two_point", "one_point"])
def test_regression_actions_are_perturbed(run, flowers, method):
    more = ["--method", method, "--learning-rate", 0.01, "--perturbation", 0.2]
    result = run(*arguments("--runs", 1, "--json", *more, target="height"))
    payload = json.loads(result.stdout)
    assert payload["what"] == "loss"
    by_name = {curve["name"]: curve for curve in payload["curves"]}
    assert by_name["best constant"]["final"]["value"] == pytest.approx(1.0)
    assert by_name["supervised tree"]["final"]["value"] < 0.5
    text = run(*arguments("--runs", 1, target="height")).stdout
    assert "Numbers are tried for 'height'; loss: squared error / its variance" in text


@pytest.mark.parametrize(
    ("more", "target", "message"),
    [
        ([], "kindness", "has no column 'kindness'. Did you mean 'kind'?"),
        ([], "kind,color", "--target takes one column"),
        (["--method", "two_point"], "kind", "--method two_point is not for classification"),
        (["--method", "paper"], "height", "use two_point or one_point or"),
        (["--allowed", "0.5"], "height", "--allowed is for classification"),
        (["--exploration", "0.5"], "height", "--exploration is not for regression"),
        (["--perturbation", "0.5"], "kind", "--perturbation is not for classification"),
        (["--drift", "120"], "kind", "--drift 120: the table has only 120 rounds"),
        (["--plot", "curve.docx"], "kind", "unknown image format"),
        (["--plot", "flowers.csv"], "kind", "is an input of this command"),
        (["--plot", "nowhere/curve.png"], "kind", "the folder nowhere does not exist"),
        (["--lost", "nan"], "kind", "--lost"),
        (["--exploration", "inf"], "kind", "inf is not a finite number"),
        (
            ["--method", "paper", "--exploration", "1"],
            "kind",
            "--exploration is not used with --method",
        ),
        (["--epsilon", "0.3"], "kind", "--epsilon is not used with --method replay"),
        (["--method", "paper", "--epsilon", "3"], "kind", "--epsilon"),
        (["--perturbation", "0"], "height", "perturbation"),
        (["--buffer", "newest"], "kind", "--buffer"),
        (["--buffer-size", "0"], "kind", "--buffer-size"),
        (["--runs", "0"], "kind", "--runs"),
        (["--max-depth", "11"], "kind", "--max-depth"),
    ],
)
def test_errors_are_explained(run, flowers, tmp_path, more, target, message):
    if target == "kind,color":
        flowers.assign(kind=flowers.length > 0, color=flowers.width > 0).to_csv(
            tmp_path / "flowers.csv", index=False
        )
    result = run(*arguments("--runs", 1, *more, target=target))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""
    assert not list(tmp_path.glob("*.png"))


def test_a_target_with_one_value_is_refused(run, tmp_path):
    (tmp_path / "flowers.csv").write_text("a,b\n" + "".join(f"{i},1.5\n" for i in range(9)))
    result = run(*arguments(target="b"))
    assert result.exit_code == 2
    assert "has a single value" in result.stderr


def test_the_group_has_help(run):
    assert "simulate" in run("bandit").output
    assert "--target" in run("bandit", "simulate", "--help").stdout
