"""`hardwood analyze`: what a model relies on, and where it goes wrong."""

from __future__ import annotations

from typing import Annotated

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, data_mistakes
from hardwood.cli.evaluate import check_plot, note_origin, read_known_rows, tell_of_rows
from hardwood.cli.output import Notes
from hardwood.cli.read import open_model


def analyze(
    model: opt.ModelFile,
    table: opt.TableFile,
    target: opt.TargetColumn,
    weight: opt.WeightColumn = None,
    metric: Annotated[
        str | None,
        opt.named(
            "NAME",
            "Classes: accuracy, log loss, Brier score. Labels: label accuracy, log loss, Brier "
            "score. Numbers: R2, MAE, MSE.",
            default="the first of these",
        ),
    ] = None,
    repeats: Annotated[int, opt.count("How often to shuffle a column.", low=2, high=1000)] = 5,
    feature: Annotated[
        list[str] | None,
        opt.named(
            "COLUMN",
            "Show how predictions depend on this column; may be repeated.",
            default="the six most important",
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        opt.named("NAME=A,B", "Shuffle these columns together; may be repeated."),
    ] = None,
    plot: opt.PlotFile = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    as_json: opt.AsJson = False,
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
            rows.truth,
            rows.weight,
            metric=metric,
            features=feature or None,
            groups=_groups(group or []),
            n_repeats=repeats,
            unknown_classes="wrong",
            random_state=seed,
            n_jobs=jobs,
        )
    note_origin(opened, model, table, rows.n_table_rows, notes)
    tell_of_rows(found, f"{model} on {rows.words} of {table}", rows, plot, notes, as_json=as_json)


def _groups(options: list[str]) -> dict[str, list[str]]:
    groups = {}
    for option in options:
        name, separator, columns = option.partition("=")
        if not separator or not name.strip() or not columns.strip():
            raise CommandError(f"--group {option}: give a name and columns, such as place=lat,lon.")
        groups[name.strip()] = [column.strip() for column in columns.split(",")]
    return groups
