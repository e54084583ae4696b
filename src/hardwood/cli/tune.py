"""`hardwood tune`: search for good parameters, then a model file as `hardwood fit` writes it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from hardwood.cli import options as opt
from hardwood.cli.errors import check_writable, data_mistakes
from hardwood.cli.fit import Dataset, Request, learn, model_file_of, outcome_of, read_dataset
from hardwood.cli.output import (
    Notes,
    baseline_name,
    note_no_split,
    print_dataset,
    print_table,
    print_text,
)
from hardwood.cli.progress import MoveBar, progress_bar
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


SamplerChoice = Literal["tpe", "random", "grid"]
"""What `--sampler` takes."""


PrunerChoice = Literal["median", "halving", "none"]
"""What `--pruner` takes."""


@dataclass(frozen=True)
class _Plan:
    """How to search: what `hardwood.tune` takes, by its names."""

    n_trials: int | None
    timeout: float | None
    validation: float | int
    scoring: str | None
    sampler: str
    pruner: str | None
    storage: str | None
    study_name: str


def tune(
    table: opt.TableFile,
    target: opt.TargetColumn,
    output: opt.NewModelFile = None,
    task: opt.TaskOption = "auto",
    trials: Annotated[
        int | None,
        opt.count(
            "How many sets of parameters to try, with those in --storage.",
            default="30; all with --sampler grid",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        opt.seconds("When to end the search.", "no limit"),
    ] = None,
    max_depth: Annotated[
        int | None,
        opt.depth(
            "2, 4, 6, 8 and 10 are tried", "Splits on the longest path; searched unless given."
        ),
    ] = None,
    layers: Annotated[
        int | None,
        opt.count(
            "Linear layers that splits are learned through; searched unless given.",
            high=opt.MAX_LAYERS,
            default="1 and 3 are tried",
        ),
    ] = None,
    leaves: opt.LeavesOption = "constant",
    restarts: Annotated[
        int | None,
        opt.count(
            "Trees to learn in every trial; the best is kept. The last fit has no fewer "
            "than by default.",
            high=opt.MAX_RESTARTS,
            default="auto: 4 where there is a validation part, else 1",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        opt.named(
            "NAME",
            "What to judge by: a scorer of scikit-learn, such as accuracy or roc_auc.",
            default="log loss or squared error",
        ),
    ] = None,
    validation_fraction: Annotated[
        float,
        opt.number("Share of the training rows that judges.", low=0.01, high=0.9),
    ] = 0.2,
    folds: Annotated[
        int | None,
        opt.count("Judge by cross-validation instead: so many folds.", low=2, default="no folds"),
    ] = None,
    sampler: Annotated[
        SamplerChoice,
        opt.one_of(SamplerChoice, "How parameters are drawn."),
    ] = "tpe",
    pruner: Annotated[
        PrunerChoice,
        opt.one_of(PrunerChoice, "What ends hopeless trials early."),
    ] = "median",
    storage: Annotated[
        str | None,
        opt.named(
            "FILE",
            "Keep the trials in this .db or .log file, and continue those that are there.",
            default="in memory",
        ),
    ] = None,
    study_name: Annotated[
        str | None,
        opt.named("NAME", "Name of the search in the storage.", default="TABLE's name and target"),
    ] = None,
    test_fraction: opt.TestFraction = 0.2,
    drop: opt.DroppedColumns = None,
    use: opt.UsedColumns = None,
    weight: opt.WeightColumn = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = 1,
    as_json: opt.AsJson = False,
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
    request = Request(table, target, task, drop, use, weight, test_fraction)
    given = {"max_depth": max_depth, "layers": layers, "n_restarts": restarts}
    held: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    held["leaves"] = leaves
    options = held | {"n_jobs": jobs, "random_state": seed}
    plan = _Plan(
        trials,
        timeout,
        validation_fraction if folds is None else folds,
        metric,
        sampler,
        None if pruner == "none" else pruner,
        storage,
        study_name or f"{table.name}: {target}",
    )
    notes, rng = Notes(), np.random.default_rng(seed)
    with notes.collecting():
        data = read_dataset(request, rng)
    found = _find(data, plan, options, notes, as_json)
    with notes.collecting():
        estimator = learn(data, _of_last_fit(options) | found.best_params)
    outcome = outcome_of(estimator, data, rng)
    note_no_split(outcome.model, notes)
    doubt = doubt_of_last_fit(found, outcome.scores, outcome.baseline, baseline_name(data))
    if doubt:
        notes.add(doubt)
    outcome.write(output, notes, as_json=as_json, further=_found_json(found, plan))


def _of_last_fit(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the last fit: few restarts make trials short, and a model poor."""
    if options.get("n_restarts", opt.AUTO_RESTARTS) >= opt.AUTO_RESTARTS:
        return options
    return {name: value for name, value in options.items() if name != "n_restarts"}


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
    data: Dataset, plan: _Plan, options: dict[str, Any], notes: Notes, as_json: bool
) -> TuningResult:
    """Search, and say what was found and what was not finished."""
    from hardwood.estimators.dgt import DGTClassifier, DGTRegressor
    from hardwood.selection.study import found_before

    kind = DGTClassifier if data.target.task == "classification" else DGTRegressor
    estimator = kind(**options)
    held = [name for name in _HELD if name in options]
    with data_mistakes():
        done = found_before(plan.storage, plan.study_name)
    n_trials = _n_trials(plan, estimator, held)
    if not as_json:
        print_dataset(data)
        if done[0]:
            words = f"{plural(done[0], 'trial')} done"
            print_text(f"Continuing '{plan.study_name}' in {plan.storage}: {words}")
    with notes.collecting(), progress_bar("Tuning", n_trials, done[0]) as move:
        calls = TrialCallbacks(move, n_trials, *done, is_loss=plan.scoring is None)
        estimator.set_params(callbacks=[calls.on_epoch])
        found = _search(data, plan, estimator, held, calls.on_trial)
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
    where = "would continue with --storage FILE"
    if plan.storage is not None:
        where = f"continues from {plan.storage}"
    why = "" if found.interrupted else "time is up; "  # of Ctrl-C the search itself has told
    words = f"{len(found.trials)} of {plural(n_trials, 'trial')}"
    notes.add(f"{words}: {why}the same command {where}")


