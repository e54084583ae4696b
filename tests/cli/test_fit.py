from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hardwood

QUICK = ["--max-depth", 2, "--max-trials", 4, "--time-limit", "none", "--no-baselines"]
DGT = ["--method", "dgt", "--max-depth", 2, "--no-baselines"]
FOREST = ["--method", "dgt-forest", "--max-depth", 2, "--no-baselines"]


@pytest.fixture
def mixed_csv(tmp_path):
    """Numbers, text, a date and missing values; two columns determine the class."""
    rng = np.random.default_rng(0)
    lines = ["width,color,day,junk,answer,amount,weight"]
    for i in range(200):
        width, color = rng.normal(), ["red", "blue", ""][rng.integers(3)]
        answer = "yes" if width + (color == "red") > 0.5 else "no"
        shown = "" if i % 17 == 0 else f"{width:.4f}"
        day = f"2024-01-{1 + i % 28:02d}"
        answer_shown = "" if i < 3 else answer
        lines.append(
            f"{shown},{color},{day},{rng.normal():.3f},{answer_shown},{3 * width:.3f},{i % 4}"
        )
    path = tmp_path / "mixed.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_fit_writes_a_model_that_predicts(run, mixed_csv, tmp_path):
    result = run("fit", mixed_csv, "--target", "answer", "--drop", "amount", *QUICK)
    assert result.exit_code == 0
    for words in (
        "classification of 'answer', because it holds text",
        "Left out: 3 rows",
        "most frequent class",
        "Wrote mixed.hardwood",
    ):
        assert words in result.stdout
    tree = hardwood.load(tmp_path / "mixed.hardwood")
    assert tree.target_names == ("answer",)
    assert tree.feature_names == ("width", "color", "day", "junk", "weight")
    assert tree.record["table"] == "mixed.csv"
    evaluated = run("evaluate", "mixed.hardwood", mixed_csv, "-t", "answer", "--json")
    assert json.loads(evaluated.stdout)["metrics"]["accuracy"]["value"] > 0.85
    assert run("describe", "mixed.hardwood").exit_code == 0
    predicted = run("predict", "mixed.hardwood", mixed_csv)
    assert len(predicted.stdout.splitlines()) == 201


def test_json_of_fit_is_one_object_and_stdout_holds_nothing_else(run, mixed_csv):
    result = run("fit", mixed_csv, "-t", "answer", "-o", "m.hardwood", "--json", *QUICK)
    payload = json.loads(result.stdout)
    assert payload["task"] == "classification"
    assert payload["n_train"] + payload["n_test"] == 197
    assert payload["n_missing_target"] == 3
    accuracy = payload["test"]["accuracy"]
    assert accuracy["low"] <= accuracy["value"] <= accuracy["high"]
    assert accuracy["value"] > payload["baseline"]["test"]["accuracy"]["value"]
    assert payload["interrupted"] is False


def test_regression_from_parquet(run, tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=300), rng.normal(size=300)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": a, "b": b, "y": np.where(a + b > 0, 10.25, -10.25)}), path)
    result = run("fit", path, "-t", "y", "--task", "regression", "--json", *QUICK)
    payload = json.loads(result.stdout)
    assert payload["task"] == "regression"
    assert payload["test"]["RMSE"]["value"] < payload["baseline"]["test"]["RMSE"]["value"] / 2
    assert os.path.exists("t.hardwood")


def test_the_same_seed_gives_the_same_file(run, mixed_csv, tmp_path):
    for name in ("a.hardwood", "b.hardwood"):
        run("fit", mixed_csv, "-t", "answer", "-o", name, "--seed", 5, *QUICK)
    assert (tmp_path / "a.hardwood").read_bytes() == (tmp_path / "b.hardwood").read_bytes()


def test_without_test_rows_there_is_no_score(run, mixed_csv):
    result = run("fit", mixed_csv, "-t", "answer", "--test-fraction", 0, "--json", *QUICK)
    payload = json.loads(result.stdout)
    assert (payload["n_train"], payload["n_test"], payload["test"]) == (197, 0, {})


def test_rows_of_weight_zero_are_left_out(run, mixed_csv):
    result = run("fit", mixed_csv, "-t", "answer", "--weight", "weight", "--json", *QUICK)
    payload = json.loads(result.stdout)
    assert payload["n_train"] + payload["n_test"] == 148  # of 197, less those with i % 4 == 0


# Forests, leaves and layers


