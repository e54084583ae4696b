"""`hardwood fit`: from a table to a model file, a tree or a forest, with a test score.

How a table is read and divided, learned from and scored on is shared by `tune` and `demo`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable, data_mistakes, first_interrupt_only
from hardwood.cli.evaluate import judge
from hardwood.cli.output import (
    FitOutcome,
    Notes,
    note_no_split,
    print_dataset,
    print_search,
)
from hardwood.cli.progress import epoch_callback, progress_bar, search_callback
from hardwood.cli.read import (
    Target,
    TaskKind,
    check_column,
    columns_named,
    identifiers,
    label_positions,
    read_table,
    read_targets,
    read_weights,
    without_columns,
)
from hardwood.errors import TableError
from hardwood.report.metrics import (
    classification_scores,
    label_scores,
    regression_scores,
    several_regression_scores,
)
from hardwood.report.resampling import Score
from hardwood.table.split import hold_out

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.estimators.dgt import DGTClassifier, DGTRegressor
    from hardwood.estimators.forest import DGTForestClassifier, DGTForestRegressor
    from hardwood.estimators.tree import TreeClassifier, TreeRegressor
    from hardwood.model.base import Model

    Searched = TreeClassifier | TreeRegressor
    Estimator = DGTClassifier | DGTRegressor | DGTForestClassifier | DGTForestRegressor | Searched


# Those of the estimators, which are too slow to import for a help text.
DEFAULT_MAX_DEPTH = 6
BEST_MAX_DEPTH = 8
BEST_TIME_LIMIT = 60.0


def fit(
    table: opt.TableFile,
    target: opt.TargetColumn,
    output: opt.NewModelFile = None,
    task: opt.TaskOption = "auto",
    best: Annotated[
        bool,
        opt.flag("Try many kinds of trees within a time limit, and keep the best.", "--best"),
    ] = False,
    time_limit: Annotated[
        float | None,
        opt.seconds(
            "Of --best: how long learning may take.",
            f"{BEST_TIME_LIMIT:g}, or none with --max-trials",
        ),
    ] = None,
    max_trials: Annotated[
        int | None,
        opt.count(
            "Of --best: trees to try at most; without a time limit the same tree every time.",
            high=opt.MAX_TRIALS,
            default="as many as help",
        ),
    ] = None,
    max_depth: Annotated[
        int | None, opt.depth(f"{DEFAULT_MAX_DEPTH}, with --best {BEST_MAX_DEPTH}")
    ] = None,
    trees: Annotated[
        int,
        opt.count(
            "More than one: a forest, each tree from a sample of the rows; the paper has 30."
        ),
    ] = 1,
    oob: Annotated[
        bool,
        opt.flag("Score a forest also on training rows, by trees that did not draw them.", "--oob"),
    ] = False,
    restarts: Annotated[
        int | None,
        opt.count(
            "Of one tree: starts to learn from; the best is kept.",
            default="auto: 4 where there is a validation part, else 1",
        ),
    ] = None,
    leaves: opt.LeavesOption = "constant",
    layers: Annotated[
        int,
        opt.count(
            "Linear layers that splits are learned through; the paper tries 1 and 3.",
            high=opt.MAX_LAYERS,
        ),
    ] = 1,
    l1: Annotated[
        float,
        opt.number("Penalty that removes terms from the splits; try 0.001.", "--l1", low=0),
    ] = 0.0,
    test_fraction: opt.TestFraction = 0.2,
    drop: opt.DroppedColumns = None,
    use: opt.UsedColumns = None,
    weight: opt.WeightColumn = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Learn a tree or a forest from a table, score it on rows kept back, write the model file.

    The model is learned from the training rows alone; --test-fraction 0 learns from all. The file
    goes to the current folder unless --output says otherwise. An existing model file is replaced,
    at the end and in one step. Ctrl-C stops learning and keeps the best tree so far, or the trees
    of a forest (exit code 130). --best takes longer, a minute unless --time-limit says otherwise.
    """
    output = output or model_file_of(table)
    check_writable(output, inputs=(table,))
    request = Request(table, target, task, drop, use, weight, test_fraction)
    options: dict[str, Any] = {"leaves": leaves, "n_jobs": jobs, "random_state": seed}
    if best:
        _check_alone(trees=trees > 1, oob=oob, restarts=restarts, layers=layers > 1, l1=l1)
        if time_limit is None and max_trials is None:
            time_limit = BEST_TIME_LIMIT
        options |= {"max_depth": max_depth or BEST_MAX_DEPTH}
        options |= {"time_limit": time_limit, "max_trials": max_trials}
    else:
        _check_best(time_limit=time_limit, max_trials=max_trials)
        options |= {"max_depth": max_depth or DEFAULT_MAX_DEPTH, "layers": layers, "l1": l1}
        options |= _tree_or_forest(trees, restarts, oob)
    notes, rng = Notes(), np.random.default_rng(seed)
    with notes.collecting():
        data = read_dataset(request, rng)
    if not as_json:
        print_dataset(data)
    with notes.collecting():
        estimator = search(data, options) if best else learn(data, options)
    outcome = outcome_of(estimator, data, rng)
    note_no_split(outcome.model, notes, "; try a smaller --l1" if l1 else "")
    found = getattr(estimator, "fit_report_", None)
    if found is not None and not as_json:
        print_search(found)
    further = {} if found is None else {"search": found.to_dict()}
    outcome.write(output, notes, as_json=as_json, further=further)


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


