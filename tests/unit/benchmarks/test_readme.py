"""README.md shows the recorded results, wins and losses alike."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from benchmarks.provenance import provenance  # noqa: E402
from benchmarks.readme import accuracy, speed  # noqa: E402
from benchmarks.readme.__main__ import NAMES, RECORD, merged  # noqa: E402
from benchmarks.readme.table import (  # noqa: E402
    BEGIN,
    END,
    compared,
    in_readme,
    markdown,
    put_in_readme,
)
from benchmarks.record import Record, read  # noqa: E402


def accuracy_record(ours: list[float], cart: list[float], name: str = "wine") -> Record:
    models = {
        "hardwood": {"score": ours, "splits": [3, 3], "terms": [20, 22]},
        "cart": {"score": cart, "splits": [9, 9], "terms": [9, 9]},
        "linear": {"score": ours, "splits": [0, 0], "terms": [39, 39]},
    }
    row = {"name": name, "kind": "accuracy", "measure": "accuracy", "max_depth": 2}
    return Record(row | {"models": models}, provenance())


def speed_record(**times: float) -> Record:
    models = {title: {"best": time, "median": time} for title, time in times.items()}
    row = {"name": "fit", "kind": "speed", "what": "fit", "unit": "s", "models": models}
    return Record(row, provenance())


def test_readme_shows_what_is_recorded():
    shown = in_readme()
    if shown is not None:
        assert shown == markdown(read(RECORD))


def test_rows_show_size_error_and_verdict():
    table = markdown([accuracy_record([96.0, 98.0], [80.0, 82.0])])
    assert "wine: accuracy, %, depth at most 2 | 97.0 ± 1.2 (3 splits, 21 terms) |" in table
    assert "CART 81.0 ± 1.2 (9 splits); logistic regression 97.0 ± 1.2 (39 terms)" in table
    assert "**better** than CART, not clearly different from logistic regression" in table
    assert "over 2 seeds" in table


def test_losses_are_shown_too():
    assert "**worse** than CART" in markdown([accuracy_record([80.0, 82.0], [96.0, 98.0])])
    table = markdown([speed_record(hardwood=2.0, CART=0.004)])
    assert "| fit | 2 s | CART: 0.004 s | 500× **slower** than CART |" in table


def test_one_lucky_seed_is_not_better():
    assert compared([90.0, 99.0, 90.0], [90.0, 90.0, 90.0]) == "not clearly different from"
    assert compared([99.0, 99.0, 99.1], [90.0, 90.0, 90.0]) == "**better** than"


@pytest.mark.parametrize(
    ("state", "load", "words"),
    [(False, [0.0, 0, 0], "uncommitted changes"), (True, [9.0, 0, 0], "busy at the start")],
)
def test_doubtful_figures_are_marked(state, load, words):
    record = speed_record(hardwood=1.0)
    found = record.provenance | {"is_clean": state, "load_at_start": load, "cores": 2}
    assert words in markdown([Record(record.result, found)])


def test_one_row_measured_again_keeps_the_others():
    wine, again, fit = accuracy_record([1, 2], [1, 2]), accuracy_record([3, 4], [1, 2]), None
    fit = speed_record(hardwood=1.0)
    assert merged([wine, fit], [again]) == [again, fit]


def test_the_table_replaces_what_is_between_the_markers(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("no place for it\n")
    assert not put_in_readme("| a |", readme)
    readme.write_text(f"above\n\n{BEGIN}\nold\n{END}\n\nbelow\n")
    assert put_in_readme("| a |", readme)
    assert in_readme(readme) == "| a |"
    assert readme.read_text() == f"above\n\n{BEGIN}\n| a |\n{END}\n\nbelow\n"


def test_names_are_of_one_table():
    assert len(set(NAMES)) == len(NAMES)
    assert 10 <= len(NAMES) <= 14


def test_a_table_is_measured_with_its_size(monkeypatch):
    monkeypatch.setattr(accuracy, "N_PROCESSES", 1)
    row = accuracy.measure("wine", None, is_quick=True)
    assert row is not None
    assert row["models"].keys() == {"hardwood", "cart", "linear"}
    assert all(len(found["score"]) == 2 for found in row["models"].values())
    assert row["models"]["hardwood"]["splits"][0] <= 3
    assert accuracy.measure("pendigits", None, is_quick=True) is None


@pytest.mark.parametrize("name", ["dgt_step_16", "bandit_round"])
def test_speed_is_measured_against_what_is_installed(name):
    pytest.importorskip("torch")
    row = speed.MEASURES[name](True)
    assert row is not None
    assert all(found["best"] > 0 for found in row["models"].values())
