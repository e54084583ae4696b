"""Ctrl-C at any point of any command: exit code 130, one line that says so, and no broken file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hardwood
from hardwood.cli.process.interrupts import (
    first_interrupt_only,
    interrupts_of_command,
    was_interrupted,
)

SCRIPT = Path(__file__).parent / "interrupted_command.py"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")

FIT = "fit t.csv -t y --max-trials 20 --time-limit 1000 --jobs 1 --no-baselines"
LEARNING = {
    "fit": FIT,
    "tune": "tune t.csv -t y --method greedy --n-trials 2 -o t.hardwood",
    "demo": "demo -o out.png",
    "compare": "compare t.csv -t y --model CART --folds 2 -o out.html",
}
READING = {
    "predict": "predict m.hardwood t.csv -o out.csv",
    "evaluate": "evaluate m.hardwood t.csv -t y --plot out.png",
    "analyze": "analyze m.hardwood t.csv -t y --plot out.png",
    "show": "show m.hardwood -o out.html",
    "report": "report m.hardwood -o out.html",
    "export": "export m.hardwood --to python -o out.py",
    "prune": "prune m.hardwood t.csv -t y -o out.hardwood",
    "simulate": "bandit simulate t.csv -t y --runs 2 --rounds 50 --plot out.png",
}
PRINTING = {
    "describe": "describe m.hardwood",
    "benchmark": "benchmark m.hardwood",
    "help": "fit --help",
}
AT_ONCE = "error: interrupted; no file was left half-written\n"
"""What the process says that has nothing to keep."""


@pytest.fixture
def folder(tmp_path):
    """A folder with a table and a model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    rows = np.column_stack([X, X[:, 0] + X[:, 1] > 0])
    header = "a,b,c,y"
    np.savetxt(tmp_path / "t.csv", rows, fmt="%.4f", delimiter=",", header=header, comments="")
    names = pa.table(dict(zip("abc", X.T, strict=True)))
    tree = hardwood.GreedyTreeClassifier(max_depth=2).fit(names, rows[:, 3].astype(int))
    tree.save(tmp_path / "m.hardwood")
    return tmp_path


def interrupted(folder, *way, command):
    ran = subprocess.run(
        [sys.executable, SCRIPT, *way, *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    assert not [name for name in os.listdir(folder) if name.endswith(".part")]
    return ran


def new_files(folder):
    return sorted({*os.listdir(folder)} - {"t.csv", "m.hardwood"})


def said(words):
    """The lines that tell of Ctrl-C."""
    return [line for line in words.splitlines() if "interrupted" in line]


@pytest.mark.parametrize(
    "command",
    [
        FIT,
        *(pytest.param(each, marks=pytest.mark.slow) for each in READING.values()),
        *(pytest.param(each, marks=pytest.mark.slow) for each in PRINTING.values()),
        *(pytest.param(each, marks=pytest.mark.slow) for each in [*LEARNING.values()][1:]),
    ],
    ids=lambda command: command.split()[0],
)
def test_ctrl_c_at_many_points(folder, command):
    """From the first import to the last print; in learning, too, which is to keep what it has."""
    ran = interrupted(folder, "calls", "20000", command=command)
    assert ran.returncode == 0, ran.stderr
    children = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"code"')]
    assert len(children) > 5
    for child in children:
        assert child["code"] == 130, child
        assert len(said(child["stderr"])) == 1, child
        assert "Traceback" not in child["stderr"], child
    assert children[0]["stderr"] == AT_ONCE


@pytest.mark.parametrize(
    ("function", "is_kept"),
    [
        ("read_table", False),
        ("ModelEstimator._read", False),
        ("LinearSearch.run_all", False),
        ("FrontierSearch._note_setting", True),
        ("_stop_if_interrupted", True),
        ("TreeSearch.run", True),
        ("TreeSearch._try", True),
        ("LinearSearch.finish_seconds", True),
        ("LinearSearch.grown", True),
        ("test_scores", True),
        ("whole_file", True),
        ("FitOutcome.print", True),
    ],
)
def test_ctrl_c_while_learning_keeps_the_best_tree(folder, function, is_kept):
    ran = interrupted(folder, "function", function, command=FIT)
    assert ran.returncode == 130
    assert len(said(ran.stderr)) == 1, ran.stderr
    assert new_files(folder) == ["t.hardwood"] * is_kept
    if is_kept:
        assert hardwood.load(folder / "t.hardwood").n_features == 3


def test_ctrl_c_while_other_models_learn_keeps_the_tree(folder):
    command = FIT.replace("--no-baselines", "--baselines")
    ran = interrupted(folder, "function", "usual_models", command=command)
    assert ran.returncode == 130
    assert len(said(ran.stderr)) == 1, ran.stderr
    assert "Wrote t.hardwood" in ran.stdout
    assert "Other models" not in ran.stdout
    assert new_files(folder) == ["t.hardwood"]


@pytest.mark.parametrize("begun", ["main", "ModelEstimator._fit"])
def test_ctrl_c_is_not_lost_in_an_import(folder, begun):
    """In the callback of a weak reference, from which no exception gets out."""
    ran = interrupted(folder, "lost", begun, command=FIT)
    assert ran.returncode == 130
    assert len(said(ran.stderr)) == 1, ran.stderr
    assert "ignored" not in ran.stderr


@pytest.mark.parametrize(
    "command",
    [
        READING["predict"],
        *(pytest.param(each, marks=pytest.mark.slow) for each in [*READING.values()][1:]),
    ],
    ids=lambda command: command.split()[0],
)
def test_ctrl_c_while_a_file_is_written_leaves_none(folder, command):
    ran = interrupted(folder, "writing", command=command)
    assert ran.returncode == 130
    assert ran.stderr.endswith(AT_ONCE)
    assert new_files(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", LEARNING.values(), ids=LEARNING)
def test_ctrl_c_while_a_result_is_written_keeps_it(folder, command):
    ran = interrupted(folder, "writing", command=command)
    assert ran.returncode == 130
    assert len(said(ran.stderr)) == 1, ran.stderr
    assert new_files(folder) == [command.split()[-1] if "-o" in command else "t.hardwood"]


def test_ctrl_c_at_the_exit(folder):
    ran = interrupted(folder, "exit", command=PRINTING["describe"])
    assert (ran.returncode, ran.stderr) == (130, AT_ONCE)
    # Python itself handles no more signals then: the system ends the process, for shells with 130.
    ran = interrupted(folder, "shutdown", command=PRINTING["describe"])
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, "")


def test_an_ignored_ctrl_c_stays_ignored(folder):
    """As in a background job of a shell."""
    ran = subprocess.run(
        [sys.executable, SCRIPT, "function", "main", *PRINTING["describe"].split()],
        cwd=folder,
        capture_output=True,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


def two_interrupts(heard):
    with first_interrupt_only():
        assert not was_interrupted()
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            heard.append("first")
        signal.raise_signal(signal.SIGINT)
    assert was_interrupted()
    signal.raise_signal(signal.SIGINT)
    heard.append("end")


def test_only_the_first_of_two_ctrl_c_interrupts():
    heard, before = [], signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="was finished"), interrupts_of_command():
        two_interrupts(heard)
    assert heard == ["first", "end"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_command_that_ends_because_of_ctrl_c_says_so_itself():
    def command():
        two_interrupts([])
        raise SystemExit(130)

    with pytest.raises(SystemExit, match="130"), interrupts_of_command():
        command()
