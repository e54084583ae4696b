"""`hardwood predict`: a model's answers for the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardwood.cli.failures import CommandError, check_writable, naming_the_file
from hardwood.cli.models import open_model
from hardwood.cli.options import AsJson, Jobs, ModelFile, TableFile
from hardwood.cli.report import Notes, print_json
from hardwood.cli.tables import check_column, check_format, read_table, write_csv, write_table

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.model import ObliqueTree


def predict(
    model: ModelFile,
    table: TableFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write .csv or .parquet; otherwise CSV goes to stdout.",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column of probability for each class.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Copy this column of the table; may be repeated."),
    ] = None,
    jobs: Jobs = 1,
    as_json: AsJson = False,
) -> None:
    """Predict every row of a table, in its order."""
    tree = open_model(model)
    if proba and tree.task != "classification":
        raise CommandError(f"{model} predicts numbers; --proba needs a classification model.")
    if output is not None:
        check_writable(output, inputs=(model, table))
        check_format(output)
    notes = Notes()
    with notes.collecting():
        rows = read_table(table)
        answers = prediction_table(tree, rows, keep or [], table, with_proba=proba, n_jobs=jobs)
    if output is not None:
        with naming_the_file(output):
            write_table(answers, output)
    _say(answers, output, notes, as_json=as_json)


def prediction_table(
    tree: ObliqueTree,
    rows: pa.Table,
    keep: list[str],
    path: Path,
    *,
    with_proba: bool = False,
    n_jobs: int = 1,
) -> pa.Table:
    """Arrow table of the kept columns, ``prediction``, and ``probability of <class>``."""
    columns: dict[str, Any] = {}
    for name in keep:
        check_column(rows, name, path)
        columns[name] = rows[name]
    answers = _answers(tree, rows, with_proba=with_proba, n_jobs=n_jobs)
    clash = columns.keys() & answers.keys()
    if clash:
        raise CommandError(f"--keep {clash.pop()} has the name of a column of the predictions.")
    import pyarrow as pa

    return pa.table(columns | answers)


def _answers(tree: ObliqueTree, rows: pa.Table, *, with_proba: bool, n_jobs: int) -> dict[str, Any]:
    values = tree.predict(rows, n_jobs=n_jobs)
    if values.ndim == 2:
        names = tree.target_names or tuple(str(i) for i in range(tree.n_outputs))
        return {f"prediction of {name}": values[:, i] for i, name in enumerate(names)}
    answers = {"prediction": values}
    if with_proba:
        probabilities = tree.predict_proba(rows, n_jobs=n_jobs)
        for i, label in enumerate(tree.classes or ()):
            answers[f"probability of {label}"] = probabilities[:, i]
    return answers


def _say(answers: pa.Table, output: Path | None, notes: Notes, *, as_json: bool) -> None:
    if as_json:
        payload: dict[str, Any] = {"n_rows": answers.num_rows, "notes": notes.messages}
        where = {"output": str(output)} if output else {"columns": answers.to_pydict()}
        print_json(payload | where)
    elif output is not None:
        typer.echo(f"Wrote {answers.num_rows} predictions to {output}")
    else:
        sys.stdout.flush()
        write_csv(answers, sys.stdout.buffer)
