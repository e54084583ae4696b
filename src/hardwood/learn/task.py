"""The task of a learner: a table, a target, weights and a loss, in canonical rows.

A task does not depend on the order of the rows, and a row of weight two is the same as the row
twice, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hardwood.learn.losses import Custom, Logistic, Loss, Poisson
from hardwood.model.structure import TaskKind
from hardwood.table import Schema, Table
from hardwood.table.canonical_rows import Matrix, Rows, canonical_rows
from hardwood.table.dense_size import check_dense_size
from hardwood.table.split import validation_part
from hardwood.table.statistics import column_statistics
from hardwood.table.target import class_target, has_several_labels, label_target, number_target
from hardwood.table.weights import (
    WEIGHTS_THAT_COUNT,
    class_weights,
    label_weights,
    row_weights,
    without_negligible,
)
from hardwood.text.numbers import plural

_CHUNK_VALUES = 2**22  # encoded at a time

FindLoss: TypeAlias = Callable[[TaskKind, int | None], Loss]
"""Returns the loss to minimize, for a kind of task and its number of classes, if any."""


@dataclass(frozen=True)
class Task:
    """Rows, target, weights and loss for a learner.

    Attributes
    ----------
    kind
        "classification", "multilabel" or "regression".
    schema
        The schema of the table, learned from the rows with positive weight.
    matrix
        (n, p) raw numbers and category codes, float32, float64 or CSR; the user's own array if
        possible. A learner encodes rows when it needs them.
    target
        (n, t) float64, as given: class indices or numbers.
    y
        (n, t) float32, the target for the loss: class indices, or numbers, which some losses center
        by `target_center` and scale by `target_scale`.
    rows
        The distinct rows with positive weight, in canonical order; weights in the user's units.
    row_weight
        (n,) float64, the weight of each row while learning: its own weight times the weight of its
        class, divided by the largest; 0 for rows that are not used.
    weight
        (n,) float32, the same, with mean 1 over the rows that are used.
    train, valid
        Row numbers, int64; `valid` may be empty.
    loss
        The loss to minimize.
    n_targets
        Number of classes, labels or regression targets.
    classes
        The sorted classes of a classification; the indices of several labels; None for regression.
    target_names
        Names of the targets, if they have names.
    target_center, target_scale
        (t,) float64; 0 and 1 for a target that is not scaled.
    given
        The table as the user gave it.
    """

    kind: TaskKind
    schema: Schema
    matrix: Matrix
    target: np.ndarray
    y: np.ndarray
    rows: Rows
    row_weight: np.ndarray
    weight: np.ndarray
    train: np.ndarray
    valid: np.ndarray
    loss: Loss
    n_targets: int
    classes: np.ndarray | None
    target_names: tuple[str, ...] | None
    target_center: np.ndarray
    target_scale: np.ndarray
    given: Any = None

    # --- construction --------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        classifies: bool,
        loss: FindLoss,
        class_weight: Any = None,
    ) -> Task:
        """Read a table and its target: classes, several binary labels, or numbers.

        This is the only place where `fit` reads y, weights and classes.
        """
        table = Table.of(X)
        if not classifies:
            return cls._of_numbers(table, X, y, sample_weight, loss)
        if has_several_labels(y):
            return cls._of_labels(table, X, y, sample_weight, loss, class_weight)
        return cls._of_classes(table, X, y, sample_weight, loss, class_weight)

    @classmethod
    def _of_classes(
        cls, table: Table, X: Any, y: Any, sample_weight: Any, loss: FindLoss, class_weight: Any
    ) -> Task:
        target = class_target(y, table.n_rows)
        weight = row_weights(sample_weight, table.n_rows)
        found = loss("classification", len(target.classes))
        if isinstance(found, Logistic) and len(target.classes) != 2:
            raise ValueError(f"The logistic loss is for two classes, found {len(target.classes)}.")
        task = cls.of(
            table,
            target.index[:, None].astype(np.float64),
            weight,
            class_weights(class_weight, target, weight),
            kind="classification",
            loss=found,
            classes=target.classes,
            target_names=target.names,
            given=X,
        )
        left = np.unique(target.index[task.rows.index])
        if len(left) < 2:
            raise ValueError(
                "A classifier needs rows of at least 2 classes, found 1 class among the rows with "
                f"positive weight: {target.classes[left[0]].item()!r}."
                + ("" if weight is None and class_weight is None else f" {WEIGHTS_THAT_COUNT}")
            )
        return task

    @classmethod
    def _of_labels(
        cls, table: Table, X: Any, y: Any, sample_weight: Any, loss: FindLoss, class_weight: Any
    ) -> Task:
        target = label_target(y, table.n_rows)
        weight = row_weights(sample_weight, table.n_rows)
        return cls.of(
            table,
            target.values,
            weight,
            label_weights(class_weight, target.values, weight),
            kind="multilabel",
            loss=loss("multilabel", None),
            classes=np.arange(target.values.shape[1]),
            target_names=target.names,
            given=X,
        )

    @classmethod
    def _of_numbers(cls, table: Table, X: Any, y: Any, sample_weight: Any, loss: FindLoss) -> Task:
        target = number_target(y, table.n_rows)
        weight = row_weights(sample_weight, table.n_rows)
        found = loss("regression", None)
        if isinstance(found, Poisson) and (target.values < 0).any():
            raise ValueError(
                f"The Poisson loss is for y >= 0, found {target.values.min():g}. "
                "Use loss='squared_error' or another loss for targets of any sign."
            )
        return cls.of(
            table,
            target.values,
            weight,
            kind="regression",
            loss=found,
            target_names=target.names,
            given=X,
        )

    @classmethod
    def of(
        cls,
        table: Table,
        target: np.ndarray,
        weight: np.ndarray | None = None,
        factor: np.ndarray | None = None,
        *,
        kind: TaskKind,
        loss: Loss,
        classes: np.ndarray | None = None,
        target_names: tuple[str, ...] | None = None,
        given: Any = None,
    ) -> Task:
        """Order the rows, merge equal rows, learn the schema, and scale the target.

        Parameters
        ----------
        table
            A table from `Table.of`.
        target
            (n, t) float64, finite.
        weight
            (n,) float64, finite, >= 0, at least one positive; None for equal weights.
        factor
            (n,) factors of the weights, equal for rows with equal target.
        kind, loss, classes, target_names, given
            Same as the attributes of the task.

        Raises
        ------
        TableError
            For a column without values.
        ValueError
            For a table with fewer than two distinct rows.
        """
        used = weight
        if factor is not None:
            own = np.ones(len(target)) if weight is None else weight
            counts = without_negligible(own / own.max() * (factor / factor.max())) > 0
            used = np.where(counts, own, 0.0)
        rows = canonical_rows(table.matrix, target, used, levels=table.levels)
        if len(rows) < 2:
            raise ValueError(
                "Learning needs at least two distinct rows, found n_samples=1: the table has "
                f"{plural(table.n_rows, 'row')}, and all rows with positive weight are equal."
                + ("" if used is None else f" {WEIGHTS_THAT_COUNT}")
            )
        # At most 1, so that no sum overflows.
        largest = rows.weight.max()
        row_weight = rows.weight if largest == 1.0 else rows.weight / largest
        if factor is not None:
            row_weight = row_weight * (factor[rows.index] / factor.max())
        schema = Schema.learn(table, row_weight, rows.index)
        relative = row_weight / row_weight.mean()
        center, scale = _target_units(target[rows.index], relative, loss)
        weight_of_row = np.zeros(len(target), dtype=np.float32)
        weight_of_row[rows.index] = relative
        all_weights = np.zeros(len(target))
        all_weights[rows.index] = row_weight
        return cls(
            kind=kind,
            schema=schema,
            matrix=schema.read(table, is_training=True),
            target=target,
            y=((target - center) / scale).astype(np.float32),
            rows=rows,
            row_weight=all_weights,
            weight=weight_of_row,
            train=rows.index,
            valid=rows.index[:0],
            loss=loss,
            n_targets=target.shape[1] if classes is None else len(classes),
            classes=classes,
            target_names=target_names,
            target_center=center,
            target_scale=scale,
            given=given,
        )

    # --- derived tasks --------------------------------------------------------------------------

    def divided(self, fraction: float, seed: int) -> Task:
        """Hold out a fraction of the distinct rows, in [0, 1), stratified by class."""
        index = self.rows.index
        classes = self.target[index, 0] if self.kind == "classification" else np.zeros(len(index))
        is_valid = validation_part(classes, fraction, np.random.default_rng(seed))
        return replace(self, train=index[~is_valid], valid=index[is_valid])

    def whole(self) -> Task:
        """Return the task without validation rows; rows are in canonical order again."""
        return replace(self, train=self.rows.index, valid=self.rows.index[:0])

    def with_loss(self, loss: Loss) -> Task:
        """Return the task with another loss that uses the same units of the target."""
        return replace(self, loss=loss)

    # --- properties ----------------------------------------------------------------------------

    @property
    def n_outputs(self) -> int:
        """Number of scores per leaf."""
        return self.loss.n_outputs(self.n_targets)

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The classes of a classification, for a model; None for other tasks."""
        if self.kind != "classification" or self.classes is None:
            return None
        return tuple(self.classes.tolist())

    @property
    def has_loss_values(self) -> bool:
        """Whether the loss has values; a function may return only a gradient."""
        if not isinstance(self.loss, Custom):
            return True
        target = self.target[self.rows.index[:2]].astype(np.float32)
        scores = np.zeros((len(target), self.n_outputs), dtype=np.float32)
        values, _ = self.loss(scores, target)
        return values is not None

    def weight_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the weights of distinct rows in the user's units."""
        weight = np.zeros(len(self.target))
        weight[self.rows.index] = self.rows.weight
        return weight[rows]

    def encoded(self, rows: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
        """Return encoded rows, (n, c) float32 values of this type, in standard units.

        Raises
        ------
        TableError
            If they do not fit into memory.
        """
        shape = len(rows), self.schema.n_columns
        check_dense_size(*shape, bytes_per_value=np.dtype(dtype).itemsize, learner="This learner")
        encoded = np.empty(shape, dtype)
        n_chunk = max(1, _CHUNK_VALUES // max(1, shape[1]))
        for first in range(0, len(rows), n_chunk):
            part = slice(first, first + n_chunk)
            taken = self.matrix[rows[part]]
            taken = np.ascontiguousarray(taken) if isinstance(taken, np.ndarray) else taken
            encoded[part] = self.schema.encoder.encode(taken)
        return encoded

    def representatives(self) -> np.ndarray:
        """Return the distinct row that represents each row of the table, (n,)."""
        of_row = np.arange(len(self.target))
        of_row[self.rows.repeats[:, 0]] = self.rows.repeats[:, 1]
        return of_row

    # --- between the units of the loss and the user's units -------------------------------------

    def leaf_values(self, scores: np.ndarray) -> np.ndarray:
        """Convert scores of leaves to predictions in the user's units."""
        values = self.loss.link(np.asarray(scores, dtype=np.float64))
        if self.loss.target_units == "raw":
            return values
        return values * self.target_scale + self.target_center

    def linear_leaves(
        self, scores: np.ndarray, leaf_weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Convert scores (L, k) and weights (L, k, c) to those of a tree with the loss's link."""
        values = self.loss.link_scores(np.asarray(scores, dtype=np.float64))
        weights = np.swapaxes(self.loss.link_scores(np.swapaxes(leaf_weights, 1, 2)), 1, 2)
        if self.loss.target_units == "deviation":
            with np.errstate(over="ignore"):  # the caller checks the weights
                return (
                    values * self.target_scale + self.target_center,
                    weights * self.target_scale[:, None],
                )
        if self.loss.target_units == "mean":  # exp(s) scale = exp(s + log scale)
            values = values + np.log(self.target_scale)
        return values, weights

    def summed_scores(self, scores: np.ndarray) -> np.ndarray:
        """Convert scores (T, L, k) of trees whose sum the link is applied to.

        The target's center is added to the leaves of the first tree.
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
        """Convert a tree's leaves to scores; the inverse of `leaf_values` and `linear_leaves`."""
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
        # Two classes with a score each; the learner uses their difference.
        return values[:, 1:] - values[:, :1], leaf_weights[:, 1:] - leaf_weights[:, :1]


def _target_units(
    target: np.ndarray, weight: np.ndarray, loss: Loss
) -> tuple[np.ndarray, np.ndarray]:
    """Return the center and scale of each target for a loss."""
    zeros, ones = np.zeros(target.shape[1]), np.ones(target.shape[1])
    if loss.target_units == "raw":
        return zeros, ones
    statistics = column_statistics(target, weight)
    if loss.target_units == "mean":
        return zeros, np.where(statistics.mean > 0, statistics.mean, ones)
    return statistics.mean, statistics.deviation
