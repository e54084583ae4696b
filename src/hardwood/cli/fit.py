"""`hardwood fit`: learn a model from a table, score it, and write a model file.

`tune` and `demo` read, split, learn and score with the functions of this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable, data_errors
from hardwood.cli.evaluate import check_plot
from hardwood.cli.methods.names import MethodName, make_estimator
from hardwood.cli.outcome.metric import MainMetric, MetricName, metric_of
from hardwood.cli.outcome.report import FitOutcome, end_if_interrupted
from hardwood.cli.outcome.scores import (
    OtherModel,
    constant_scores,
    other_models,
    score_words,
    test_scores,
)
from hardwood.cli.output import (
    Notes,
    draw_report,
    note_no_split,
    print_dataset,
    print_search,
    print_text,
)
from hardwood.cli.process.interrupts import first_interrupt_only, was_interrupted
from hardwood.cli.read import (
    Target,
    check_column,
    columns_named,
    identifiers,
    read_table,
    read_targets,
    read_weights,
    without_columns,
)
from hardwood.clock import Clock
from hardwood.errors import TableError
from hardwood.report.resampling import Score
from hardwood.table.split import hold_out
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.model.base import Model

_SECOND = 1.0  # that the baselines may take after the shortest fit


def fit(
    context: typer.Context,
    table: opt.TableFile,
    target: opt.TargetColumn,
    output: opt.NewModelFile = None,
    task: opt.TaskOption = "auto",
    method: Annotated[
        MethodName,
        opt.one_of(MethodName, "How to learn. Each method has options: --method NAME --help."),
    ] = "tree",
    metric: Annotated[
        MetricName | None,
        opt.one_of(
            MetricName,
            "Test score to show first. A search for the best tree chooses by it, unless --scoring "
            "says otherwise.",
            default="accuracy, or rmse",
        ),
    ] = None,
    class_weight: opt.ClassWeight = "none",
    test_fraction: opt.TestFraction = 0.2,
    baselines: Annotated[
        bool,
        opt.flag("Also score a linear model and CART on the test rows; takes as long as the fit."),
    ] = True,
    drop: opt.DroppedColumns = None,
    use: opt.UsedColumns = None,
    weight: opt.WeightColumn = None,
    frontier: Annotated[
        Path | None,
        opt.named("FILE", "Also plot the best tree of every size: .png, .svg, .pdf, ..."),
    ] = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Learn a model from a table, score it on held-out rows, and write a model file.

    The default method, `tree`, searches for the best single tree within a time limit. Others:

    - `dgt`, `dgt-forest`: a tree or a forest, by gradient descent
    - `semantic`: a tree, by gradient descent on scores of its leaves
    - `tao`: a tree, by alternating optimization
    - `non-greedy`: a deep tree, by gradient descent on a bound of the loss
    - `reinforced`: a tree, by policy gradients
    - `greedy`: a tree, split by split, with axis-aligned, random, OC1 or CO2 splits
    - `tel`: an ensemble of soft trees
    - `latent`: a latent tree with a predictor on top

    The model learns from the training rows only; with --test-fraction 0, from all rows. The
    file is written to the current folder unless --output says otherwise; an existing file is
    replaced in one step at the end. Ctrl-C stops learning and keeps the best model so far (exit
    code 130).
    """
    output = output or model_file_of(table)
    check_writable(output, inputs=(table,))
    given: dict[str, Any] = context.obj
    if frontier is not None and (method != "tree" or given.get("leaves", "auto") != "auto"):
        raise CommandError("--frontier needs --method tree with --leaves auto, the defaults.")
    check_plot(frontier, table, output, option="--frontier")
    request = Request(table, target, task, drop, use, weight, test_fraction)
    notes, rng = Notes(), np.random.default_rng(seed)
    with notes.collecting():
        data = read_dataset(request, rng)
    measured = metric_of(metric, data.target) if metric else MainMetric("")
    options = given | shared_options(seed, jobs, class_weight)
    if method == "tree" and measured.guides_search:
        options = {"scoring": measured.scorer} | options
    estimator = make_estimator(method, data.target.task, options)
    if not as_json:
        print_dataset(data)
    clock = Clock(None)
    with notes.collecting():
        learn(data, estimator)
    seconds = max(clock.spent, _SECOND)
    with notes.collecting():
        outcome = outcome_of(estimator, data, rng, measured.name)
    note_no_split(outcome.model, notes, "; try a smaller --l1" if given.get("l1") else "")
    outcome.save(output)
    if frontier is not None:
        draw_report(estimator.frontier_, frontier)
    found = getattr(estimator, "fit_report_", None)
    if not as_json:
        if found is not None:
            print_search(found)
        outcome.print(output)
        if frontier is not None:
            print_text(f"Drew {frontier}")
    settings = {"seed": seed, "n_jobs": jobs, "scoring": measured.scorer}
    others = _others(outcome, notes, rng, seconds, **settings) if baselines else []
    if as_json:
        further = {} if found is None else {"search": found.to_dict()}
        further |= {"baselines": [each.to_dict() for each in others], "picture": frontier}
        outcome.print_json(output, notes, **further)
    elif others:
        _print_others(outcome, others)
    end_if_interrupted(notes)


def _others(
    outcome: FitOutcome, notes: Notes, rng: np.random.Generator, seconds: float, **settings: Any
) -> list[OtherModel]:
    """Measure the usual models; none of them after Ctrl-C, which ends this, too."""
    from hardwood.selection.models import Settings

    if notes.was_interrupted or not outcome.scores:
        return []
    of_all = Settings(outcome.data.target.task == "classification", **settings)
    try:
        with notes.collecting(), first_interrupt_only():
            return other_models(outcome.model, outcome.data, rng, of_all, seconds)
    except KeyboardInterrupt:
        notes.was_interrupted = True
        notes.add("interrupted after the model was written; other models were not measured")
        return []


