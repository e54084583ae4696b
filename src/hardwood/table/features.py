"""Learn one `Feature` per column of a training table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hardwood.errors import TableError, warn_about_table
from hardwood.table.feature import MAX_LEVELS, Feature
from hardwood.table.levels import text_among_numbers
from hardwood.table.statistics import Statistics, column_statistics, level_weights
from hardwood.table.table import Table
from hardwood.table.weights import row_weights
from hardwood.text.numbers import plural


def learn_features(
    table: Table, sample_weight: Any = None, rows: np.ndarray | None = None
) -> tuple[Feature, ...]:
    """Learn centers, scales, levels, spreads, and which columns have missing values.

    Rows of weight zero, and rows that `rows` does not list, are ignored.

    Raises
    ------
    TableError
        If all values of a column are missing, or the weights are invalid.

    Warns
    -----
    TableWarning
        If a column has more than 255 levels: those with the largest total weight are kept (ties in
        level order), and the others count as missing values. If nearly all levels of a text column
        are numbers.
    """
    weight = _scaled_weight(sample_weight, table.n_rows if rows is None else len(rows))
    total_weight = float(weight.sum())
    statistics = column_statistics(table.matrix, weight, rows)
    names = table.names or default_names(table.n_features)
    features = []
    for j, name in enumerate(names):
        if statistics.is_empty[j]:
            raise TableError(
                f"{table.label(j)} has no values in {plural(table.n_rows, 'row')}: every entry, or "
                "every one with a positive weight, is missing. Drop the column."
            )
        if table.levels[j] is None:
            features.append(_numeric(name, table, j, statistics, total_weight))
        else:
            has_missing = bool(statistics.has_missing[j])
            features.append(_categorical(name, table, j, weight, rows, has_missing))
    return tuple(features)


def _numeric(
    name: str, table: Table, j: int, statistics: Statistics, total_weight: float
) -> Feature:
    has_missing = bool(statistics.has_missing[j])
    deviation = float(statistics.deviation[j])
    flag = _flag_spread(float(statistics.present[j]), total_weight) if has_missing else ()
    return Feature(
        name,
        "numeric",
        center=float(table.matrix.dtype.type(statistics.mean[j])),
        scale=nearest_power_of_two(deviation),
        has_missing=has_missing,
        spread=(0.0 if statistics.is_constant[j] else deviation, *flag),
        origin=_origin(table.origin(j), bool(statistics.is_whole[j])),
    )


def _categorical(
    name: str,
    table: Table,
    j: int,
    weight: np.ndarray,
    rows: np.ndarray | None,
    has_missing: bool,
) -> Feature:
    found = table.levels[j]
    assert found is not None
    wrong = text_among_numbers(found)
    if wrong is not None:
        warn_about_table(
            f"{table.label(j)} is text and not numbers, because it has entries such as "
            f"{wrong!r:.60}. Correct them, or make them missing (an empty cell in a file)"
        )
    total = float(weight.sum())
    present = level_weights(table.matrix[:, j], weight, len(found), rows)
    kept = _kept_levels(present, table.label(j))
    has_missing = has_missing or len(kept) < int(np.count_nonzero(present))
    flag = _flag_spread(float(present[kept].sum()), total) if has_missing else ()
    return Feature(
        name,
        "categorical",
        levels=tuple(found[i] for i in kept.tolist()),
        has_missing=has_missing,
        spread=(*_share_spread(present[kept] / total).tolist(), *flag),
    )


def _origin(of_table: str, is_whole: bool) -> str:
    """Return what the numbers represent; whole ones are integers, of whatever type they are."""
    return "integer" if of_table == "number" and is_whole else of_table


def _flag_spread(present: float, total: float) -> tuple[float]:
    return (float(_share_spread(np.array(1 - present / total))),)


def _share_spread(share: np.ndarray) -> np.ndarray:
    """Return the standard deviation of 0/1 columns from their fraction of ones."""
    share = np.clip(share, 0.0, 1.0)  # two sums of the same weights differ by rounding
    spread: np.ndarray = np.sqrt(share * (1 - share))
    return spread


def nearest_power_of_two(deviation: float) -> float:
    """Return the scale of a column: the power of two nearest its standard deviation, as a ratio.

    Division by it is exact, and so is multiplying it into the weights of a tree: a float32 value
    takes the same path as the equal float64 value. (For the same reason, the center of a float32
    table is a float32.)
    """
    largest = 1023  # 2^1024 exceeds float64
    return math.ldexp(1.0, min(round(math.log2(deviation)), largest))


def default_names(n_features: int) -> tuple[str, ...]:
    """Return the names of unnamed columns: x0, x1, ..."""
    return tuple(f"x{j}" for j in range(n_features))


def _kept_levels(weight: np.ndarray, label: str) -> np.ndarray:
    """Return the positions of the levels to keep, given the total weight of each."""
    used = np.flatnonzero(weight > 0)
    if len(used) > MAX_LEVELS:
        heaviest_first = np.argsort(-weight[used], kind="stable")
        warn_about_table(
            f"{label} has {len(used)} levels; the {MAX_LEVELS} with the largest total weight "
            "are kept and the others count as missing. "
            "Drop the column if it is an identifier, make it numeric or coarser, "
            "or parse it if it holds dates."
        )
        used = np.sort(used[heaviest_first[:MAX_LEVELS]])
    return used


def _scaled_weight(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return the weights as float64, scaled to at most 1 by a power of two.

    Their sum cannot overflow then, and the scaling is exact.
    """
    weight = row_weights(sample_weight, n_rows)
    if weight is None:
        return np.broadcast_to(1.0, n_rows)
    return np.ldexp(weight, -int(np.frexp(weight.max())[1]))
