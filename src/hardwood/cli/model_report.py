"""`hardwood report`: a page with everything about a model."""

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
        typer.Argument(metavar="TABLE", help="CSV or Parquet file with known targets."),
    ] = None,
    target: Annotated[str | None, opt.target("Target column of TABLE.")] = None,
    weight: opt.WeightColumn = None,
    output: Annotated[
        Path | None, opt.output("File for the page.", "MODEL with the suffix .html")
    ] = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    strict: opt.Strict = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write a page about a model: the model, its learning curves and, with a table, its scores.

    The page is one HTML file that works offline. It has the reports of `describe` and, with TABLE
    and --target, of `evaluate` and `analyze`, including their plots.
    """
    from hardwood.report import analyze, describe, evaluate, learning_curves, page
    from hardwood.report.curves import has_learning_curve

    if (table is None) != (target is None):
        raise CommandError("Give both a table and --target, or neither.")
    path = model.with_suffix(".html") if output is None else output
    check_writable(path, inputs=(model,) if table is None else (model, table))
    if path.suffix.lower() != ".html":
        raise CommandError(f"{path}: the name of a report must end in .html.")
    notes = Notes(strict=strict)
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
