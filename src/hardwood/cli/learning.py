"""From a table on disk to a tree with a test score: what `fit` and `demo` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.cli.evaluate import score
from hardwood.cli.failures import CommandError, data_mistakes
from hardwood.cli.holdout import hold_out
from hardwood.cli.identifiers import identifiers
from hardwood.cli.interrupts import first_interrupt_only
from hardwood.cli.metrics import Score, classification_scores, regression_scores
from hardwood.cli.options import MAX_RESTARTS
from hardwood.cli.progress import epoch_bar
from hardwood.cli.tables import check_column, read_table, without_columns
from hardwood.cli.targets import Target, Task, label_positions, read_target, read_weights

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.estimators import DGTClassifier, DGTRegressor
    from hardwood.model import ObliqueTree


@dataclass(frozen=True)
class Request:
    """Which columns of which file play which part.

    ``use`` are columns to learn from even if they look like identifiers.
    """

    path: Path
    target: str
    task: Task | None = None
    drop: tuple[str, ...] = ()
    use: tuple[str, ...] = ()
    weight: str | None = None
    test_fraction: float = 0.2


@dataclass(frozen=True)
class Problem:
    """Features, target and weights of the same rows, and which of them teach and test.

    ``left_out`` are the columns of the table that are no features for another reason than being the
    target or the weights: their names and the reasons.
    """

    features: pa.Table
    target: Target
    weights: np.ndarray
    train: np.ndarray
    test: np.ndarray
    n_table_rows: int
    left_out: dict[str, str]

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

    Rows without a target and rows of weight 0 are left out, and so are columns of identifiers.
    """
    path = request.path
    table = read_table(path)
    n_table_rows = table.num_rows
    weights = np.ones(table.num_rows)
    if request.weight is not None:
        weights = read_weights(table, request.weight, path)
        table, weights = table.filter(weights > 0), weights[weights > 0]
    target = read_target(table, request.target, path, request.task)
    features, left_out = _features(table, request)
    labels = target.values if target.task == "classification" else None
    train, test = hold_out(target.rows.size, request.test_fraction, rng, labels)
    return Problem(
        features.take(target.rows),
        target,
        weights[target.rows],
        train,
        test,
        n_table_rows,
        left_out,
    )


def _features(table: pa.Table, request: Request) -> tuple[pa.Table, dict[str, str]]:
    """Return the columns to learn from, and why others were left out."""
    path = request.path
    apart = [request.target, *request.drop] + ([request.weight] if request.weight else [])
    for name in request.use:
        check_column(table, name, path)
        if name in apart:
            raise CommandError(
                f"--use {name}: the column cannot be a feature and the target, the weights or "
                "dropped at once."
            )
    features = without_columns(table, dict.fromkeys(apart), path)
    found = identifiers(features, request.use)
    features = features.drop_columns(found)
    if features.num_columns == 0:
        hint = f" Left out as identifiers: {', '.join(found)}; --use keeps one." if found else ""
        raise CommandError(f"{path} has no column to learn from besides '{request.target}'.{hint}")
    return features, dict.fromkeys(request.drop, "--drop") | dict.fromkeys(found, "identifier")


def learn(problem: Problem, options: dict[str, Any]) -> DGTClassifier | DGTRegressor:
    """Fit an estimator to the training rows, with a progress bar; ``options`` are its parameters.

    Ctrl-C ends it early with the best tree so far and a FitInterruptedWarning; from then on, or
    from the end of learning, it is ignored until the command is done, lest the tree be lost.
    """
    from hardwood.estimators import DGTClassifier, DGTRegressor

    if options.get("restarts", 1) > MAX_RESTARTS:
        raise CommandError(f"--restarts {options['restarts']}: at most {MAX_RESTARTS} are made.")
    kind = DGTClassifier if problem.target.task == "classification" else DGTRegressor
    estimator = kind(**options)
    bar = epoch_bar(options.get("restarts"))
    with data_mistakes(), bar as on_epoch, first_interrupt_only():
        return estimator.set_params(callbacks=[on_epoch]).fit(
            problem.features.take(problem.train),
            problem.target.values[problem.train],
            sample_weight=problem.weights[problem.train],
        )


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


def with_origin(
    estimator: DGTClassifier | DGTRegressor,
    request: Request,
    problem: Problem,
    scores: list[Score],
) -> ObliqueTree:
    """Return the learned tree with the target's name and, in its record, where it comes from."""
    from hardwood.model import ObliqueTree

    tree = estimator.tree_
    origin = {
        "table": request.path.name,
        "table_rows": problem.n_table_rows,
        "resolved": _resolved(estimator),
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


def _resolved(estimator: DGTClassifier | DGTRegressor) -> dict[str, Any]:
    """Return what the parameters that were "auto" came to."""
    history = estimator.history_
    if not history:  # interrupted before the first epoch was over
        return {}
    used = {
        "max_epochs": history[0].max_epochs,
        "restarts": 1 + max(epoch.restart for epoch in history),
        "early_stopping": estimator.tree_.record["validation_rows"] > 0,
    }
    return {name: value for name, value in used.items() if getattr(estimator, name) == "auto"}
