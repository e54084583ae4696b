"""How good a model is on rows with known targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.base import Model, model_of
from hardwood.parameters import integer, n_threads
from hardwood.report.calibration import N_BINS, Bin, Calibration, calibrations
from hardwood.report.evaluation_plots import draw, figure_size
from hardwood.report.metrics import (
    classification_scores,
    confusion,
    label_scores,
    regression_scores,
    scores_json,
    scores_table,
    several_regression_scores,
)
from hardwood.report.resampling import Score, generator, n_resamples
from hardwood.report.scored_rows import ScoredRows, scored_rows
from hardwood.table.target import UnknownClasses
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import (
    format_count,
    format_interval,
    format_number,
    format_percent,
    plural,
)
from hardwood.text.report import PlottedReport

if TYPE_CHECKING:
    from hardwood.text.report import Tables

_MAX_CONFUSION_CLASSES = 12  # wider than this, a terminal cannot show the table
_MAX_MISTAKES = 10
_MAX_BINS = 100


@dataclass(frozen=True)
class ClassScore:
    """Scores of one class.

    Attributes
    ----------
    name
        The class.
    rows
        Number of rows of the class, or the sum of their weights.
    precision
        Share of the rows predicted as this class that belong to it; NaN if there are none.
    recall
        Share of the rows of this class that are predicted as it; NaN if there are none.
    """

    name: str
    rows: float
    precision: float
    recall: float


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation(PlottedReport):
    """Scores of a model on rows, made by `evaluate`.

    Attributes
    ----------
    what
        What is predicted, as text.
    task
        Task of the model.
    target
        Names of the targets; empty if not known.
    n_rows
        Number of rows with a positive weight.
    scores
        Metrics, each with a 95 % interval.
    n_resamples
        Number of bootstrap resamples behind the intervals.
    classes, confusion
        The classes of a classifier, and the confusion matrix (k, k) with true classes as rows and
        predicted classes as columns: counts, or sums of weights. None for other models.
    by_class
        Precision and recall of each class.
    calibration
        Predicted probabilities compared with observed frequencies, for classes and labels.
    n_unknown
        Number of rows of a class that the model does not know.
    notes
        Remarks for the reader.
    rows
        Targets, predictions and weights, for the plots.
    """

    what: str
    task: str
    target: tuple[str, ...]
    n_rows: int
    scores: list[Score]
    n_resamples: int
    classes: tuple[Any, ...] | None
    confusion: np.ndarray | None
    by_class: tuple[ClassScore, ...]
    calibration: tuple[Calibration, ...]
    n_unknown: int
    notes: tuple[str, ...]
    rows: ScoredRows = field(repr=False)

    def __getitem__(self, name: str) -> Score:
        """Return a score by its name."""
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(f"{name!r}; the scores are {[score.name for score in self.scores]}")

    @property
    def title(self) -> str:
        """Task and number of rows."""
        return f"Evaluation: {self.what}, {plural(self.n_rows, 'row')}"

    def _blocks(self) -> Sequence[Block]:
        blocks: list[Block] = [scores_table("Scores", self.scores)]
        if self.confusion is not None:
            blocks.append(self._confusion_grid())
        if self.by_class and len(self.by_class) <= _MAX_CONFUSION_CLASSES:
            blocks.append(self._class_grid())
        if self.calibration:
            blocks.append(_calibration_grid(self.calibration[0]))
        return [*blocks, *(Text(f"note: {note}") for note in self.notes)]

    def _confusion_grid(self) -> TextTable:
        assert self.confusion is not None
        names = [str(label) for label in self.classes or ()]
        if len(names) <= _MAX_CONFUSION_CLASSES:
            rows = [
                [name, *map(format_count, row)]
                for name, row in zip(names, self.confusion.tolist(), strict=True)
            ]
            title = "Confusion matrix: true classes as rows, predicted classes as columns"
            return TextTable.of(title, ["", *names], rows)
        wrong = self.confusion * (1 - np.eye(len(names)))
        order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_MISTAKES]
        pairs = [divmod(int(cell), len(names)) for cell in order if wrong.flat[cell] > 0]
        return TextTable.of(
            f"Most frequent errors; `confusion` has the matrix of all {len(names)} classes",
            ["true class", "predicted class", "rows"],
            [[names[i], names[j], format_count(float(wrong[i, j]))] for i, j in pairs],
            text_columns=(0, 1),
        )

    def _class_grid(self) -> TextTable:
        rows = [
            [c.name, format_count(c.rows), format_percent(c.precision), format_percent(c.recall)]
            for c in self.by_class
        ]
        return TextTable.of("Classes", ["class", "rows", "precision", "recall"], rows)

    def _content(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "task": self.task,
            "target": self.target,
            "n_rows": self.n_rows,
            "n_unknown_class": self.n_unknown,
            "metrics": scores_json(self.scores),
            "n_resamples": self.n_resamples,
            "classes": self.classes,
            "confusion": self.confusion,
            "by_class": [asdict(entry) for entry in self.by_class],
            "calibration": [asdict(entry) for entry in self.calibration],
            "notes": self.notes,
        }

    def _tables(self) -> Tables:
        tables: Tables = {"metrics": columns_of(Score, self.scores)}
        if self.confusion is not None:
            names = [str(label) for label in self.classes or ()]
            tables["confusion"] = {
                "true": [name for name in names for _ in names],
                "predicted": names * len(names),
                "rows": self.confusion.ravel().tolist(),
            }
            tables["classes"] = columns_of(ClassScore, self.by_class)
        if self.calibration:
            bins = [bin for c in self.calibration for bin in c.bins]
            of = [c.of for c in self.calibration for _ in c.bins]
            tables["calibration"] = {"of": of} | columns_of(Bin, bins)
        return tables

    @property
    def _image_text(self) -> str:
        if self.task == "regression":
            return "True values against predictions, and residuals"
        return "Calibration of the probabilities, and confusion matrix"

    _figure_size, _draw = figure_size, draw


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    unknown_classes: UnknownClasses = "error",
    names: Sequence[str] = (),
    n_bins: int = N_BINS,
    random_state: int | np.random.Generator = 0,
    n_jobs: int | None = 1,
) -> Evaluation:
    """Score a model on rows with known targets.

    Parameters
    ----------
    model
        A tree, a forest, or a fitted estimator.
    X
        A table, as for `predict`.
    y
        True classes, regression targets, or labels of 0 and 1 (n, k).
    sample_weight
        (n,) weight of each row; rows of weight zero are left out.
    unknown_classes
        How to treat rows of a class that the model does not know: ``"error"`` raises an error,
        ``"wrong"`` counts them as errors of the model.
    names
        One name per output; default: the model's names.
    n_bins
        Number of calibration bins, of equal width.
    random_state
        Seed of the bootstrap, or a generator.
    n_jobs
        Number of threads for prediction; -1 uses all processors.

    Returns
    -------
    report
        Metrics with 95 % intervals, confusion matrix and calibration; `plot` draws them, or for
        regression the residuals.

    Raises
    ------
    TableError
        If the table or the targets cannot be used; the message says which row or column.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> tree = ObliqueTree.of([[1.0]], thresholds=[0.5], values=[[1, 0], [0, 1]],
    ...                       classes=["no", "yes"])
    >>> evaluate(tree, [[0.0], [1.0], [2.0]], ["no", "yes", "no"])["accuracy"].value
    0.6666666666666666
    """
    n_bins, n_jobs = integer("n_bins", n_bins, 1, _MAX_BINS), n_threads(n_jobs)
    rng = generator(random_state)
    model = model_of(model)
    rows = scored_rows(model, X, y, sample_weight, unknown_classes=unknown_classes, n_jobs=n_jobs)
    target = tuple(names) or tuple(model.target_names or ())
    outputs = (model.classes is None and target) or model.output_names
    scores, found = _scores(rows, outputs, rng), _confusion(rows)
    return Evaluation(
        what=model.target_words,
        task=model.task,
        target=target,
        n_rows=len(rows),
        scores=scores,
        n_resamples=n_resamples(len(rows)),
        classes=model.classes,
        confusion=found,
        by_class=() if found is None else _by_class(model, found, rows),
        calibration=calibrations(model, rows.truth, rows.outputs, rows.weight, outputs, n_bins),
        n_unknown=rows.n_unknown,
        notes=tuple(_notes(rows, scores)),
        rows=rows,
    )


def _scores(rows: ScoredRows, names: Sequence[str], rng: np.random.Generator) -> list[Score]:
    truth, outputs, weight = rows.truth, rows.outputs, rows.weight
    if rows.model.classes is not None:
        return classification_scores(truth, outputs, weight, rng, rows.predicted)
    if rows.model.task == "multilabel":
        return label_scores(truth, outputs, names, weight, rng)
    if outputs.shape[1] == 1:
        return regression_scores(truth[:, 0], outputs[:, 0], weight, rng)
    return several_regression_scores(truth, outputs, names, weight, rng)


def _confusion(rows: ScoredRows) -> np.ndarray | None:
    if rows.model.classes is None:
        return None
    weight = rows.weight if rows.is_weighted else None
    return confusion(rows.truth, rows.predicted, len(rows.model.classes), weight)


def _by_class(model: Model, counts: np.ndarray, rows: ScoredRows) -> tuple[ClassScore, ...]:
    # Rows of unknown classes have predictions, too.
    predicted = np.bincount(rows.predicted, rows.weight, minlength=len(counts))
    true = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = np.diag(counts) / predicted, np.diag(counts) / true
    parts = zip(model.output_labels, true, precision, recall, strict=True)
    return tuple(ClassScore(name, float(n), float(p), float(r)) for name, n, p, r in parts)


def _notes(rows: ScoredRows, scores: Sequence[Score]) -> list[str]:
    model = rows.model
    notes = rows.notes
    if model.classes is not None:
        absent = len(model.classes) - np.unique(rows.truth[rows.truth >= 0]).size
        if absent:
            notes.append(
                f"y has no rows of {absent} of the {len(model.classes)} classes, so the AUC is not "
                "defined"
            )
    elif model.task == "regression" and (rows.truth == rows.truth[0]).all(axis=0).any():
        notes.append("R2 is not defined for a target that has the same value in all rows")
    too_large = [score.name for score in scores if np.isinf(score.value)]
    if too_large:
        notes.append(
            f"too large for a float64 number: {', '.join(too_large)}. The largest y is "
            f"{np.abs(rows.truth).max():.3g}, the largest prediction "
            f"{np.abs(rows.outputs).max():.3g}; are they in the same unit?"
        )
    return notes


def _calibration_grid(found: Calibration) -> TextTable:
    rows = [
        [
            f"{b.low:.2f} to {b.high:.2f}",
            format_count(b.rows),
            format_number(b.predicted),
            format_number(b.observed),
            format_interval(b.observed_low, b.observed_high),
        ]
        for b in found.bins
    ]
    return TextTable.of(
        f"Calibration of the probability of {found.of}",
        ["probability", "rows", "predicted", "observed", "95 % interval"],
        rows,
        note="expected calibration error (mean |observed - predicted|): "
        f"{format_number(found.error)}",
    )
