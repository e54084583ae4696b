"""The models of a comparison, learned and judged fold by fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from hardwood.errors import FitInterruptedWarning
from hardwood.selection.metric import Metric
from hardwood.selection.models import Contestant, Terms
from hardwood.selection.rows import Fold, Rows
from hardwood.selection.size import Size, microseconds, size_of

MIN_FOLDS = 2  # of one fold nothing is known about chance

OnFit = Callable[[str, int, int], None]
"""(name, fold from 0, number of folds), before a model is learned."""


@dataclass(frozen=True)
class Judged:
    """One model on one fold."""

    score: float
    fit_seconds: float
    batch_us: float
    one_row_us: float
    size: Size


@dataclass
class Contest:
    """All models on all folds.

    Parameters
    ----------
    rows, folds
        What is learned from, and how it is divided.
    metric
        What is judged by.
    terms
        What all models have in common.
    deadline
        By `time.monotonic`, after which no fold begins; two are made in any case.
    on_fit
        Called before every fit.

    Attributes
    ----------
    judged
        By name, one entry per complete fold.
    failed
        By name, why a model was left out.
    notes
        What is worth knowing.
    interrupted
        Whether Ctrl-C ended it.
    """

    rows: Rows
    folds: tuple[Fold, ...]
    metric: Metric
    terms: Terms
    deadline: float
    on_fit: OnFit
    judged: dict[str, list[Judged]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    def hold(self, contestants: list[Contestant]) -> int:
        """Learn and judge; return the number of complete folds.

        Raises
        ------
        Exception
            What the first model raised, where all of them failed.
        KeyboardInterrupt
            Before two folds are complete.
        """
        done = 0
        errors: list[Exception] = []
        told = _Told(self.notes)
        for number in range(len(self.folds)):
            if number >= MIN_FOLDS and time.monotonic() > self.deadline:
                break
            try:
                self._fold(number, contestants, told, errors)
            except KeyboardInterrupt:
                if number < MIN_FOLDS:
                    raise
                self.interrupted = True
                break
            done += 1
        told.say()
        self.judged = {
            contestant.name: self.judged[contestant.name][:done]
            for contestant in contestants
            if contestant.name not in self.failed
        }
        if not self.judged:
            raise errors[0]
        return done

    def _fold(
        self, number: int, contestants: list[Contestant], told: _Told, errors: list[Exception]
    ) -> None:
        train, valid = self.folds[number].parts(self.rows)
        for contestant in contestants:
            if contestant.name in self.failed:
                continue
            self.on_fit(contestant.name, number, len(self.folds))
            try:
                with told.watching(contestant.name):
                    found = self._judge(contestant, train, valid)
            except Exception as error:  # of any library: said in the report, by name
                self.failed[contestant.name] = f"failed: {error}"
                errors.append(error)
                continue
            self.judged.setdefault(contestant.name, []).append(found)

    def _judge(self, contestant: Contestant, train: Rows, valid: Rows) -> Judged:
        options = {} if train.weight is None else {"sample_weight": train.weight}
        model = contestant.make(self.terms)
        # OpenMP's threads wait for each other at full speed: on a busy machine, more of them than
        # were asked for take a hundred times as long.
        with threadpool_limits(self.terms.n_jobs):
            start = time.perf_counter()
            model.fit(train.X, train.y, **options)
            seconds = time.perf_counter() - start
        self._note_haste(contestant.name, model)
        score = self.metric.of(model, train, valid)
        if np.isnan(score):
            raise ValueError(f"{self.metric.name} is not defined on its rows (NaN)")
        size = size_of(model)
        return Judged(score, seconds, *microseconds(model, valid.X), size)

    def _note_haste(self, name: str, model: Any) -> None:
        """Say where a tree that chooses for itself had no time to try all that it would."""
        if "time_limit" in getattr(getattr(model, "fit_report_", None), "ending", ""):
            note = f"{name} had no time to try all it would; a larger time_limit may make it better"
            self.notes += [] if note in self.notes else [note]


class _Told:
    """Warnings of many fits, each said once in the end; what did not converge is a note."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._seen: dict[tuple[type[Warning], str], warnings.WarningMessage] = {}

    @contextmanager
    def watching(self, name: str) -> Iterator[None]:
        """Listen to one fit; KeyboardInterrupt where it was interrupted and returned early."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            if issubclass(warning.category, FitInterruptedWarning):
                raise KeyboardInterrupt
            if issubclass(warning.category, ConvergenceWarning):
                note = f"{name} did not converge; with more steps its score may differ"
                self._notes += [] if note in self._notes else [note]
            else:
                self._seen.setdefault((warning.category, str(warning.message)), warning)

    def say(self) -> None:
        """Warn of what was heard."""
        for (category, text), where in self._seen.items():
            warnings.warn_explicit(text, category, where.filename, where.lineno)
