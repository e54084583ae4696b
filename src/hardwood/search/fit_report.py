"""The log of a search for the best tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from hardwood.search.held_out import HeldOutScores
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import format_number, plural
from hardwood.text.report import Report

if TYPE_CHECKING:
    from hardwood.text.report import Tables

Outcome = Literal["best so far", "not better", "left out", "out of time", "failed"]


@dataclass(frozen=True)
class Trial:
    """One candidate that was tried.

    Attributes
    ----------
    number
        Position in the search, from 1.
    candidate
        Description of the candidate.
    depth, leaves
        Depth and number of leaves of its tree; with cross-validation, the averages.
    train_score, validation_score
        Scores on its training rows and on held-out rows; with cross-validation, the averages. NaN
        if the candidate was not finished.
    outcome
        "best so far"; "not better"; "left out" after the first fold, where it was clearly worse;
        "out of time"; or "failed", with an error in `message`.
    seconds
        Time taken.
    message
        The error message if it failed.
    """

    number: int
    candidate: str
    depth: float
    leaves: float
    train_score: float
    validation_score: float
    outcome: Outcome
    seconds: float
    message: str = ""


@dataclass(frozen=True, repr=False)
class FitReport(Report):
    """The candidates that `TreeClassifier` or `TreeRegressor` tried, with their scores.

    ``print`` shows it as a table. `to_frame`, `to_dict`, `to_html` and `save` export it.

    Attributes
    ----------
    trials
        The candidates, in order.
    best
        Description of the best candidate.
    metric
        Name of the score; larger is better.
    teacher
        Which teacher was used, and its validation score.
    rows
        How many rows candidates were trained and scored on.
    ending
        Why the search stopped.
    finish
        How the best tree was fitted to all rows.
    seconds
        Time taken by the whole fit.
    held_out
        Scores of the classes that the best tree predicts for held-out rows; None for other targets.
    """

    trials: tuple[Trial, ...]
    best: str
    metric: str
    teacher: str
    rows: str
    ending: str
    finish: str
    seconds: float
    held_out: HeldOutScores | None = None

    @property
    def threshold(self) -> float | None:
        """The probability of the second of two classes above which to predict it.

        It is chosen for its balanced accuracy on the held-out rows (`HeldOutScores`). None if there
        are not two classes.
        """
        return None if self.held_out is None else self.held_out.threshold

    @property
    def title(self) -> str:
        """The number of candidates, and the best one."""
        return f"Best of {plural(len(self.trials), 'candidate')}: {self.best}"

    @property
    def score(self) -> float:
        """The validation score of the best candidate; NaN if Ctrl-C came before its trial."""
        scores = (
            trial.validation_score
            for trial in self.trials
            if trial.candidate == self.best and not math.isnan(trial.validation_score)
        )
        return next(scores, math.nan)

    def _blocks(self) -> Sequence[Block]:
        header = ["", "candidate", "training", "validation"]
        header += ["depth", "leaves", "seconds", "outcome"]
        rows = [
            [
                str(trial.number),
                trial.candidate,
                format_number(trial.train_score),
                format_number(trial.validation_score),
                f"{trial.depth:g}",
                f"{trial.leaves:g}",
                f"{trial.seconds:.1f}",
                f"{trial.outcome}: {trial.message}" if trial.message else trial.outcome,
            ]
            for trial in self.trials
        ]
        seconds = f"The fit took {self.seconds:.1f} seconds."
        scores = [] if self.held_out is None else self.held_out.lines
        facts = [self.rows, self.teacher, self.ending, self.finish, *scores, seconds]
        return [
            TextTable.of(f"Candidates, scored by {self.metric}", header, rows, text_columns=(1, 7)),
            Text("\n".join(fact for fact in facts if fact)),
        ]

    def _content(self) -> dict[str, Any]:
        return {
            **vars(self),
            "score": self.score,
            "threshold": self.threshold,
            "held_out": None if self.held_out is None else asdict(self.held_out),
            "trials": [vars(trial) for trial in self.trials],
        }

    def _tables(self) -> Tables:
        return {"trials": columns_of(Trial, self.trials)}
