"""`hardwood fit`: from a table to a model file, a tree or a forest, with a test score."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from hardwood.cli.failures import INTERRUPTED, CommandError, check_writable, naming_the_file
from hardwood.cli.learning import (
    learn,
    model_file_of,
    model_of,
    read_problem,
    requested,
    test_scores,
    with_origin,
)
from hardwood.cli.options import (
    MAX_DEPTH,
    MAX_LAYERS,
    AsJson,
    DroppedColumns,
    Jobs,
    LeavesChoice,
    LeavesOption,
    NewModelFile,
    Seed,
    TableFile,
    TargetColumn,
    TaskChoice,
    TaskOption,
    TestFraction,
    UsedColumns,
    WeightColumn,
    check_finite,
)
from hardwood.cli.outcome import note_no_split, outcome_json, print_outcome, print_problem
from hardwood.cli.report import Notes, print_json

DEFAULT_MAX_DEPTH = 6  # that of the estimators, which are too slow to import for a help text


def fit(
    table: TableFile,
    target: TargetColumn,
    output: NewModelFile = None,
    task: TaskOption = TaskChoice.auto,
    max_depth: Annotated[
        int,
        typer.Option(
            "--max-depth",
            "--height",
            min=1,
            max=MAX_DEPTH,
            metavar="N",
            help="Splits on the longest path.",
        ),
    ] = DEFAULT_MAX_DEPTH,
    trees: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="More than one: a forest, each tree from a sample of the rows; the paper has 30.",
        ),
    ] = 1,
    oob: Annotated[
        bool,
        typer.Option(
            "--oob", help="Score a forest also on training rows, by trees that did not draw them."
        ),
    ] = False,
    restarts: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Of one tree: starts to learn from; the best is kept.",
            show_default="auto: 4 where there is a validation part, else 1",
        ),
    ] = None,
    leaves: LeavesOption = LeavesChoice.constant,
    layers: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_LAYERS,
            metavar="N",
            help="Linear layers that splits are learned through; the paper tries 1 and 3.",
        ),
    ] = 1,
    l1: Annotated[
        float,
        typer.Option(
            "--l1",
            min=0,
            metavar="NUMBER",
            callback=check_finite,
            help="Penalty that removes terms from the splits; try 0.001.",
        ),
    ] = 0.0,
    test_fraction: TestFraction = 0.2,
    drop: DroppedColumns = None,
    use: UsedColumns = None,
    weight: WeightColumn = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
) -> None:
    """Learn a tree or a forest from a table, score it on rows kept back, write the model file.

    The model is learned from the training rows alone; --test-fraction 0 learns from all. The file
    goes to the current folder unless --output says otherwise. An existing model file is replaced,
    at the end and in one step. Ctrl-C stops learning and keeps the best tree so far, or the trees
    of a forest (exit code 130).
    """
    output = output or model_file_of(table)
    check_writable(output, inputs=(table,))
    request = requested(table, target, task, drop, use, weight, test_fraction)
    options = {"max_depth": max_depth, "leaves": leaves.value, "layers": layers, "l1": l1}
    options |= {"n_jobs": jobs, "random_state": seed} | _tree_or_forest(trees, restarts, oob)
    notes, rng = Notes(), np.random.default_rng(seed)
    with notes.collecting():
        problem = read_problem(request, rng)
    if not as_json:
        print_problem(request, problem)
    with notes.collecting():
        estimator = learn(problem, options)
    scores, baseline = test_scores(model_of(estimator), problem, rng)
    model = with_origin(estimator, request, problem, scores)
    note_no_split(model, notes, "; try a smaller --l1" if l1 else "")
    with naming_the_file(output):
        model.save(output)
    if as_json:
        print_json(outcome_json(request, output, problem, model, scores, baseline, notes))
    else:
        print_outcome(output, problem, model, scores, baseline)
    if notes.was_interrupted:
        raise typer.Exit(INTERRUPTED)


def _tree_or_forest(trees: int, restarts: int | None, oob: bool) -> dict[str, int]:
    if trees == 1:
        if oob:
            raise CommandError("--oob scores a forest: give --trees, too.")
        return {} if restarts is None else {"restarts": restarts}
    if restarts is not None:
        raise CommandError(
            "--restarts chooses one tree among several, and --trees keeps them all: give one of "
            "the two."
        )
    return {"n_estimators": trees, "oob_score": oob}
