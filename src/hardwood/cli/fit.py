"""`hardwood fit`: from a table to a model file, with a test score."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.evaluate import print_scores, score
from hardwood.cli.failures import INTERRUPTED, CommandError, check_writable
from hardwood.cli.holdout import hold_out
from hardwood.cli.metrics import Score, classification_scores, regression_scores
from hardwood.cli.models import size_words
from hardwood.cli.options import AsJson, Jobs, Seed, TableFile, TargetColumn, WeightColumn
from hardwood.cli.progress import epoch_bar
from hardwood.cli.report import collecting_notes, print_json, print_text, scores_json
from hardwood.cli.tables import read_table, without_columns
from hardwood.cli.targets import Target, label_positions, read_target, read_weights

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.model import ObliqueTree


class TaskChoice(str, Enum):
    """What `--task` takes."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


@dataclass(frozen=True)
class Problem:
    """Features, target and weights of the same rows, and which of them teach and test."""

    features: pa.Table
    target: Target
    weights: np.ndarray | None
    train: np.ndarray
    test: np.ndarray

    def weight_of(self, rows: np.ndarray) -> np.ndarray:
        """Sample weights of ``rows``, 1 where none were given."""
        return np.ones(rows.size) if self.weights is None else self.weights[rows]


def fit(
    table: TableFile,
    target: TargetColumn,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The model file. Default: TABLE's name + .hardwood, here."
        ),
    ] = None,
    task: Annotated[
        TaskChoice, typer.Option(help="What kind of answer; auto looks at the target.")
    ] = TaskChoice.auto,
    max_depth: Annotated[
        int | None, typer.Option(min=1, help="Splits on the longest path.")
    ] = None,
    restarts: Annotated[
        int | None,
        typer.Option(min=1, help="Trees to learn from different starts; the best is kept."),
    ] = None,
    l1: Annotated[
        float | None, typer.Option("--l1", min=0, help="Penalty that removes terms from splits.")
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

    The model is learned from the training rows alone; --test-fraction 0 learns from all. An
    existing model file is replaced, at the end and in one step. Ctrl-C stops learning and keeps
    the best tree so far (exit code 130).
    """
    output = Path(table.stem.split(".")[0] + ".hardwood") if output is None else output
    check_writable(output, inputs=(table,))
    notes: list[str] = []
    rng = np.random.default_rng(seed)
    options = {"max_depth": max_depth, "restarts": restarts, "l1": l1}
    with collecting_notes(notes):
        wanted = None if task is TaskChoice.auto else task.value
        problem = read_problem(table, target, wanted, drop or [], weight, test_fraction, rng)
        if not as_json:
            _print_problem(table, problem)
    chosen = {name: value for name, value in options.items() if value is not None}
    with collecting_notes(notes):
        tree, was_interrupted = learn(
            problem, table, chosen | {"n_jobs": jobs, "random_state": seed}
        )
    scores, baseline = test_scores(tree, problem, rng)
    tree.save(output)
    if as_json:
        print_json(_payload(table, output, problem, tree, scores, baseline, notes, was_interrupted))
    else:
        _print_outcome(output, problem, tree, scores, baseline, was_interrupted)
    if was_interrupted:
        raise typer.Exit(INTERRUPTED)


def read_problem(
    path: Path,
    target_name: str,
    task: Any,
    drop: list[str],
    weight_name: str | None,
    test_fraction: float,
    rng: np.random.Generator,
) -> Problem:
    """Read a table and divide it: features from target and weights, training from test rows."""
    table = read_table(path)
    target = read_target(table, target_name, path, task)
    weights = None if weight_name is None else read_weights(table, weight_name, path)[target.rows]
    apart = [target_name, *drop] + ([] if weight_name is None else [weight_name])
    features = without_columns(table, dict.fromkeys(apart), path)
    if features.num_columns == 0:
        raise CommandError(f"{path} has no column left to learn from besides '{target_name}'.")
    labels = target.values if target.task == "classification" else None
    train, test = hold_out(target.rows.size, test_fraction, rng, labels)
    return Problem(features.take(target.rows), target, weights, train, test)


def learn(problem: Problem, path: Path, options: dict[str, Any]) -> tuple[ObliqueTree, bool]:
    """Learn from the training rows, with a progress bar; also say whether Ctrl-C ended it early."""
    from hardwood.estimators import DGTClassifier, DGTRegressor

    kind = DGTClassifier if problem.target.task == "classification" else DGTRegressor
    weight = None if problem.weights is None else problem.weights[problem.train]
    with epoch_bar("Learning") as on_epoch:
        estimator = kind(**options, callbacks=[on_epoch])
        estimator.fit(
            problem.features.take(problem.train),
            problem.target.values[problem.train],
            sample_weight=weight,
        )
    return estimator.tree_, False


def test_scores(
    tree: ObliqueTree, problem: Problem, rng: np.random.Generator
) -> tuple[list[Score], list[Score]]:
    """Scores on the test rows of the tree, and of the best answer that looks at no feature."""
    rows = problem.test
    if rows.size == 0:
        return [], []
    truth, weight = problem.target.values[rows], problem.weight_of(rows)
    scores, _, _ = score(tree, problem.features.take(rows), truth, weight, rng)
    past, past_weight = problem.target.values[problem.train], problem.weight_of(problem.train)
    if tree.classes is None:
        mean = np.full(rows.size, np.average(past, weights=past_weight))
        return scores, regression_scores(truth, mean, weight, rng)
    positions = label_positions(past, tree.classes)
    share = np.bincount(positions, past_weight, minlength=len(tree.classes))
    always = np.tile(share / share.sum(), (rows.size, 1))
    return scores, classification_scores(label_positions(truth, tree.classes), always, weight, rng)


def _baseline_name(task: str) -> str:
    return "most frequent class" if task == "classification" else "training mean"


def _print_problem(path: Path, problem: Problem) -> None:
    target = problem.target
    print_text(f"{path}: {target.rows.size} rows, {problem.features.num_columns} features")
    print_text(f"Task: {target.task} of '{target.name}', because {target.reason}")
    if target.n_missing:
        print_text(f"Left out {target.n_missing} rows in which '{target.name}' is missing")
    print_text(
        f"Learning from {problem.train.size} rows; {problem.test.size} kept back for the test"
    )


def _print_outcome(
    output: Path,
    problem: Problem,
    tree: ObliqueTree,
    scores: list[Score],
    baseline: list[Score],
    was_interrupted: bool,
) -> None:
    if was_interrupted:
        print_text("Interrupted: this is the best tree so far.")
    print_text(f"Tree: {size_words(tree)}")
    if scores:
        title = f"Test score on {problem.test.size} rows"
        print_scores(title, scores, baseline, _baseline_name(problem.target.task))
    print_text(f"Wrote {output}   (read it with: hardwood describe {output})")


def _payload(
    path: Path,
    output: Path,
    problem: Problem,
    tree: ObliqueTree,
    scores: list[Score],
    baseline: list[Score],
    notes: list[str],
    was_interrupted: bool,
) -> dict[str, Any]:
    target = problem.target
    return {
        "table": str(path),
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
        "interrupted": was_interrupted,
        "notes": notes,
    }
