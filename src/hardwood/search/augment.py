"""Rows that could have been in a table: near its own rows, or between two of them.

They have no target; a teacher gives them one (`hardwood.search.distill`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from hardwood import parameters
from hardwood.learn.task import Task
from hardwood.table.canonical_rows import Matrix

_LOOKED_AT = 20_000  # rows that tell which columns are graded


@dataclass(frozen=True)
class Lesson:
    """How many rows are made up, and how.

    Parameters
    ----------
    rows_per_row
        Rows made up for each real one.
    noise
        Standard deviation of what is added to a number, as a part of its column's.
    mix
        Part of the made-up rows that lie between two real ones: numbers anywhere between them but
        nearer the first, levels of categories the first's or the second's in the same proportion.
    weight
        What a made-up row counts beside the real row that it was made of.

    Raises
    ------
    ValueError
        For what is out of range.
    """

    rows_per_row: float = 8.0
    noise: float = 0.1
    mix: float = 0.5
    weight: float = 1.0

    def __post_init__(self) -> None:
        parameters.real("rows_per_row", self.rows_per_row, 0.0, 1e6, open_low=True)
        parameters.real("noise", self.noise, 0.0, 1e6)
        parameters.real("mix", self.mix, 0.0, 1.0, open_high=False)
        parameters.real("weight", self.weight, 0.0, 1e6, open_low=True)


@dataclass(frozen=True)
class MadeUpRows:
    """Rows as a task's matrix has them, and the real row (q,) that each was made of."""

    matrix: Matrix
    origin: np.ndarray


def made_up_rows(task: Task, lesson: Lesson, n_rows: int, seed: int) -> MadeUpRows:
    """Make rows of the training rows of a task.

    A missing entry stays missing, and is not mixed in. Columns with two values are treated as
    levels: there is nothing between yes and no. Of a sparse table, entries that are not stored stay
    zero in both rows or are mixed; noise is added to stored entries.
    """
    random = np.random.default_rng(seed)
    first, second = task.train[random.integers(len(task.train), size=(2, n_rows))]
    share = np.where(random.random(n_rows) < lesson.mix, random.uniform(0.5, 1.0, n_rows), 1.0)
    if sparse.issparse(task.matrix):
        matrix = _sparse_rows(task, first, second, share, lesson.noise, random)
    else:
        matrix = _dense_rows(task, first, second, share, lesson.noise, random)
    return MadeUpRows(matrix, first)


def _dense_rows(
    task: Task,
    first: np.ndarray,
    second: np.ndarray,
    share: np.ndarray,
    noise: float,
    random: np.random.Generator,
) -> np.ndarray:
    own, other = task.matrix[first], task.matrix[second]
    is_graded = _graded(task)
    keeps_own = np.isnan(own) | np.isnan(other)
    between = share[:, None] * own + (1 - share[:, None]) * other
    levels = np.where(random.random(own.shape) < share[:, None], own, other)
    rows: np.ndarray = np.where(keeps_own, own, np.where(is_graded, between, levels))
    deviation = noise * np.where(is_graded, _spread(task), 0.0)
    return (rows + deviation * random.standard_normal(rows.shape)).astype(own.dtype)


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
    deviation = noise * _spread(task)[rows.indices]
    rows.data = rows.data + deviation * random.standard_normal(len(rows.data))
    return rows.astype(matrix.dtype)


def _spread(task: Task) -> np.ndarray:
    """Return the standard deviation of each feature, (p,)."""
    schema = task.schema
    spread: np.ndarray = schema.column_spread[schema.first_column]
    return spread


def _graded(task: Task) -> np.ndarray:
    """Which features, (p,) bool, are numbers of more than two values."""
    values = task.matrix[task.train[:_LOOKED_AT]]
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    is_graded: np.ndarray = ((values > low) & (values < high)).any(axis=0)
    return is_graded & (task.schema.n_levels == 0)
