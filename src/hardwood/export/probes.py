"""The rows on which an export is compared with its model, called probes.

Probes are given rows, or rows simulated from the schema: around the centers, with missing values
and unseen categories, some close to a split, and some moved toward leaves that others miss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hardwood.export.plan import Encoding, Plan, PlannedTree
from hardwood.table import Schema, Table
from hardwood.table.feature import Feature, Level

N_ROWS = 1000
_MAX_GIVEN = 100_000  # given rows to use, from the first on
_MAX_ENTRIES = 20_000_000
_NEAR = (1e-1, 1e-3, 1e-5)  # distances from a split, in standard deviations of its score
_ATTEMPTS = 4
_SWEEPS = 25
_MAX_OPERATIONS = 10_000_000
_FEWEST = 200
_BEYOND_FLOATS = 2**1024  # integers from here on exceed float64
_MAX_LED = 1_000_000  # scores of rows to move toward leaves, over all trees


@dataclass(frozen=True, eq=False)
class Probes:
    """Rows (n, p) as returned by `Schema.read`, and the model's outputs for them.

    The first ``n_typical`` are given rows, or rows like those of training. The others are difficult
    on purpose.
    """

    plan: Plan
    matrix: np.ndarray
    n_typical: int
    are_given: bool

    @classmethod
    def of(cls, plan: Plan, data: Any = None, *, seed: int = 0) -> Probes:
        """Return probes from ``data``, any table that the model can predict, or simulated ones."""
        rng = np.random.default_rng(seed)
        typical = _drawn(plan.schema, rng, N_ROWS) if data is None else _read(plan.schema, data)
        near = _near_splits(plan, rng, typical)
        rows = np.concatenate([typical, near])
        led = _led_to_leaves(plan, rng, rows)
        return cls(plan, np.concatenate([rows, led]), len(typical), data is not None)

    def thinned(self, cost: int) -> Probes:
        """Return fewer rows, evenly spaced, for rows that take ``cost`` slow operations each."""
        step = min(self.n_rows * cost // _MAX_OPERATIONS + 1, max(1, self.n_rows // _FEWEST))
        n_typical = -(-self.n_typical // step)
        return Probes(self.plan, self.matrix[::step], n_typical, self.are_given)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.matrix)

    @cached_property
    def table(self) -> Table:
        """The rows as a table for the model."""
        return self.plan.schema.as_table(self.matrix)

    @cached_property
    def leaves(self) -> np.ndarray:
        """(n, T) the leaf of each row in each tree, by the library."""
        return self.plan.model.apply(self.table).reshape(self.n_rows, -1)

    @cached_property
    def outputs(self) -> np.ndarray:
        """(n, k) float64: probabilities, or regression values, by the library."""
        model = self.plan.model
        if self.plan.model.task == "regression":
            return model.predict(self.table).reshape(self.n_rows, -1)
        return model.predict_proba(self.table)

    @cached_property
    def n_leaves_reached(self) -> int:
        """Number of leaves, of all trees together, that some row reaches."""
        return sum(len(np.unique(column)) for column in self.leaves.T)

    @cached_property
    def raw_columns(self) -> list[list[Any]]:
        """The rows as raw columns: per feature numbers or categories, None where missing.

        Half of the missing values of categorical features are categories not seen in training.
        """
        rng = np.random.default_rng(1)
        return [
            _raw(feature, self.matrix[:, j], rng)
            for j, feature in enumerate(self.plan.schema.features)
        ]


def unseen_level(feature: Feature) -> Level:
    """Return a category of the same type as a feature's own that is not one of them."""
    numbers = [level for level in feature.levels if not isinstance(level, str)]
    if len(numbers) == len(feature.levels):
        taken = {float(level) for level in numbers if abs(level) < _BEYOND_FLOATS}
        # Beyond 2**53 adding 1.5 may change nothing; one of these is unused, as levels are fewer.
        candidates = (1.5 + max(taken, default=0.0), *(i + 0.5 for i in range(len(taken) + 1)))
        return next(level for level in candidates if level not in taken)
    name = "never seen"
    while name in feature.levels:
        name += "!"
    return name


