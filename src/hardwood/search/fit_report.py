"""What a search for a tree has tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import format_number, plural
from hardwood.text.report import Report

if TYPE_CHECKING:
    from hardwood.text.report import Tables

Outcome = Literal["best so far", "not better", "cut off", "failed"]


@dataclass(frozen=True)
class Trial:
    """One candidate.

    Attributes
    ----------
    number
        Its place, from 1.
    recipe
        How it was made, in words.
    depth, leaves
        Of its tree; of several folds, the means.
    train_score, validation_score
        On rows that it learned from and on rows that it did not; of several folds, the means. NaN
        where it was not finished.
    outcome
        "best so far"; "not better"; "cut off" by the clock or by Ctrl-C; "failed", with `message`.
    seconds
        How long it took.
    message
        Of the error that it failed with.
    """

    number: int
    recipe: str
    depth: float
    leaves: float
    train_score: float
    validation_score: float
    outcome: Outcome
    seconds: float
    message: str = ""


@dataclass(frozen=True, repr=False)
class FitReport(Report):
    """All that `TreeClassifier` and `TreeRegressor` tried, and how they ended.

    ``print`` shows it as a table; `to_frame`, `to_dict`, `to_html` and `save` give it elsewhere.

    Attributes
    ----------
    trials
        The candidates, in order.
    best
        The recipe of the tree, in words.
    metric
        What the scores are; larger is better.
    teacher
        Who taught, and how good it is on the validation rows, in words.
    rows
        What was learned from and judged by, in words.
    ending
        Why the search ended, in words.
    finish
        What was done with the best tree, in words.
    seconds
        Of the whole fit.
    """

    trials: tuple[Trial, ...]
    best: str
    metric: str
    teacher: str
    rows: str
    ending: str
    finish: str
    seconds: float

    @property
    def title(self) -> str:
        """How many were tried, and which was best."""
        return f"The best of {plural(len(self.trials), 'tree')}: {self.best}"

    @property
    def score(self) -> float:
        """The validation score of the best."""
        return next(
            trial.validation_score
            for trial in self.trials
            if trial.recipe == self.best and not math.isnan(trial.validation_score)
        )

    def _blocks(self) -> Sequence[Block]:
        header = ["", "recipe", "training", "validation", "depth", "leaves", "seconds", "outcome"]
        rows = [
            [
                str(trial.number),
                trial.recipe,
                format_number(trial.train_score),
                format_number(trial.validation_score),
                f"{trial.depth:g}",
                f"{trial.leaves:g}",
                f"{trial.seconds:.1f}",
                f"{trial.outcome}: {trial.message}" if trial.message else trial.outcome,
            ]
            for trial in self.trials
        ]
        facts = [self.rows, self.teacher, self.ending, self.finish, f"{self.seconds:.1f} seconds."]
        return [
            TextTable.of(f"Trials, judged by {self.metric}", header, rows, text_columns=(1, 7)),
            Text("\n".join(fact for fact in facts if fact)),
        ]

    def _content(self) -> dict[str, Any]:
        return {
            **vars(self),
            "score": self.score,
            "trials": [vars(trial) for trial in self.trials],
        }

    def _tables(self) -> Tables:
        return {"trials": columns_of(Trial, self.trials)}
