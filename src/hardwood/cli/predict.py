"""`hardwood predict`: the predictions of a model for the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hardwood.cli import options as opt
from hardwood.cli.csv.formulas import formula_in, without_formulas
from hardwood.cli.errors import CommandError, check_writable, naming_the_file
from hardwood.cli.output import Notes, print_json
from hardwood.cli.read import (
    check_column,
    check_format,
    is_csv_file,
    open_model,
    read_table,
    write_csv,
    write_table,
)
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from hardwood.model.base import Model


LeafPath = Literal["greedy", "most_probable"]
"""What `--path` takes."""


def predict(
    model: opt.ModelFile,
    table: opt.TableFile,
    output: Annotated[
        Path | None, opt.output("File to write, .csv or .parquet.", "CSV goes to stdout")
    ] = None,
    proba: Annotated[
        bool, opt.flag("Add a column with the probability of each class or label.", "--proba")
    ] = False,
    keep: Annotated[
        list[str] | None,
        opt.named("COLUMN", "Copy this column of the table to the output. May be repeated."),
    ] = None,
    escape_formulas: Annotated[
        bool,
        opt.flag(
            "Write an apostrophe before text that a spreadsheet would run as a formula (CSV).",
            "--escape-formulas",
        ),
    ] = False,
    path: Annotated[
        LeafPath | None,
        opt.one_of(
            LeafPath,
            "For policy trees: the leaf at the end of the greedy path, or the most probable leaf.",
            default="greedy",
        ),
    ] = None,
    threshold: opt.Threshold = None,
    jobs: opt.Jobs = 1,
    strict: opt.Strict = False,
    as_json: opt.AsJson = False,
) -> None:
    """Predict every row of a table."""
    from hardwood.model import PolicyTree

    opened = open_model(model, threshold)
    if path is not None and not isinstance(opened, PolicyTree):
        raise CommandError(f"--path is for policy trees, and {model} holds {opened.noun}.")
    if proba and opened.task == "regression":
        raise CommandError(f"--proba is for classification, and {model} is a regression model.")
    if output is not None:
        check_writable(output, inputs=(model, table))
        check_format(output)
    is_csv = not as_json if output is None else is_csv_file(output)
    if escape_formulas and not is_csv:
        raise CommandError("--escape-formulas is for CSV, not for Parquet or JSON.")
    notes = Notes(strict=strict)
    with notes.collecting():
        rows = read_table(table, model=opened)
        options = {"n_jobs": jobs} | ({} if path is None else {"path": path})
        predictions = prediction_table(opened, rows, keep or [], table, with_proba=proba, **options)
    if is_csv:
        predictions = _for_spreadsheets(predictions, notes, escape=escape_formulas)
    if output is not None:
        with naming_the_file(output):
            write_table(predictions, output)
    if as_json:
        payload: dict[str, Any] = {"n_rows": predictions.num_rows, "notes": notes.messages}
        where = {"output": str(output)} if output else {"columns": predictions.to_pydict()}
        print_json(payload | where)
    elif output is not None:
        typer.echo(f"Wrote {plural(predictions.num_rows, 'prediction')} to {output}")
    else:
        sys.stdout.flush()
        write_csv(predictions, sys.stdout.buffer)


def _for_spreadsheets(table: pa.Table, notes: Notes, *, escape: bool) -> pa.Table:
    """Return a table without formulas, or with a note if it has some."""
    if escape:
        return without_formulas(table)
    formula = formula_in(table)
    if formula is not None:
        notes.add(
            f"the CSV has text that a spreadsheet would run as a formula, such as {formula!r:.60}; "
            "--escape-formulas writes an apostrophe before it"
        )
    return table


def prediction_table(
    model: Model,
    rows: pa.Table,
    keep: list[str],
    source: Path,
    *,
    with_proba: bool = False,
    **options: Any,
) -> pa.Table:
    """Return a table of the kept columns, ``prediction``, and ``probability of <class>``.

    With several outputs, the columns are ``prediction of <name>`` and ``probability of <name>``.
    ``options`` are those of the model's ``predict``.
    """
    columns: dict[str, Any] = {}
    for name in keep:
        check_column(rows, name, source)
        columns[name] = rows[name]
    predictions = _predictions(model, rows, with_proba=with_proba, **options)
    clash = columns.keys() & predictions.keys()
    if clash:
        raise CommandError(f"--keep {clash.pop()}: a column of the predictions has the same name.")
    import pyarrow as pa

    return pa.table(columns | predictions)


def _predictions(
    model: Model, rows: pa.Table, *, with_proba: bool, **options: Any
) -> dict[str, Any]:
    if not with_proba:
        return _columns("prediction", model, model.predict(rows, **options))
    probabilities = model.predict_proba(rows, **options)  # predictions follow from them
    predicted = _columns("prediction", model, model.predictions_for(probabilities))
    if model.classes is None:
        return predicted | _columns("probability", model, probabilities)
    names = [f"probability of {label}" for label in model.classes]
    return predicted | dict(zip(names, probabilities.T, strict=True))


def _columns(what: str, model: Model, values: np.ndarray) -> dict[str, np.ndarray]:
    if values.ndim == 1:
        return {what: values}
    return {f"{what} of {name}": values[:, i] for i, name in enumerate(model.output_names)}