def _tree_or_forest(trees: int, restarts: int | None, oob: bool) -> dict[str, int]:
    if trees == 1:
        if oob:
            raise CommandError("--oob scores a forest: give --trees, too.")
        return {} if restarts is None else {"n_restarts": restarts}
    if restarts is not None:
        raise CommandError(
            "--restarts chooses one tree among several, and --trees keeps them all: give one of "
            "the two."
        )
    return {"n_estimators": trees, "oob_score": oob}


@dataclass(frozen=True)
class Request:
    """Which columns of which file play which part, as the options say.

    ``target`` is one column or several with commas between them, ``use`` are columns to learn from
    even if they look like identifiers.
    """

    path: Path
    target: str
    task: opt.TaskChoice = "auto"
    drop: Sequence[str] | None = None
    use: Sequence[str] | None = None
    weight: str | None = None
    test_fraction: float = 0.2


def model_file_of(table: Path) -> Path:
    """Return where a model goes unless said otherwise: the current folder."""
    return Path(table.name.split(".")[0] + ".hardwood")


@dataclass(frozen=True)
class Dataset:
    """Features, target and weights of the same rows, and which of them train and test.

    ``request`` is what was asked for. ``left_out`` are the columns that are no features
    for another reason than being the target or the weights: their names and the reasons.
    """

    request: Request
    features: pa.Table
    target: Target
    weights: np.ndarray
    train: np.ndarray
    test: np.ndarray
    n_table_rows: int
    left_out: dict[str, str]

    @property
    def left_out_json(self) -> list[dict[str, str]]:
        """What was left out and why, for `--json`."""
        return [{"column": name, "reason": reason} for name, reason in self.left_out.items()]

    @property
    def training(self) -> tuple[pa.Table, np.ndarray, np.ndarray]:
        """Features, targets and weights of the training rows."""
        rows = self.train
        return self.features.take(rows), self.target.values[rows], self.weights[rows]

    @property
    def test_features(self) -> pa.Table:
        """Features of the test rows."""
        return self.features.take(self.test)

    @property
    def test_values(self) -> np.ndarray:
        """Targets of the test rows."""
        return self.target.values[self.test]


def read_dataset(request: Request, rng: np.random.Generator) -> Dataset:
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
    target = read_targets(
        table,
        columns_named(table, request.target, path),
        path,
        None if request.task == "auto" else request.task,
    )
    features, left_out = _features(table, request, target.names)
    is_classified = target.task == "classification" and len(target.names) == 1
    labels = target.values if is_classified else None
    try:
        train, test = hold_out(target.rows.size, request.test_fraction, rng, labels)
    except TableError as error:
        raise CommandError(
            f"{error} Use --test-fraction 0 to learn from all of them, without a test score."
        ) from error
    features, weights = features.take(target.rows), weights[target.rows]
    return Dataset(request, features, target, weights, train, test, n_table_rows, left_out)


def _features(
    table: pa.Table, request: Request, targets: tuple[str, ...]
) -> tuple[pa.Table, dict[str, str]]:
    """Return the columns to learn from, and why others were left out."""
    path, drop, use = request.path, request.drop or (), request.use or ()
    apart = [*targets, *drop] + ([request.weight] if request.weight else [])
    for name in use:
        check_column(table, name, path)
        if name in apart:
            raise CommandError(
                f"--use {name}: the column cannot be a feature and the target, the weights or "
                "dropped at once."
            )
    features = without_columns(table, dict.fromkeys(apart), path)
    found = identifiers(features, use)
    features = features.drop_columns(found)
    if features.num_columns == 0:
        hint = f" Left out as identifiers: {', '.join(found)}; --use keeps one." if found else ""
        raise CommandError(f"{path} has no column to learn from besides '{request.target}'.{hint}")
    return features, dict.fromkeys(drop, "--drop") | dict.fromkeys(found, "identifier")


