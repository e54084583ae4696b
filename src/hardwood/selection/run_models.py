"""The models of a comparison, learned and scored fold by fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from hardwood.errors import FitInterruptedWarning
from hardwood.selection.metric import Metric
from hardwood.selection.models import ModelSpec, Settings
from hardwood.selection.rows import Fold, LabeledRows
from hardwood.selection.size import Size, microseconds, size_of

MIN_FOLDS = 2  # of one fold nothing is known about chance

OnFit = Callable[[str, int, int], None]
"""(name, fold from 0, number of folds), before a model is learned."""


@dataclass(frozen=True)
class FoldResult:
    """One model on one fold."""

    score: float
    fit_seconds: float
    batch_us: float
    one_row_us: float
    size: Size


@dataclass
class ModelRuns:
    """What has become of the models.

    Attributes
    ----------
    n_folds
        How many folds are complete.
    results
        By name, one entry per complete fold.
    failed
        By name, why a model was left out.
    notes
        What is worth knowing.
    interrupted
        Whether Ctrl-C ended it.
    """

    n_folds: int = 0
    results: dict[str, list[FoldResult]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False


def run_models(
    specs: Sequence[ModelSpec],
    rows: LabeledRows,
    folds: Sequence[Fold],
    metric: Metric,
    settings: Settings,
    *,
    deadline: float,
    on_fit: OnFit,
) -> ModelRuns:
    """Learn and score all models on all folds.

    Parameters
    ----------
    specs
        The models.
    rows, folds
        What is learned from, and how it is divided.
    metric
        What is scored by.
    settings
        What all models have in common.
    deadline
        By `time.monotonic`, after which no fold begins; two are made in any case.
    on_fit
        Called before every fit.

    Raises
    ------
    Exception
        What the first model raised, where all of them failed.
    KeyboardInterrupt
        Before two folds are complete.
    """
    runs = ModelRuns()
    caught_before: dict[tuple[type[Warning], str], warnings.WarningMessage] = {}
    errors: list[Exception] = []
    for number, fold in enumerate(folds):
        if number >= MIN_FOLDS and time.monotonic() > deadline:
            break
        train, valid = fold.parts(rows)
        try:
            for spec in specs:
                if spec.name in runs.failed:
                    continue
                on_fit(spec.name, number, len(folds))
                try:
                    with _catching(spec.name, runs.notes, caught_before):
                        result = _run(spec, train, valid, metric, settings, runs.notes)
                except Exception as error:  # of any library: said in the report, by name
                    runs.failed[spec.name] = f"failed: {error}"
                    errors.append(error)
                else:
                    runs.results.setdefault(spec.name, []).append(result)
        except KeyboardInterrupt:
            if number < MIN_FOLDS:
                raise
            runs.interrupted = True
            break
        runs.n_folds += 1
    for (category, text), where in caught_before.items():  # of many fits, each once
        warnings.warn_explicit(text, category, where.filename, where.lineno)
    runs.results = {
        name: results[: runs.n_folds]
        for name, results in runs.results.items()
        if name not in runs.failed
    }
    if not runs.results:
        raise errors[0]
    return runs


def _run(
    spec: ModelSpec,
    train: LabeledRows,
    valid: LabeledRows,
    metric: Metric,
    settings: Settings,
    notes: list[str],
) -> FoldResult:
    options = {} if train.weight is None else {"sample_weight": train.weight}
    model = spec.make(settings)
    # OpenMP's threads wait for each other at full speed: on a busy machine, more of them than
    # were asked for take a hundred times as long.
    with threadpool_limits(settings.n_jobs):
        start = time.perf_counter()
        model.fit(train.X, train.y, **options)
        seconds = time.perf_counter() - start
    if "time_limit" in getattr(getattr(model, "fit_report_", None), "ending", ""):
        _note(
            notes,
            f"{spec.name} had no time to try all it would; a larger time_limit may make it better",
        )
    score = metric.of(model, train, valid)
    if np.isnan(score):
        raise ValueError(f"{metric.name} is not defined on its rows (NaN)")
    return FoldResult(score, seconds, *microseconds(model, valid.X), size_of(model))


@contextmanager
def _catching(
    name: str,
    notes: list[str],
    caught_before: dict[tuple[type[Warning], str], warnings.WarningMessage],
) -> Iterator[None]:
    """Keep the warnings of one fit; KeyboardInterrupt where it was interrupted and returned early.

    What did not converge is a note.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, FitInterruptedWarning):
            raise KeyboardInterrupt
        if issubclass(warning.category, ConvergenceWarning):
            _note(notes, f"{name} did not converge; with more steps its score may differ")
        else:
            caught_before.setdefault((warning.category, str(warning.message)), warning)


def _note(notes: list[str], note: str) -> None:
    if note not in notes:
        notes.append(note)
