"""The rows of a page: those in its histograms, and those that a reader can choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardwood.model.kinds.forest import HardModel
from hardwood.model.outputs import check_finite
from hardwood.table import Table
from hardwood.table.target import true_targets

MAX_COUNTED_ROWS = 50_000
MAX_COUNTED_ENTRIES = 20_000_000  # values of the encoded rows: 80 MB
MIN_COUNTED_ROWS = 1_000
_SEED = 0  # the same table gives the same page


@dataclass(frozen=True, eq=False)
class DataRows:
    """The rows of a table that the histograms count.

    Attributes
    ----------
    table
        The rows in the form of the schema.
    number
        (n,) positions of the rows in the user's table.
    n_table_rows
        Number of rows of the user's table.
    truth
        True targets, see `true_targets`; None if not known.
    outputs
        (n, k) the model's predictions: probabilities or values.
    predicted
        (n,) positions of the predicted classes; None without classes.
    """

    table: Table
    number: np.ndarray
    n_table_rows: int
    truth: np.ndarray | None
    outputs: np.ndarray
    predicted: np.ndarray | None

    @classmethod
    def of(cls, model: HardModel, X: Any, y: Any) -> DataRows:
        """Read a table, with or without targets; draw rows at random from a large one."""
        matrix = model.schema.read(X, who=type(model).__name__)
        n = int(matrix.shape[0])
        truth = None if y is None else true_targets(model, y, n)
        number = _drawn(n, _n_counted(model.schema.n_columns))
        drawn = matrix[number]
        dense = drawn if isinstance(drawn, np.ndarray) else drawn.toarray()
        table = model.schema.as_table(dense)
        outputs = model.outputs(table)
        check_finite(outputs)
        return cls(
            table=table,
            number=number,
            n_table_rows=n,
            truth=None if truth is None else truth[number],
            outputs=outputs,
            predicted=None if model.classes is None else model.class_positions(outputs),
        )

    def predicted_by(self, model: HardModel) -> DataRows:
        """Return the same rows with the predictions of another model."""
        outputs = model.outputs(self.table)
        check_finite(outputs)
        return replace(self, outputs=outputs)

    def __len__(self) -> int:
        return self.number.size

    @property
    def matrix(self) -> np.ndarray:
        """(n, p) raw numbers, positions of levels, NaN where missing."""
        matrix: np.ndarray = self.table.matrix
        return matrix

    def chosen(self, n_most: int) -> np.ndarray:
        """Return the positions of at most ``n_most`` rows that a reader can choose."""
        return _drawn(len(self), n_most)


def _n_counted(n_columns: int) -> int:
    affordable = max(MIN_COUNTED_ROWS, MAX_COUNTED_ENTRIES // n_columns)
    return min(MAX_COUNTED_ROWS, affordable)


def _drawn(n: int, n_most: int) -> np.ndarray:
    """Return the positions of up to ``n_most`` of n rows, in order."""
    if n <= n_most:
        return np.arange(n)
    return np.sort(np.random.default_rng(_SEED).choice(n, n_most, replace=False))