def learn(data: Dataset, options: dict[str, Any]) -> Estimator:
    """Fit an estimator to the training rows, with a progress bar; ``options`` are its parameters.

    It is a forest where they hold a number of trees, ``n_estimators``. Ctrl-C ends it early with
    the best so far and a FitInterruptedWarning; from then on, or from the end of learning, it is
    ignored until the command is done, lest the model be lost.
    """
    estimator = _estimator(data.target.task, options)
    n_trees = options.get("n_estimators", options.get("n_restarts"))
    with progress_bar("Learning") as move:
        return _fitted(estimator, data, epoch_callback(move, n_trees))


def search(data: Dataset, options: dict[str, Any]) -> Searched:
    """Find the best tree for the training rows, as `learn` does with one learner."""
    from hardwood.estimators.tree import TreeClassifier, TreeRegressor

    is_classified = data.target.task == "classification"
    estimator = (TreeClassifier if is_classified else TreeRegressor)(**options)
    with progress_bar("Learning", options["max_trials"]) as move:
        return _fitted(estimator, data, search_callback(move))


def _fitted(estimator: Any, data: Dataset, callback: Callable[[Any], bool]) -> Any:
    with data_mistakes(), first_interrupt_only():
        X, y, weight = data.training
        return estimator.set_params(callbacks=[callback]).fit(X, y, sample_weight=weight)


def _estimator(task: TaskKind, options: dict[str, Any]) -> Estimator:
    from hardwood.estimators.dgt import DGTClassifier, DGTRegressor
    from hardwood.estimators.forest import DGTForestClassifier, DGTForestRegressor

    limits = {
        "n_restarts": ("--restarts", opt.MAX_RESTARTS),
        "n_estimators": ("--trees", opt.MAX_TREES),
    }
    for name, (option, most) in limits.items():
        if options.get(name, 1) > most:
            raise CommandError(f"{option} {options[name]}: at most {most} are made.")
    is_classified = task == "classification"
    if "n_estimators" in options:
        return (DGTForestClassifier if is_classified else DGTForestRegressor)(**options)
    return (DGTClassifier if is_classified else DGTRegressor)(**options)


def model_of(estimator: Estimator) -> Model:
    """Return what an estimator has learned."""
    model: Model = estimator.forest_ if hasattr(estimator, "forest_") else estimator.tree_
    return model


def test_scores(
    model: Model, data: Dataset, rng: np.random.Generator
) -> tuple[list[Score], list[Score]]:
    """Scores on the test rows: of the model, and of the best answer that looks at no feature."""
    if data.test.size == 0:
        return [], []
    truth, weight, names = data.test_values, data.weights[data.test], data.target.names
    found = judge(model, data.test_features, truth, weight, rng, names).scores
    past, past_weight = data.target.values[data.train], data.weights[data.train]
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


def outcome_of(estimator: Estimator, data: Dataset, rng: np.random.Generator) -> FitOutcome:
    """Score what was learned, and note in its record where it comes from."""
    scores, baseline = test_scores(model_of(estimator), data, rng)
    return FitOutcome(data, with_origin(estimator, data, scores), scores, baseline)


def with_origin(estimator: Estimator, data: Dataset, scores: list[Score]) -> Model:
    """Return what was learned with the targets' names and, in its record, where it comes from."""
    model = model_of(estimator)
    origin = {
        "table": data.request.path.name,
        "table_rows": data.n_table_rows,
        "resolved": _resolved(estimator),
        "training_rows": int(data.train.size),
        "test_rows": int(data.test.size),
        "test": {entry.name: entry.value for entry in scores if np.isfinite(entry.value)},
    }
    if hasattr(estimator, "oob_score_"):
        origin["oob_score"] = estimator.oob_score_
    return model.replace(target_names=data.target.names, record=model.record | origin)


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
        "n_restarts": 1 + max(epoch.restart for epoch in history),
        "early_stopping": first.record["validation_rows"] > 0,
    }
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in used.items() if parameters.get(name) == "auto"}
