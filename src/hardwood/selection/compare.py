"""`hardwood.compare`: whether an oblique tree is worth it on a table."""

from __future__ import annotations

import math
import numbers
import time
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from hardwood.clock import beginning
from hardwood.errors import FitInterruptedWarning
from hardwood.parameters import choice, level, n_threads, real
from hardwood.selection.comparison import Comparison, ModelResult, interval
from hardwood.selection.metric import metric_of
from hardwood.selection.models import ModelSpec, Settings, chosen
from hardwood.selection.rows import Fold, LabeledRows, folds_of
from hardwood.selection.run_models import MIN_FOLDS, FoldResult, ModelRuns, OnFit
from hardwood.table import Table
from hardwood.table.target import (
    class_target,
    has_several_labels,
    number_target,
    plain_array,
    suggested_task,
)

TaskKind = Literal["classification", "regression"]

TASKS = ("auto", "classification", "regression")
_SIZES = ("nodes", "weights", "n_bytes")
_TREES_PART = 0.5  # of the time limit, for the trees that choose for themselves
_MAX_SEED = 2**31 - 1
_DEFAULT_SCORERS = {True: "accuracy", False: "neg_root_mean_squared_error"}
_METRICS = {
    "neg_root_mean_squared_error": "RMSE",
    "neg_mean_absolute_error": "MAE",
    "neg_log_loss": "log loss",
    "roc_auc": "AUC",
    "r2": "R2",
}


def compare(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    models: Any = None,
    task: str = "auto",
    cv: Any = 5,
    scoring: Any = None,
    time_limit: float | None = 60.0,
    random_state: Any = None,
    n_jobs: int | None = None,
    callbacks: OnFit | None = None,
    verbose: int = 0,
) -> Comparison:
    """Compare a linear model, CART, ensembles and oblique trees under cross-validation.

    Parameters
    ----------
    X, y
        A table of any kind, with categories and missing values, and its target (one column).
    sample_weight : array of shape (n,), default=None
        Weight of each row, in the fits and in the scores.
    models : list or dict, default=None
        The models to compare. None: ``"constant"`` (the best constant prediction), ``"linear"``,
        ``"CART"`` of tuned depth, ``"oblique tree"`` (`TreeClassifier` or `TreeRegressor`; for
        regression also with linear leaves), ``"random forest"``, ``"gradient boosting"``
        (scikit-learn's), and ``"XGBoost"`` and ``"LightGBM"`` if installed. Otherwise a list of
        such names (also ``"DGT"`` and ``"TAO"``) and of your own estimators, or a dict from names
        to either. Your own estimators get `X` unchanged.
    task : "auto", "classification" or "regression", default="auto"
        "auto": text, booleans and up to 20 distinct integers are classes.
    cv : int, list or splitter, default=5
        Number of folds, stratified by class; a list of ``(train, test)`` row numbers; or a
        scikit-learn splitter. All models use the same folds.
    scoring : str or function, default=None
        The name of a scikit-learn scorer, or a function ``(estimator, X, y) -> float``; larger is
        better. Scorers named ``neg_...`` are shown as errors. None: accuracy, or the root mean
        squared error.
    time_limit : float, default=60.0
        Seconds. Half of them are for the search of the oblique trees; no fold starts after the
        limit. At least two folds are run. None: no limit, and reproducible results.
    random_state : int, RandomState instance or None, default=None
        Seed of folds and models.
    n_jobs : int, default=None
        Threads of a fit, for models that use threads; predictions are timed on one thread.
    callbacks : function, default=None
        Called before every fit with the name of the model, the fold and the number of folds.
    verbose : int, default=0
        1 prints a line per fit.

    Returns
    -------
    comparison : Comparison
        A report to print or `plot`, with `words`, `answer`, `gain("CART", "linear")` and
        `to_frame()`.

    Raises
    ------
    ValueError, TypeError
        For an invalid table, target or argument. If all models fail, the error of the first.

    Notes
    -----
    Ctrl-C ends the comparison with a `FitInterruptedWarning` and keeps the complete folds. Before
    two folds are complete, it raises KeyboardInterrupt.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare(X, y, models=["constant", "linear", "CART"], random_state=0)
    >>> found.best_of("linear").name, found.gain("linear", "constant").low > 0.3
    ('linear', True)
    """
    start = beginning()
    rows = LabeledRows.of(X, y, sample_weight)
    n_columns = Table.of(X).n_features
    found_task = _task(task, y)
    _check_target(y, len(rows), found_task)
    has_classes = found_task == "classification"
    specs, left_out = chosen(models, has_classes=has_classes)
    scorer = _DEFAULT_SCORERS[has_classes] if scoring is None else scoring
    seed = int(check_random_state(random_state).randint(_MAX_SEED))
    folds = _folds(cv, rows, has_classes, seed)
    limit = None if time_limit is None else real("time_limit", time_limit, 0, 1e9, open_low=True)
    scored_by = metric_of(None, scorer)
    share = _share(limit, specs, folds)
    runs = ModelRuns(scored_by, Settings(has_classes, seed, n_threads(n_jobs), scorer, share))
    deadline = math.inf if limit is None else start + limit
    on_fit = _on_fit(callbacks, level("verbose", verbose))
    runs.run(specs, rows, folds, deadline=deadline, on_fit=on_fit)
    complete = f"{runs.n_folds} of {len(folds)} folds"
    if runs.interrupted:
        warnings.warn(
            f"The comparison was interrupted; {complete} are complete.",
            FitInterruptedWarning,
            stacklevel=2,
        )
    elif runs.n_folds < len(folds):
        runs.notes.append(
            f"time was up after {complete}; a larger time_limit makes the intervals shorter"
        )
    metric_name, sign = _metric_words(scored_by.name)
    done = folds[: runs.n_folds]
    sizes = _mean([len(f.train) for f in done]), _mean([len(f.validation) for f in done])
    return Comparison(
        task=found_task,
        metric=metric_name,
        larger_is_better=sign > 0,
        entrants=tuple(
            _model_result(spec, runs.results[spec.name], sign, sizes)
            for spec in specs
            if spec.name in runs.results
        ),
        n_rows=len(rows),
        n_columns=n_columns,
        n_folds=runs.n_folds,
        of_folds=len(folds),
        n_train=sizes[0],
        n_test=sizes[1],
        left_out=left_out | runs.failed,
        seconds=time.monotonic() - start,
        interrupted=runs.interrupted,
        notes=tuple(runs.notes),
    )


