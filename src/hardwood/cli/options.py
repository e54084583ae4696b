"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("0 threads do no work; give 1 or more, or -1 for all processors")
    return jobs


ModelFile = Annotated[Path, typer.Argument(help="A .hardwood file written by `fit`.")]
TableFile = Annotated[Path, typer.Argument(help="A CSV or Parquet file with a header.")]
TargetColumn = Annotated[str, typer.Option("--target", "-t", help="The column to predict.")]
WeightColumn = Annotated[str | None, typer.Option(help="A column of sample weights.")]
Jobs = Annotated[
    int, typer.Option(min=-1, callback=_check_jobs, help="Threads; -1 for all processors.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout instead of the report.")
]
