"""Rows with known answers, and what a model says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.errors import TableError
from hardwood.model.base import Model
from hardwood.model.routed_rows import row_weights, true_answers
from hardwood.table import Schema, Table
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

UnknownClasses = Literal["error", "wrong"]

# Weights are squared and multiplied with each other: beyond these powers, that would leave the
# range of float64. Weights are else kept as they are, because reports show sums of them.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows of a table that count, without those of weight zero.

    Attributes
    ----------
    matrix
        (n, p) as the model's schema reads it: numbers, positions of levels, NaN where missing; or
        CSR.
    outputs
        (n, k) the model's probabilities or values.
    truth
        (n,) positions of the true classes, -1 for one that the model does not know; or (n, k)
        numbers, or labels of 0 and 1.
    weight
        (n,) positive; none so small or large that its square would not be a number.
    is_weighted
        Whether weights were given.
    weight_unit
        What the given weights were divided by: 1, or the largest where that is extreme.
    """

    model: Model
    matrix: np.ndarray | csr_matrix
    outputs: np.ndarray
    truth: np.ndarray
    weight: np.ndarray
    is_weighted: bool
    weight_unit: float = 1.0

    def __len__(self) -> int:
        return int(self.weight.size)

    @property
    def n_unknown(self) -> int:
        """Number of rows of a class that the model does not know."""
        return 0 if self.model.classes is None else int((self.truth < 0).sum())

    @property
    def notes(self) -> list[str]:
        """What a reader of sums over the rows should know."""
        notes = []
        if self.weight_unit != 1:
            notes.append(f"weights are given as parts of the largest, {self.weight_unit:g}")
        if self.n_unknown:
            many = plural(self.n_unknown, "row has", "rows have")
            notes.append(f"{many} a class the model does not know; they count as wrong")
        return notes


def scored_rows(
    model: Model,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    unknown_classes: UnknownClasses = "error",
    n_jobs: int | None = 1,
) -> ScoredRows:
    """Read a table, the true answers and the weights, and ask the model.

    Rows of less than 1e-100 of the largest weight count nothing.

    Raises
    ------
    TableError
        Where the table does not fit the model or has no rows, an answer is missing, not finite or
        (unless ``unknown_classes="wrong"``) of a class that the model does not know, or the weights
        are unusable.
    """
    matrix = model.schema.read(X, who=type(model).__name__)
    n_rows = matrix.shape[0]
    truth = _truth(model, y, n_rows, unknown_classes)
    weight, unit = _safe_weights(row_weights(sample_weight, n_rows))
    if not weight.all():
        counts = np.flatnonzero(weight)
        matrix, truth, weight = matrix[counts], truth[counts], weight[counts]
    outputs = model.outputs(as_table(model.schema, matrix), n_jobs=n_jobs)
    return ScoredRows(model, matrix, outputs, truth, weight, sample_weight is not None, unit)


def as_table(schema: Schema, matrix: Any) -> Table:
    """Return what a schema has read as a table that it reads back as it is."""
    return Table(
        matrix,
        tuple(f.levels if f.kind == "categorical" else None for f in schema.features),
        schema.names,
        tuple(feature.origin for feature in schema.features),
    )


def _safe_weights(weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights that can be squared, and the unit that they are in."""
    largest = float(weight.max())
    unit = 1.0 if _LEAST_WEIGHT <= largest <= _MOST_WEIGHT else largest
    safe = weight / unit
    safe[safe < _LEAST_WEIGHT * (largest / unit)] = 0.0
    return safe, unit


def _truth(model: Model, y: Any, n_rows: int, unknown_classes: UnknownClasses) -> np.ndarray:
    if unknown_classes not in ("error", "wrong"):
        raise ValueError(
            f"unknown_classes must be 'error' or 'wrong', found {unknown_classes!r:.80}"
        )
    given = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    if given.dtype.kind in "US" and isinstance(y, list | tuple):
        given = np.array(y, dtype=object)  # NumPy writes a NaN among text as text
    if given.dtype == object or (model.classes is not None and given.dtype.kind == "f"):
        _check_present(given)
    if model.classes is None or unknown_classes == "error" or given.shape != (n_rows,):
        return true_answers(model, given, n_rows)  # which refuses a wrong shape
    known = set(model.classes)
    is_known = np.array([label in known for label in given.tolist()], dtype=bool)
    if not is_known.any():
        shown = ", ".join(map(repr, model.classes[:8]))
        raise TableError(
            f"None of the target's values, for example {given.tolist()[0]!r:.80}, is a class of "
            f"the model: {shown}. Is it the right column?"
        )
    truth = np.full(n_rows, -1, dtype=np.int64)
    truth[is_known] = true_answers(model, given[is_known], int(is_known.sum()))
    return truth


def _check_present(given: np.ndarray) -> None:
    for i, answer in enumerate(given.ravel().tolist()):
        is_nan = isinstance(answer, float) and np.isnan(answer)
        if answer is None or is_nan or type(answer).__name__ in ("NAType", "NaTType"):
            row = i // math.prod(given.shape[1:])
            raise TableError(
                f"y has no answer at row {row} ({answer!r}). Leave out rows whose answer is missing"
            )
