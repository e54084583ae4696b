"""`hardwood fit`: from a table to a model file, with a test score."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.evaluate import print_scores
from hardwood.cli.failures import INTERRUPTED, check_writable, naming_the_file
from hardwood.cli.learning import Problem, Request, learn, read_problem, test_scores, with_origin
from hardwood.cli.metrics import Score
from hardwood.cli.models import size_words
from hardwood.cli.options import AsJson, Jobs, Seed, TableFile, TargetColumn, WeightColumn
from hardwood.cli.report import Notes, print_json, print_text, scores_json

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree


class TaskChoice(str, Enum):
    """What `--task` takes."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


def _check_finite(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number")
    return value


def fit(
    table: TableFile,
    target: TargetColumn,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Model file. Default: TABLE's name with .hardwood."),
    ] = None,
    task: Annotated[
        TaskChoice, typer.Option(help="What kind of answer; auto looks at the target.")
    ] = TaskChoice.auto,
    max_depth: Annotated[
        int | None, typer.Option(min=1, max=16, help="Splits on the longest path.")
    ] = None,
    restarts: Annotated[
        int | None, typer.Option(min=1, help="Trees from different starts; the best is kept.")
    ] = None,
    l1: Annotated[
        float | None,
        typer.Option("--l1", min=0, callback=_check_finite, help="Penalty that removes terms."),
    ] = None,
    test_fraction: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the rows kept back for the test score.")
    ] = 0.2,
    drop: Annotated[
        list[str] | None, typer.Option(help="Leave this column out; may be repeated.")
    ] = None,
    weight: WeightColumn = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
) -> None:
    """Learn a tree from a table, score it on rows kept back, and write the model file.

    The model is learned from the training rows alone; --test-fraction 0 learns from all. The file
    goes to the current folder unless --output says otherwise. An existing model file is replaced,
    at the end and in one step. Ctrl-C stops learning and keeps the best tree so far (exit code
    130).
    """
    output = Path(table.name.split(".")[0] + ".hardwood") if output is None else output
    check_writable(output, inputs=(table,))
    wanted: Any = None if task is TaskChoice.auto else task.value
    request = Request(table, target, wanted, tuple(drop or ()), weight, test_fraction)
    given = {"max_depth": max_depth, "restarts": restarts, "l1": l1}
    options = {name: value for name, value in given.items() if value is not None}
    notes, rng = Notes(), np.random.default_rng(seed)
    with notes.collecting():
        problem = read_problem(request, rng)
    if not as_json:
        _print_problem(request, problem)
    with notes.collecting():
        tree = learn(problem, options | {"n_jobs": jobs, "random_state": seed})
    scores, baseline = test_scores(tree, problem, rng)
    tree = with_origin(tree, request, problem, scores)
    with naming_the_file(output):
        tree.save(output)
    if as_json:
        print_json(_payload(request, output, problem, tree, scores, baseline, notes))
    else:
        _print_outcome(output, problem, tree, scores, baseline)
    if notes.was_interrupted:
        raise typer.Exit(INTERRUPTED)


def _baseline_name(task: str) -> str:
    return "most frequent class" if task == "classification" else "training mean"


def _print_problem(request: Request, problem: Problem) -> None:
    target = problem.target
    n_rows, n_features = problem.features.num_rows, problem.features.num_columns
    print_text(f"{request.path}: {n_rows} rows, {n_features} features")
    if target.n_missing:
        print_text(f"Left out: {target.n_missing} rows in which '{target.name}' is missing")
    print_text(f"Task: {target.task} of '{target.name}', because {target.reason}")
    n_train, n_test = problem.train.size, problem.test.size
    print_text(f"Learning from {n_train} rows; {n_test} are kept back for the test score")


def _print_outcome(
    output: Path, problem: Problem, tree: ObliqueTree, scores: list[Score], baseline: list[Score]
) -> None:
    print_text(f"Tree: {size_words(tree)}")
    if scores:
        title = f"Test score on {problem.test.size} rows"
        print_scores(title, scores, baseline, _baseline_name(problem.target.task))
    print_text(f"Wrote {output}   (read it with: hardwood describe {output})")


def _payload(
    request: Request,
    output: Path,
    problem: Problem,
    tree: ObliqueTree,
    scores: list[Score],
    baseline: list[Score],
    notes: Notes,
) -> dict[str, Any]:
    target = problem.target
    return {
        "table": str(request.path),
        "model": str(output),
        "target": target.name,
        "task": target.task,
        "reason": target.reason,
        "n_features": problem.features.num_columns,
        "n_train": problem.train.size,
        "n_test": problem.test.size,
        "n_missing_target": target.n_missing,
        "depth": tree.depth,
        "n_leaves": tree.n_leaves,
        "test": scores_json(scores),
        "baseline": {"name": _baseline_name(target.task), "test": scores_json(baseline)},
        "interrupted": notes.was_interrupted,
        "notes": notes.messages,
    }
