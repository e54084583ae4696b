"""`hardwood tune`: search for good parameters, then a model file as `hardwood fit` writes it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.failures import (
    INTERRUPTED,
    check_writable,
    data_mistakes,
    naming_the_file,
)
from hardwood.cli.learning import (
    Problem,
    Request,
    learn,
    model_file_of,
    read_problem,
    requested,
    test_scores,
    with_origin,
)
from hardwood.cli.options import (
    AUTO_RESTARTS,
    MAX_DEPTH,
    MAX_LAYERS,
    MAX_RESTARTS,
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
    words_of,
)
from hardwood.cli.outcome import (
    baseline_name,
    note_no_split,
    outcome_json,
    print_outcome,
    print_problem,
)
from hardwood.cli.report import Notes, print_json, print_table, print_text
from hardwood.errors import MissingExtraError
from hardwood.report.resampling import Score
from hardwood.text.numbers import format_number, plural

if TYPE_CHECKING:
    from hardwood.selection import FinishedTrial, TuningResult


# What a search may go by, among the scores of a model: the name there, and the sign of good.
_SCORES = {
    "log loss": ("log loss", -1.0),
    "neg_log_loss": ("log loss", -1.0),
    "accuracy": ("accuracy", 1.0),
    "balanced_accuracy": ("balanced accuracy", 1.0),
    "roc_auc": ("AUC", 1.0),
    "r2": ("R2", 1.0),
    "neg_root_mean_squared_error": ("RMSE", -1.0),
    "neg_mean_absolute_error": ("MAE", -1.0),
}
_SQUARED = ("squared error", "neg_mean_squared_error")
# The options that hold a parameter which is searched otherwise.
_HELD = ("max_depth", "layers")


class SamplerChoice(str, Enum):
    """What `--sampler` takes."""

    tpe = "tpe"
    random = "random"
    grid = "grid"


class PrunerChoice(str, Enum):
    """What `--pruner` takes."""

    median = "median"
    halving = "halving"
    none = "none"


@dataclass(frozen=True)
class _Plan:
    """How to search; the options of the command by their names."""

    trials: int | None
    timeout: float | None
    validation: float | int
    metric: str | None
    sampler: str
    pruner: str | None
    storage: str | None
    study: str


def tune(
    table: TableFile,
    target: TargetColumn,
    output: NewModelFile = None,
    task: TaskOption = TaskChoice.auto,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="How many sets of parameters to try, with those in --storage.",
            show_default="30; all with --sampler grid",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="SECONDS",
            callback=check_finite,
            help="When to end the search.",
            show_default="no limit",
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
            help="Splits on the longest path; searched unless given.",
            show_default="2, 4, 6, 8 and 10 are tried",
        ),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_LAYERS,
            metavar="N",
            help="Linear layers that splits are learned through; searched unless given.",
            show_default="1 and 3 are tried",
        ),
    ] = None,
    leaves: LeavesOption = LeavesChoice.constant,
    restarts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_RESTARTS,
            metavar="N",
            help="Trees to learn in every trial; the best is kept. The last fit has no fewer "
            "than by default.",
            show_default="auto: 4 where there is a validation part, else 1",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to judge by: a scorer of scikit-learn, such as accuracy or roc_auc.",
            show_default="log loss or squared error",
        ),
    ] = None,
    validation_fraction: Annotated[
        float,
        typer.Option(
            min=0.01, max=0.9, metavar="NUMBER", help="Share of the training rows that judges."
        ),
    ] = 0.2,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Judge by cross-validation instead: so many folds.",
            show_default="no folds",
        ),
    ] = None,
    sampler: Annotated[
        SamplerChoice,
        typer.Option(
            metavar=words_of(SamplerChoice),
            help="How parameters are drawn.",
        ),
    ] = SamplerChoice.tpe,
    pruner: Annotated[
        PrunerChoice,
        typer.Option(
            metavar=words_of(PrunerChoice),
            help="What ends hopeless trials early.",
        ),
    ] = PrunerChoice.median,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Keep the trials in this .db or .log file, and continue those that are there.",
            show_default="in memory",
        ),
    ] = None,
    study_name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the search in the storage.",
            show_default="TABLE's name and target",
        ),
    ] = None,
    test_fraction: TestFraction = 0.2,
    drop: DroppedColumns = None,
    use: UsedColumns = None,
    weight: WeightColumn = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    as_json: AsJson = False,
) -> None:
    """Search for good parameters of a tree, learn with the best, and write the model file.

    Parameters are judged on part of the training rows; the test score is of rows that neither
    taught nor judged. With --storage the same command continues a search that was interrupted.
    Ctrl-C ends the search, and the best parameters so far are learned with (exit code 130).
    """
    if find_spec("optuna") is None:
        raise MissingExtraError("optuna", extra="tune", purpose="hardwood tune")
    output = output or model_file_of(table)
    check_writable(output, inputs=(table, *([Path(storage)] if storage else [])))
    request = requested(table, target, task, drop, use, weight, test_fraction)
    given = {"max_depth": max_depth, "layers": layers, "restarts": restarts}
    held: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    held["leaves"] = leaves.value
    plan = _Plan(
        trials,
        timeout,
        validation_fraction if folds is None else folds,
        metric,
        sampler.value,
        None if pruner is PrunerChoice.none else pruner.value,
        storage,
        study_name or f"{table.name}: {target}",
    )
    _run(request, plan, held | {"n_jobs": jobs, "random_state": seed}, output, as_json)


def _run(
    request: Request, plan: _Plan, options: dict[str, Any], output: Path, as_json: bool
) -> None:
    notes, rng = Notes(), np.random.default_rng(options["random_state"])
    with notes.collecting():
        problem = read_problem(request, rng)
    found = _find(request, problem, plan, options, notes, as_json)
    with notes.collecting():
        estimator = learn(problem, _of_last_fit(options) | found.best_params)
    scores, baseline = test_scores(estimator.tree_, problem, rng)
    tree = with_origin(estimator, request, problem, scores)
    note_no_split(tree, notes)
    doubt = doubt_of_last_fit(found, scores, baseline, baseline_name(problem))
    if doubt:
        notes.add(doubt)
    with naming_the_file(output):
        tree.save(output)
    if as_json:
        of_fit = outcome_json(request, output, problem, tree, scores, baseline, notes)
        print_json(of_fit | _found_json(found, plan))
    else:
        print_outcome(output, problem, tree, scores, baseline)
    if notes.was_interrupted:
        raise typer.Exit(INTERRUPTED)


def _of_last_fit(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the last fit: few restarts make trials short, and a model poor."""
    if options.get("restarts", AUTO_RESTARTS) >= AUTO_RESTARTS:
        return options
    return {name: value for name, value in options.items() if name != "restarts"}


