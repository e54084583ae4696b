from __future__ import annotations

import importlib.util
import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hardwood import ObliqueTree
from hardwood.errors import MissingExtraError
from hardwood.report import analyze, describe, evaluate, learning_curves, page
from hardwood.text.blocks import Text, TextTable
from hardwood.text.numbers import (
    format_bytes,
    format_count,
    format_duration,
    format_interval,
    format_number,
    format_percent,
    printable,
)

HOSTILE = "<script>alert(1)</script>\"'&\n\x1b[31m$x_{"
OTHER = "</style></td><img src=x onerror=alert(2)>"


@pytest.fixture
def hostile():
    """A tree with an attack in every name."""
    record = {
        "learner": HOSTILE,
        OTHER: HOSTILE,
        "curves": {"epoch": [1, 2], "train_loss": [1.0, 0.5], HOSTILE: [1.0, 2.0]},
    }
    return ObliqueTree.of(
        [[1.0, -0.5]],
        thresholds=[0.0],
        values=[[0.8, 0.2], [0.1, 0.9]],
        classes=[HOSTILE, OTHER],
        feature_names=[HOSTILE, OTHER],
        target_names=HOSTILE,
        record=record,
    )


@pytest.fixture
def reports(hostile):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.random.default_rng(1).choice(np.array(hostile.classes, dtype=object), 40)
    return [
        describe(hostile),
        evaluate(hostile, X, y),
        analyze(hostile, X, y),
        learning_curves(hostile),
    ]


class Tags(HTMLParser):
    """Collects everything in a page that is not text."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def tags_of(text):
    parser = Tags()
    parser.feed(text)
    return parser.found


def test_hostile_names_stay_text(reports):
    for report in reports:
        text = report.to_html()
        for tag, attributes in tags_of(text):
            assert tag not in ("script", "iframe", "link", "object", "a", "form")
            assert not any(name.startswith("on") for name in attributes)
            if tag == "img":
                assert attributes["src"].startswith("data:image/png;base64,")
                assert attributes["alt"]
        assert "\x1b" not in str(report)
        assert "&lt;script&gt;" in text
    assert reports[0]._repr_html_() == reports[0].to_html()


def test_a_page_has_no_external_resources(reports):
    text = page(HOSTILE, reports)
    tags = tags_of(text)
    names = [tag for tag, _ in tags]
    assert names.count("section") == 4
    assert names.count("img") == 3
    assert names.count("html") == names.count("body") == names.count("title") == 1
    assert "script" not in names
    for tag, attributes in tags:
        for name in ("src", "href", "action", "style"):
            assert attributes.get(name, "data:").startswith("data:"), tag
    assert "@import" not in text
    assert "url(" not in text


def test_json_round_trips(reports):
    for report in reports:
        assert json.loads(report.to_json()) == report.to_dict()
        assert json.loads(report.to_json(indent=None)) == report.to_dict()


@pytest.mark.parametrize(
    ("backend", "kind"),
    [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)],
)
def test_tables_are_data_frames_of_any_library(reports, backend, kind):
    for report in reports:
        for table in report.tables:
            frame = report.to_frame(table, backend=backend)
            assert isinstance(frame, kind)
            assert len(frame) > 0
    default = reports[1].to_frame(backend=backend)
    assert len(default) == len(reports[1].scores)


def test_the_first_installed_library_creates_the_frame(reports, monkeypatch):
    assert isinstance(reports[0].to_frame(), pd.DataFrame)
    found = importlib.util.find_spec

    def without(*names):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name in names else found(name)
        )

    without("pandas")
    assert isinstance(reports[0].to_frame(), pl.DataFrame)
    with pytest.raises(MissingExtraError, match=r"'pandas'.*\.\[data\]"):
        reports[0].to_frame(backend="pandas")
    without("pandas", "polars", "pyarrow")
    with pytest.raises(MissingExtraError, match=r"\.\[data\]"):
        reports[0].to_frame()


def test_without_matplotlib_a_page_says_so(reports, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else found(name)
    )
    text = reports[1].to_html()
    assert "img" not in [tag for tag, _ in tags_of(text)]
    assert "pip install &#x27;.[plot]&#x27;" in text
    assert "accuracy" in text


def test_plotting_without_matplotlib_names_the_extra(reports, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"\.\[plot\]"):
        reports[1].plot()


def test_unknown_tables_and_libraries_are_refused(reports):
    with pytest.raises(ValueError, match="has the tables"):
        reports[1].to_frame("scores")
    with pytest.raises(ValueError, match="backend must be one of"):
        reports[1].to_frame(backend="spark")


def test_the_file_name_selects_the_format_of_a_report(reports, tmp_path):
    report = reports[1]
    report.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    report.save(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == report.to_dict()
    report.save(tmp_path / "r.txt")
    assert (tmp_path / "r.txt").read_text() == str(report)
    with pytest.raises(ValueError, match="must end in one of them"):
        report.save(tmp_path / "r.docx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json", "r.txt"]


def test_a_report_is_immutable_and_prints_itself(reports):
    for report in reports:
        assert repr(report) == str(report)
        with pytest.raises(AttributeError):
            report.title = "other"
    with pytest.raises(AttributeError):
        reports[1].n_rows = 3


def test_tables_are_aligned_in_columns():
    grid = TextTable.of("Title", ["name", "n"], [["a", "1"], ["漢字", "22"]], note="more")
    assert grid.to_text().splitlines() == [
        "Title",
        "  name   n",
        "  --------",
        "  a      1",
        "  漢字  22",
        "  more",
    ]
    assert Text("a\nb", "T").to_text() == "T\na\nb"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (format_number(0.123456), "0.1235"),
        (format_number(123456.0), "123,456"),
        (format_number(float("nan")), "-"),
        (format_number(1e-7), "1.000e-07"),
        (format_interval(0.1, 0.25), "0.1000 to 0.2500"),
        (format_interval(float("nan"), 1.0), "-"),
        (format_percent(0.1234), "12.3%"),
        (format_percent(float("nan")), "-"),
        (format_count(1234.0), "1,234"),
        (format_count(1.5), "1.500"),
        (format_duration(12.0), "12.00 us"),
        (format_duration(12000.0), "12.00 ms"),
        (format_bytes(999), "999 bytes"),
        (format_bytes(12_345), "12.3 kB"),
        (format_bytes(12_345_678), "12.3 MB"),
        (format_bytes(12_345_678_901), "12.3 GB"),
        (printable("a\n\x1b"), r"a\n\x1b"),
    ],
)
def test_readable_numbers_and_names(written, expected):
    assert written == expected
