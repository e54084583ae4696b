"""Every method has the options of its estimator, and learns the same model as in Python."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import numpy as np
import pyarrow.csv
import pytest

import hardwood
from hardwood.cli.methods.command import FitCommand, TuneCommand
from hardwood.cli.methods.names import METHODS, estimators_of
from hardwood.cli.methods.options import options_of
from hardwood.learn import Relaxation, Training
from hardwood.selection.spaces import SPACES

SHARED = {"n_jobs", "random_state", "class_weight", "verbose", "callbacks", "warm_start"}

# Options of a quick fit of every method, and the same from Python.
QUICK = {
    "tree": (
        "--time-limit none --max-trials 3 --max-depth 2 --teacher none --scoring none",
        {"time_limit": None, "max_trials": 3, "max_depth": 2, "teacher": None},
    ),
    "dgt": (
        "--max-epochs 5 --layers 8,4 --early-stopping yes --n-restarts 2 --relaxation path=product "
        "--training optimizer=adam --training clip-norm=none",
        {
            "max_epochs": 5,
            "layers": (8, 4),
            "early_stopping": True,
            "n_restarts": 2,
            "relaxation": Relaxation(path="product"),
            "training": Training(optimizer="adam", clip_norm=None),
        },
    ),
    "dgt-forest": (
        "--max-epochs 5 --n-estimators 3 --no-bootstrap --max-depth 2",
        {"max_epochs": 5, "n_estimators": 3, "bootstrap": False, "max_depth": 2},
    ),
    "semantic": (
        "--max-epochs 5 --max-depth 3 --noise 0.1 --leaves constant --n-mixed 2",
        {"max_epochs": 5, "max_depth": 3, "noise": 0.1, "leaves": "constant", "n_mixed": 2},
    ),
    "tao": (
        "--max-depth 2 --l1 0.1 --l2 1 --max-sweeps 3 --init co2",
        {"max_depth": 2, "l1": 0.1, "l2": 1.0, "max_sweeps": 3, "init": "co2"},
    ),
    "tel": (
        "--max-epochs 5 --n-estimators 2 --n-restarts 2 --combine-runs mean --no-batch-norm",
        {
            "max_epochs": 5,
            "n_estimators": 2,
            "n_restarts": 2,
            "combine_runs": "mean",
            "batch_norm": False,
        },
    ),
    "greedy": ("--splitter oc1 --max-depth 2", {"splitter": "oc1", "max_depth": 2}),
    "non-greedy": (
        "--max-epochs 5 --max-depth 2 --nu 10 --early-stopping no",
        {"max_epochs": 5, "max_depth": 2, "nu": 10.0, "early_stopping": False},
    ),
    "reinforced": (
        "--max-epochs 5 --parents=-1,0,0,0 --temperature 2,1",
        {"max_epochs": 5, "parents": (-1, 0, 0, 0), "temperature": (2, 1)},
    ),
    "latent": (
        "--max-epochs 3 --max-depth 2 --head 5",
        {"max_epochs": 3, "max_depth": 2, "head": (5,)},
    ),
}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["width,color,answer,amount"]
    for _ in range(120):
        width, color = rng.normal(), ["red", "blue", ""][rng.integers(3)]
        answer = "yes" if width + (color == "red") > 0.5 else "no"
        lines.append(f"{width:.4f},{color},{answer},{3 * width + rng.normal():.3f}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def fitted(estimator, path, target):
    """Learn from a file in Python, and return the model without its record."""
    rows = pyarrow.csv.read_csv(
        path, convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    )
    X, y = rows.drop_columns(["answer", "amount"]), rows[target].to_numpy()
    estimator.fit(X, y)
    names = ("tree_", "forest_", "ensemble_", "model_")
    model = next(getattr(estimator, name) for name in names if hasattr(estimator, name))
    return model.replace(record={}, target_names=(target,))


def without_records(model):
    if isinstance(model, hardwood.ObliqueForest):
        trees = [tree.replace(record={}, target_names=None) for tree in model.trees]
        return trees, model.combine
    return model.replace(record={})


@pytest.mark.parametrize("target", ["answer", "amount"])
@pytest.mark.parametrize("method", METHODS)
def test_the_model_is_the_one_from_python(run, table, tmp_path, method, target):
    if method == "latent":
        pytest.importorskip("torch")
    text, parameters = QUICK[method]
    other = "amount" if target == "answer" else "answer"
    done = run(
        *("fit", table, "-t", target, "--drop", other, "--test-fraction", 0, "--seed", 3),
        *("--method", method, *text.split(), "--json"),
    )
    assert done.exit_code == 0, done.stderr
    saved = hardwood.load(tmp_path / "t.hardwood")
    payload = json.loads(done.stdout)
    assert (payload["n_trees"], payload["n_leaves"]) == (saved.n_trees, saved.n_leaves)
    estimator = estimators_of(method)[target == "amount"](**parameters, random_state=3, n_jobs=1)
    assert without_records(saved) == without_records(fitted(estimator, table, target))
    written = {
        name: saved.record["parameters"][name]
        for name in parameters
        if name in saved.record["parameters"]
    }
    python = estimator.get_params(deep=False)
    assert {name for name in written if written[name] is None} == {
        name for name in written if python[name] is None
    }
    assert "auto" not in saved.record["resolved"].values()


def test_class_weights_are_those_of_python(run, table, tmp_path):
    done = run(
        *("fit", table, "-t", "answer", "--drop", "amount", "--test-fraction", 0),
        *("--method", "greedy", "--max-depth", 1, "--class-weight", "balanced"),
    )
    assert done.exit_code == 0
    estimator = hardwood.GreedyTreeClassifier(
        max_depth=1, class_weight="balanced", random_state=0, n_jobs=1
    )
    saved = hardwood.load(tmp_path / "t.hardwood")
    assert without_records(saved) == fitted(estimator, table, "answer")


def test_a_method_starts_from_the_tree_of_a_file(run, table, tmp_path):
    options = ("-t", "answer", "--drop", "amount", "--test-fraction", 0, "--method")
    assert run("fit", table, *options, "greedy", "-o", "start.hardwood").exit_code == 0
    more = ("--init", "start.hardwood", "--l1", 0.1, "--l2", 1)
    assert run("fit", table, *options, "tao", *more).exit_code == 0
    start = hardwood.load(tmp_path / "start.hardwood")
    estimator = hardwood.TAOClassifier(init=start, l1=0.1, l2=1.0, random_state=0, n_jobs=1)
    saved = hardwood.load(tmp_path / "t.hardwood")
    assert without_records(saved) == fitted(estimator, table, "answer")


# The options


@pytest.mark.parametrize("method", METHODS)
def test_a_method_has_an_option_for_every_parameter(method):
    found = options_of(method)
    declared = {
        name: parameter.default
        for kind in estimators_of(method)
        for name, parameter in inspect.signature(kind).parameters.items()
    }
    assert set(found) == set(declared) - SHARED
    for name, option in found.items():
        assert option.help.endswith("."), name
        shown = option.default.split(";")[0]
        if option.values.kind == "switch":
            assert shown == {True: "yes", False: "no"}.get(declared[name], "auto")
        elif isinstance(declared[name], bool):
            assert shown == f"--{'' if declared[name] else 'no-'}{name.replace('_', '-')}"
        elif isinstance(declared[name], int | float):
            assert float(shown) == declared[name]
        elif option.base is None and name not in ("loss", "criterion"):
            assert shown == ("none" if declared[name] is None else declared[name])


def test_the_help_of_a_method_has_only_its_options(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    tao, tree = (run("fit", *more, "--help").stdout for more in (["--method", "tao"], []))
    assert "Options of --method tao" in tao
    assert "--leaf-l2" in tao
    assert "Range: 1 to 32. Default: 8." in tao
    assert "--time-limit" not in tao
    assert "Options of --method tree" in tree
    assert "--time-limit" in tree
    assert "Range: 1 to 16. Default: none." in tree
    assert "--leaf-l2" not in tree
    assert run("fit", "--method=tao", "--help").stdout == tao


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        (
            "fit",
            ["--leaf-l2", 2],
            "--method tree has no option --leaf-l2; it belongs to --method tao",
        ),
        (
            "fit",
            ["--l1=0.1"],
            "it belongs to --method dgt, dgt-forest, semantic, tao, non-greedy or reinforced",
        ),
        ("fit", ["--method", "tao", "--time-limit", 3], "it belongs to --method tree"),
        ("tune", ["--max-trials", 3], "No such option"),
        ("tune", ["--method", "tree"], "'tree' is not one of"),
        ("tune", ["--gamma", 2], "--method dgt has no option --gamma; it belongs to --method tel"),
    ],
)
def test_an_option_of_another_method_is_refused(run, table, command, options, words):
    done = run(command, table, "-t", "answer", *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert not (table.parent / "t.hardwood").exists()


def test_an_option_for_classes_is_refused_for_regression_targets(run, table):
    for options in (
        ["--class-weight", "balanced"],
        ["--method", "dgt-forest", "--combine", "vote"],
    ):
        done = run("fit", table, "-t", "amount", *options)
        assert done.exit_code == 2
        assert f"{options[-2]} is an option of " in done.stderr
        assert "and this is regression" in done.stderr


def test_an_option_of_tune_takes_the_place_of_one_of_the_method(run, table, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    pytest.importorskip("optuna")
    assert run("tune", "--help").stdout.count("--validation-fraction") == 1
    options = ["--n-trials", 1, "--max-epochs", 3, "--validation-fraction", 0.3]
    assert run("tune", table, "-t", "answer", *options).exit_code == 0
    saved = hardwood.load(tmp_path / "t.hardwood")
    assert saved.record["parameters"]["validation_fraction"] == 0.1
    assert saved.record["parameters"]["max_epochs"] == 3


def test_tune_has_the_methods_with_a_search_space():
    assert FitCommand.methods == tuple(METHODS)
    assert set(TuneCommand.methods) == {
        name for name, stem in METHODS.items() if f"{stem}Classifier" in SPACES
    }


def test_help_of_fit_loads_neither_scikit_learn_nor_torch():
    program = (
        "import sys; sys.argv = ['hardwood', 'fit', '--help']\n"
        "from hardwood.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(sorted({'sklearn', 'torch', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.endswith("[]\n")
