"""Predictions whose text a spreadsheet would run as a formula are noted, or escaped."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from hardwood.cli.csv.formulas import formula_in, without_formulas
from hardwood.model import ObliqueTree

FORMULAS = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "\nx", "=", "-1-1", "+1;x"]
HARMLESS = ["x", "1", "-1", "+1", "-1.5e-3", "", "a=1", "'=1", " =1", "ä"]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_found_and_escaped(text, kind):
    table = pa.table({"a": pa.array([None, "x", text]).cast(kind), "n": [-1, 0, 1]})
    assert formula_in(table) == text
    found = without_formulas(table)
    assert found.to_pydict() == {"a": [None, "x", f"'{text}"], "n": [-1, 0, 1]}
    assert formula_in(found) is None


@pytest.mark.parametrize("text", FORMULAS)
def test_names_of_columns_are_text_too(text):
    table = pa.table({"a": [1], text: [2]})
    assert formula_in(table) == text
    assert without_formulas(table).column_names == ["a", f"'{text}"]


def test_other_text_and_numbers_stay():
    table = pa.table({"a": HARMLESS, "n": [-1.5] * len(HARMLESS), "b": [True] * len(HARMLESS)})
    assert formula_in(table) is None
    assert without_formulas(table).equals(table)


@pytest.fixture
def formula_files(tmp_path):
    """A model whose labels are formulas, and a table with a column of formulas."""
    ObliqueTree.of(
        [[1.0]],
        thresholds=[0.5],
        values=[[0.9, 0.1], [0.2, 0.8]],
        feature_names=["x"],
        classes=["=cmd()", "fine"],
    ).save(tmp_path / "m.hardwood")
    csv.write_csv(pa.table({"x": [0, 1], "=note": ["@a", "b"]}), tmp_path / "t.csv")


PREDICT = ["predict", "m.hardwood", "t.csv", "--keep", "=note"]


@pytest.mark.usefixtures("formula_files")
@pytest.mark.parametrize("output", [[], ["-o", "p.csv"], ["-o", "p.csv", "--json"]])
def test_csv_has_a_note_or_is_escaped(run, tmp_path, output):
    def written(*options):
        done = run(*PREDICT, *output, *options)
        assert done.exit_code == 0
        text = (tmp_path / "p.csv").read_text() if output else done.stdout
        return text.replace('"', "").splitlines(), done.stderr

    lines, said = written()
    assert lines == ["=note,prediction", "@a,=cmd()", "b,fine"]
    assert said.count("--escape-formulas") == 1
    lines, said = written("--escape-formulas")
    assert lines == ["'=note,prediction", "'@a,'=cmd()", "b,fine"]
    assert said == ""


@pytest.mark.usefixtures("formula_files")
def test_parquet_and_json_hold_labels_as_they_are(run, tmp_path):
    done = run(*PREDICT, "-o", "p.parquet")
    assert done.stderr == ""
    assert parquet.read_table(tmp_path / "p.parquet")["prediction"].to_pylist() == [
        "=cmd()",
        "fine",
    ]
    done = run(*PREDICT, "--json")
    assert json.loads(done.stdout)["columns"]["prediction"] == ["=cmd()", "fine"]
    assert json.loads(done.stdout)["notes"] == []
    for output in (["-o", "p.parquet"], ["--json"]):
        refused = run(*PREDICT, *output, "--escape-formulas")
        assert refused.exit_code == 2
        assert "--escape-formulas is for CSV" in refused.stderr
