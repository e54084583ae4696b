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
    search,
    test_scores,
    with_origin,
)
from hardwood.cli.options import (
    MAX_DEPTH,
    MAX_LAYERS,
    MAX_TRIALS,
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
from hardwood.cli.outcome import (
    note_no_split,
    outcome_json,
    print_outcome,
    print_problem,
    print_search,
)
from hardwood.cli.report import Notes, print_json

# Those of the estimators, which are too slow to import for a help text.
DEFAULT_MAX_DEPTH = 6
BEST_MAX_DEPTH = 8
BEST_TIME_LIMIT = 60.0


def fit(
    table: TableFile,
    target: TargetColumn,
    output: NewModelFile = None,
    task: TaskOption = TaskChoice.auto,
    best: Annotated[
        bool,
        typer.Option(
            "--best", help="Try many kinds of trees within a time limit, and keep the best."
        ),
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            callback=check_finite,
            help="Of --best: how long learning may take.",
            show_default=f"{BEST_TIME_LIMIT:g}, or none with --max-trials",
        ),
    ] = None,
    max_trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_TRIALS,
            metavar="N",
            help="Of --best: trees to try at most; without a time limit the same tree every time.",
            show_default="as many as help",
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option(
            "--max-depth",
            "--height",
            min=1,
            max=MAX_DEPTH,
            metavar="N",
            help="Splits on the longest path.",
            show_default=f"{DEFAULT_MAX_DEPTH}, with --best {BEST_MAX_DEPTH}",
        ),
    ] = None,
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
    of a forest (exit code 130). --best takes longer, a minute unless --time-limit says otherwise.
    """
    output = output or model_file_of(table)
    check_writable(output, inputs=(table,))
    request = requested(table, target, task, drop, use, weight, test_fraction)
    options = {"leaves": leaves.value, "n_jobs": jobs, "random_state": seed}
    if best:
        _check_alone(trees=trees > 1, oob=oob, restarts=restarts, layers=layers > 1, l1=l1)
        options |= _limits(max_depth, time_limit, max_trials)
    else:
        _check_best(time_limit=time_limit, max_trials=max_trials)
        options |= {"max_depth": max_depth or DEFAULT_MAX_DEPTH, "layers": layers, "l1": l1}
        options |= _tree_or_forest(trees, restarts, oob)
    notes, rng = Notes(), np.random.default_rng(seed)
    with notes.collecting():
        problem = read_problem(request, rng)
    if not as_json:
        print_problem(request, problem)
    with notes.collecting():
        estimator = search(problem, options) if best else learn(problem, options)
    scores, baseline = test_scores(model_of(estimator), problem, rng)
    model = with_origin(estimator, request, problem, scores)
    note_no_split(model, notes, "; try a smaller --l1" if l1 else "")
    with naming_the_file(output):
        model.save(output)
    found = getattr(estimator, "fit_report_", None)
    if as_json:
        outcome = outcome_json(request, output, problem, model, scores, baseline, notes)
        print_json(outcome if found is None else outcome | {"search": found.to_dict()})
    else:
        if found is not None:
            print_search(found)
        print_outcome(output, problem, model, scores, baseline)
    if notes.was_interrupted:
        raise typer.Exit(INTERRUPTED)


def _check_alone(**given: object) -> None:
    """Refuse options of one learner beside the choice among several."""
    names = [f"--{name}" for name, value in given.items() if value]
    if names:
        raise CommandError(
            f"--best chooses how trees are learned, and does not take {', '.join(names)}. Its own "
            "options are --time-limit, --max-trials, --max-depth and --leaves."
        )


def _check_best(**given: object) -> None:
    """Refuse the limits of a search where there is none."""
    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    if names:
        raise CommandError(f"{', '.join(names)}: of a search only. Give --best, too.")


def _limits(
    max_depth: int | None, time_limit: float | None, max_trials: int | None
) -> dict[str, float | None]:
    if time_limit is None and max_trials is None:
        time_limit = BEST_TIME_LIMIT
    depth = max_depth or BEST_MAX_DEPTH
    return {"max_depth": depth, "time_limit": time_limit, "max_trials": max_trials}


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
