"""`hardwood tune`: search for good parameters, and write a model file as `hardwood fit` does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from hardwood.cli import options as opt
from hardwood.cli.errors import check_writable, data_errors
from hardwood.cli.fit import (
    Dataset,
    Request,
    learn,
    model_file_of,
    outcome_of,
    read_dataset,
    shared_options,
)
from hardwood.cli.methods.names import TunedMethodName, make_estimator
from hardwood.cli.outcome.report import baseline_name, end_if_interrupted
from hardwood.cli.output import (
    Notes,
    note_no_split,
    print_dataset,
    print_table,
    print_text,
)
from hardwood.cli.process.interrupts import first_interrupt_only
from hardwood.errors import MissingExtraError
from hardwood.progress import Progress, watched_stream
from hardwood.report.resampling import Score
from hardwood.text.numbers import format_number, plural

if TYPE_CHECKING:
    from hardwood.selection import FinishedTrial, TuningResult


# Scoring names: the name of the score in reports, and 1 if larger is better, -1 if smaller is.
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

SamplerChoice = Literal["tpe", "random", "grid"]
"""What `--sampler` takes."""


PrunerChoice = Literal["median", "halving", "none"]
"""What `--pruner` takes."""


@dataclass(frozen=True)
class _Plan:
    """How to search: arguments of `hardwood.tune`."""

    n_trials: int | None
    time_limit: float | None
    validation: float | int
    scoring: str | None
    sampler: str
    pruner: str | None
    storage: str | None
    study_name: str


def tune(
    context: typer.Context,
    table: opt.TableFile,
    target: opt.TargetColumn,
    output: opt.NewModelFile = None,
    task: opt.TaskOption = "auto",
    method: Annotated[
        TunedMethodName,
        opt.one_of(
            TunedMethodName,
            "What to tune. Each method has options, which fix parameters: --method NAME --help.",
        ),
    ] = "dgt",
    n_trials: Annotated[
        int | None,
        opt.count(
            "Number of parameter settings to try, including those in --storage.",
            default="30; the whole grid with --sampler grid",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        opt.seconds("Time after which no trial starts.", "no limit"),
    ] = None,
    scoring: Annotated[
        str | None,
        opt.named(
            "NAME",
            "Score to optimize: a scorer that scikit-learn knows, such as accuracy or roc_auc.",
            default="the loss of the method",
        ),
    ] = None,
    validation_fraction: Annotated[
        float,
        opt.number("Share of the training rows held out to score trials.", low=0.01, high=0.9),
    ] = 0.2,
    folds: Annotated[
        int | None,
        opt.count(
            "Score trials by cross-validation with this many folds instead.",
            low=2,
            default="no cross-validation",
        ),
    ] = None,
    sampler: Annotated[
        SamplerChoice,
        opt.one_of(SamplerChoice, "How settings are drawn."),
    ] = "tpe",
    pruner: Annotated[
        PrunerChoice,
        opt.one_of(PrunerChoice, "Rule that stops poor trials early."),
    ] = "median",
    storage: Annotated[
        str | None,
        opt.named(
            "FILE",
            "Store trials in this .db or .log file, and continue the search that it holds.",
            default="in memory",
        ),
    ] = None,
    study_name: Annotated[
        str | None,
        opt.named("NAME", "Name of the search in the storage.", default="from TABLE and target"),
    ] = None,
    class_weight: opt.ClassWeight = "none",
    test_fraction: opt.TestFraction = 0.2,
    drop: opt.DroppedColumns = None,
    use: opt.UsedColumns = None,
    weight: opt.WeightColumn = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    as_json: opt.AsJson = False,
) -> None:
    """Search for good parameters of a method, learn with the best, and write a model file.

    Settings are scored on part of the training rows. The test score comes from rows that were used
    neither to learn nor to score trials. With --storage, the same command continues an interrupted
    search. Ctrl-C ends the search and learns with the best parameters so far (exit code 130).
    """
    if find_spec("optuna") is None:
        raise MissingExtraError("optuna", extra="tune", purpose="hardwood tune")
    output = output or model_file_of(table)
    check_writable(output, inputs=(table, *([Path(storage)] if storage else [])))
    request = Request(table, target, task, drop, use, weight, test_fraction)
    plan = _Plan(
        n_trials,
        time_limit,
        validation_fraction if folds is None else folds,
        scoring,
        sampler,
        None if pruner == "none" else pruner,
        storage,
        study_name or f"{table.name}: {target}",
    )
    given: dict[str, Any] = context.obj
    notes, rng = Notes(), np.random.default_rng(seed)
    with notes.collecting():
        data = read_dataset(request, rng)
    options = given | shared_options(seed, jobs, class_weight)
    estimator = make_estimator(method, data.target.task, options)
    found = _find(data, plan, estimator, list(given), notes, as_json)
    with notes.collecting():
        last = estimator.set_params(**_restarts_of_last_fit(estimator), **found.best_params)
        learn(data, last)
    with notes.collecting():
        outcome = outcome_of(last, data, rng)
    note_no_split(outcome.model, notes)
    doubt = doubt_of_last_fit(found, outcome.scores, outcome.baseline, baseline_name(data))
    if doubt:
        notes.add(doubt)
    outcome.save(output)
    if as_json:
        outcome.print_json(output, notes, **_found_json(found, plan))
    else:
        outcome.print(output)
    end_if_interrupted(notes)


def _restarts_of_last_fit(estimator: Any) -> dict[str, Any]:
    """Return the restarts of the last fit: few make trials short, but the model worse."""
    from hardwood.learn.gradient.perfect_tree import VALIDATED_RESTARTS

    n_restarts = estimator.get_params().get("n_restarts")
    default = signature(type(estimator)).parameters.get("n_restarts")
    is_fewer = isinstance(n_restarts, int) and n_restarts < VALIDATED_RESTARTS
    return {"n_restarts": "auto"} if is_fewer and default and default.default == "auto" else {}


def doubt_of_last_fit(
    found: TuningResult, scores: list[Score], baseline: list[Score], name: str
) -> str | None:
    """Return a note if the test score is much worse than the search promised, otherwise None.

    It is if the model is no better than the best constant prediction, called ``name``, or keeps
    less than half of the best trial's lead over it.
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
        words = f"has {found.metric} {format_number(abs(got))}, but its trial had {had}"
    else:
        return None
    return (
        f"on the test rows the model {words}; a search with another --seed or more --n-restarts "
        "may find a better one"
    )


