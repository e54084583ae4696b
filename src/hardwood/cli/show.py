"""`hardwood show`: a model as an interactive page."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable, naming_the_file
from hardwood.cli.evaluate import read_known_rows
from hardwood.cli.output import Notes, print_json, print_text
from hardwood.cli.read import open_hardened, read_table
from hardwood.table.target import positions
from hardwood.text.numbers import plural

MAX_ROWS = 10_000


def show(
    model: opt.ModelFile,
    data: Annotated[
        Path | None,
        opt.named("TABLE", "CSV or Parquet file with rows to show on the page."),
    ] = None,
    target: Annotated[
        str | None,
        opt.target(
            "Target column of TABLE, which gives the colors.",
            "the target of MODEL, if TABLE has it",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        opt.output("File for the page.", "name of MODEL with _tree.html"),
    ] = None,
    rows: Annotated[
        int,
        opt.count("Number of rows to choose from on the page.", low=0, high=MAX_ROWS),
    ] = 300,
    title: Annotated[str | None, opt.named("TEXT", "Heading of the page.")] = None,
    open: Annotated[bool, opt.flag("Open the page in a browser.", "--open")] = False,
    strict: opt.Strict = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write an interactive page of a tree or forest: one HTML file that works offline.

    It draws the tree and the flow of rows through it, with the weights and a histogram of scores at
    each split. Choose or type a row to follow its path.
    """
    path = model.with_name(f"{model.stem}_tree.html") if output is None else output
    check_writable(path, inputs=(model,) if data is None else (model, data))
    if path.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"{path}: the name of a page must end in .html.")
    if target is not None and data is None:
        raise CommandError("--target is a column of the table that --data names; give --data, too.")
    notes = Notes(strict=strict)
    with notes.collecting():
        opened = open_hardened(model, "a page", notes)
        X, y = (None, None) if data is None else _rows(opened, model, data, target, notes)
        with naming_the_file(path):
            opened.show(path, X, y, title=title, max_rows=rows)
    if open and not webbrowser.open(path.resolve().as_uri()):
        notes.add(f"could not start a browser; open {path} yourself")
    n_rows, size = 0 if X is None else X.num_rows, path.stat().st_size
    if as_json:
        written = {"output": str(path), "bytes": size, "n_rows": n_rows}
        print_json(written | {"colored_by_truth": y is not None, "notes": notes.messages})
        return
    colors = "prediction" if y is None else "target"
    what = f"histograms of {plural(n_rows, 'row')}, colored by {colors}" if n_rows else "no rows"
    print_text(f"Wrote {path}: {size / 1000:.0f} kB, {what}")


def _rows(model: Any, path: Path, data: Path, target: str | None, notes: Notes) -> tuple[Any, Any]:
    """Read a table, and its targets if it has them."""
    if target is None:
        table = read_table(data, model=model)
        names = model.target_names
        if not names or not set(names) <= set(table.column_names):
            return table, None
        target = ",".join(names)
    known = read_known_rows(model, path, data, target, None)
    is_known = np.ones(len(known), dtype=bool)
    if model.classes is not None:
        is_known = positions(known.truth, model.classes) >= 0
    n_left_out = known.n_table_rows - int(is_known.sum())
    if not is_known.any():
        raise CommandError(
            f"No row of {data} has a class of {path} in column '{target}'. Is this the right "
            "column?"
        )
    if n_left_out:
        notes.add(
            f"left out: {plural(n_left_out, 'row')} of {data} without a known class in '{target}'"
        )
    return known.features.filter(is_known), known.truth[is_known]
