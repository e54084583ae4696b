"""What the command line prints and writes."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hardwood.cli import main
from ledger import tables
from ledger.cases import Case
from ledger.values import plain, same_every_time

_ANSWER, _AMOUNT = ("-t", "answer", "--drop", "amount"), ("-t", "amount", "--drop", "answer")
_FIT = ("fit", "shop.csv", "--no-baselines")  # a clock decides whether these are measured
_SMALL = ("--method", "dgt", "--max-depth", "3")
_SHORT = ("--max-depth", "3", "--max-trials", "4", "--time-limit", "none")
_MODEL, _NUMBERS, _FOREST = "classes.hardwood", "numbers.hardwood", "forest.hardwood"
_BANDIT = ("bandit", "simulate", "shop.csv", "--rounds", "300", "--runs", "2", "--max-depth", "2")

# Commands to run, by name. Each runs in a new folder.
_LINES: dict[str, Sequence[str]] = {
    "fit": (*_FIT, *_ANSWER, *_SMALL),
    "fit numbers": (*_FIT, *_AMOUNT, *_SMALL, "--leaves", "linear"),
    "fit a forest": (
        *(*_FIT, *_ANSWER, "--method", "dgt-forest", "--max-depth", "3"),
        *("--n-estimators", "4", "--oob-score"),
    ),
    "fit the best": (*_FIT, *_ANSWER, *_SHORT),
    "fit all rows": (*_FIT, *_ANSWER, *_SMALL, "--test-fraction", "0", "--seed", "3"),
    "fit with weights": (
        *_FIT,
        *_AMOUNT,
        *_SMALL,
        "--weight",
        "weight",
        "--l1",
        "1e-3",
    ),
    "fit two targets": (*_FIT, "-t", "amount,weight", *_SMALL, "--layers", "2"),
    "fit a chosen task": (*_FIT, "-t", "weight", "--task", "classification", *_SMALL),
    "tune": ("tune", "shop.csv", *_ANSWER, "--n-trials", "3", "--n-restarts", "1"),
    "tune by folds": (
        *("tune", "shop.csv", *_AMOUNT, *_SMALL, "--n-trials", "3", "--n-restarts", "1"),
        *("--folds", "2", "--scoring", "r2", "--sampler", "random", "--pruner", "none"),
    ),
    "compare": ("compare", "shop.csv", *_ANSWER, "--model", "CART", "--model", "linear"),
    "compare numbers": ("compare", "shop.csv", *_AMOUNT, "--folds", "3", "--model", "CART"),
    "predict": ("predict", _MODEL, "shop.csv", "--proba", "--keep", "id"),
    "predict numbers": ("predict", _NUMBERS, "shop.csv", "-o", "told.csv"),
    "evaluate": ("evaluate", _MODEL, "shop.csv", "-t", "answer"),
    "evaluate numbers": ("evaluate", _NUMBERS, "shop.csv", "-t", "amount", "--weight", "weight"),
    "evaluate, drawn": ("evaluate", _FOREST, "shop.csv", "-t", "answer", "--plot", "scores.png"),
    "analyze": ("analyze", _MODEL, "shop.csv", "-t", "answer", "--repeats", "2"),
    "analyze numbers": (
        *("analyze", _NUMBERS, "shop.csv", "-t", "amount", "--repeats", "2"),
        *("--feature", "age", "--group", "who=age,member", "--metric", "MAE"),
    ),
    "describe": ("describe", _MODEL, "--terms", "2"),
    "describe numbers": ("describe", _NUMBERS, "--curves", "curves.png"),
    "describe a tree of a forest": ("describe", _FOREST, "--tree", "2", "--plot", "tree.png"),
    "show": ("show", _MODEL, "--data", "shop.csv", "-t", "answer", "--rows", "10", "-o", "p.html"),
    "report": ("report", _NUMBERS, "shop.csv", "-t", "amount", "-o", "report.html"),
    "export c": ("export", _MODEL, "--to", "c", "--name", "shop"),
    "export sql": ("export", _FOREST, "--to", "sql", "--table", "shop", "--keep", "id"),
    "export rules": ("export", _NUMBERS, "--to", "rules", "--digits", "3", "--data", "shop.csv"),
    "export python": ("export", _FOREST, "--to", "python", "-o", "forest.py"),
    "prune": ("prune", _MODEL, "shop.csv", "-t", "answer", "--sparsify", "0.05"),
    "prune numbers": ("prune", _NUMBERS, "shop.csv", "-t", "amount", "--alpha", "0.01"),
    "prune unreached": ("prune", _MODEL, "shop.csv", "--min-samples", "3", "--readable", "0.05"),
    "demo": ("demo", "-o", "demo.png"),
    "bandit": (*_BANDIT, *_ANSWER),
    "bandit of numbers": (*_BANDIT, *_AMOUNT, "--method", "one_point", "--delay", "5"),
    "bandit with drift": (
        *_BANDIT,
        *_ANSWER,
        "--drift",
        "100",
        "--allowed",
        "0.5",
        "--lost",
        "0.1",
    ),
}
_QUICK = {"fit", "fit numbers", "evaluate", "describe", "prune", "predict", "export sql", "show"}

# Mistakes: each message says what was found and what was expected.
_MISTAKES: dict[str, Sequence[str]] = {
    "no file": ("fit", "absent.csv", "-t", "y"),
    "no column": ("fit", "shop.csv", "-t", "anwser"),
    "no model": ("predict", "shop.csv", "shop.csv"),
    "a folder": ("evaluate", _MODEL, ".", "-t", "answer"),
    "a wrong target": ("evaluate", _MODEL, "shop.csv", "-t", "amount"),
    "an unknown format": ("export", _MODEL, "--to", "cobol"),
    "a foreign option": ("export", _MODEL, "--to", "c", "--table", "x"),
    "a depth of zero": ("fit", "shop.csv", "-t", "answer", "--max-depth", "0"),
    "a share above one": ("fit", "shop.csv", "-t", "answer", "--test-fraction", "1.5"),
    "no such folder": ("fit", "shop.csv", "-t", "answer", "-o", "no/m.hardwood"),
    "text as numbers": ("fit", "shop.csv", "-t", "town", "--task", "regression"),
    "negative weights": ("fit", "shop.csv", "-t", "answer", "--weight", "amount"),
    "an option of another method": ("fit", "shop.csv", "-t", "answer", "--leaf-l2", "3"),
    "an unknown metric": ("tune", "shop.csv", "-t", "answer", "--scoring", "acuracy"),
    "an unknown contestant": ("compare", "shop.csv", "-t", "answer", "--model", "CARD"),
    "no such tree": ("describe", _FOREST, "--tree", "9"),
    "an unknown feature": ("analyze", _MODEL, "shop.csv", "-t", "answer", "--feature", "agee"),
    "the input as output": ("prune", _MODEL, "shop.csv", "-o", _MODEL),
}
_HELP = ("fit", "tune", "compare", "predict", "evaluate", "analyze", "describe", "show", "report")
_HELP += ("export", "prune", "benchmark", "demo", "bandit simulate", "fit --method tao")


def cases() -> Iterator[Case]:
    """Every command as text and as JSON, its help, and mistakes."""
    for name, line in _LINES.items():
        is_quick = name in _QUICK
        yield Case(f"command/{name}/text", functools.partial(_run, line))
        yield Case(f"command/{name}/json", functools.partial(_run, (*line, "--json")), is_quick)
    for name, line in _MISTAKES.items():
        yield Case(f"errors/command/{name}", functools.partial(_run, line), is_quick=True)
    for command in _HELP:
        line = (*command.split(), "--help")
        yield Case(f"help/{command}", functools.partial(_run, line), is_quick=True)


def _run(line: Sequence[str]) -> dict[str, Any]:
    """Run a command in a folder with a table and three models; return its output and files."""
    with tempfile.TemporaryDirectory() as folder:
        _furnish(Path(folder))
        there = set(os.listdir(folder))
        code, out, err = _called(line, Path(folder))
        parts = {"exit code": code, "stdout": _values(out), "stderr": _lines(err)}
        for name in sorted(set(os.listdir(folder)) - there):
            content = Path(folder, name).read_bytes()
            parts[f"file {name}"] = content
        return parts


def _furnish(folder: Path) -> None:
    table = _table()
    (folder / "shop.csv").write_text(table, encoding="utf-8")
    for name in (_MODEL, _NUMBERS, _FOREST):
        (folder / name).write_bytes(_model(name))


@functools.cache
def _table() -> str:
    table = tables.classes("shop")
    frame = table.X.copy()
    frame["answer"], frame["amount"] = table.y, tables.numbers("shop").y.round(4)
    frame["weight"] = [1 + i % 3 for i in range(len(frame))]
    frame.insert(0, "id", [f"row {i}" for i in range(len(frame))])
    return str(frame.to_csv(index=False))


_FITS: dict[str, Sequence[str]] = {
    _MODEL: _LINES["fit"],
    _NUMBERS: (*_LINES["fit numbers"], "--drop", "town"),
    _FOREST: _LINES["fit a forest"],
}


@functools.cache
def _model(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "shop.csv").write_text(_table(), encoding="utf-8")
        code, out, err = _called((*_FITS[name], "-o", name), Path(folder))
        if code:
            raise RuntimeError(f"{name} was not learned: {out}{err}")
        return Path(folder, name).read_bytes()


def _called(line: Sequence[str], folder: Path) -> tuple[Any, str, str]:
    """Call the command as a shell would, in this process."""
    before, arguments, environment = os.getcwd(), sys.argv, dict(os.environ)
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code: Any = 0
    try:
        os.chdir(folder)
        sys.argv = ["hardwood", *line]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        os.chdir(before)
        sys.argv = arguments
        os.environ.clear()
        os.environ.update(environment)
    return code, _content(out), _content(err)


def _content(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return written.decode()


def _values(text: str) -> Any:
    """Return JSON as values, without times, and other text line by line."""
    try:
        return plain(json.loads(text))
    except ValueError:
        return _lines(text)


def _lines(text: str) -> str:
    """Return a text without times and progress bars."""
    text, _, _ = text.partition("Cost and size")  # a table whose column widths depend on times
    kept = [line for line in re.split(r"[\r\n]", text) if not re.search(r"\d:\d\d|━", line)]
    return same_every_time("\n".join(kept))
