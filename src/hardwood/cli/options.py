"""Arguments and options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

MAX_JOBS = 1024
MAX_SEED = 2**32 - 1  # what NumPy's and scikit-learn's generators take


TaskChoice = Literal["auto", "classification", "regression"]
"""What `--task` takes."""


ClassWeightChoice = Literal["none", "balanced"]
"""What `--class-weight` takes."""


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter(
            "0 is not allowed; use 1 or more threads, or -1 for all processors"
        )
    return jobs


def check_finite(value: float | None) -> float | None:
    """Refuse infinity and NaN, which the bounds of an option do not exclude; a callback."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def count(
    help: str,
    *names: str,
    low: int = 1,
    high: int | None = None,
    metavar: str = "N",
    default: str | None = None,
) -> Any:
    """Return an option for an integer; ``default`` describes the default in words."""
    return typer.Option(
        *names, min=low, max=high, metavar=metavar, help=help, show_default=default or True
    )


def number(
    help: str,
    *names: str,
    low: float | None = None,
    high: float | None = None,
    metavar: str = "NUMBER",
    default: str | None = None,
) -> Any:
    """Return an option for a finite number."""
    return typer.Option(
        *names,
        min=low,
        max=high,
        metavar=metavar,
        callback=check_finite,
        help=help,
        show_default=default or True,
    )


def named(metavar: str, help: str, *names: str, default: str | None = None) -> Any:
    """Return an option for a name, such as a column or a file; ``metavar`` shows which."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=default or True)


def one_of(choices: Any, help: str, *names: str, default: str | None = None) -> Any:
    """Return an option for one of a few words, which its help lists: ``tpe|random|grid``."""
    return named("|".join(get_args(choices)), help, *names, default=default)


def flag(help: str, *names: str) -> Any:
    """Return an option without a value."""
    return typer.Option(*names, help=help)


def output(help: str, default: str | None = None) -> Any:
    """Return the option ``--output``; ``default`` describes the default in words."""
    return named("FILE", help, "--output", "-o", default=default)


def target(help: str, default: str | None = None) -> Any:
    """Return the option ``--target`` for one column or several."""
    return named("COLUMN", help, "--target", "-t", default=default)


def depth(default: str, help: str, high: int) -> Any:
    """Return the option ``--max-depth``, whose ``default`` is given in words."""
    return count(help, "--max-depth", high=high, default=default)


def seconds(help: str, default: str | None = None) -> Any:
    """Return an option for a time."""
    return number(help, low=0.001, metavar="SECONDS", default=default)


ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, as `fit` writes it.")]
TableFile = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV or Parquet file with a header.")
]
TargetColumn = Annotated[str, target("Column to predict, or several separated by commas: a,b,c.")]
WeightColumn = Annotated[str | None, named("COLUMN", "Column with the weights of the rows.")]
NewModelFile = Annotated[
    Path | None, output("Model file to write.", "name of TABLE with .hardwood")
]
TaskOption = Annotated[
    TaskChoice,
    one_of(TaskChoice, "What to learn; auto decides from the values of the target."),
]
ClassWeight = Annotated[
    ClassWeightChoice,
    one_of(
        ClassWeightChoice,
        "Weights of the classes; balanced gives all classes the same total weight.",
    ),
]
TestFraction = Annotated[
    float,
    number("Share of the rows held out for the test score.", low=0, high=0.9),
]
DroppedColumns = Annotated[
    list[str] | None,
    named("COLUMN", "Do not use this column. May be repeated."),
]
UsedColumns = Annotated[
    list[str] | None,
    named("COLUMN", "Use this column even if it looks like an identifier. May be repeated."),
]
Jobs = Annotated[
    int,
    typer.Option(
        min=-1,
        max=MAX_JOBS,
        metavar="N",
        callback=_check_jobs,
        help="Number of threads; -1 for all processors.",
    ),
]
Threshold = Annotated[
    float | None,
    number(
        "For a tree of two classes: predict the second where its probability is above this.",
        "--threshold",
        low=0,
        high=1,
        default="0.5, or as the model says",
    ),
]
Seed = Annotated[int, count("Random seed.", low=0, high=MAX_SEED)]
PlotFile = Annotated[
    Path | None,
    named("FILE", "Also write a plot to this file: .png, .svg, .pdf, ...", "--plot"),
]
Strict = Annotated[
    bool,
    flag(
        "Refuse a table with values that a note would be about, such as levels that the model did "
        "not learn.",
        "--strict",
    ),
]
AsJson = Annotated[bool, flag("Print one JSON object instead of text.", "--json")]