def test_a_forest_has_several_trees(run, mixed_csv, tmp_path):
    options = ["-t", "answer", "--drop", "amount", "--n-estimators", 5, "-o", "m.hardwood", *FOREST]
    result = run("fit", mixed_csv, *options)
    assert result.exit_code == 0
    assert "Forest of 5 trees: depth up to 2," in result.stdout
    forest = hardwood.load(tmp_path / "m.hardwood")
    assert isinstance(forest, hardwood.ObliqueForest)
    assert forest.n_trees == 5
    assert forest.target_names == ("answer",)
    assert forest.record["learner"] == "DGTForestClassifier"
    assert forest.record["table"] == "mixed.csv"
    assert forest.record["resolved"] == {"max_epochs": 400}
    assert forest.record["test"]["accuracy"] > 0.8
    payload = json.loads(run("fit", mixed_csv, *options, "--json", "--jobs", 2).stdout)
    assert payload["n_trees"] == 5
    assert payload["depth"] == 2
    assert hardwood.load(tmp_path / "m.hardwood") == forest


def test_a_regression_forest_predicts(run, mixed_csv, tmp_path):
    run("fit", mixed_csv, "-t", "amount", "--n-estimators", 4, "-o", "m.hardwood", *FOREST)
    predicted = run("predict", "m.hardwood", mixed_csv)
    assert len(predicted.stdout.splitlines()) == 201
    assert hardwood.load(tmp_path / "m.hardwood").task == "regression"


def test_leaves_may_be_linear(run, mixed_csv, tmp_path):
    options = ["-t", "amount", "--drop", "answer", "-o", "m.hardwood", "--json", *DGT]
    errors = []
    for leaves in ("constant", "linear"):
        payload = json.loads(run("fit", mixed_csv, *options, "--leaves", leaves).stdout)
        errors.append(payload["test"]["RMSE"]["value"])
        tree = hardwood.load(tmp_path / "m.hardwood")
        assert tree.has_linear_leaves == (leaves == "linear")
        assert tree.target_names == ("amount",)
    assert errors[1] < 0.5 * errors[0]


def test_a_forest_is_scored_out_of_bag(run, mixed_csv, tmp_path):
    options = ["-t", "answer", "--drop", "amount", "--n-estimators", 9, "--oob-score", *FOREST]
    result = run("fit", mixed_csv, *options)
    assert "Out-of-bag score: accuracy 0." in result.stdout
    payload = json.loads(run("fit", mixed_csv, *options, "--json").stdout)
    assert 0.7 < payload["oob_score"] <= 1
    printed = run("describe", "mixed.hardwood").stdout
    assert "out-of-bag score: 0." in printed
    tree = run("describe", "mixed.hardwood", "--tree", 2).stdout
    assert "auto" not in tree
    assert "table: mixed.csv" in tree
    assert "early_stopping no" in tree


