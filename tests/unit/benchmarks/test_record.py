"""Every recorded result says where it was measured, and files change in one step."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from benchmarks.provenance import engine_is_current, is_clean, is_quiet, provenance  # noqa: E402
from benchmarks.quality.ledger import Ledger  # noqa: E402
from benchmarks.record import (  # noqa: E402
    RESULTS,
    Column,
    Record,
    Table,
    append,
    file_of,
    keep,
    read,
    replace,
    results,
)

FILES = sorted(RESULTS.glob("*"))


def test_results_are_one_file_per_experiment():
    assert FILES
    assert {path.suffix for path in FILES} == {".jsonl"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_has_its_provenance(path):
    known = provenance().keys()
    for record in read(path):
        assert record.result
        assert record.provenance.keys() == known
        if record.provenance["is_clean"]:
            assert record.provenance["commit"]


def test_provenance_says_what_a_figure_depends_on():
    found = provenance(title="seconds", settings={"rounds": 3}, device="a GPU")
    assert len(found["commit"]) == 12
    assert found["versions"].keys() >= {"python", "hardwood", "numpy", "scikit-learn"}
    assert found["cores"] >= 1
    assert len(found["load_at_start"]) == 3
    assert found["date"].endswith("+00:00")
    assert (found["title"], found["settings"]) == ("seconds", {"rounds": 3})
    assert found["device"] == "a GPU"


@pytest.mark.parametrize(("state", "is_known_clean"), [(True, True), (False, False), (None, False)])
def test_a_checkout_of_unknown_state_is_not_clean(state, is_known_clean):
    assert is_clean({"is_clean": state}) is is_known_clean


@pytest.mark.parametrize(
    ("load", "cores", "is_idle"),
    [
        ([0.9, 5.0, 5.0], 2, True),
        ([1.1, 0, 0], 2, False),
        (None, 2, False),
        ([0, 0, 0], None, False),
    ],
)
def test_a_machine_of_unknown_load_is_not_quiet(load, cores, is_idle):
    assert is_quiet({"load_at_start": load, "cores": cores}) is is_idle


def test_an_engine_older_than_its_sources_is_not_clean(tmp_path):
    sources, engine = tmp_path / "native", tmp_path / "engine.so"
    sources.mkdir()
    (sources / "tree.hpp").touch()
    engine.touch()
    os.utime(sources / "tree.hpp", (100, 100))
    os.utime(engine, (200, 200))
    assert engine_is_current(engine, sources)
    os.utime(sources / "tree.hpp", (300, 300))
    assert not engine_is_current(engine, sources)
    assert engine_is_current(None, sources)


def test_what_is_written_is_read_back(tmp_path):
    path = file_of("speed", tmp_path)
    assert read(path) == []
    first, second = (Record({"n": n, "name": "Müller"}, {"commit": None}) for n in (1, 2))
    append(path, first)
    append(path, second)
    assert read(path) == [first, second]
    assert results("speed", tmp_path) == [first.result, second.result]
    keep(path, lambda record: record.result["n"] == 2)
    assert read(path) == [second]
    replace(path, [first])
    assert read(path) == [first]
    assert [found.name for found in tmp_path.iterdir()] == ["speed.jsonl"]


def _append_many(path: Path, first: int) -> None:
    for n in range(first, first + 50):
        append(path, Record({"n": n}, {}))


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    path = file_of("shared", tmp_path)
    spawn = multiprocessing.get_context("fork")
    processes = [spawn.Process(target=_append_many, args=(path, 50 * k)) for k in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sorted(record.result["n"] for record in read(path)) == list(range(200))


def test_a_table_is_recorded_row_by_row(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.record.file_of", lambda name: tmp_path / f"{name}.jsonl")
    table = Table("speed", "How fast?", [Column("ms", "ms", ".1f")], {"rounds": 2})
    table.add(ms=1.25)
    assert table.finish("A note.")
    (record,) = read(tmp_path / "speed.jsonl")
    assert record.result == {"ms": 1.25}
    assert record.provenance["title"] == "How fast?"
    assert record.provenance["settings"] == {"rounds": 2}
    assert "A note." in capsys.readouterr().out


def test_fits_are_found_again_and_forgotten_with_their_setting(tmp_path):
    path = file_of("fits", tmp_path)
    mine = Ledger(path, {"name": "iris", "method": "tree"}, {"measure": "accuracy"})
    other = Ledger(path, {"name": "iris", "method": "cart"})
    mine.add_choice({"split": 0, "setting": {"depth": 2}, "repeat": 0, "score": 0.9})
    mine.add_run({"split": 0, "seed": 0, "setting": {"depth": 2}, "score": 0.8})
    mine.add_run({"split": 1, "seed": 1, "setting": {"depth": 2}, "score": 0.7})
    other.add_run({"split": 0, "seed": 0, "setting": {"depth": 2}, "score": 0.6})

    again = Ledger(path, {"name": "iris", "method": "tree"})
    assert again.choice(0, {"depth": 2}, 0)["score"] == 0.9
    assert again.choice(0, {"depth": 3}, 0) is None
    assert again.run(0, 0)["score"] == 0.8
    assert again.run(0, 0)["measure"] == "accuracy"
    again.forget_runs(0, other_than={"depth": 3})
    assert again.run(0, 0) is None
    assert [r.result["score"] for r in read(path)] == [0.9, 0.7, 0.6]
