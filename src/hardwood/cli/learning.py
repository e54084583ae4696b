"""From a table on disk to a tree with a test score: what `fit` and `demo` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.cli.evaluate import score
from hardwood.cli.failures import CommandError
from hardwood.cli.holdout import hold_out
from hardwood.cli.metrics import Score, classification_scores, regression_scores
from hardwood.cli.progress import epoch_bar
from hardwood.cli.tables import read_table, without_columns
from hardwood.cli.targets import Target, Task, label_positions, read_target, read_weights

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.model import ObliqueTree


@dataclass(frozen=True)
class Request:
    """Which columns of which file play which part."""

    path: Path
    target: str
    task: Task | None = None
    drop: tuple[str, ...] = ()
    weight: str | None = None
    test_fraction: float = 0.2


@dataclass(frozen=True)
class Problem:
    """Features, target and weights of the same rows, and which of them teach and test."""

    features: pa.Table
    target: Target
    weights: np.ndarray
    train: np.ndarray
    test: np.ndarray

    @property
    def test_features(self) -> pa.Table:
        """Features of the test rows."""
        return self.features.take(self.test)

    @property
    def test_values(self) -> np.ndarray:
        """Targets of the test rows."""
        return self.target.values[self.test]


def read_problem(request: Request, rng: np.random.Generator) -> Problem:
    """Read a table and divide it: features from target and weights, training from test rows.

    Rows without a target and rows of weight 0 are left out.
    """
    path = request.path
    table = read_table(path)
    weights = np.ones(table.num_rows)
    if request.weight is not None:
        weights = read_weights(table, request.weight, path)
        table, weights = table.filter(weights > 0), weights[weights > 0]
    target = read_target(table, request.target, path, request.task)
    apart = [request.target, *request.drop] + ([request.weight] if request.weight else [])
    features = without_columns(table, dict.fromkeys(apart), path)
    if features.num_columns == 0:
        raise CommandError(f"{path} has no column to learn from besides '{request.target}'.")
    labels = target.values if target.task == "classification" else None
    train, test = hold_out(target.rows.size, request.test_fraction, rng, labels)
    return Problem(features.take(target.rows), target, weights[target.rows], train, test)


def learn(problem: Problem, options: dict[str, Any]) -> ObliqueTree:
    """Learn from the training rows, with a progress bar; ``options`` are those of the estimators.

    Ctrl-C ends it early with the best tree so far and a FitInterruptedWarning.
    """
    from hardwood.estimators import DGTClassifier, DGTRegressor

    kind = DGTClassifier if problem.target.task == "classification" else DGTRegressor
    estimator = kind(**options)
    with epoch_bar(options.get("restarts")) as on_epoch:
        estimator.set_params(callbacks=[on_epoch]).fit(
            problem.features.take(problem.train),
            problem.target.values[problem.train],
            sample_weight=problem.weights[problem.train],
        )
    return estimator.tree_


def test_scores(
    tree: ObliqueTree, problem: Problem, rng: np.random.Generator
) -> tuple[list[Score], list[Score]]:
    """Scores on the test rows: of the tree, and of the best answer that looks at no feature."""
    if problem.test.size == 0:
        return [], []
    truth, weight = problem.test_values, problem.weights[problem.test]
    scores, _, _ = score(tree, problem.test_features, truth, weight, rng)
    past, past_weight = problem.target.values[problem.train], problem.weights[problem.train]
    if tree.classes is None:
        mean = np.full(truth.size, np.average(past, weights=past_weight))
        return scores, regression_scores(truth, mean, weight, rng)
    positions = label_positions(past, tree.classes)
    share = np.bincount(positions, past_weight, minlength=len(tree.classes))
    always = np.tile(share / share.sum(), (truth.size, 1))
    return scores, classification_scores(label_positions(truth, tree.classes), always, weight, rng)


def with_origin(tree: ObliqueTree, request: Request, problem: Problem, scores: list[Score]) -> Any:
    """Return the tree with the target's name and, in its record, where it comes from."""
    from hardwood.model import ObliqueTree

    origin = {
        "table": request.path.name,
        "training_rows": int(problem.train.size),
        "test_rows": int(problem.test.size),
        "test": {entry.name: entry.value for entry in scores if np.isfinite(entry.value)},
    }
    return ObliqueTree(
        tree.weights,
        tree.bias,
        tree.children,
        tree.values,
        schema=tree.schema,
        task=tree.task,
        counts=tree.counts,
        classes=tree.classes,
        target_names=request.target,
        record=tree.record | origin,
    )
