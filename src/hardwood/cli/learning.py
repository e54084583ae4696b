"""From a table on disk to a model with a test score: what `fit`, `tune` and `demo` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.cli.evaluate import judge
from hardwood.cli.failures import CommandError, data_mistakes
from hardwood.cli.holdout import hold_out
from hardwood.cli.identifiers import identifiers
from hardwood.cli.interrupts import first_interrupt_only
from hardwood.cli.options import MAX_RESTARTS, MAX_TREES, TaskChoice
from hardwood.cli.progress import epoch_bar, tree_bar
from hardwood.cli.tables import check_column, read_table, without_columns
from hardwood.cli.targets import (
    Target,
    TaskKind,
    columns_named,
    label_positions,
    read_targets,
    read_weights,
)
from hardwood.report.metrics import (
    classification_scores,
    label_scores,
    regression_scores,
    several_regression_scores,
)
from hardwood.report.resampling import Score

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.estimators.dgt import DGTClassifier, DGTRegressor
    from hardwood.estimators.forest import DGTForestClassifier, DGTForestRegressor
    from hardwood.estimators.tree import TreeClassifier, TreeRegressor
    from hardwood.model.base import Model

    Searched = TreeClassifier | TreeRegressor
    Estimator = DGTClassifier | DGTRegressor | DGTForestClassifier | DGTForestRegressor | Searched


@dataclass(frozen=True)
class Request:
    """Which columns of which file play which part.

    ``target`` is one column or several with commas between them, ``use`` are columns to learn from
    even if they look like identifiers.
    """

    path: Path
    target: str
    task: TaskKind | None = None
    drop: tuple[str, ...] = ()
    use: tuple[str, ...] = ()
    weight: str | None = None
    test_fraction: float = 0.2


def requested(
    table: Path,
    target: str,
    task: TaskChoice,
    drop: list[str] | None,
    use: list[str] | None,
    weight: str | None,
    test_fraction: float,
) -> Request:
    """Make a request of the options of a command."""
    wanted: Any = None if task is TaskChoice.auto else task.value
    return Request(
        table, target, wanted, tuple(drop or ()), tuple(use or ()), weight, test_fraction
    )


def model_file_of(table: Path) -> Path:
    """Return where a model goes unless said otherwise: the current folder."""
    return Path(table.name.split(".")[0] + ".hardwood")


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
    target = read_targets(table, columns_named(table, request.target, path), path, request.task)
    features, left_out = _features(table, request, target.names)
    is_classified = target.task == "classification" and len(target.names) == 1
    labels = target.values if is_classified else None
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


def _features(
    table: pa.Table, request: Request, targets: tuple[str, ...]
) -> tuple[pa.Table, dict[str, str]]:
    """Return the columns to learn from, and why others were left out."""
    path = request.path
    apart = [*targets, *request.drop] + ([request.weight] if request.weight else [])
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


def learn(problem: Problem, options: dict[str, Any]) -> Estimator:
    """Fit an estimator to the training rows, with a progress bar; ``options`` are its parameters.

    It is a forest where they hold a number of trees, ``n_estimators``. Ctrl-C ends it early with
    the best so far and a FitInterruptedWarning; from then on, or from the end of learning, it is
    ignored until the command is done, lest the model be lost.
    """
    estimator = _estimator(problem.target.task, options)
    bar = epoch_bar(options.get("n_estimators", options.get("restarts")))
    return _fitted(estimator, problem, bar)


def search(problem: Problem, options: dict[str, Any]) -> Searched:
    """Find the best tree for the training rows, as `learn` does with one learner."""
    from hardwood.estimators.tree import TreeClassifier, TreeRegressor

    is_classified = problem.target.task == "classification"
    estimator = (TreeClassifier if is_classified else TreeRegressor)(**options)
    return _fitted(estimator, problem, tree_bar(options["max_trials"]))


def _fitted(estimator: Any, problem: Problem, bar: Any) -> Any:
    with data_mistakes(), bar as on_step, first_interrupt_only():
        return estimator.set_params(callbacks=[on_step]).fit(
            problem.features.take(problem.train),
            problem.target.values[problem.train],
            sample_weight=problem.weights[problem.train],
        )


def _estimator(task: TaskKind, options: dict[str, Any]) -> Estimator:
    from hardwood.estimators.dgt import DGTClassifier, DGTRegressor
    from hardwood.estimators.forest import DGTForestClassifier, DGTForestRegressor

    limits = {"restarts": ("--restarts", MAX_RESTARTS), "n_estimators": ("--trees", MAX_TREES)}
    for name, (option, most) in limits.items():
        if options.get(name, 1) > most:
            raise CommandError(f"{option} {options[name]}: at most {most} are made.")
    is_forest, is_classified = "n_estimators" in options, task == "classification"
    kinds = {
        (False, False): DGTRegressor,
        (False, True): DGTClassifier,
        (True, False): DGTForestRegressor,
        (True, True): DGTForestClassifier,
    }
    return kinds[is_forest, is_classified](**options)


def model_of(estimator: Estimator) -> Model:
    """Return what an estimator has learned."""
    model: Model = estimator.forest_ if hasattr(estimator, "forest_") else estimator.tree_
    return model


def test_scores(
    model: Model, problem: Problem, rng: np.random.Generator
) -> tuple[list[Score], list[Score]]:
    """Scores on the test rows: of the model, and of the best answer that looks at no feature."""
    if problem.test.size == 0:
        return [], []
    truth, weight, names = problem.test_values, problem.weights[problem.test], problem.target.names
    found = judge(model, problem.test_features, truth, weight, rng, names).scores
    past, past_weight = problem.target.values[problem.train], problem.weights[problem.train]
    if model.classes is not None:
        positions = label_positions(past, model.classes)
        share = np.bincount(positions, past_weight, minlength=len(model.classes))
        always = np.tile(share / share.sum(), (len(truth), 1))
        known = label_positions(truth, model.classes)
        return found, classification_scores(known, always, weight, rng)
    # Of zeros and ones the mean is the share of ones: the best probability that looks at nothing.
    mean = np.broadcast_to(np.average(past, axis=0, weights=past_weight), truth.shape)
    if model.task == "multilabel":
        return found, label_scores(truth, mean, names, weight, rng)
    if truth.ndim == 1:
        return found, regression_scores(truth, mean, weight, rng)
    return found, several_regression_scores(truth, mean, names, weight, rng)


def with_origin(
    estimator: Estimator, request: Request, problem: Problem, scores: list[Score]
) -> Model:
    """Return what was learned with the targets' names and, in its record, where it comes from."""
    model = model_of(estimator)
    origin = {
        "table": request.path.name,
        "table_rows": problem.n_table_rows,
        "resolved": _resolved(estimator),
        "training_rows": int(problem.train.size),
        "test_rows": int(problem.test.size),
        "test": {entry.name: entry.value for entry in scores if np.isfinite(entry.value)},
    }
    if hasattr(estimator, "oob_score_"):
        origin["oob_score"] = estimator.oob_score_
    return model.replace(target_names=problem.target.names, record=model.record | origin)


def _resolved(estimator: Estimator) -> dict[str, Any]:
    """Return what the parameters that were "auto" came to, or how the best tree was made."""
    if not hasattr(estimator, "history_"):
        resolved: dict[str, Any] = model_of(estimator).record["resolved"]
        return resolved
    history = estimator.history_
    if not history:  # interrupted before the first epoch was over
        return {}
    first = model_of(estimator).hard_trees[0]
    used = {
        "max_epochs": history[0].max_epochs,
        "restarts": 1 + max(epoch.restart for epoch in history),
        "early_stopping": first.record["validation_rows"] > 0,
    }
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in used.items() if parameters.get(name) == "auto"}
