"""From a table, a target and weights to what a learner takes.

`TrainingSet` is the data in canonical rows: what it holds does not depend on the order of the rows
of the table, and a row of weight two is the row given twice, bit for bit. `Problem` adds what is to
be minimised and which rows are kept apart for validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from hardwood.learn.canonical_rows import Matrix, Rows, canonical_rows
from hardwood.learn.losses import Loss
from hardwood.table import Schema, Table
from hardwood.table.statistics import column_statistics


@dataclass(frozen=True)
class TrainingSet:
    """A table and its target, read and in canonical rows.

    Attributes
    ----------
    schema
        Learned from the rows that have a weight.
    matrix
        (n, p) raw numbers and codes of levels, float32 or float64, or CSR: the user's own array
        where that is possible.
    target
        (n, t) float64: class indices or numbers.
    rows
        The distinct rows that have a weight, in canonical order; weights in the user's units.
    weight
        (r,) what each of them counts while learning: its own weight times that of its class.
    """

    schema: Schema
    matrix: Matrix
    target: np.ndarray
    rows: Rows
    weight: np.ndarray

    @classmethod
    def of(
        cls,
        table: Table,
        target: np.ndarray,
        weight: np.ndarray | None = None,
        factor: np.ndarray | None = None,
    ) -> TrainingSet:
        """Order the rows, merge equal ones, and learn the schema from what is left.

        Parameters
        ----------
        table
            What `Table.of` returned.
        target
            (n, t) float64, finite.
        weight
            (n,) float64, finite, >= 0, of which one is positive; None for equal weights.
        factor
            (n,) likewise, what the weights are multiplied by; equal for rows of equal target.

        Raises
        ------
        TableError
            For a column without any entry.
        ValueError
            For a table with fewer than two different rows.
        """
        used = weight
        if factor is not None:
            used = (factor > 0) * (1.0 if weight is None else weight)
        rows = canonical_rows(table.matrix, target, used, levels=table.levels)
        if len(rows) < 2:
            raise ValueError(
                "A tree is learned from at least two different rows, found n_samples=1: the table "
                f"has {table.n_rows} row(s), and those with a positive weight are all equal."
            )
        # At most 1 each, so that no sum overflows.
        largest = rows.weight.max()
        learned_weight = rows.weight if largest == 1.0 else rows.weight / largest
        if factor is not None:
            learned_weight = learned_weight * (factor[rows.index] / factor.max())
        schema = Schema.learn(table, learned_weight, rows.index)
        return cls(schema, schema.read(table), target, rows, learned_weight)

    def weight_of(self, rows: np.ndarray) -> np.ndarray:
        """Return what distinct rows count, by their numbers, in the user's units."""
        weight = np.zeros(len(self.target))
        weight[self.rows.index] = self.rows.weight
        return weight[rows]

    def representatives(self) -> np.ndarray:
        """For each row of the table (n,), the distinct row that stands for it."""
        of_row = np.arange(len(self.target))
        of_row[self.rows.repeats[:, 0]] = self.rows.repeats[:, 1]
        return of_row


