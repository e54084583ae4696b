"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MAX_JOBS = 1024
MAX_SEED = 2**32 - 1  # what NumPy's and scikit-learn's generators take
# Limits and a default of the estimators, which are too slow to import for a help text.
MAX_DEPTH = 16
MAX_LAYERS = 16
MAX_RESTARTS = 10_000
MAX_TREES = 100_000
AUTO_RESTARTS = 4  # where there is a validation part


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("0 threads do no work; give 1 or more, or -1 for all processors")
    return jobs


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
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout instead of the report.")
]