def test_layers_are_recorded(run, mixed_csv, tmp_path):
    run("fit", mixed_csv, "-t", "answer", "--layers", 2, "-o", "m.hardwood", *DGT)
    tree = hardwood.load(tmp_path / "m.hardwood")
    assert tree.record["parameters"]["layers"] == 2
    assert tree.record["parameters"]["leaves"] == "constant"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "dgt-forest", "--n-estimators", 0], "--n-estimators must be"),
        (["--n-estimators", 3], "it belongs to --method dgt-forest or tel"),
        (["--method", "dgt", "--oob-score"], "it belongs to --method dgt-forest"),
        (["--method", "dgt", "--no-bootstrap"], "it belongs to --method dgt-forest"),
        (["--method", "dgt-forest", "--n-restarts", 2], "--method dgt-forest has no option"),
        (["--method", "dgt-forest", "--n-estimators", 10**6], "from 1 to 100000, got 1000000"),
        (["--method", "dgt", "--n-restarts", 10**6], "from 1 to 10000, got 1000000"),
        (["--leaves", "quadratic"], "--leaves must be one of ['auto', 'constant', 'linear']"),
        (["--method", "dgt", "--layers", 0], "--layers must be an integer from 1 to 16"),
        (["--method", "cart"], "'cart' is not one of"),
        (["--method", "dgt", "--training", "optimizer=lbfgs"], "--training optimizer must be"),
        (["--method", "dgt", "--training", "optimize=adam"], "--training needs NAME=VALUE"),
        (["--method", "tao", "--init", "absent.hardwood"], "there is no file absent.hardwood"),
        (["--method", "tao", "--early-stopping", "maybe"], "must be auto, yes or no"),
        (["--method", "tao", "--validation-fraction", 2], "validation_fraction must be"),
        (["--method", "tao", "--loss", "custom"], "loss"),
        (["--max-dept", 3], "No such option"),
    ],
)
def test_errors_with_trees_and_leaves_are_explained(run, mixed_csv, arguments, words):
    result = run("fit", mixed_csv, "-t", "answer", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not os.path.exists("mixed.hardwood")


# Several targets


@pytest.fixture
def several_csv(tmp_path):
    """Labels of 0 and 1 and of true and false, numbers, and a column name with a comma."""
    rng = np.random.default_rng(0)
    lines = ['width,color,wide,"red, or not",huge,amount,price,grade,never']
    for i in range(240):
        width, color = rng.normal(), "red" if rng.random() < 0.5 else "blue"
        wide = "" if i == 7 else int(width > 0)
        amount = "" if i == 9 else f"{3 * width + 1:.2f}"
        huge = "true" if width > 1 else "false"
        lines.append(
            f"{width:.3f},{color},{wide},{int(color == 'red')},{huge},{amount},"
            f"{100 * abs(width):.1f},{i % 3},0"
        )
    path = tmp_path / "several.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_several_columns_of_zero_and_one_are_binary_labels(run, several_csv, tmp_path):
    options = ["--drop", "amount", "--drop", "price", "--drop", "red, or not", "-o", "m.hardwood"]
    result = run("fit", several_csv, "-t", "wide,huge", *options, *QUICK)
    assert result.exit_code == 0
    for words in (
        "classification of 'wide', 'huge', because they hold 0 and 1, or true and false",
        "Left out: 1 row in which one of 'wide', 'huge' is missing",
        "subset accuracy",
        "accuracy of huge",
        "most frequent labels",
    ):
        assert words in result.stdout
    tree = hardwood.load(tmp_path / "m.hardwood")
    assert tree.task == "multilabel"
    assert tree.target_names == ("wide", "huge")
    assert "wide" not in tree.feature_names
    assert "huge" not in tree.feature_names
    payload = json.loads(
        run("fit", several_csv, "-t", "wide, huge", *options, "--json", *QUICK).stdout
    )
    assert payload["target"] == ["wide", "huge"]
    assert payload["task"] == "multilabel"
    assert payload["n_missing_target"] == 1
    right = payload["test"]["subset accuracy"]["value"]
    assert right > payload["baseline"]["test"]["subset accuracy"]["value"] + 0.2
    assert hardwood.load(tmp_path / "m.hardwood") == tree


def test_several_regression_targets(run, several_csv, tmp_path):
    options = ["-t", "amount,price", "--drop", "wide", "-o", "m.hardwood", "--json"]
    payload = json.loads(run("fit", several_csv, *options, "--max-depth", 3).stdout)
    assert payload["task"] == "regression"
    assert payload["reason"] == "they hold numbers"
    assert payload["baseline"]["name"] == "training means"
    for name in ("amount", "price"):
        value = payload["test"][f"RMSE of {name}"]["value"]
        assert value < 0.7 * payload["baseline"]["test"][f"RMSE of {name}"]["value"]
    tree = hardwood.load(tmp_path / "m.hardwood")
    assert tree.target_names == ("amount", "price")
    lines = run("predict", "m.hardwood", several_csv).stdout.splitlines()
    assert lines[0] == '"prediction of amount","prediction of price"'


def test_the_task_of_several_columns_may_be_given(run, several_csv, tmp_path):
    run("fit", several_csv, "-t", "wide,huge", "--task", "regression", "-o", "m.hardwood", *QUICK)
    assert hardwood.load(tmp_path / "m.hardwood").task == "regression"


def test_several_targets_of_a_forest(run, several_csv, tmp_path):
    run("fit", several_csv, "-t", "wide,huge", "--n-estimators", 3, "-o", "m.hardwood", *FOREST)
    forest = hardwood.load(tmp_path / "m.hardwood")
    assert (forest.task, forest.target_names) == ("multilabel", ("wide", "huge"))


@pytest.mark.parametrize("target", ["wide", "amount", "wide,huge", "amount,price"])
@pytest.mark.parametrize(
    "more",
    [QUICK, ["--n-estimators", 2, *FOREST], ["--leaves", "linear", *DGT]],
    ids=["tree", "forest", "linear leaves"],
)
def test_other_commands_read_what_fit_writes(run, several_csv, target, more):
    arguments = ["-t", target, "-o", "m.hardwood", "--test-fraction", 0, *more]
    assert run("fit", several_csv, *arguments).exit_code == 0
    evaluated = json.loads(
        run("evaluate", "m.hardwood", several_csv, "-t", target, "--json").stdout
    )
    assert evaluated["n_rows"] == 239
    assert len(evaluated["metrics"]) >= 3
    predicted = run("predict", "m.hardwood", several_csv).stdout.splitlines()
    assert len(predicted) == 241
    assert len(predicted[0].split(",")) == len(target.split(","))
    described = run("describe", "m.hardwood")
    assert described.exit_code == 0
    assert "several.csv" in described.stdout


def test_a_name_with_a_comma_is_a_name(run, several_csv, tmp_path):
    run("fit", several_csv, "-t", "red, or not", "-o", "m.hardwood", *QUICK)
    tree = hardwood.load(tmp_path / "m.hardwood")
    assert (tree.task, tree.target_names) == ("classification", ("red, or not",))


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        ("wide,hugh", [], "Did you mean 'huge'"),
        ("wide,huge,", [], "no column ''"),
        ("wide,wide", [], "names the column 'wide' twice"),
        ("wide,color", [], "Target 'color' contains text"),
        (
            "wide,grade",
            ["--task", "classification"],
            "Column 'grade' contains 2, which is not 0",
        ),
        ("wide,never", [], "Target 'never' has a single value, 0"),
        ("wide,huge", ["--use", "huge"], "cannot be a feature, because it is the target"),
    ],
)
def test_errors_with_several_targets_are_explained(run, several_csv, target, more, words):
    result = run("fit", several_csv, "-t", target, *more)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not os.path.exists("several.hardwood")


