"""`hardwood compare`: oblique trees and other models on the same folds of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable, data_errors
from hardwood.cli.evaluate import check_plot
from hardwood.cli.fit import Request, read_dataset
from hardwood.cli.output import Notes, print_report, print_size, print_task
from hardwood.cli.process.interrupts import INTERRUPTED, first_interrupt_only, was_interrupted
from hardwood.progress import Progress, watched_stream

_REPORTS = (".html", ".json", ".txt")


def compare(
    table: opt.TableFile,
    target: opt.TargetColumn,
    task: opt.TaskOption = "auto",
    model: Annotated[
        list[str] | None,
        opt.named(
            "NAME",
            "Compare this model, for example 'CART'. May be repeated.",
            default="a linear model, CART, an oblique tree and ensembles",
        ),
    ] = None,
    folds: Annotated[int, opt.count("Number of cross-validation folds.", low=2)] = 5,
    scoring: Annotated[
        str | None,
        opt.named(
            "NAME",
            "Score to compare by: a scikit-learn scorer, such as roc_auc or neg_log_loss.",
            default="accuracy, or the root mean squared error",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        opt.seconds("Time limit. Half of it is for the oblique trees; no fold starts after it."),
    ] = 60.0,
    output: Annotated[
        Path | None, opt.output("Also write the report to this file: .html, .json or .txt.")
    ] = None,
    plot: opt.PlotFile = None,
    drop: opt.DroppedColumns = None,
    use: opt.UsedColumns = None,
    weight: opt.WeightColumn = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Compare an oblique tree with a linear model, CART and ensembles on a table.

    Trains and scores all models on the same cross-validation folds. Prints scores with 95 %
    intervals, the time and size of each model, and whether the oblique tree is worth it. Ctrl-C
    keeps the completed folds (exit code 130).
    """
    from hardwood.selection import compare as compare_models

    if output is not None:
        check_writable(output, inputs=(table,))
        if output.suffix.lower() not in _REPORTS:
            raise CommandError(f"{output}: the name of a report must end in {', '.join(_REPORTS)}.")
    check_plot(plot, table)
    request = Request(table, target, task, drop, use, weight, 0.0)
    notes = Notes()
    with notes.collecting():
        data = read_dataset(request, np.random.default_rng(seed))
    if not as_json:
        print_size(data)
        print_task(data)
    stream = watched_stream()
    with notes.collecting(), data_errors(), Progress("Comparing", stream=stream) as progress:

        def on_fit(name: str, fold: int, n_folds: int) -> None:
            if was_interrupted():  # and another library has lost it
                raise KeyboardInterrupt
            progress.update(f"fold {fold + 1} of {n_folds}, {name}", share=fold / n_folds)

        with first_interrupt_only():
            found = compare_models(
                data.features,
                data.target.values,
                sample_weight=None if weight is None else data.weights,
                task=data.target.task,
                models=model or None,
                cv=folds,
                scoring=scoring,
                time_limit=time_limit,
                random_state=seed,
                n_jobs=jobs,
                callbacks=on_fit,
            )
    for name, why in found.left_out.items():
        notes.add(f"left out: {name}, {why}")
    for note in found.notes:
        notes.add(note)
    of_table = {
        "table": data.request.path,
        "target": data.target.name,
        "reason": data.target.reason,
        "left_out_columns": data.left_out,
        "output": output,
    }
    shown = f"\n{replace(found, notes=(), left_out={})}"  # notes are on stderr
    print_report(found, shown, of_table, notes, as_json=as_json, plot=plot, output=output)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