def goodness(metric: str, scores: list[Score]) -> float | None:
    """Return the score of a model that a search optimizes; larger is better.

    None if it is not among the scores or not defined.
    """
    values = {score.name: score.value for score in scores}
    if metric in _SQUARED:  # the mean over several targets
        squares = [v**2 for name, v in values.items() if name.split(" of ")[0] == "RMSE"]
        value = -float(np.mean(squares)) if squares else math.nan
    else:
        name, sign = _SCORES.get(metric, ("", 1.0))
        value = sign * values.get(name, math.nan)
    return value if math.isfinite(value) else None


def _find(
    data: Dataset,
    plan: _Plan,
    estimator: Any,
    fixed: list[str],
    notes: Notes,
    as_json: bool,
) -> TuningResult:
    """Search, and report what was found and what was not finished."""
    from hardwood.selection.study import found_before

    with data_errors():
        done = found_before(plan.storage, plan.study_name)
    n_trials = _n_trials(plan, estimator, fixed)
    if not as_json:
        print_dataset(data)
        if done[0]:
            words = f"{plural(done[0], 'trial')} done"
            print_text(f"Continuing '{plan.study_name}' in {plan.storage}: {words}")
    with notes.collecting(), Progress("Tuning", stream=watched_stream()) as progress:
        calls = TrialCallbacks(progress, n_trials, *done, is_loss=plan.scoring is None)
        if "callbacks" in estimator.get_params(deep=False):
            estimator.set_params(callbacks=[calls.on_epoch])
        found = _search(data, plan, estimator, fixed, calls.on_trial)
    _note_unfinished(found, plan, n_trials, notes)
    failed = [trial.error for trial in found.trials if trial.state == "failed"]
    if failed:
        notes.add(f"{plural(len(failed), 'trial')} failed; the last one: {failed[-1]}")
    if not as_json:
        _print_found(found)
    return found


def _note_unfinished(found: TuningResult, plan: _Plan, n_trials: int, notes: Notes) -> None:
    if len(found.trials) >= n_trials:
        return
    where = "with --storage FILE would continue"
    if plan.storage is not None:
        where = f"continues from {plan.storage}"
    why = "" if found.interrupted else "time is up; "  # the search itself notes Ctrl-C
    words = f"{len(found.trials)} of {plural(n_trials, 'trial')}"
    notes.add(f"{words}: {why}the same command {where}")


def _search(
    data: Dataset,
    plan: _Plan,
    estimator: Any,
    fixed: list[str],
    on_trial: Callable[[FinishedTrial], None],
) -> TuningResult:
    """Search on the training rows; failed trials become one note instead of warnings."""
    from sklearn.exceptions import FitFailedWarning

    from hardwood.selection import tune as search

    X, y, weight = data.training
    try:
        with data_errors(), first_interrupt_only(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FitFailedWarning)
            return search(
                estimator,
                X,
                y,
                sample_weight=None if data.request.weight is None else weight,
                fixed=fixed,
                **vars(plan),
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


def _n_trials(plan: _Plan, estimator: Any, fixed: list[str]) -> int:
    """Return the number of trials; no more than the space has points, where it is finite."""
    from hardwood.selection import grid, space_of
    from hardwood.selection.points import finite_points
    from hardwood.selection.tune import DEFAULT_TRIALS

    with data_errors():
        space = space_of(estimator, None, fixed)
        points = grid(space) if plan.sampler == "grid" else finite_points(space)
    wanted = plan.n_trials or (len(points) if plan.sampler == "grid" else DEFAULT_TRIALS)
    return min(wanted, len(points)) if points else wanted


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
        "study": plan.study_name,
    }


class TrialCallbacks:
    """Callbacks that show every trial and every epoch of a trial.

    Parameters
    ----------
    progress
        Where to show them.
    n_trials, n_done
        Number of trials in total, and of those done before.
    best
        Best value of the trials done before.
    is_loss
        Whether smaller values are better.
    """

    def __init__(
        self, progress: Progress, n_trials: int, n_done: int, best: float | None, *, is_loss: bool
    ) -> None:
        self._progress, self._n_trials = progress, n_trials
        self._n_before = self._n_done = n_done
        self._best, self._better = best, min if is_loss else max

    def on_trial(self, trial: FinishedTrial) -> None:
        """Count a trial."""
        self._n_done += 1
        if trial.value is not None:
            known = [] if self._best is None else [self._best]
            self._best = self._better([trial.value, *known])
        self._say()

    def on_epoch(self, epoch: Any) -> bool:
        """Show the epoch of the trial; never stops it."""
        self._say(f", run {epoch.restart + 1}, epoch {epoch.epoch + 1} of {epoch.max_epochs}")
        return False

    def _say(self, where: str = "") -> None:
        found = "" if self._best is None else f", best so far {format_number(self._best)}"
        words = f"{self._n_done} of {plural(self._n_trials, 'trial')}{found}{where}"
        n_new = max(self._n_trials - self._n_before, 1)
        self._progress.update(words, share=(self._n_done - self._n_before) / n_new)