def doubt_of_last_fit(
    found: TuningResult, scores: list[Score], baseline: list[Score], name: str
) -> str | None:
    """Say where the test rows belie the search; None where they do not, or cannot tell.

    That is where the model is no better than the best answer which looks at no column, called
    ``name``, or has less than half of what the best trial was ahead of it.
    """
    got, least = goodness(found.metric, scores), goodness(found.metric, baseline)
    if got is None or least is None:
        return None
    promised = found.best_value if found.direction == "maximize" else -found.best_value
    if got <= least:
        what = f"{name} ({format_number(abs(least))})"
        words = f"is no better than the {what}: {found.metric} {format_number(abs(got))}"
    elif got < (least + promised) / 2:
        had = format_number(abs(promised))
        words = f"has {found.metric} {format_number(abs(got))}, its trial had {had}"
    else:
        return None
    return (
        f"on the test rows the model {words}; a search with another --seed or with more --restarts "
        "may end better"
    )


def goodness(metric: str, scores: list[Score]) -> float | None:
    """Return what a search goes by from the scores of a model, the larger the better.

    None where it is not among them or not defined.
    """
    values = {score.name: score.value for score in scores}
    if metric in _SQUARED:  # of several numbers, the mean over them
        squares = [v**2 for name, v in values.items() if name.split(" of ")[0] == "RMSE"]
        value = -float(np.mean(squares)) if squares else math.nan
    else:
        name, sign = _SCORES.get(metric, ("", 1.0))
        value = sign * values.get(name, math.nan)
    return value if math.isfinite(value) else None


def _find(
    request: Request,
    problem: Problem,
    plan: _Plan,
    options: dict[str, Any],
    notes: Notes,
    as_json: bool,
) -> TuningResult:
    """Search, and say what was found and what was not finished."""
    from hardwood.estimators.dgt import DGTClassifier, DGTRegressor

    kind = DGTClassifier if problem.target.task == "classification" else DGTRegressor
    estimator = kind(**options)
    done, n_trials = _done_before(plan), _n_trials(plan, estimator, _held(options))
    if not as_json:
        print_problem(request, problem)
        if done[0]:
            words = f"{plural(done[0], 'trial')} done"
            print_text(f"Continuing '{plan.study}' in {plan.storage}: {words}")
    bar = trial_bar(n_trials, *done, is_loss=plan.metric is None)
    with notes.collecting(), bar as (on_trial, on_epoch):
        estimator.set_params(callbacks=[on_epoch])
        found = _search(request, problem, plan, estimator, _held(options), on_trial)
    _note_unfinished(found, plan, n_trials, notes)
    failed = [trial.error for trial in found.trials if trial.state == "failed"]
    if failed:
        notes.add(f"{plural(len(failed), 'trial')} failed; the last one: {failed[-1]}")
    if not as_json:
        _print_found(found)
    return found


