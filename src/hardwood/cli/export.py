"""`hardwood export`: a model in a form that runs without hardwood, verified first."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable, naming_the_file
from hardwood.cli.output import Notes, print_json, print_text
from hardwood.cli.read import open_hardened, read_table

ExportFormat = Literal["c", "c-int16", "c-int8", "onnx", "sql", "rules", "python", "json"]
"""What `--to` takes."""


_OF_INTEGERS = ("c-int16", "c-int8")
_OF_C = ("c", *_OF_INTEGERS)
# The formats that an option is for.
_FOR = {
    "--name": _OF_C,
    "--min-agreement": _OF_INTEGERS,
    "--table": ("sql",),
    "--keep": ("sql",),
    "--digits": ("rules",),
}


def export(
    model: opt.ModelFile,
    to: Annotated[ExportFormat, opt.one_of(ExportFormat, "Language or format to write.")],
    output: Annotated[Path | None, opt.output("File to write.", "text goes to stdout")] = None,
    data: Annotated[
        Path | None,
        opt.named(
            "TABLE",
            "CSV or Parquet file with rows to verify the export on. c-int16 and c-int8 also take "
            "the ranges of the columns from it.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        opt.named("NAME", "For C: prefix of all names in the header.", default="name of FILE"),
    ] = None,
    min_agreement: Annotated[
        float | None,
        opt.number(
            "For c-int16 and c-int8: smallest share of rows predicted as by the model.",
            low=0,
            high=1,
            default="0.9",
        ),
    ] = None,
    table: Annotated[
        str | None,
        opt.named("NAME", "For sql: the table to read.", default="data"),
    ] = None,
    keep: Annotated[
        list[str] | None,
        opt.named("COLUMN", "For sql: copy this column to the result. May be repeated."),
    ] = None,
    digits: Annotated[
        int | None,
        opt.count("For rules: number of significant digits.", default="all"),
    ] = None,
    strict: opt.Strict = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write a model for use without hardwood: C, ONNX, SQL, if/then rules, Python or JSON.

    The export is first run and compared with the model: on the rows of --data or on simulated rows,
    and on rows close to the splits. Nothing is written if the predictions differ.
    """
    from hardwood import export as exporters

    given = {
        "--name": name,
        "--min-agreement": min_agreement,
        "--table": table,
        "--keep": keep or None,
        "--digits": digits,
    }
    options = _options(to, given)
    if output is not None:
        check_writable(output, inputs=[model, *([data] if data else [])])
    elif to == "onnx":
        raise CommandError("An ONNX model cannot go to stdout: give --output FILE.")
    exporter = getattr(exporters, "to_c" if to in _OF_C else f"to_{to}")
    notes = Notes(strict=strict)
    opened = open_hardened(model, "an export", notes)
    with notes.collecting():
        rows = None if data is None else read_table(data, model=opened)
        if output is None:
            content = exporter(opened, None, data=rows, **options)
        else:
            with naming_the_file(output):
                content = exporter(opened, output, data=rows, **options)
    check = content.check
    if as_json:
        written = {"output": str(output)} if output else {"output": None, "text": str(content)}
        payload = {"to": to, "n_characters": len(content), "check": asdict(check)}
        print_json(payload | written | {"notes": notes.messages})
    elif output is None:
        sys.stdout.write(str(content))
        typer.echo(str(check), err=True)
    else:
        print_text(f"Wrote {output}\n{check}")


def _options(to: ExportFormat, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options as the exporter takes them; refuse those of other formats."""
    for option, value in given.items():
        if value is not None and to not in _FOR[option]:
            words = ", ".join(_FOR[option])
            raise CommandError(f"{option} is for --to {words}, not for --to {to}.")
    options = {
        option.removeprefix("--").replace("-", "_"): value
        for option, value in given.items()
        if value is not None
    }
    if to in _OF_INTEGERS:
        options["precision"] = to.removeprefix("c-")
    return options
