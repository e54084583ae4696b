"""Data augmentation: new rows near the rows of a table, or between two of them.

Augmented rows have no target; a teacher predicts one for them (`hardwood.search.distill`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from hardwood import parameters
from hardwood.learn.task import Task
from hardwood.table.canonical_rows import Matrix

_PROBED_ROWS = 20_000  # rows that show which columns have more than two values


@dataclass(frozen=True)
class Augmentation:
    """How many rows to add, and how to generate them.

    Parameters
    ----------
    rows_per_row
        Augmented rows per training row.
    noise
        Standard deviation of the Gaussian noise added to numbers, relative to the standard
        deviation of the column.
    mixup
        Fraction of the augmented rows that mix two training rows. A number lies between those of
        the two rows, nearer the first; a category is that of one of them, with the same
        proportion as its probability.
    weight
        Weight of an augmented row relative to the training row that it comes from.

    Raises
    ------
    ValueError
        If a value is out of range.
    """

    rows_per_row: float = 8.0
    noise: float = 0.1
    mixup: float = 0.5
    weight: float = 1.0

    def __post_init__(self) -> None:
        parameters.real("rows_per_row", self.rows_per_row, 0.0, 1e6, open_low=True)
        parameters.real("noise", self.noise, 0.0, 1e6)
        parameters.real("mixup", self.mixup, 0.0, 1.0, open_high=False)
        parameters.real("weight", self.weight, 0.0, 1e6, open_low=True)


@dataclass(frozen=True)
class AugmentedRows:
    """Rows in the form of a task's matrix, and the training row (q,) that each comes from."""

    matrix: Matrix
    origin: np.ndarray


def augmented_rows(task: Task, augmentation: Augmentation, n_rows: int, seed: int) -> AugmentedRows:
    """Generate rows from the training rows of a task.

    A missing value stays missing and is not mixed. A column with two values is treated as a
    category: nothing lies between yes and no. In a sparse table, a value that neither row stores
    stays zero, and only stored values get noise.
    """
    random = np.random.default_rng(seed)
    first, second = task.train[random.integers(len(task.train), size=(2, n_rows))]
    is_mixed = random.random(n_rows) < augmentation.mixup
    share = np.where(is_mixed, random.uniform(0.5, 1.0, n_rows), 1.0)
    generate = _sparse_rows if sparse.issparse(task.matrix) else _dense_rows
    return AugmentedRows(generate(task, first, second, share, augmentation.noise, random), first)


def _dense_rows(
    task: Task,
    first: np.ndarray,
    second: np.ndarray,
    share: np.ndarray,
    noise: float,
    random: np.random.Generator,
) -> np.ndarray:
    own, other = task.matrix[first], task.matrix[second]
    is_numeric = _numeric(task)
    keeps_own = np.isnan(own) | np.isnan(other)
    between = share[:, None] * own + (1 - share[:, None]) * other
    category = np.where(random.random(own.shape) < share[:, None], own, other)
    rows: np.ndarray = np.where(keeps_own, own, np.where(is_numeric, between, category))
    scale = noise * np.where(is_numeric, _standard_deviation(task), 0.0)
    return (rows + scale * random.standard_normal(rows.shape)).astype(own.dtype)


def _sparse_rows(
    task: Task,
    first: np.ndarray,
    second: np.ndarray,
    share: np.ndarray,
    noise: float,
    random: np.random.Generator,
) -> Any:
    matrix = task.matrix
    parts = [
        sparse.diags_array(part) @ matrix[rows]
        for part, rows in ((share, first), (1 - share, second))
    ]
    rows = sparse.csr_matrix(parts[0] + parts[1])
    rows.sum_duplicates()
    scale = noise * _standard_deviation(task)[rows.indices]
    rows.data = rows.data + scale * random.standard_normal(len(rows.data))
    return rows.astype(matrix.dtype)


def _standard_deviation(task: Task) -> np.ndarray:
    """Return the standard deviation of each feature, (p,)."""
    schema = task.schema
    spread: np.ndarray = schema.column_spread[schema.first_column]
    return spread


def _numeric(task: Task) -> np.ndarray:
    """Return which features, (p,) bool, are numbers with more than two values."""
    values = task.matrix[task.train[:_PROBED_ROWS]]
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    is_numeric: np.ndarray = ((values > low) & (values < high)).any(axis=0)
    return is_numeric & (task.schema.n_levels == 0)
