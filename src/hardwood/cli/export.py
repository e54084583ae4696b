"""`hardwood export`: a model in a form that needs no hardwood, checked as it is made."""

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
# Which targets an option is for.
_FOR = {
    "--name": _OF_C,
    "--min-agreement": _OF_INTEGERS,
    "--table": ("sql",),
    "--keep": ("sql",),
    "--digits": ("rules",),
}


def export(
    model: opt.ModelFile,
    to: Annotated[ExportFormat, opt.one_of(ExportFormat, "The language or format to write.")],
    output: Annotated[Path | None, opt.output("The file to write.", "text goes to stdout")] = None,
    data: Annotated[
        Path | None,
        opt.named(
            "TABLE",
            "A CSV or Parquet file to compare on; c-int16 and c-int8 choose the ranges of "
            "columns by it.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        opt.named("NAME", "c: what every name in the header begins with.", default="FILE's"),
    ] = None,
    min_agreement: Annotated[
        float | None,
        opt.number(
            "c-int16, c-int8: refuse where fewer rows are answered as by the model.",
            low=0,
            high=1,
            default="0.9",
        ),
    ] = None,
    table: Annotated[
        str | None,
        opt.named("NAME", "sql: the table to read.", default="data"),
    ] = None,
    keep: Annotated[
        list[str] | None,
        opt.named("COLUMN", "sql: pass this column on; may be repeated."),
    ] = None,
    digits: Annotated[
        int | None,
        opt.count("rules: significant digits.", default="all"),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Write a model for use without hardwood: C, ONNX, SQL, if/then rules, Python or JSON.

    What is written is compared with the model on the rows of --data, or on rows made up from what
    the model knows of its columns, and on rows close to its splits; what differs is not written.
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
        raise CommandError("An ONNX file is not text: name it with --output FILE.")
    exporter = getattr(exporters, "to_c" if to in _OF_C else f"to_{to}")
    notes = Notes()
    opened = open_hardened(model, "an export", notes)
    with notes.collecting():
        rows = None if data is None else read_table(data)
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
    """Return the options as the exporter takes them; one for another target is a mistake."""
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