@dataclass(frozen=True)
class Problem:
    """What a learner takes.

    Attributes
    ----------
    schema, matrix
        The table (n, p); a learner encodes the rows it needs, when it needs them.
    y
        (n, t) float32, as the loss expects it: class indices, or numbers in units of `target_scale`
        around `target_center` for a loss that scales its target.
    weight
        (n,) float32, of mean 1 over the rows that are used.
    train, valid
        Row numbers, int64; `valid` may be empty.
    loss
        What is minimised.
    n_outputs
        Values per leaf.
    target_center, target_scale
        (t,) float64; 0 and 1 where the target is as it came.
    """

    schema: Schema
    matrix: Matrix
    y: np.ndarray
    weight: np.ndarray
    train: np.ndarray
    valid: np.ndarray
    loss: Loss
    n_outputs: int
    target_center: np.ndarray
    target_scale: np.ndarray

    @classmethod
    def of(
        cls,
        data: TrainingSet,
        loss: Loss,
        *,
        n_outputs: int,
        is_classified: bool = False,
        validation_fraction: float = 0.0,
        seed: int = 0,
    ) -> Problem:
        """Pose a problem on a training set.

        Parameters
        ----------
        data
            The rows.
        loss
            What is minimised.
        n_outputs
            Values per leaf.
        is_classified
            Whether the target is a class index; every class then gives its part of the validation.
        validation_fraction
            Part of the distinct rows that is kept apart, in [0, 1).
        seed
            Draws the validation rows.
        """
        rows, weight = data.rows.index, data.weight / data.weight.mean()
        center, scale = _target_units(data.target[rows], weight, loss)
        is_valid = _draw_validation(
            data.target[rows, 0] if is_classified else np.zeros(len(rows)),
            validation_fraction,
            np.random.default_rng(seed),
        )
        weight_of_row = np.zeros(len(data.target), dtype=np.float32)
        weight_of_row[rows] = weight
        return cls(
            schema=data.schema,
            matrix=data.matrix,
            y=((data.target - center) / scale).astype(np.float32),
            weight=weight_of_row,
            train=rows[~is_valid],
            valid=rows[is_valid],
            loss=loss,
            n_outputs=n_outputs,
            target_center=center,
            target_scale=scale,
        )

    def leaf_values(self, scores: np.ndarray) -> np.ndarray:
        """Turn what the leaves hold into what `predict` returns, in the user's units."""
        values = self.loss.link(np.asarray(scores, dtype=np.float64))
        if self.loss.target_units == "raw":
            return values
        return values * self.target_scale + self.target_center

    def linear_leaves(
        self, scores: np.ndarray, leaf_weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Turn scores (L, k) and weights (L, k, c) into those of a tree with the loss's link."""
        values = self.loss.link_scores(np.asarray(scores, dtype=np.float64))
        weights = np.swapaxes(self.loss.link_scores(np.swapaxes(leaf_weights, 1, 2)), 1, 2)
        if self.loss.target_units == "deviation":
            return (
                values * self.target_scale + self.target_center,
                weights * self.target_scale[:, None],
            )
        if self.loss.target_units == "mean":  # exp(s) scale = exp(s + log scale)
            values = values + np.log(self.target_scale)
        return values, weights

    def summed_scores(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores (T, L, k) of trees that are added up into those that the link applies to.

        What belongs to the sum, the target's centre, is put into the leaves of the first tree.
        """
        values = self.loss.link_scores(np.asarray(scores, dtype=np.float64))
        if self.loss.target_units == "deviation":
            values = values * self.target_scale
            values[0] += self.target_center
        elif self.loss.target_units == "mean":
            values[0] += np.log(self.target_scale)
        return values

    def scores_of(
        self, values: np.ndarray, leaf_weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Undo `leaf_values`, or `linear_leaves`: a tree's leaves as the learner holds them."""
        if leaf_weights is None:
            if self.loss.target_units != "raw":
                values = (values - self.target_center) / self.target_scale
            return self.loss.scores(values), None
        if self.loss.target_units == "deviation":
            values = (values - self.target_center) / self.target_scale
            leaf_weights = leaf_weights / self.target_scale[:, None]
        elif self.loss.target_units == "mean":
            values = values - np.log(self.target_scale)
        if values.shape[1] == self.n_outputs:
            return values, leaf_weights
        # Two classes with a score each, learned as their difference.
        return values[:, 1:] - values[:, :1], leaf_weights[:, 1:] - leaf_weights[:, :1]


def _target_units(
    target: np.ndarray, weight: np.ndarray, loss: Loss
) -> tuple[np.ndarray, np.ndarray]:
    """Center and scale of each target, as the loss asks for."""
    zeros, ones = np.zeros(target.shape[1]), np.ones(target.shape[1])
    if loss.target_units == "raw":
        return zeros, ones
    statistics = column_statistics(target, weight)
    if loss.target_units == "mean":
        return zeros, np.where(statistics.mean > 0, statistics.mean, ones)
    return statistics.mean, statistics.deviation


def _draw_validation(group: np.ndarray, fraction: float, random: np.random.Generator) -> np.ndarray:
    """Choose a fraction of the rows, of every group alike, leaving each group at least one row.

    Sizes follow the method of the largest remainder, so that they add up to the fraction of all.
    """
    is_chosen = np.zeros(len(group), dtype=bool)
    if fraction == 0:
        return is_chosen
    _, member_of, sizes = np.unique(group, return_inverse=True, return_counts=True)
    quota = sizes * fraction
    wanted = np.floor(quota).astype(np.int64)
    n_more = max(1, round(len(group) * fraction)) - int(wanted.sum())
    wanted[np.argsort(wanted - quota, kind="stable")[: max(0, n_more)]] += 1
    wanted = np.minimum(wanted, sizes - 1)
    shuffled = np.lexsort((random.random(len(group)), member_of))  # group by group
    place_in_group = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_chosen[shuffled[place_in_group < np.repeat(wanted, sizes)]] = True
    return is_chosen


def engine_matrix(matrix: Matrix) -> Any:
    """Return a dense table as it is, a sparse one as its three arrays: as the engine takes them."""
    if not sparse.issparse(matrix):
        return matrix
    return matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64)
