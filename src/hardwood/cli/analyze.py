"""`hardwood analyze`: what a model relies on, and where its errors are."""

from __future__ import annotations

from typing import Annotated

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, data_errors
from hardwood.cli.evaluate import check_plot, note_origin, print_row_report, read_known_rows
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
            "Score for the importance. Classes: accuracy, log loss, Brier score. Several labels: "
            "label accuracy, log loss, Brier score. Regression: R2, MAE, MSE.",
            default="the first of these",
        ),
    ] = None,
    repeats: Annotated[
        int, opt.count("Number of times to shuffle each column.", low=2, high=1000)
    ] = 5,
    feature: Annotated[
        list[str] | None,
        opt.named(
            "COLUMN",
            "Show how predictions depend on this column. May be repeated.",
            default="the six most important",
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        opt.named("NAME=A,B", "Shuffle these columns together. May be repeated."),
    ] = None,
    plot: opt.PlotFile = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    strict: opt.Strict = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show what a model relies on and where its errors are, on a table with known targets.

    Prints how much worse the model gets when a column is shuffled, with 95 % intervals; how the
    mean prediction depends on the most important columns; and which leaves of the tree have more
    than their share of the errors.
    """
    from hardwood.report import analyze as report_on

    check_plot(plot, model, table)
    opened = open_model(model)
    notes = Notes(strict=strict)
    with notes.collecting(), data_errors():
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
    print_row_report(
        found, f"{model} on {rows.words} of {table}", rows, plot, notes, as_json=as_json
    )


def _groups(options: list[str]) -> dict[str, list[str]]:
    groups = {}
    for option in options:
        name, separator, columns = option.partition("=")
        if not separator or not name.strip() or not columns.strip():
            raise CommandError(
                f"--group {option}: expected a name and columns, such as place=lat,lon."
            )
        groups[name.strip()] = [column.strip() for column in columns.split(",")]
    return groups
