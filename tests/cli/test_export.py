"""`hardwood export`: verified files, or an error message."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest

from hardwood.export.plan import plan_of
from hardwood.export.rules import writer as rules_module
from hardwood.model.kinds.soft_ensemble import TreeEnsemble
from hardwood.table import Schema


@pytest.mark.parametrize("to", ["c", "c-int16", "c-int8", "sql", "rules", "python", "json"])
def test_text_is_written_or_printed(run, classifier_file, to):
    options = [] if not to.startswith("c") else ["--name", "yes"]
    options += ["--min-agreement", "0.5"] if to.startswith("c-") else []
    done = run("export", classifier_file, "--to", to, "--output", "out.txt", *options)
    assert done.exit_code == 0, done.output
    assert "Wrote out.txt" in done.output
    assert "Checked " in done.output
    with open("out.txt") as stream:
        written = stream.read()
    printed = run("export", classifier_file, "--to", to, *options)
    assert printed.stdout == written
    assert "Checked " in printed.stderr


def test_onnx_is_written_and_not_printed(run, classifier_file):
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    done = run("export", classifier_file, "--to", "onnx", "-o", "m.onnx")
    assert done.exit_code == 0, done.output
    refused = run("export", classifier_file, "--to", "onnx")
    assert refused.exit_code == 2
    assert "--output FILE" in refused.output


def test_the_rows_of_a_table_are_compared(run, classifier_file, answers_csv):
    done = run("export", classifier_file, "--to", "python", "--data", answers_csv, "--json")
    payload = json.loads(done.stdout)
    assert payload["check"]["are_given"] is True
    assert payload["check"]["n_leaves"] == payload["check"]["n_leaves_reached"] == 2
    assert payload["to"] == "python"
    assert payload["output"] is None
    assert "def predict(row):" in payload["text"]


def test_integer_exports_report_their_agreement(run, classifier_file, answers_csv):
    done = run(
        "export", classifier_file, "--to", "c-int8", "--data", answers_csv, "-o", "m.h", "--json"
    )
    check = json.loads(done.stdout)["check"]
    assert check["agreement"] == 1.0
    assert 0 < check["n_bytes"] < 100


def test_a_statement_runs_on_the_table_that_is_named(run, classifier_file):
    options = ["--table", "pens", "--keep", "id"]
    statement = run("export", classifier_file, "--to", "sql", *options).stdout
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE pens (id, width, color, unused)")
    database.execute("INSERT INTO pens VALUES (7, 1, 'red', 0), (8, 1, 'blue', 0)")
    assert [row[:2] for row in database.execute(statement)] == [(7, "yes"), (8, "no")]


def test_digits_of_rules(run, classifier_file):
    done = run("export", classifier_file, "--to", "rules", "--digits", "3")
    assert "Numbers have 3 digits" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "python", "--table", "x"], "--table is for --to sql, not for --to python"),
        (["--to", "sql", "--name", "x"], "--name is for --to c, c-int16, c-int8, not"),
        (["--to", "c", "--min-agreement", "1"], "--min-agreement is for --to c-int16, c-int8"),
        (["--to", "c", "--digits", "3"], "--digits is for --to rules"),
        (["--to", "json", "--keep", "id"], "--keep is for --to sql"),
        (["--to", "c", "--name", "2 x"], "C identifier"),
        (["--to", "c", "--output", "no/such/m.h"], "does not exist"),
        (["--to", "c", "--data", "absent.csv"], "absent.csv does not exist"),
        (["--to", "cobol"], "cobol"),
    ],
)
def test_errors_are_explained(run, classifier_file, options, message):
    done = run("export", classifier_file, *options)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())


def test_the_model_is_not_overwritten(run, classifier_file):
    done = run("export", classifier_file, "--to", "c", "-o", classifier_file)
    assert done.exit_code == 2
    assert "is an input of this command" in done.output


def test_an_export_that_differs_is_not_written(
    run, classifier, classifier_file, monkeypatch, tmp_path
):
    plan = plan_of(classifier.replace(bias=classifier.bias + 0.5))
    object.__setattr__(plan, "model", classifier)
    monkeypatch.setattr(rules_module, "plan_of", lambda model: plan)
    done = run("export", classifier_file, "--to", "rules", "-o", "m.txt")
    assert done.exit_code == 2
    assert "error: the export to rules was not written" in done.output
    assert not (tmp_path / "m.txt").exists()


def test_a_soft_model_is_hardened_with_a_note(run, tmp_path):
    """Soft trees cannot be exported; a note says what is exported instead."""
    rng = np.random.default_rng(0)
    ensemble = TreeEnsemble(
        rng.normal(size=(2, 3, 2)),
        rng.normal(size=(2, 3)),
        rng.normal(size=(2, 4, 1)),
        gamma=1.0,
        schema=Schema.numeric(2),
        task="regression",
        link="identity",
    )
    ensemble.save(tmp_path / "soft.hardwood")
    done = run("export", "soft.hardwood", "--to", "python", "-o", "m.py")
    assert done.exit_code == 0, done.output
    assert "the model is soft" in done.output
