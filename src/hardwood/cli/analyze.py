"""`hardwood analyze`: what a model relies on, and where it goes wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from hardwood.cli.evaluate import as_labels, check_plot, note_origin, read_known_rows, tell
from hardwood.cli.failures import CommandError, data_mistakes
from hardwood.cli.models import open_model
from hardwood.cli.options import (
    AsJson,
    Jobs,
    ModelFile,
    PlotFile,
    Seed,
    TableFile,
    TargetColumn,
    WeightColumn,
)
from hardwood.cli.report import Notes


def analyze(
    model: ModelFile,
    table: TableFile,
    target: TargetColumn,
    weight: WeightColumn = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Classes: accuracy, log loss, Brier score. Labels: labels right, log loss, Brier "
            "score. Numbers: R2, MAE, MSE.",
            show_default="the first of these",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=2, max=1000, metavar="N", help="How often to shuffle a column.")
    ] = 5,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Show how predictions depend on this column; may be repeated.",
            show_default="the six most important",
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B", help="Shuffle these columns together; may be repeated."),
    ] = None,
    plot: PlotFile = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
) -> None:
    """Find what a model relies on and where it errs, on a table with known answers.

    How much worse it gets when a column is shuffled, with 95 % intervals; how the mean prediction
    follows the most important columns; and which leaves of the tree have more than their share of
    the errors.
    """
    from hardwood.report import analyze as report_on

    check_plot(plot, model, table)
    opened = open_model(model)
    notes = Notes()
    with notes.collecting(), data_mistakes():
        rows = read_known_rows(opened, model, table, target, weight)
        found = report_on(
            opened,
            rows.features,
            as_labels(rows.truth, opened),
            rows.weight,
            metric=metric,
            features=feature or None,
            groups=_groups(group or []),
            n_repeats=repeats,
            unknown_classes="wrong",
            seed=seed,
            n_jobs=jobs,
        )
    note_origin(opened, model, table, rows.n_table_rows, notes)
    tell(found, f"{model} on {rows.words} of {table}", rows, plot, notes, as_json=as_json)


def _groups(options: list[str]) -> dict[str, list[str]]:
    groups = {}
    for option in options:
        name, separator, columns = option.partition("=")
        if not separator or not name.strip() or not columns.strip():
            raise CommandError(f"--group {option}: give a name and columns, such as place=lat,lon.")
        groups[name.strip()] = [column.strip() for column in columns.split(",")]
    return groups