def _held(options: dict[str, Any]) -> list[str]:
    return [name for name in _HELD if name in options]


def _note_unfinished(found: TuningResult, plan: _Plan, n_trials: int, notes: Notes) -> None:
    if len(found.trials) >= n_trials:
        return
    where = "would continue with --storage FILE"
    if plan.storage is not None:
        where = f"continues from {plan.storage}"
    why = "" if found.interrupted else "time is up; "  # of Ctrl-C the search itself has told
    words = f"{len(found.trials)} of {plural(n_trials, 'trial')}"
    notes.add(f"{words}: {why}the same command {where}")


def _done_before(plan: _Plan) -> tuple[int, float | None]:
    from hardwood.selection.study import found_before

    with data_mistakes():
        return found_before(plan.storage, plan.study)


def _search(
    request: Request,
    problem: Problem,
    plan: _Plan,
    estimator: Any,
    fixed: list[str],
    on_trial: Callable[[FinishedTrial], None],
) -> TuningResult:
    """Search on the training rows."""
    from hardwood.selection import tune as search

    try:
        with data_mistakes(), failures_in_notes():
            return search(
                estimator,
                problem.features.take(problem.train),
                problem.target.values[problem.train],
                sample_weight=None if request.weight is None else problem.weights[problem.train],
                n_trials=plan.trials,
                timeout=plan.timeout,
                fixed=fixed,
                scoring=plan.metric,
                validation=plan.validation,
                sampler=plan.sampler,
                pruner=plan.pruner,
                storage=plan.storage,
                study_name=plan.study,
                random_state=estimator.random_state,
                refit=False,
                callbacks=[on_trial],
            )
    except KeyboardInterrupt:
        if plan.storage is None:
            raise
        raise KeyboardInterrupt(
            "interrupted before a trial was complete; no model was written. The same command "
            f"continues from {plan.storage}"
        ) from None


@contextmanager
def failures_in_notes() -> Iterator[None]:
    """Leave trials that fail to the notes, in place of a warning each."""
    from sklearn.exceptions import FitFailedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        yield


def _n_trials(plan: _Plan, estimator: Any, fixed: list[str]) -> int:
    from hardwood.selection import grid, space_of
    from hardwood.selection.tune import DEFAULT_TRIALS

    size = len(grid(space_of(estimator, None, fixed)))
    return min(plan.trials or (size if plan.sampler == "grid" else DEFAULT_TRIALS), size)


def _print_found(found: TuningResult) -> None:
    states = [(state, found.count(state)) for state in ("complete", "pruned", "failed")]
    words = ", ".join(f"{n} {state}" for state, n in states if n)
    print_text(f"Best of {plural(len(found.trials), 'trial')} ({words}): {_value_words(found)}")
    rows = [[name, str(value)] for name, value in found.best_params.items()]
    print_table("Best parameters", ["parameter", "value"], rows)


def _value_words(found: TuningResult) -> str:
    words = f"{found.metric} {format_number(found.best_value)} on validation rows"
    if found.metric == "squared error":
        words += f" (its root: {format_number(math.sqrt(found.best_value))})"
    return words


def _found_json(found: TuningResult, plan: _Plan) -> dict[str, Any]:
    return {
        "best_params": found.best_params,
        "validation": {"metric": found.metric, "value": found.best_value},
        "trials": {state: found.count(state) for state in ("complete", "pruned", "failed")},
        "storage": plan.storage,
        "study": plan.study,
    }


@contextmanager
def trial_bar(
    n_trials: int, n_done: int, best: float | None, *, is_loss: bool
) -> Iterator[tuple[Callable[[FinishedTrial], None], Callable[[Any], bool]]]:
    """Show a bar over the trials while the context lasts.

    Parameters
    ----------
    n_trials, n_done
        How many there shall be, and have been before.
    best
        The best value before.
    is_loss
        Whether small values are good.

    Yields
    ------
    on_trial, on_epoch
        What to call after every trial, and after every epoch of one.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("Tuning"),
        BarColumn(bar_width=20),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=n_trials, completed=n_done)

        def on_trial(trial: FinishedTrial) -> None:
            nonlocal n_done, best
            n_done += 1
            if trial.value is not None:
                known = [trial.value] if best is None else [trial.value, best]
                best = min(known) if is_loss else max(known)
            progress.update(bar, completed=n_done, description=_words(n_done, n_trials, best))

        def on_epoch(epoch: Any) -> bool:
            where = f", tree {epoch.restart + 1}, epoch {epoch.epoch + 1} of {epoch.max_epochs}"
            progress.update(bar, description=_words(n_done, n_trials, best) + where)
            return False

        yield on_trial, on_epoch


def _words(n_done: int, n_trials: int, best: float | None) -> str:
    found = "" if best is None else f", best so far {format_number(best)}"
    return f"{n_done} of {n_trials} trials{found}"
