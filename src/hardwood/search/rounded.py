"""Trees of a search, with numbers as short as the training rows allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.model.edit.short_numbers import short_numbers
from hardwood.table import Feature
from hardwood.text.numbers import rounded_quantity

_MOST_ROWS = 20_000
_MOST_ENTRIES = 2**24  # of the encoded rows: wide tables are rounded on fewer of them, and
_LEAST_ROWS = 1000  # unless the table has fewer
_MEAN_DIGITS = 3


def with_short_means(task: Task) -> Task:
    """Round the means that missing numbers count as, and that numbers are centered at in exports.

    float32 tables keep those that no missing number needs: with centers that are float32 numbers,
    the engine is faster.
    """
    is_single = task.matrix.dtype == np.float32
    features = tuple(
        _with_short_mean(feature) if feature.has_missing or not is_single else feature
        for feature in task.schema.features
    )
    return replace(task, schema=replace(task.schema, features=features))


def _with_short_mean(feature: Feature) -> Feature:
    """Round to three digits of the standard deviation; a constant column keeps its value."""
    if feature.kind != "numeric" or feature.spread[0] == 0:
        return feature
    spread = feature.spread[0]
    center = rounded_quantity(feature.center, feature.origin, _MEAN_DIGITS, spread=spread)
    return replace(feature, center=center)


def with_short_numbers(tree: ObliqueTree, task: Task) -> ObliqueTree:
    """Round the numbers of a tree; rows of the task, evenly spaced, reach the same leaves.

    A tree of a very wide table stays as it is: the rows that fit into memory say too little.
    """
    rows = np.sort(np.concatenate([task.train, task.valid]))
    most = min(len(rows), _MOST_ROWS, _MOST_ENTRIES // task.schema.n_columns)
    if most < min(len(rows), _LEAST_ROWS):
        return tree
    rows = rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]
    target = task.target[rows]
    if task.kind == "classification":
        target = target[:, 0].astype(np.int64)
    X = task.schema.as_table(task.matrix[rows])
    return short_numbers(tree, X, target, task.weight[rows])
