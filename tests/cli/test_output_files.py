"""Every file that a command writes appears completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer

from hardwood import DGTClassifier
from hardwood.cli.app import app

LEARNED = "--max-trials 2 --time-limit none --max-depth 1"
# By command and option: a command that writes the file out.*
COMMANDS = {
    "fit --output": f"fit t.csv -t y {LEARNED} --output out.hardwood",
    "fit --frontier": f"fit t.csv -t y {LEARNED} -o m.hardwood --frontier out.png",
    "tune --output": "tune t.csv -t y --method greedy --n-trials 2 --output out.hardwood",
    "demo --output": "demo --output out.svg",
    "predict --output": "predict m.hardwood t.csv --output out.csv",
    "evaluate --plot": "evaluate m.hardwood t.csv -t y --plot out.png",
    "analyze --plot": "analyze m.hardwood t.csv -t y --plot out.pdf",
    "describe --plot": "describe m.hardwood --plot out.png",
    "show --output": "show m.hardwood --output out.html",
    "report --output": "report m.hardwood --output out.html",
    "export --output": "export m.hardwood --to python --output out.py",
    "prune --output": "prune m.hardwood t.csv -t y --output out.hardwood",
    "compare --output": "compare t.csv -t y --model CART --folds 2 --output out.json",
    "compare --plot": "compare t.csv -t y --model CART --folds 2 --plot out.png",
    "simulate --plot": "bandit simulate t.csv -t y --runs 2 --rounds 20 --plot out.png",
}


LINES = [
    pytest.param(line, id=name, marks=[pytest.mark.slow] * line.startswith("demo"))
    for name, line in COMMANDS.items()
]


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """A table, a model, and the old file."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] + X[:, 1] > 0
    rows = np.column_stack([X, y])
    np.savetxt(tmp_path / "t.csv", rows, fmt="%.4f", delimiter=",", header="a,b,c,y", comments="")
    names = pa.table(dict(zip("abc", X.T, strict=True)))
    tree = DGTClassifier(max_depth=2, max_epochs=2).fit(names, y.astype(int))
    tree.save(tmp_path / "m.hardwood")


def written(line):
    (name,) = [word for word in line.split() if word.startswith("out.")]
    return Path(name)


def test_every_output_is_known():
    found, groups = set(), [typer.main.get_command(app)]
    while groups:
        for name, command in groups.pop().commands.items():
            if hasattr(command, "commands"):
                groups.append(command)
                continue
            for option in command.params:
                if option.opts[0] in ("--output", "--plot", "--frontier"):
                    found.add(f"{name} {option.opts[0]}")
    assert found == set(COMMANDS)


@pytest.mark.parametrize("line", LINES)
def test_a_file_gets_its_name_when_it_is_whole(run, line, tmp_path, monkeypatch):
    """A process that is killed before leaves the old file; there is nothing to do after it."""
    if line.startswith("tune"):
        pytest.importorskip("optuna", reason="the extra 'tune' is not installed")
    path, given, replace = written(line), [], os.replace
    path.write_bytes(b"old")

    def watched(part, target):
        if Path(target).name == path.name:
            assert path.read_bytes() == b"old"
            given.append(Path(part).read_bytes())
        replace(part, target)

    monkeypatch.setattr(os, "replace", watched)
    result = run(*line.split())
    assert result.exit_code == 0, result.output
    assert given == [path.read_bytes()]
    assert not [name for name in os.listdir() if name.endswith(".part")]


@pytest.mark.parametrize("line", LINES)
def test_a_failed_write_leaves_the_old_file(run, line, tmp_path, monkeypatch):
    if line.startswith("tune"):
        pytest.importorskip("optuna", reason="the extra 'tune' is not installed")
    path, replace = written(line), os.replace
    path.write_bytes(b"old")

    def fail(part, target):
        if Path(target).name == path.name:
            raise OSError(28, "No space left on device")
        replace(part, target)

    monkeypatch.setattr(os, "replace", fail)
    result = run(*line.split())
    assert result.exit_code == 2
    assert f"error: {path} cannot be written: No space left on device" in result.stderr
    assert path.read_bytes() == b"old"
    assert not [name for name in os.listdir() if name.endswith(".part")]