def _print_others(outcome: FitOutcome, others: list[OtherModel]) -> None:
    """Print what other models reach, in a line each, below the new one."""
    metric = outcome.main_metric
    print_text(f"Other models on the same {plural(outcome.data.test.size, 'row')}:")
    print_text(f"  this one: {score_words(outcome.scores, metric)}")
    for each in others:
        print_text(f"  {each.line(metric)}")


def shared_options(seed: int, jobs: int, class_weight: opt.ClassWeightChoice) -> dict[str, Any]:
    """Return the parameters of an estimator that every method has."""
    shared: dict[str, Any] = {"n_jobs": jobs, "random_state": seed}
    return shared if class_weight == "none" else shared | {"class_weight": class_weight}


@dataclass(frozen=True)
class Request:
    """The table and the roles of its columns, as the options give them.

    ``target`` is one column, or several separated by commas; ``use`` are columns to learn from even
    if they look like identifiers.
    """

    path: Path
    target: str
    task: opt.TaskChoice = "auto"
    drop: Sequence[str] | None = None
    use: Sequence[str] | None = None
    weight: str | None = None
    test_fraction: float = 0.2


def model_file_of(table: Path) -> Path:
    """Return the default name of the model file, in the current folder."""
    return Path(table.name.split(".")[0] + ".hardwood")


@dataclass(frozen=True)
class Dataset:
    """Features, target and weights of the same rows, and the split into training and test rows.

    ``request`` has the options. ``left_out`` has the columns that are not used, other than the
    target and the weights, with the reasons.
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
        """The columns that are not used, with the reasons, for `--json`."""
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
    """Read a table; separate the target and the weights from the features, and hold out test rows.

    Rows without a target, rows of weight 0, and columns of identifiers are left out.
    """
    path = request.path
    table = read_table(path, target=request.target, task=request.task)
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
            f"{error} Use --test-fraction 0 to learn from all rows, without a test score."
        ) from error
    features, weights = features.take(target.rows), weights[target.rows]
    return Dataset(request, features, target, weights, train, test, n_table_rows, left_out)


def _features(
    table: pa.Table, request: Request, targets: tuple[str, ...]
) -> tuple[pa.Table, dict[str, str]]:
    """Return the columns to learn from, and the reasons for leaving out others."""
    path, drop, use = request.path, request.drop or (), request.use or ()
    apart = [*targets, *drop] + ([request.weight] if request.weight else [])
    for name in use:
        check_column(table, name, path)
        if name in apart:
            raise CommandError(
                f"--use {name}: the column cannot be a feature, because it is the target, the "
                "weights, or dropped."
            )
    features = without_columns(table, dict.fromkeys(apart), path)
    found = identifiers(features, use)
    features = features.drop_columns(found)
    if features.num_columns == 0:
        hint = (
            f" Left out as identifiers: {', '.join(found)}. Keep one with --use." if found else ""
        )
        raise CommandError(f"{path} has no feature columns besides '{request.target}'.{hint}")
    return features, dict.fromkeys(drop, "--drop") | dict.fromkeys(found, "identifier")


def learn(data: Dataset, estimator: Any) -> Any:
    """Fit an estimator to the training rows, and return it.

    Ctrl-C ends it early with the best model so far and a FitInterruptedWarning. From then on, or
    from the end of learning, Ctrl-C is only noted, so that the model is not lost.
    """
    X, y, weight = data.training
    if "callbacks" in estimator.get_params(deep=False):
        estimator.set_params(callbacks=[_stop_if_interrupted])
    with data_errors(), first_interrupt_only():
        return estimator.fit(X, y, sample_weight=weight)


def _stop_if_interrupted(event: Any) -> bool:
    """End a run or a search after Ctrl-C, should it not have heard of it; a callback."""
    return was_interrupted()


def model_of(estimator: Any) -> Model:
    """Return the model of a fitted estimator."""
    names = ("tree_", "forest_", "ensemble_", "model_")
    model: Model = next(getattr(estimator, name) for name in names if hasattr(estimator, name))
    return model


def outcome_of(
    estimator: Any, data: Dataset, rng: np.random.Generator, metric: str = ""
) -> FitOutcome:
    """Score what was learned, and add its origin to its record; ``metric`` comes first."""
    model = model_of(estimator)
    scores = test_scores(model, data, rng)
    baseline = constant_scores(model, data, rng)
    return FitOutcome(data, with_origin(estimator, data, scores), scores, baseline, metric)


def with_origin(estimator: Any, data: Dataset, scores: list[Score]) -> Model:
    """Return what was learned, with the names of the targets and its origin in its record."""
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


def _resolved(estimator: Any) -> dict[str, Any]:
    """Return the values that parameters with "auto" took, or how the best tree was built."""
    model = model_of(estimator)
    resolved = dict(model.record.get("resolved", {}))
    history = getattr(estimator, "history_", ())
    if history:  # empty when interrupted before the end of the first epoch
        first = model.hard_tree(0) if hasattr(estimator, "forest_") else model
        used = {
            "max_epochs": history[0].max_epochs,
            "n_restarts": 1 + max(epoch.restart for epoch in history),
            "early_stopping": first.record["validation_rows"] > 0,
        }
        parameters = estimator.get_params(deep=False)
        resolved |= {name: used[name] for name in used if parameters.get(name) == "auto"}
    return resolved
