"""The examination of the default tree: its tables, its record, what it compares, and its page."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from benchmarks.quality import default_tree_shares as shares  # noqa: E402
from benchmarks.quality.default_tree import main, merge  # noqa: E402
from benchmarks.quality.default_tree_measure import in_order, score, shape_of  # noqa: E402
from benchmarks.quality.default_tree_models import Declared, dates_as_days  # noqa: E402
from benchmarks.quality.default_tree_page import page  # noqa: E402
from benchmarks.quality.default_tree_tables import (  # noqa: E402
    LEFT_OUT,
    N_SPLITS,
    generated_sources,
    n_splits,
    parts,
    sources,
)
from benchmarks.quality.units import finished  # noqa: E402
from benchmarks.record import Record, read, replace  # noqa: E402

from hardwood import ObliqueTree  # noqa: E402

N = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A CSV table with dates, text and missing entries, and arrays with and without splits."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.1, np.nan, x),
            "color": rng.choice(["red", "blue", None], N),
            "day": pd.Series(pd.date_range("2024-01-01", periods=N)).dt.strftime("%Y-%m-%d"),
            "bought": np.where(x + rng.normal(size=N) > 1, "yes", "no"),
        }
    )
    frame.to_csv(folder / "shop.csv", index=False)
    (folder / "MANIFEST.md").write_text(
        "| file | rows | columns | target | task | notes |\n|---|---|---|---|---|---|\n"
        f"| shop.csv | {N} | 3 | bought | classes (2) | |\n"
        "| absent.csv | 1 | 1 | y | number | |\n"
    )
    X = rng.normal(size=(N, 4)).astype(np.float32)
    split = (np.arange(N) % 4).clip(max=2).astype(np.int8)  # a half of the rows are test rows
    np.savez(folder / "published.npz", X=X, y=X[:, 0] + x, split=split)
    np.savez(folder / "drawn.npz", X=X, y=(X[:, 0] > 1).astype(np.int64))
    np.savez(folder / "mnist.npz", X=X, y=(X[:, 0] > 1).astype(np.int64))
    return folder


def run(*options: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.quality.default_tree", *map(str, options)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def called(monkeypatch, *options: object) -> int:
    """Call the command in this process, where it fits nothing."""
    monkeypatch.setattr(sys, "argv", ["default_tree", *map(str, options)])
    return main()


# --- tables ------------------------------------------------------------------------------------


def test_tables_are_found_by_their_kind(folder):
    known = sources([folder])
    kinds = {name: source.kind for name, source in known.items()}
    assert kinds == {"shop": "messy", "published": "stored", "drawn": "stored"}
    assert "mnist" in LEFT_OUT


def test_a_messy_table_keeps_text_and_missing_entries_and_reads_dates(folder):
    rows = parts(sources([folder])["shop"], 0)
    assert rows.X["day"].dtype.kind == "M"
    assert rows.X["size"].isna().any()
    assert set(rows.X["color"].dropna()) == {"red", "blue"}
    assert set(rows.y) == {"yes", "no"}
    assert rows.has_classes


def test_published_splits_are_used_with_validation_rows_in_training(folder):
    source = sources([folder])["published"]
    assert n_splits(source) == 1
    rows = parts(source, 0)
    assert (len(rows.X), len(rows.X_test)) == (N // 2, N // 2)
    assert not rows.has_classes


@pytest.mark.parametrize("name", ["shop", "drawn"])
def test_drawn_splits_are_stratified_and_differ(folder, name):
    source = sources([folder])[name]
    assert n_splits(source) == N_SPLITS
    several = [parts(source, split) for split in range(N_SPLITS)]
    assert len({tuple(rows.X.index) for rows in several}) == N_SPLITS
    for rows in several:
        assert (len(rows.X), len(rows.X_test)) == (280, 120)
        assert not set(rows.X.index) & set(rows.X_test.index)
        shares_of_class = [np.mean(y == rows.y[0]) for y in (rows.y, rows.y_test)]
        assert abs(np.subtract(*shares_of_class)) < 1 / 120


def test_larger_tables_are_drawn_from_once(folder, monkeypatch):
    monkeypatch.setattr("benchmarks.quality.default_tree_tables.MOST_ROWS", 100)
    parts_module = sys.modules["benchmarks.quality.default_tree_tables"]
    parts_module._loaded.cache_clear()
    rows = parts(sources([folder])["drawn"], 0)
    parts_module._loaded.cache_clear()
    assert (len(rows.X), len(rows.X_test)) == (70, 30)


def test_a_larger_generated_table_begins_with_the_smaller_one():
    small, large = (parts(source, 1) for source in list(generated_sources().values())[:2])
    assert len(large.X) == 10 * len(small.X)
    pd.testing.assert_frame_equal(small.X, large.X[: len(small.X)])
    np.testing.assert_array_equal(small.y, large.y[: len(small.y)])
    pd.testing.assert_frame_equal(small.X_test, large.X_test)
    assert not np.array_equal(small.y, parts(generated_sources()["rows_10000"], 2).y)


# --- models ------------------------------------------------------------------------------------


def test_dates_become_days_and_levels_that_training_lacks_become_missing():
    X = pd.DataFrame({"day": pd.to_datetime(["1970-01-03", None]), "color": ["red", None]})
    days = dates_as_days(X)
    assert days["day"][0] == 2
    assert math.isnan(days["day"][1])
    declared = Declared().fit(days).transform(days.assign(color=["red", "green"]))
    assert list(declared.columns) == ["x0", "x1"]
    assert list(declared["x1"].cat.categories) == ["red"]
    assert declared["x1"].isna().tolist() == [False, True]


def test_probabilities_are_put_in_the_order_of_the_labels():
    ordered = in_order(np.array([[0.7, 0.3]]), ["a", "c"], np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(ordered, [[0.7, 0.0, 0.3]])


def test_the_score_belongs_to_the_target():
    assert score(np.array([0, 1]), np.array([[0.6, 0.4], [0.55, 0.45]])) == 1.0  # AUC
    assert score(np.array([0, 2]), np.array([[0.5, 0.3, 0.2], [0.4, 0.6, 0.0]])) == 0.5  # accuracy
    assert score(np.array([0.0, 2.0]), np.array([1.0, 1.0])) == 0.0  # R2


def test_the_shape_counts_features_and_what_a_reader_reads():
    oblique = ObliqueTree.of([[1.0, 2.0, 0.0]], thresholds=[0.5], values=[1.0, 2.0])
    assert shape_of(oblique) == {"terms": 2, "numbers": 3 + 2}
    axis = ObliqueTree.of([[0.0, 2.0, 0.0]], thresholds=[0.5], values=[1.0, 2.0])
    assert shape_of(axis) == {"terms": 1, "numbers": 2 + 2}
    linear = ObliqueTree.of(
        [[1.0, 0.0, 0.0]],
        thresholds=[0.0],
        values=[1.0, 2.0],
        leaf_weights=[[[0.0, 0.0, 0.0]], [[1.0, 2.0, 3.0]]],
    )
    assert shape_of(linear) == {"terms": 3, "numbers": 2 + 3 + 2}


# --- units of work -----------------------------------------------------------------------------


def _results(units, work, **options):
    known = {"n_processes": 2, "unit_seconds": 60.0, "deadline": math.inf}
    return dict(finished(units, work, **(known | options)))


def test_a_unit_that_raises_does_not_end_the_run():
    found = _results(["[1]", "no JSON", "[2]"], json.loads)
    assert found["[1]"] == [1]
    assert found["[2]"] == [2]
    assert found["no JSON"]["failure"].startswith("JSONDecodeError")


def test_a_unit_that_ends_its_process_or_takes_too_long_is_a_failure():
    assert _results([3], os._exit) == {3: {"failure": "its process ended with code 3"}}
    slow = _results([3600.0], time.sleep, unit_seconds=0.1)
    assert slow == {3600.0: {"failure": "no result within 0.1 s"}}


def test_what_is_not_finished_at_the_deadline_has_no_result():
    assert _results([3600.0, 3600.0], time.sleep, deadline=time.monotonic()) == {}


def test_units_are_recorded_as_they_come_and_once(folder, tmp_path, monkeypatch, capsys):
    record = tmp_path / "record.jsonl"
    options = ("--data", folder, "--tables", "published", "--models", "cart_8,linear")
    options = (*options, "--record", record)
    assert run(*options).startswith("2 units to do")
    results = {shares.key_of(one.result): one.result for one in read(record)}
    assert set(results) == {("published", 0, "cart_8"), ("published", 0, "linear")}
    assert len(results["published", 0, "linear"]["part_scores"]) == 10
    assert called(monkeypatch, *options) == 0
    assert capsys.readouterr().out.startswith("0 units to do")


def test_the_default_is_measured_beside_its_peers(folder):
    options = ("--data", folder, "--tables", "shop", "--models", "default,cart,cart_8", "--quick")
    printed = run(*options)
    assert "at least as good" in printed
    assert "Without a result" not in printed
    assert "Messy tables: default at least as good as CART by loss" in printed


def test_selected_units_are_forgotten(tmp_path, monkeypatch):
    failed = Record({**unit("t", 1, "linear", 0).result, "failure": "too long"}, {})
    every = [*pairs([0.8], [0.7]), failed, *pairs([0.8], [0.7], "u")]

    def kept(*options):
        path = tmp_path / "record.jsonl"
        replace(path, every)
        assert called(monkeypatch, "--forget", *options, "--record", path) == 0
        return [one for one in every if one in read(path)]

    assert kept("--models", "linear") == [every[0], every[3]]
    assert kept("--tables", "u") == every[:3]
    assert kept("--failures") == [*every[:2], *every[3:]]
    assert kept("--splits", 1, "--models", "linear", "--tables", "t") == [every[0], *every[2:]]


def test_of_two_results_of_a_unit_the_newer_one_is_merged(tmp_path):
    def recorded(name, *dated):
        path = tmp_path / name
        replace(path, [Record(unit("t", s, "cart", v).result, {"date": d}) for s, v, d in dated])
        return path

    first = recorded("first", (0, 0.1, "2026-01-02"), (1, 0.2, "2026-01-02"))
    older = recorded("older", (0, 0.3, "2026-01-01"), (2, 0.4, "2026-01-01"))
    newer = recorded("newer", (1, 0.5, "2026-01-03"))
    assert merge(first, [older, newer]) == 1
    assert [one.result["score"] for one in read(first)] == [0.1, 0.5, 0.4]


# --- comparisons -------------------------------------------------------------------------------


def unit(table, split, model, value, **facts):
    result = {"table": table, "kind": "messy", "split": split, "model": model, "score": value}
    result |= {"measure": "AUC", "n_threads": 1, "seconds": 9.0, "processor_seconds": 1.0}
    result |= {"train_rows": 70, "test_rows": 30, "leaves": 2, "terms": 3, "numbers": 8}
    return Record(result | facts, {"commit": None})


def found_of(*units: Record) -> shares.Found:
    return shares.Found.of(units)


def pairs(ours, theirs, table="t") -> list[Record]:
    return [
        unit(table, split, model, value)
        for model, values in (("default", ours), ("linear", theirs))
        for split, value in enumerate(values)
    ]


def test_differences_are_paired_by_split():
    gap = shares.difference(found_of(*pairs([0.8, 0.6], [0.7, 0.5])), "t", "default", "linear")
    assert gap.mean == pytest.approx(0.1)
    assert gap.error == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs", "is_at_least", "is_clear_loss"),
    [
        ([0.8, 0.6], [0.7, 0.7], True, False),
        ([0.8, 0.6], [0.7, 0.8], False, False),
        ([0.7, 0.7], [0.7, 0.7], True, False),
        ([0.55, 0.75], [0.8, 0.8], False, True),  # by one and a half errors
        ([0.6], [0.7], False, True),  # nothing says how uncertain it is
    ],
)
def test_worse_within_one_error_is_no_clear_loss(ours, theirs, is_at_least, is_clear_loss):
    share = shares.share(found_of(*pairs(ours, theirs)), ["t"], "default", "linear")
    assert share.n_at_least == is_at_least
    assert bool(share.losses) is is_clear_loss


def test_a_single_split_is_paired_by_part_of_its_test_rows():
    units = [
        unit("t", 0, "default", 0.70, part_scores=[0.6, 0.8]),
        unit("t", 0, "linear", 0.71, part_scores=[0.8, 0.7]),
    ]
    gap = shares.difference(found_of(*units), "t", "default", "linear")
    assert gap.mean == pytest.approx(-0.01)
    assert gap.error == pytest.approx(0.15)
    assert not gap.is_clear_loss


def test_only_splits_of_both_count_and_failures_are_no_results():
    units = [*pairs([0.8, 0.1], [0.7]), unit("u", 0, "linear", 0.7)]
    failed = Record({**unit("u", 0, "default", 0).result, "failure": "too long"}, {})
    found = found_of(*units, failed)
    share = shares.share(found, found.tables("messy"), "default", "linear")
    assert [(gap.table, gap.mean) for gap in share.differences] == [("t", pytest.approx(0.1))]
    assert shares.failure_section(found).rows == [["u", "0", "default", "too long"]]


def test_a_default_without_a_tree_as_small_loses_to_cart():
    units = [
        unit("t", 0, "default", 0.9, at_8=None, at_12={"score": 0.8}),
        unit("t", 0, "cart_8", 0.5),
        unit("t", 0, "cart_12", 0.5),
    ]
    found = found_of(*units)
    assert shares.share(found, ["t"], "at_8", "cart_8").n_at_least == 0
    assert shares.share(found, ["t"], "at_12", "cart_12").n_at_least == 1


@pytest.mark.parametrize(("n_better", "is_kept"), [(7, False), (8, True)])
def test_a_share_below_its_floor_is_not_kept(n_better, is_kept):
    gaps = [0.1] * n_better + [-0.1] * (10 - n_better)
    units = [one for i, gap in enumerate(gaps) for one in pairs([0.7 + gap], [0.7], f"t{i}")]
    floors = {floor.what: floor for floor in shares.floors(found_of(*units))}
    floor = floors["Messy tables: default at least as good as linear"]
    assert (floor.found, floor.wanted) == (f"{n_better}0% ({n_better} of 10)", "≥ 80%")
    assert floor.is_kept is is_kept


@pytest.mark.parametrize(("last", "is_kept"), [(0.9, True), (0.79, False)])
def test_more_rows_must_not_hurt(last, is_kept):
    scores = zip(generated_sources(), (0.7, 0.8, last), strict=True)
    units = [unit(name, 0, "default", value, kind="generated") for name, value in scores]
    (floor,) = [f for f in shares.floors(found_of(*units)) if "Generated" in f.what]
    assert floor.is_kept is is_kept


def test_learners_that_beat_the_search_are_named():
    units = [*pairs([0.6, 0.7], [0.5, 0.5]), unit("t", 0, "tao", 0.8), unit("t", 1, "tao", 0.8)]
    section = shares.learner_section(found_of(*units))
    assert section.rows == [["TAO", "default", "1", "1", "1"]]
    assert "worse than TAO: t (-0.150 ± 0.050)" in section.notes[0]


def test_the_page_shows_every_section_of_a_record():
    units = [
        *pairs([0.8, 0.6], [0.9, 0.9]),
        unit("t", 0, "default", 0.8, text_lines=10, at_8={"score": 0.9}, at_12={"score": 0.9}),
        unit("t", 0, "cart_8", 0.5),
    ]
    written = page(units)
    for title in ("Floors", "Messy tables: scores", "Sizes and times", "Procedure"):
        assert f"\n## {title}\n" in written
    assert "default, worse than linear: t" in written


def test_the_page_is_what_the_results_say():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.quality.default_tree_page", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
