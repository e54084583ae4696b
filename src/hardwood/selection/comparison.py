"""The result of a comparison of models, as text, HTML, JSON, data frames and a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import stdtrit

from hardwood.report.plot_style import BLUE, GRAY, ORANGE, label, name_axes, ticks
from hardwood.selection import summary
from hardwood.selection.models import Kind
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.numbers import (
    format_bytes,
    format_duration,
    format_interval,
    format_number,
    plural,
)
from hardwood.text.report import PlottedReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hardwood.text.report import Tables

CONFIDENCE = 0.95

_COSTS = ("fit_seconds", "batch_us", "one_row_us", "nodes", "weights", "n_bytes")
_COLORS = {"oblique tree": BLUE, "ensemble": ORANGE}


@dataclass(frozen=True)
class Interval:
    """A mean over folds with its 95 % confidence interval.

    Examples
    --------
    >>> Interval(0.5, 0.4, 0.6).excludes_zero
    True
    """

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


def interval(values: np.ndarray, n_train: float, n_test: float) -> Interval:
    """Return the mean of one value per fold, with its confidence interval.

    Parameters
    ----------
    values
        (k,) scores of a model, or differences between two models on the same folds.
    n_train, n_test
        Rows to learn from and to score, on average.

    Notes
    -----
    Folds share most of the rows to learn from, so their scores vary less than those of new tables
    would. As Nadeau and Bengio (2003) have it, the variance of the mean is taken as
    ``(1/k + n_test/n_train)`` times that of the values, in place of ``1/k`` times; quantiles are
    Student's with k - 1 degrees of freedom. Of a single fold there is no interval (NaN).
    """
    k, mean = len(values), float(np.mean(values))
    if k < 2:
        return Interval(mean, np.nan, np.nan)
    spread = float(np.var(values, ddof=1)) * (1 / k + n_test / n_train)
    reach = float(stdtrit(k - 1, (1 + CONFIDENCE) / 2)) * float(np.sqrt(spread))
    return Interval(mean, mean - reach, mean + reach)


@dataclass(frozen=True, eq=False)
class ModelResult:
    """Scores, times and size of one model.

    Attributes
    ----------
    name, kind
        What it is called, and what it is.
    scores
        (folds,) on the rows of each fold, which it did not learn from.
    score
        Their mean, with its 95 % interval.
    fit_seconds
        Of one fold, on average.
    batch_us, one_row_us
        Microseconds of a prediction on one thread: per row of a batch, and of a single row.
    nodes, weights
        Splits and leaves, and weights other than zero (`hardwood.selection.size.Size`), on average
        over folds; None where a library does not tell.
    n_bytes
        Of the model's file, of other libraries' models of the pickle; None where there is none.
    """

    name: str
    kind: Kind
    scores: np.ndarray
    score: Interval
    fit_seconds: float
    batch_us: float
    one_row_us: float
    nodes: float | None
    weights: float | None
    n_bytes: float | None


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(PlottedReport):
    """Models compared on the same folds, by `compare`.

    Attributes
    ----------
    task, metric
        What is predicted, and the score, in words.
    larger_is_better
        Which scores are good.
    entrants
        The models, in the order in which they were named.
    n_rows, n_columns
        Size of the table.
    n_folds, of_folds
        Complete folds, and how many there should have been.
    n_train, n_test
        Rows to learn from and to score, on average over folds.
    left_out
        Models that did not take part, with the reason.
    seconds
        How long all of it took.
    interrupted
        Whether Ctrl-C ended it.
    notes
        What a reader should know.
    """

    task: Literal["classification", "regression"]
    metric: str
    larger_is_better: bool
    entrants: tuple[ModelResult, ...]
    n_rows: int
    n_columns: int
    n_folds: int
    of_folds: int
    n_train: float
    n_test: float
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    # --- what was found ------------------------------------------------------------------------

    def __getitem__(self, name: str) -> ModelResult:
        """Return a model by its name."""
        for entrant in self.entrants:
            if entrant.name == name:
                return entrant
        raise KeyError(f"{name!r}; compared were {[entrant.name for entrant in self.entrants]}")

    @cached_property
    def ranked(self) -> tuple[ModelResult, ...]:
        """The models, the best mean first."""
        sign = -1 if self.larger_is_better else 1
        return tuple(sorted(self.entrants, key=lambda entrant: sign * entrant.score.mean))

    @property
    def lead(self) -> ModelResult | None:
        """The first oblique tree, which stands for all."""
        return next((e for e in self.entrants if e.kind == "oblique tree"), None)

    def best_of(self, kind: str) -> ModelResult | None:
        """Return the model of a kind with the best mean; None if there is none."""
        return next((entrant for entrant in self.ranked if entrant.kind == kind), None)

    def gain(self, one: str | ModelResult, other: str | ModelResult) -> Interval:
        """Return how much better one model is than another: the difference on the same folds.

        Positive where the first is better, whichever scores are good; with its 95 % interval,
        corrected for the rows that folds share.
        """
        first, second = (self[e] if isinstance(e, str) else e for e in (one, other))
        sign = 1 if self.larger_is_better else -1
        return interval(sign * (first.scores - second.scores), self.n_train, self.n_test)

    @property
    def answer(self) -> summary.Answer | None:
        """Whether an oblique tree is worth it here: "yes", "no" or "unclear".

        None where no oblique tree was compared with an axis-aligned tree or a linear model.
        """
        return summary.answer(self)

    @property
    def words(self) -> str:
        """The answer in sentences."""
        return "\n".join(summary.sentences(self))

    # --- as a report ---------------------------------------------------------------

    @property
    def title(self) -> str:
        """The models and the table."""
        table = f"{plural(self.n_rows, 'row')}, {plural(self.n_columns, 'column')}"
        models = plural(len(self.entrants), "model")
        return f"Comparison: {models}, {self.task}, {table}, {plural(self.n_folds, 'fold')}"

    def _blocks(self) -> Sequence[Block]:
        blocks: list[Block] = [Text(self.words), self._score_grid(), self._size_grid()]
        notes = [f"left out: {name}, {why}" for name, why in self.left_out.items()]
        notes += [f"note: {note}" for note in self.notes]
        return [*blocks, *([Text("\n".join(notes))] if notes else [])]

    def _score_grid(self) -> TextTable:
        lead = self.lead
        header = ["model", self.metric, "95 % interval"]
        header += [] if lead is None else [f"{lead.name} is better by", "95 % interval"]
        rows = []
        for e in self.ranked:
            found = [e.score]
            if lead is not None and e is not lead:
                found.append(self.gain(lead, e))
            row = [e.name]
            for each in found:
                row += [format_number(each.mean), format_interval(each.low, each.high)]
            rows.append(row + [""] * (len(header) - len(row)))
        good = "larger is better" if self.larger_is_better else "smaller is better"
        note = f"{good}; means over {plural(self.n_folds, 'fold')}, intervals corrected for overlap"
        return TextTable.of("Scores, the best first", header, rows, note=note)

    def _size_grid(self) -> TextTable:
        header = ["model", "fit", "per row of a batch", "one row", "nodes", "weights", "size"]
        rows = [
            [
                e.name,
                f"{format_number(e.fit_seconds)} s",
                format_duration(e.batch_us),
                format_duration(e.one_row_us),
                _count(e.nodes),
                _count(e.weights),
                "-" if e.n_bytes is None else format_bytes(round(e.n_bytes)),
            ]
            for e in self.ranked
        ]
        note = (
            "means over folds; predictions on one thread; weights: numbers other than zero; size: "
            "of the model's file, of other libraries' the pickle"
        )
        return TextTable.of("Cost and size", header, rows, note=note)

    def _content(self) -> dict[str, Any]:
        lead = self.lead
        return {
            "task": self.task,
            "metric": self.metric,
            "larger_is_better": self.larger_is_better,
            "confidence": CONFIDENCE,
            "n_rows": self.n_rows,
            "n_columns": self.n_columns,
            "n_folds": self.n_folds,
            "of_folds": self.of_folds,
            "answer": self.answer,
            "words": summary.sentences(self),
            "models": [
                asdict(e)
                | {"gain_of_oblique_tree": None if lead is None else asdict(self.gain(lead, e))}
                for e in self.ranked
            ],
            "left_out": self.left_out,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "notes": self.notes,
        }

    def _tables(self) -> Tables:
        rows = [{**vars(e), **vars(e.score)} for e in self.ranked]
        names = ("name", "kind", "mean", "low", "high", *_COSTS)
        models = {name: [row[name] for row in rows] for name in names}
        folds: dict[str, list[Any]] = {
            "name": [e.name for e in self.ranked for _ in e.scores],
            "fold": list(range(self.n_folds)) * len(self.ranked),
            "score": [score for e in self.ranked for score in e.scores.tolist()],
        }
        return {"models": models, "folds": folds}

    @property
    def _image_text(self) -> str:
        return f"{self.metric} of {', '.join(e.name for e in self.ranked)}, with intervals"

    def _figure_size(self) -> tuple[float, float]:
        return 10.0, 1.6 + 0.34 * len(self.entrants)

    def _draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=False)
        shown = self.ranked[::-1]
        for place, e in enumerate(shown):
            color = _COLORS.get(e.kind, GRAY)
            reach = [[e.score.mean - e.score.low], [e.score.high - e.score.mean]]
            bars = reach if math.isfinite(e.score.low) else None
            left.errorbar([e.score.mean], [place], xerr=bars, fmt="o", color=color, capsize=3)
            right.plot([e.one_row_us], [e.score.mean], "o", color=color)
            right.annotate(
                label(e.name),
                (e.one_row_us, e.score.mean),
                xytext=(4, 3),
                textcoords="offset points",
                fontsize="x-small",
                parse_math=False,
            )
        ticks(left.yaxis, range(len(shown)), [e.name for e in shown])
        name_axes(
            left, f"mean and 95 % interval over {plural(self.n_folds, 'fold')}", self.metric, ""
        )
        name_axes(right, "score and price", "microseconds for one row", self.metric)
        right.set_xscale("log")
        right.margins(x=0.25)
        for ax in (left, right):
            ax.grid(color="0.92")
            ax.spines[["top", "right"]].set_visible(False)


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