def test_rows_must_have_all_of_several_targets(run, tmp_path):
    rows = "\n".join(f"{i},{i % 2},\n{i},,{i % 2}" for i in range(20))
    (tmp_path / "t.csv").write_text(f"x,a,b\n{rows}\n")
    result = run("fit", "t.csv", "-t", "a,b")
    assert result.exit_code == 2
    assert "No row of t.csv has values in all of a, b" in result.stderr


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (None, ["--target", "y"], "does not exist"),
        ("", ["--target", "y"], "is empty"),
        ("a,y\n", ["--target", "y"], "no rows"),
        ("a,answer\n1,x\n2,y\n", ["--target", "anwser"], "Did you mean 'answer'"),
        ("a,y\n1,\n2,\n", ["--target", "y"], "All values of column 'y'"),
        ("a,y\n1,x\n2,x\n", ["--target", "y"], "single value, 'x'"),
        ("a,y\n1,p\n2,q\n3,r\n", ["--target", "y"], "3 different values in 3 rows"),
        ("y\nx\nz\nx\nz\n", ["--target", "y"], "no feature columns"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "--drop", "b"], "no column 'b'"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "--weight", "w"], "no column 'w'"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "-o", "no/m.hardwood"], "does not exist"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "-o", "t.csv"], "is an input"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "-o", "."], "is a directory"),
        ("a,b,y\n,1,x\n,2,z\n,3,x\n,4,z\n,5,x\n,6,z\n", ["-t", "y"], "'a'"),
        ("a,y\ninf,x\n2,z\n3,x\n4,z\n5,x\n6,z\n", ["-t", "y"], "'a'"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "--max-trials", "inf"], "must be an integer"),
        ("a,y\n1,x\n2,z\n3,x\n4,z\n", ["-t", "y", "--max-depth", "99"], "max-depth"),
    ],
)
def test_errors_are_explained_and_leave_nothing_behind(run, tmp_path, content, arguments, words):
    if content is not None:
        (tmp_path / "t.csv").write_text(content)
    before = os.listdir(tmp_path)
    result = run("fit", "t.csv", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == before
    if content is not None:
        assert (tmp_path / "t.csv").read_text() == content


def test_a_directory_is_not_a_table(run, tmp_path):
    result = run("fit", tmp_path, "-t", "y")
    assert result.exit_code == 2
    assert "is a directory" in result.stderr


def test_a_full_disk_leaves_the_old_model(run, mixed_csv, tmp_path, monkeypatch):
    model = tmp_path / "m.hardwood"
    model.write_bytes(b"the model of yesterday")
    before = sorted(os.listdir(tmp_path))

    def disk_full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    result = run("fit", mixed_csv, "-t", "answer", "-o", model, *QUICK)
    assert result.exit_code == 2
    assert "m.hardwood cannot be written: No space left on device" in result.stderr
    assert model.read_bytes() == b"the model of yesterday"
    assert sorted(os.listdir(tmp_path)) == before


def test_high_cardinality_is_noted(run, tmp_path):
    rows = "\n".join(f"v{i % 300},{i % 2},{'ab'[i % 2]}" for i in range(600))
    (tmp_path / "t.csv").write_text(f"name,x,y\n{rows}\n")
    result = run("fit", "t.csv", "-t", "y", "--json", *QUICK)
    assert result.exit_code == 0
    assert "name" in json.loads(result.stdout)["notes"][0]
    assert "note: " in result.stderr


@pytest.fixture
def customers_csv(tmp_path):
    """Identifiers (text and whole numbers), and two columns that determine the class."""
    rng = np.random.default_rng(0)
    lines = ["customer_id,mail,order_id,row,age,plan,answer"]
    for i, order in enumerate(rng.permutation(1000)[:120]):
        age, plan = rng.integers(20, 80), "ab"[rng.integers(2)]
        mail = f"{i % 116}@x.org" if i % 10 else ""
        answer = "yes" if age > 50 + 10 * (plan == "a") else "no"
        lines.append(f"C{i:03d},{mail},{order},{i + 7},{age},{plan},{answer}")
    path = tmp_path / "customers.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_identifiers_are_left_out_and_named(run, customers_csv, tmp_path):
    result = run("fit", customers_csv, "-t", "answer", "--drop", "plan", "--json", *QUICK)
    payload = json.loads(result.stdout)
    assert payload["left_out"] == [
        {"column": "plan", "reason": "--drop"},
        {"column": "customer_id", "reason": "identifier"},
        {"column": "mail", "reason": "identifier"},
    ]
    tree = hardwood.load(tmp_path / "customers.hardwood")
    assert tree.feature_names == ("order_id", "row", "age")
    assert (
        "note: 'customer_id' has a different text in every row and is left out as an "
        "identifier; to keep it: --use customer_id\n"
    ) in result.stderr
    assert "'mail' has a different text in nearly every row" in result.stderr
    assert "leave it out: --drop order_id" in result.stderr
    assert "leave it out: --drop row" in result.stderr
    assert "age" not in result.stderr


def test_use_keeps_an_identifier(run, customers_csv, tmp_path):
    result = run("fit", customers_csv, "-t", "answer", "--use", "mail", "--json", *QUICK)
    left_out = [entry["column"] for entry in json.loads(result.stdout)["left_out"]]
    assert left_out == ["customer_id"]
    assert "mail" in hardwood.load(tmp_path / "customers.hardwood").feature_names


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--use", "custmer_id"], "Did you mean 'customer_id'"),
        (["--use", "age", "--drop", "age"], "cannot be a feature, because"),
        (["--use", "answer"], "cannot be a feature, because"),
    ],
)
def test_errors_with_use_are_explained(run, customers_csv, arguments, words):
    result = run("fit", customers_csv, "-t", "answer", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_table_of_identifiers_has_nothing_to_learn_from(run, tmp_path):
    rows = "\n".join(f"v{i},{'ab'[i % 2]}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"name,y\n{rows}\n")
    result = run("fit", "t.csv", "-t", "y")
    assert result.exit_code == 2
    assert "Left out as identifiers: name" in result.stderr


def test_in_few_rows_a_text_may_differ_in_every_row(run, tmp_path):
    rows = "\n".join(f"v{i},{'ab'[i % 2]}" for i in range(40))
    (tmp_path / "t.csv").write_text(f"name,y\n{rows}\n")
    assert run("fit", "t.csv", "-t", "y", *QUICK).exit_code == 0


def test_a_tree_without_splits_is_noted(run, mixed_csv):
    result = run("fit", mixed_csv, "-t", "answer", "--l1", 100, *DGT)
    assert result.exit_code == 0
    assert "the model has no splits" in result.stderr
    assert "try a smaller --l1" in result.stderr
    assert "0 splits, 1 leaf," in result.stdout


def test_a_linear_leaf_without_slopes_is_noted(run, mixed_csv):
    options = ["--leaves", "linear", *DGT]
    result = run("fit", mixed_csv, "-t", "answer", "--l1", 100, *options)
    assert "the model has no splits: all predictions are the same; try" in result.stderr


def test_evaluating_on_the_training_table_is_noted(run, mixed_csv, tmp_path):
    run("fit", mixed_csv, "-t", "answer", "-o", "m.hardwood", *QUICK)
    again = run("evaluate", "m.hardwood", mixed_csv, "-t", "answer", "--json")
    (note,) = json.loads(again.stdout)["notes"]
    assert "was probably learned from mixed.csv" in note
    assert "`describe` shows the score" in note
    fewer = tmp_path / "new" / "mixed.csv"
    fewer.parent.mkdir()
    fewer.write_text("".join(mixed_csv.read_text().splitlines(keepends=True)[:100]))
    other = run("evaluate", "m.hardwood", fewer, "-t", "answer", "--json")
    assert json.loads(other.stdout)["notes"] == []


def test_describe_shows_the_values_that_auto_took(run, mixed_csv):
    run("fit", mixed_csv, "-t", "answer", "-o", "m.hardwood", "--test-fraction", 0, *DGT)
    printed = run("describe", "m.hardwood").stdout
    assert "n_restarts 4" in printed
    assert "early_stopping yes" in printed
    assert "auto" not in printed


def test_too_few_rows_to_hold_out_are_explained(run, tmp_path):
    (tmp_path / "few.csv").write_text("x,y\n1,1.5\n2,2.5\n")
    result = run("fit", "few.csv", "-t", "y")
    assert result.exit_code == 2
    assert "too small to hold out" in result.stderr
    assert "--test-fraction 0" in result.stderr


def test_demo_compares_prints_and_draws(run, tmp_path):
    result = run("demo", "-o", "tree.png")
    assert result.exit_code == 0
    for words in ("CART, depth 2", "logistic regression", "95 % interval", "Gentoo"):
        assert words in result.stdout
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")


def test_demo_refuses_an_unknown_image_format_at_once(run, tmp_path):
    result = run("demo", "-o", "tree.docx")
    assert result.exit_code == 2
    assert "png" in result.stderr
    assert os.listdir(tmp_path) == []


def test_demo_json(run):
    payload = json.loads(run("demo", "--json").stdout)
    accuracy = {name: scores["accuracy"]["value"] for name, scores in payload["test"].items()}
    assert len(accuracy) == 3
    assert min(accuracy.values()) > 0.9


BEST = ["--max-trials", 4, "--time-limit", "none", "--max-depth", 3, "--no-baselines"]


def test_the_search_for_the_best_tree_is_reported(run, mixed_csv, tmp_path):
    result = run("fit", mixed_csv, "-t", "answer", "--drop", "amount", *BEST)
    assert result.exit_code == 0
    assert "Best of 4 candidates: " in result.stdout
    assert "Stopped at max_trials. Refitted on all rows." in result.stdout
    assert result.stderr == ""  # nobody watches a line of progress
    record = hardwood.load(tmp_path / "mixed.hardwood").record
    assert record["learner"] == "TreeClassifier"
    candidate = record["resolved"]["candidate"]
    assert f"Best of 4 candidates: {candidate}" in result.stdout
    assert record["parameters"]["time_limit"] is None
    assert candidate in run("describe", "mixed.hardwood").stdout


def test_the_search_is_reproducible_and_its_trials_are_in_json(run, mixed_csv, tmp_path):
    found = [
        run("fit", mixed_csv, "-t", "amount", "-o", name, "--json", *BEST)
        for name in ("a.hardwood", "b.hardwood")
    ]
    assert (tmp_path / "a.hardwood").read_bytes() == (tmp_path / "b.hardwood").read_bytes()
    payload = json.loads(found[0].stdout)
    assert payload["task"] == "regression"
    assert payload["search"]["metric"] == "R2"
    assert len(payload["search"]["trials"]) == 4
    assert payload["test"]["R2"]["value"] > 0.5


def test_the_time_limit_is_passed_on(run, mixed_csv, tmp_path):
    run("fit", mixed_csv, "-t", "answer", "--time-limit", 0.001)
    tree = hardwood.load(tmp_path / "mixed.hardwood")
    assert tree.record["parameters"]["time_limit"] == 0.001
    assert tree.record["parameters"]["max_depth"] is None


def test_ctrl_c_keeps_the_best_tree_so_far(run, mixed_csv, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardwood.search.linear_search.LinearSearch.grown", interrupt)
    result = run("fit", mixed_csv, "-t", "answer", "--json", *BEST)
    assert result.exit_code == 130
    assert json.loads(result.stdout)["interrupted"] is True
    assert os.path.exists("mixed.hardwood")
