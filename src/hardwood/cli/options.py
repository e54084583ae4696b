"""Arguments and options that several commands share."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

MAX_JOBS = 1024
MAX_SEED = 2**32 - 1  # what NumPy's and scikit-learn's generators take
# Limits and a default of the estimators, which are too slow to import for a help text.
MAX_DEPTH = 16
MAX_LAYERS = 16
MAX_RESTARTS = 10_000
MAX_TREES = 100_000
MAX_TRIALS = 100_000
AUTO_RESTARTS = 4  # where there is a validation part


class TaskChoice(str, Enum):
    """What `--task` takes."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class LeavesChoice(str, Enum):
    """What `--leaves` takes."""

    constant = "constant"
    linear = "linear"


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("0 threads do no work; give 1 or more, or -1 for all processors")
    return jobs


def check_finite(value: float | None) -> float | None:
    """Refuse infinity and NaN, which the bounds of an option let pass; a callback."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number")
    return value


def words_of(choices: type[Enum]) -> str:
    """Return what an option takes, for its help: ``tpe|random|grid``."""
    return "|".join(choice.value for choice in choices)


def output_option(help: str, default: str | None = None) -> Any:
    """Return the option ``--output``, whose ``default`` is said in words."""
    return typer.Option("--output", "-o", metavar="FILE", help=help, show_default=default or True)


ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A .hardwood file written by `fit`.")
]
TableFile = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A CSV or Parquet file with a header.")
]
TargetColumn = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="The column to predict; several of them with commas between: a,b,c.",
    ),
]
WeightColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="A column of sample weights.")
]
NewModelFile = Annotated[
    Path | None, output_option("The model file.", "TABLE's name with .hardwood")
]
TaskOption = Annotated[
    TaskChoice,
    typer.Option(
        metavar=words_of(TaskChoice), help="What kind of answer; auto looks at the target."
    ),
]
LeavesOption = Annotated[
    LeavesChoice,
    typer.Option(
        metavar=words_of(LeavesChoice),
        help="What a leaf answers: one value, or a linear function of the columns.",
    ),
]
TestFraction = Annotated[
    float,
    typer.Option(
        min=0, max=0.9, metavar="NUMBER", help="Share of the rows kept back for the test score."
    ),
]
DroppedColumns = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Leave this column out; may be repeated."),
]
UsedColumns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Learn from this column even if it looks like an identifier; may be repeated.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        min=-1,
        max=MAX_JOBS,
        metavar="N",
        callback=_check_jobs,
        help="Threads; -1 for all processors.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, max=MAX_SEED, metavar="N", help="Seed of everything random.")
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw it, too: .png, .svg, .pdf, ..."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout instead of the report.")
]
