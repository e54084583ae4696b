"""`hardwood compare`: whether an oblique tree pays on a table, and compared with what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.evaluate import check_plot
from hardwood.cli.failures import (
    INTERRUPTED,
    CommandError,
    check_writable,
    data_mistakes,
    naming_the_file,
)
from hardwood.cli.learning import Problem, Request, read_problem, requested
from hardwood.cli.options import (
    AsJson,
    DroppedColumns,
    Jobs,
    PlotFile,
    Seed,
    TableFile,
    TargetColumn,
    TaskChoice,
    TaskOption,
    UsedColumns,
    WeightColumn,
    check_finite,
    output_option,
)
from hardwood.cli.pictures import draw_report
from hardwood.cli.report import Notes, print_json, print_text
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.selection import Comparison

_REPORTS = (".html", ".json", ".txt")


def compare(
    table: TableFile,
    target: TargetColumn,
    task: TaskOption = TaskChoice.auto,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Compare this model, for example 'CART'; may be repeated.",
            show_default="a linear model, CART, an oblique tree and ensembles",
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(min=2, metavar="N", help="Folds of the cross-validation.")
    ] = 5,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to judge by: a scorer of scikit-learn, such as roc_auc or neg_log_loss.",
            show_default="accuracy, or the root mean squared error",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            callback=check_finite,
            help="Half of it is for the oblique trees; after it no fold begins.",
        ),
    ] = 60.0,
    output: Annotated[
        Path | None, output_option("Write the report, too: .html, .json or .txt.")
    ] = None,
    plot: PlotFile = None,
    drop: DroppedColumns = None,
    use: UsedColumns = None,
    weight: WeightColumn = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
) -> None:
    """Say whether an oblique tree pays on a table: beside a linear model, CART and ensembles.

    All models are learned and judged on the same folds: scores with 95 % intervals, what they cost
    and how large they are. Ctrl-C keeps the complete folds (exit code 130).
    """
    _check_output(output, table)
    check_plot(plot, table)
    request = requested(table, target, task, drop, use, weight, 0.0)
    notes = Notes()
    with notes.collecting():
        problem = read_problem(request, np.random.default_rng(seed))
    if not as_json:
        _print_problem(request, problem)
    options = {"models": model or None, "cv": folds, "metric": metric, "time_limit": time_limit}
    with notes.collecting(), data_mistakes(), _fit_bar() as on_fit:
        found = _compared(request, problem, options, seed, jobs, on_fit)
    for note in _of_report(found):
        notes.add(note)
    _tell(found, request, problem, (output, plot), notes, as_json)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)


def _compared(
    request: Request,
    problem: Problem,
    options: dict[str, Any],
    seed: int,
    jobs: int,
    on_fit: Callable[[str, int, int], None],
) -> Comparison:
    from hardwood.selection import compare as compare_models

    return compare_models(
        problem.features,
        problem.target.values,
        sample_weight=None if request.weight is None else problem.weights,
        task=problem.target.task,
        random_state=seed,
        n_jobs=jobs,
        callbacks=on_fit,
        **options,
    )


def _of_report(found: Comparison) -> list[str]:
    """Return what the report notes: it is said on stderr, and not again on stdout."""
    return [f"left out: {name}, {why}" for name, why in found.left_out.items()] + list(found.notes)


def _tell(
    found: Comparison,
    request: Request,
    problem: Problem,
    files: tuple[Path | None, Path | None],
    notes: Notes,
    as_json: bool,
) -> None:
    output, plot = files
    if output is not None:
        with naming_the_file(output):
            found.save(output)
    if plot is not None:
        draw_report(found, plot)
    if as_json:
        of_table = {
            "table": request.path,
            "target": problem.target.name,
            "reason": problem.target.reason,
            "left_out_columns": problem.left_out,
            "output": output,
            "picture": plot,
            "notes": notes.messages,
        }
        print_json(found.to_dict() | of_table)
        return
    print_text("\n" + str(replace(found, notes=(), left_out={})))
    for word, path in (("Wrote", output), ("Drew", plot)):
        if path is not None:
            print_text(f"{word} {path}")


def _check_output(output: Path | None, table: Path) -> None:
    if output is None:
        return
    check_writable(output, inputs=(table,))
    if output.suffix.lower() not in _REPORTS:
        raise CommandError(f"{output}: a report is written as {', '.join(_REPORTS)}.")


def _print_problem(request: Request, problem: Problem) -> None:
    target = problem.target
    n_rows, n_features = problem.features.num_rows, problem.features.num_columns
    print_text(f"{request.path}: {plural(n_rows, 'row')}, {plural(n_features, 'feature')}")
    print_text(f"Task: {target.task} of '{target.name}', because {target.reason}")


@contextmanager
def _fit_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show which model is at work while the context lasts; yields what to call before a fit."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("Comparing"),
        BarColumn(bar_width=20),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=None)

        def on_fit(name: str, fold: int, n_folds: int) -> None:
            words = f"fold {fold + 1} of {n_folds}, {name}"
            progress.update(bar, total=n_folds, completed=fold, description=words)

        yield on_fit
