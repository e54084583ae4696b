"""Partial dependence: the mean prediction when a feature has the same value in all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.model.outputs import check_finite
from hardwood.report.permuted import PermutedColumns
from hardwood.report.scored_rows import ScoredRows
from hardwood.table import Feature
from hardwood.table.statistics import mean_of_rows
from hardwood.text.numbers import format_quantity

_TAILS = (0.05, 0.95)  # quantiles of the rows at the ends of a numeric grid
MISSING = "missing"


@dataclass(frozen=True)
class Dependence:
    """How the mean prediction depends on one feature, with all other features unchanged.

    Attributes
    ----------
    feature
        Name of the feature.
    kind
        ``"numeric"`` or ``"categorical"``.
    values
        Values of the feature: numbers or categories; None for missing.
    labels
        The values as text; dates as dates.
    outputs
        Names of the classes, labels or targets.
    mean
        Mean probabilities or values: for each of ``values``, one per output.
    """

    feature: str
    kind: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]
    outputs: tuple[str, ...]
    mean: tuple[tuple[float, ...], ...]


def dependences(
    rows: ScoredRows, features: Sequence[int], *, n_grid: int, n_jobs: int | None
) -> tuple[Dependence, ...]:
    """Compute the partial dependence on each of some features."""
    table = PermutedColumns(rows.model.schema, rows.matrix)
    return tuple(_dependence(rows, table, j, n_grid, n_jobs) for j in features)


def _dependence(
    rows: ScoredRows, table: PermutedColumns, j: int, n_grid: int, n_jobs: int | None
) -> Dependence:
    feature = rows.model.schema.features[j]
    entries = _entries(feature, table.present(j), n_grid)
    mean = []
    for entry in entries:
        outputs = rows.model.outputs(table.constant(j, entry), n_jobs=n_jobs)
        check_finite(outputs)
        mean.append(tuple(mean_of_rows(outputs, rows.weight).tolist()))
    return Dependence(
        feature=feature.name,
        kind=feature.kind,
        values=tuple(_value(feature, entry) for entry in entries),
        labels=tuple(_label(feature, entry, entries) for entry in entries),
        outputs=rows.model.output_labels,
        mean=tuple(mean),
    )


def _entries(feature: Feature, present: np.ndarray, n_grid: int) -> list[float]:
    """Return the values to set a column to: numbers, or positions of levels; NaN for missing."""
    if feature.kind == "categorical":
        entries = [float(i) for i in range(len(feature.levels))]
    else:
        entries = _grid(present, n_grid)
    return entries + ([np.nan] if feature.has_missing or not entries else [])


def _grid(present: np.ndarray, n_grid: int) -> list[float]:
    """Return all distinct numbers if there are few, else a grid between the tails."""
    different = np.unique(present).astype(np.float64)
    if different.size <= n_grid:
        return different.tolist()
    low, high = np.quantile(present.astype(np.float64), _TAILS)
    return np.unique(np.linspace(low, high, n_grid)).tolist()


def _value(feature: Feature, entry: float) -> Any:
    if np.isnan(entry):
        return None
    return feature.levels[int(entry)] if feature.kind == "categorical" else entry


def _label(feature: Feature, entry: float, entries: list[float]) -> str:
    if np.isnan(entry):
        return MISSING
    if feature.kind == "categorical":
        return str(feature.levels[int(entry)])
    present = [other for other in entries if not np.isnan(other)]
    spread = (max(present) - min(present)) / 4 or abs(entry) or 1.0
    digits = 2 if feature.origin == "date" else 3
    return format_quantity(entry, feature.origin, digits, spread=spread)
