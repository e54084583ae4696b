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
from hardwood.cli.report import Notes, counted, print_json, print_text, scores_json

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree


DEFAULT_MAX_DEPTH = 6  # that of the estimators, which are too slow to import for a help text


class TaskChoice(str, Enum):
    """What `--task` takes."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


def _check_finite(value: float) -> float:
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number")
    return value


def fit(
    table: TableFile,
    target: TargetColumn,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The model file.",
            show_default="TABLE's name with .hardwood",
        ),
    ] = None,
    task: Annotated[
        TaskChoice,
        typer.Option(
            metavar="|".join(choice.value for choice in TaskChoice),
            help="What kind of answer; auto looks at the target.",
        ),
    ] = TaskChoice.auto,
    max_depth: Annotated[
        int, typer.Option(min=1, max=16, metavar="N", help="Splits on the longest path.")
    ] = DEFAULT_MAX_DEPTH,
    restarts: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Trees to learn from different starts; the best is kept.",
            show_default="auto: 4 where there is a validation part, else 1",
        ),
    ] = None,
    l1: Annotated[
        float,
        typer.Option(
            "--l1",
            min=0,
            metavar="NUMBER",
            callback=_check_finite,
            help="Penalty that removes terms from the splits; try 0.001.",
        ),
    ] = 0.0,
    test_fraction: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.9,
            metavar="NUMBER",
            help="Share of the rows kept back for the test score.",
        ),
    ] = 0.2,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out; may be repeated."),
    ] = None,
    use: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Learn from this column even if it looks like an identifier; may be repeated.",
        ),
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
    request = Request(
        table, target, wanted, tuple(drop or ()), tuple(use or ()), weight, test_fraction
    )
    options = {"max_depth": max_depth, "l1": l1, "n_jobs": jobs, "random_state": seed}
    if restarts is not None:
        options["restarts"] = restarts
    notes, rng = Notes(), np.random.default_rng(seed)
    with notes.collecting():
        problem = read_problem(request, rng)
    if not as_json:
        _print_problem(request, problem)
    with notes.collecting():
        estimator = learn(problem, options)
    scores, baseline = test_scores(estimator.tree_, problem, rng)
    tree = with_origin(estimator, request, problem, scores)
    if tree.n_splits == 0:
        advice = "; try a smaller --l1" if l1 else ""
        notes.add(f"no split survived: the tree gives every row the same answer{advice}")
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
    print_text(f"{request.path}: {counted(n_rows, 'row')}, {counted(n_features, 'feature')}")
    if target.n_missing:
        print_text(
            f"Left out: {counted(target.n_missing, 'row')} in which '{target.name}' is missing"
        )
    print_text(f"Task: {target.task} of '{target.name}', because {target.reason}")
    n_train, n_test = problem.train.size, problem.test.size
    kept = f"{n_test} are kept back for the test score" if n_test else "none is kept back"
    print_text(f"Learning from {n_train} rows; {kept}")


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
        "left_out": [
            {"column": name, "reason": reason} for name, reason in problem.left_out.items()
        ],
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