def _task(task: str, y: Any) -> TaskKind:
    chosen_task: Any = choice("task", task, TASKS)
    return suggested_task(plain_array(y))[0] if chosen_task == "auto" else chosen_task


def _check_target(y: Any, n: int, task: TaskKind) -> None:
    """Refuse, before anything is learned, what no model could learn."""
    if has_several_labels(y):
        raise ValueError("y has several columns; compare models on one target at a time.")
    if task == "classification":
        class_target(y, n)
    else:
        number_target(y, n)


def _folds(cv: Any, rows: LabeledRows, has_classes: bool, seed: int) -> tuple[Fold, ...]:
    is_number = isinstance(cv, numbers.Integral) and not isinstance(cv, bool)
    is_splitter = hasattr(cv, "split") and not isinstance(cv, str)
    if not (is_number or is_splitter or isinstance(cv, list)):
        raise TypeError(
            f"cv must be a number of folds, a list of (train, test) rows or a splitter, got {cv!r}."
        )
    if is_number and not MIN_FOLDS <= cv <= len(rows.y):
        raise ValueError(
            f"cv as a number of folds goes from {MIN_FOLDS} to the number of rows, {len(rows.y)}, "
            f"got {cv}."
        )
    try:
        folds = folds_of(cv, rows, is_classifier=has_classes, rng=np.random.default_rng(seed))
    except (ValueError, TypeError) as error:
        raise type(error)(f"cv: {str(error).removeprefix('validation: ')}") from error
    if len(folds) < MIN_FOLDS:
        raise ValueError(f"cv: a comparison needs at least {MIN_FOLDS} folds, got {len(folds)}.")
    return folds


def _share(limit: float | None, specs: list[ModelSpec], folds: tuple[Fold, ...]) -> float | None:
    """Return the seconds of one fit of a tree that chooses for itself."""
    n_fits = len(folds) * sum(spec.is_budgeted for spec in specs)
    return None if limit is None or n_fits == 0 else _TREES_PART * limit / n_fits


def _on_fit(callback: OnFit | None, verbose: int) -> OnFit:
    if callback is not None and not callable(callback):
        raise TypeError(f"callbacks must be None or a function, got {callback!r:.80}.")

    def on_fit(name: str, fold: int, n_folds: int) -> None:
        if verbose:
            print(f"fold {fold + 1} of {n_folds}: {name}", flush=True)
        if callback is not None:
            callback(name, fold, n_folds)

    return on_fit


def _metric_words(name: str) -> tuple[str, int]:
    """Return what a scorer is called in a report, and the sign that makes it that."""
    words = _METRICS.get(name, name.removeprefix("neg_").replace("_", " "))
    return words, -1 if name.startswith("neg_") else 1


def _model_result(
    spec: ModelSpec, results: list[FoldResult], sign: int, sizes: tuple[float, float]
) -> ModelResult:
    scores = sign * np.array([result.score for result in results])
    return ModelResult(
        spec.name,
        spec.kind,
        scores,
        interval(scores, *sizes),
        fit_seconds=_mean([result.fit_seconds for result in results]),
        batch_us=min(result.batch_us for result in results),
        one_row_us=min(result.one_row_us for result in results),
        **{n: _mean_known([getattr(r.size, n) for r in results]) for n in _SIZES},
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _mean_known(values: list[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if len(known) == len(values) else None