def _raw(feature: Feature, column: np.ndarray, rng: np.random.Generator) -> list[Any]:
    missing = np.isnan(column)
    if feature.kind == "numeric":
        return [None if gone else x for x, gone in zip(column.tolist(), missing, strict=True)]
    unseen = rng.random(len(column)) < 0.5
    absent = [unseen_level(feature) if new else None for new in unseen]
    codes = np.where(missing, 0, column).astype(int).tolist()
    return [
        absent[i] if gone else feature.levels[code]
        for i, (code, gone) in enumerate(zip(codes, missing, strict=True))
    ]


def _read(schema: Schema, data: Any) -> np.ndarray:
    matrix = schema.read(data, who="the export")
    matrix = matrix[: max(1, min(_MAX_GIVEN, _MAX_ENTRIES // schema.n_columns))]
    if not isinstance(matrix, np.ndarray):
        matrix = matrix.toarray()
    return matrix.astype(np.float64)


def _drawn(schema: Schema, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return rows around the centers; a third have missing values and unseen categories."""
    matrix = np.empty((n, schema.n_features))
    spread = schema.column_spread[schema.first_column]
    scale = schema.column_scale[schema.first_column]
    for j, feature in enumerate(schema.features):
        if feature.kind == "categorical":
            matrix[:, j] = rng.integers(len(feature.levels), size=n)
        else:
            width = (spread[j] if spread[j] > 0 else scale[j]) * rng.choice([1.0, 3.0], size=n)
            with np.errstate(over="ignore"):
                drawn = feature.center + width * rng.normal(size=n)
            matrix[:, j] = np.where(np.isfinite(drawn), drawn, feature.center)
    gaps = rng.random(matrix.shape) < np.where(rng.random(n) < 1 / 3, 0.2, 0.0)[:, None]
    matrix[gaps] = np.nan
    return matrix


def _near_splits(plan: Plan, rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Return rows moved to just beside the splits on their paths, on either side."""
    moved = []
    for tree in plan.trees[:: max(1, len(plan.trees) // 20)]:
        if tree.n_splits == 0:
            continue
        n = max(20, N_ROWS // len(plan.trees))
        start = rows[rng.integers(len(rows), size=n)]
        split = rng.integers(tree.n_splits, size=n)
        margin = rng.choice(_NEAR, size=n) * rng.choice([-1.0, 1.0], size=n)
        moved.append(_moved(plan.encoding, tree, start, split, margin))
    return np.concatenate(moved) if moved else rows[:0]


def _moved(
    encoding: Encoding, tree: PlannedTree, rows: np.ndarray, split: np.ndarray, margin: np.ndarray
) -> np.ndarray:
    """Move numbers along the weights until a split's score is ``margin`` standard deviations."""
    values, on = encoding.encode(rows)
    spread = _spread(encoding)
    weights = tree.weights[split].astype(np.float64) * spread  # (r, n) per standard deviation
    weights[np.isnan(rows[:, encoding.numeric])] = 0.0
    score = (
        tree.bias[split]
        + (tree.weights[split].astype(np.float64) * values).sum(axis=1)
        + (tree.indicators[split].astype(np.float64) * on).sum(axis=1)
    )
    size = np.square(weights).sum(axis=1)
    length = np.sqrt(size)
    with np.errstate(all="ignore"):
        step = np.where(size > 0, (margin * length - score) / size, 0.0)
        shift = step[:, None] * weights * spread * encoding.scale
        shifted = rows[:, encoding.numeric] + shift
    out = rows.copy()
    kept = np.isfinite(shifted)
    out[:, encoding.numeric] = np.where(kept, shifted, rows[:, encoding.numeric])
    return out


def _spread(encoding: Encoding) -> np.ndarray:
    """(n,) standard deviation of each value, in its units; 1 where it is 0."""
    columns = encoding.value_columns
    spread = encoding.schema.column_spread[columns] / encoding.scale
    scale = encoding.schema.column_scale[columns] / encoding.scale
    return np.where(spread > 0, spread, scale)


def _led_to_leaves(plan: Plan, rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Return rows moved toward leaves that no row reaches, by projection onto the splits.

    Some leaves cannot be reached; the rows are returned in any case.
    """
    reached = plan.model.apply(plan.schema.as_table(rows)).reshape(len(rows), -1)
    led, room = [], _MAX_LED
    for t, tree in enumerate(plan.trees):
        leaves = np.setdiff1d(np.arange(tree.n_leaves), reached[:, t])
        leaves = leaves[: room // (_ATTEMPTS * max(tree.n_splits, 1))]
        room -= len(leaves) * _ATTEMPTS * tree.n_splits
        if len(leaves) == 0:
            continue
        targets = np.repeat(leaves, _ATTEMPTS)
        start = _filled(plan.schema, rows[rng.integers(len(rows), size=len(targets))], rng)
        led.append(_projected(plan.encoding, tree, start, targets, rng))
    return np.concatenate(led) if led else rows[:0]


def _projected(
    encoding: Encoding,
    tree: PlannedTree,
    rows: np.ndarray,
    leaves: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    wanted = _sides(tree, leaves)  # (r, m)
    weights, indicators = tree.weights.T.astype(float), tree.indicators.T.astype(float)
    every = np.arange(len(rows))
    for _ in range(_SWEEPS):
        values, on = encoding.encode(rows)
        right = values.astype(float) @ weights + on @ indicators + tree.bias >= 0
        offending = (wanted != 0) & (right != (wanted > 0))
        wrong = offending.any(axis=1)
        if not wrong.any():
            break
        split = (offending * rng.random(offending.shape)).argmax(axis=1)  # any of them
        margin = wanted[every, split] * rng.uniform(0.01, 0.5, len(rows))
        moved = _moved(encoding, tree, rows, split, margin)
        turned = _turned(encoding, tree, rows, split, wanted[every, split])
        by_levels = (rng.random(len(rows)) < 0.3) | ~tree.weights[split].any(axis=1)
        rows = np.where(wrong[:, None], np.where(by_levels[:, None], turned, moved), rows)
    return rows


def _turned(
    encoding: Encoding, tree: PlannedTree, rows: np.ndarray, split: np.ndarray, side: np.ndarray
) -> np.ndarray:
    """Give rows the category, or the missing value, that favors one side of a split most."""
    out = rows.copy()
    if encoding.n_indicators == 0:
        return out
    best = (tree.indicators[split] * side[:, None]).argmax(axis=1)  # (r,)
    features = np.array([item.feature for item in encoding.indicators])
    levels = np.array([np.nan if i.level is None else i.level for i in encoding.indicators])
    out[np.arange(len(rows)), features[best]] = levels[best]
    return out


def _filled(schema: Schema, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Replace missing values, which cannot be moved, by the center or a random category."""
    n_levels = np.maximum(schema.n_levels, 1)
    whole = rng.integers(n_levels, size=rows.shape).astype(float)
    center = schema.column_center[schema.first_column]
    return np.where(np.isnan(rows), np.where(schema.n_levels > 0, whole, center), rows)


def _sides(tree: PlannedTree, leaves: np.ndarray) -> np.ndarray:
    """(r, m) side of each split on the path to a row's leaf: 1 right, -1 left, 0 off the path."""
    m = tree.n_splits
    parent, side = np.full(2 * m + 1, -1), np.zeros(2 * m + 1, np.int8)
    child = np.where(tree.children >= 0, tree.children, m + ~tree.children)  # leaves after splits
    parent[child] = np.arange(m)[:, None]
    side[child] = np.array([-1, 1])
    sides = np.zeros((len(leaves), m), np.int8)
    node, rows = m + leaves, np.arange(len(leaves))
    for _ in range(m):
        below = parent[node] >= 0
        if not below.any():
            break
        sides[rows[below], parent[node[below]]] = side[node[below]]
        node = np.where(below, parent[node], node)
    return sides
