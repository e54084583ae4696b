"""Rows with known targets, and the model's predictions for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.base import Model
from hardwood.model.outputs import check_finite
from hardwood.table.target import UnknownClasses, true_targets
from hardwood.table.weights import weight_of_rows
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Weights are squared and multiplied with each other: beyond these powers, that would exceed the
# range of float64. Otherwise weights are not scaled, because reports show sums of them.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows of a table that have a positive weight.

    Attributes
    ----------
    matrix
        (n, p) as the model's schema reads it: numbers, positions of levels, NaN where missing; or
        a sparse CSR matrix.
    outputs
        (n, k) the model's probabilities or values.
    truth
        (n,) positions of the true classes, -1 for a class that the model does not know; or (n, k)
        targets, or labels of 0 and 1.
    weight
        (n,) positive, with squares that are finite and positive in float64.
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
    def predicted(self) -> np.ndarray:
        """(n,) positions of the predicted classes."""
        return self.model.class_positions(self.outputs)

    @property
    def n_unknown(self) -> int:
        """Number of rows of a class that the model does not know."""
        return 0 if self.model.classes is None else int((self.truth < 0).sum())

    @property
    def notes(self) -> list[str]:
        """Remarks for a reader of sums over the rows."""
        notes = []
        if self.weight_unit != 1:
            notes.append(f"weights are divided by the largest, {self.weight_unit:g}")
        if self.n_unknown:
            many = plural(self.n_unknown, "row has", "rows have")
            notes.append(f"{many} a class that the model does not know, which counts as an error")
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
    """Read a table, the true targets and the weights, and predict.

    Rows with less than 1e-100 of the largest weight are left out.

    Raises
    ------
    TableError
        If the table does not fit the model or has no rows, a target is missing, not finite or
        (unless ``unknown_classes="wrong"``) of a class that the model does not know, the weights
        cannot be used, or a prediction is beyond float64.
    """
    matrix = model.schema.read(X, who=type(model).__name__)
    n_rows = matrix.shape[0]
    truth = true_targets(model, y, n_rows, unknown_classes)
    weight, unit = _safe_weights(weight_of_rows(sample_weight, n_rows))
    if not weight.all():
        counts = np.flatnonzero(weight)
        matrix, truth, weight = matrix[counts], truth[counts], weight[counts]
    outputs = model.outputs(model.schema.as_table(matrix), n_jobs=n_jobs)
    check_finite(outputs)
    return ScoredRows(model, matrix, outputs, truth, weight, sample_weight is not None, unit)


def _safe_weights(weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights whose squares are finite, and the unit that they are in."""
    largest = float(weight.max())
    unit = 1.0 if _LEAST_WEIGHT <= largest <= _MOST_WEIGHT else largest
    safe = weight / unit
    safe[safe < _LEAST_WEIGHT * (largest / unit)] = 0.0
    return safe, unit