def _search(
    data: Dataset,
    plan: _Plan,
    estimator: Any,
    fixed: list[str],
    on_trial: Callable[[FinishedTrial], None],
) -> TuningResult:
    """Search on the training rows; trials that fail are left to the notes, not warned of each."""
    from sklearn.exceptions import FitFailedWarning

    from hardwood.selection import tune as search

    X, y, weight = data.training
    try:
        with data_mistakes(), warnings.catch_warnings():
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
    from hardwood.selection import grid, space_of
    from hardwood.selection.tune import DEFAULT_TRIALS

    size = len(grid(space_of(estimator, None, fixed)))
    return min(plan.n_trials or (size if plan.sampler == "grid" else DEFAULT_TRIALS), size)


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
    """What to call after every trial, and after every epoch of one, to move a bar.

    Parameters
    ----------
    move
        Moves the bar.
    n_trials, n_done
        How many there shall be, and have been before.
    best
        The best value before.
    is_loss
        Whether small values are good.
    """

    def __init__(
        self, move: MoveBar, n_trials: int, n_done: int, best: float | None, *, is_loss: bool
    ) -> None:
        self._move, self._n_trials, self._n_done = move, n_trials, n_done
        self._best, self._better = best, min if is_loss else max

    def on_trial(self, trial: FinishedTrial) -> None:
        """Count a trial."""
        self._n_done += 1
        if trial.value is not None:
            known = [] if self._best is None else [self._best]
            self._best = self._better([trial.value, *known])
        self._say()

    def on_epoch(self, epoch: Any) -> bool:
        """Say where the trial is; it goes on."""
        self._say(f", tree {epoch.restart + 1}, epoch {epoch.epoch + 1} of {epoch.max_epochs}")
        return False

    def _say(self, where: str = "") -> None:
        found = "" if self._best is None else f", best so far {format_number(self._best)}"
        words = f"{self._n_done} of {self._n_trials} trials{found}{where}"
        self._move(words, self._n_done)
