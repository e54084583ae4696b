"""`hardwood report`: everything about a model on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardwood.atomic_file import whole_file
from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable, naming_the_file
from hardwood.cli.evaluate import note_origin, read_known_rows
from hardwood.cli.output import Notes, print_json, print_text
from hardwood.cli.read import open_model

if TYPE_CHECKING:
    from hardwood.report import Report


def report(
    model: opt.ModelFile,
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", help="A CSV or Parquet file with known answers."),
    ] = None,
    target: Annotated[str | None, opt.target("Its column with the truth.")] = None,
    weight: opt.WeightColumn = None,
    output: Annotated[
        Path | None, opt.output("Where to write the page.", "MODEL with the ending .html")
    ] = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Write a page about a model: what it is, how it was learned and, with a table, how good it is.

    The page is one file that fetches nothing: what `describe` says, the learning curves and, where
    TABLE and --target are given, what `evaluate` and `analyze` say, with their drawings.
    """
    from hardwood.report import analyze, describe, evaluate, learning_curves, page
    from hardwood.report.curves import has_learning_curve

    if (table is None) != (target is None):
        raise CommandError("Give a table and --target, its column with the truth, or neither.")
    path = model.with_suffix(".html") if output is None else output
    check_writable(path, inputs=(model,) if table is None else (model, table))
    if path.suffix.lower() != ".html":
        raise CommandError(f"{path}: a report is written as .html; the name must end in it.")
    notes = Notes()
    with notes.collecting():
        opened = open_model(model)
        reports: dict[str, Report] = {"description": describe(opened)}
        if has_learning_curve(opened):
            reports["learning curves"] = learning_curves(opened)
        if table is not None and target is not None:
            rows = read_known_rows(opened, model, table, target, weight)
            note_origin(opened, model, table, rows.n_table_rows, notes)
            known = (opened, rows.features, rows.truth, rows.weight)
            options: dict[str, Any] = {
                "unknown_classes": "wrong",
                "random_state": seed,
                "n_jobs": jobs,
            }
            reports["evaluation"] = evaluate(*known, names=rows.names, **options)
            reports["analysis"] = analyze(*known, **options)
        content = page(f"{model.name}", list(reports.values())).encode()
    with naming_the_file(path), whole_file(path) as stream:
        stream.write(content)
    if as_json:
        parts = {name: found.to_dict() for name, found in reports.items()}
        print_json({"output": str(path), **parts, "notes": notes.messages})
        return
    print_text(f"Wrote {path}: {', '.join(reports)}")
