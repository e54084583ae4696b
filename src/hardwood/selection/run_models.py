"""The models of a comparison, learned and scored fold by fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from hardwood.errors import FitInterruptedWarning, folds_lack_levels
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
    """The models of a comparison, and what has become of them.

    Attributes
    ----------
    metric
        What is scored by.
    settings
        What all models have in common.
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

    metric: Metric
    settings: Settings
    n_folds: int = 0
    results: dict[str, list[FoldResult]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    _caught: dict[tuple[type[Warning], str], warnings.WarningMessage] = field(default_factory=dict)

    def run(
        self,
        specs: Sequence[ModelSpec],
        rows: LabeledRows,
        folds: Sequence[Fold],
        *,
        deadline: float,
        on_fit: OnFit,
    ) -> None:
        """Learn and score all models on all folds.

        Parameters
        ----------
        specs
            The models.
        rows, folds
            What is learned from, and how it is divided.
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
        errors: list[Exception] = []
        for number, fold in enumerate(folds):
            if number >= MIN_FOLDS and time.monotonic() > deadline:
                break
            parts = fold.parts(rows)
            try:
                for spec in specs:
                    if spec.name in self.failed:
                        continue
                    on_fit(spec.name, number, len(folds))
                    try:
                        result = self._run_one(spec, *parts)
                    except Exception as error:  # of any library: said in the report, by name
                        self.failed[spec.name] = f"failed: {error}"
                        errors.append(error)
                    else:
                        self.results.setdefault(spec.name, []).append(result)
            except KeyboardInterrupt:
                if number < MIN_FOLDS:
                    raise
                self.interrupted = True
                break
            self.n_folds += 1
        for (category, text), where in self._caught.items():  # of many fits, each once
            warnings.warn_explicit(text, category, where.filename, where.lineno)
        complete = {n: found[: self.n_folds] for n, found in self.results.items()}
        self.results = {n: found for n, found in complete.items() if n not in self.failed}
        if not self.results:
            raise errors[0]

    def _run_one(self, spec: ModelSpec, train: LabeledRows, valid: LabeledRows) -> FoldResult:
        """Learn and score one model; raise KeyboardInterrupt where its fit was interrupted.

        Warnings are kept for later; what did not converge is a note.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with folds_lack_levels():
                result = self._learned_and_scored(spec, train, valid)
        for warning in caught:
            if issubclass(warning.category, FitInterruptedWarning):
                raise KeyboardInterrupt
            if issubclass(warning.category, ConvergenceWarning):
                self._note(f"{spec.name} did not converge; with more steps its score may differ")
            else:
                self._caught.setdefault((warning.category, str(warning.message)), warning)
        return result

    def _learned_and_scored(
        self, spec: ModelSpec, train: LabeledRows, valid: LabeledRows
    ) -> FoldResult:
        model = spec.make(self.settings)
        # OpenMP's threads wait for each other at full speed: on a busy machine, more of them than
        # were asked for take a hundred times as long.
        with threadpool_limits(self.settings.n_jobs):
            start = time.perf_counter()
            train.teach(model)
            seconds = time.perf_counter() - start
        if "time_limit" in getattr(getattr(model, "fit_report_", None), "ending", ""):
            had_no_time = "had no time to try all it would; a larger time_limit may make it better"
            self._note(f"{spec.name} {had_no_time}")
        score = self.metric.of(model, train, valid)
        if np.isnan(score):
            raise ValueError(f"{self.metric.name} is not defined on its rows (NaN)")
        return FoldResult(score, seconds, *microseconds(model, valid.X), size_of(model))

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
