"""Coefficients of categories that are easy to read: few sets of levels, and none for the largest.

Every row has one level of a category. So a number may move from the coefficients of all its levels
to the constant, and one level needs no coefficient: of a category with two levels, one number is
left, and of one with a single level that the splits above leave open, none. Of many levels, those
with similar coefficients can share one; they read as a set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardwood.learn.task import Task

_LEAST_SHARE = 1e-12  # of rows, so that levels without any row have a place, too


@dataclass(frozen=True, eq=False)
class Category:
    """The indicator columns of a category, missing entries among them, and their shares of rows."""

    columns: np.ndarray
    share: np.ndarray


def categories_of(task: Task) -> tuple[Category, ...]:
    """Return the categories of a task, with shares of its training rows."""
    schema, found = task.schema, []
    for j in np.flatnonzero(schema.n_levels):
        level = task.matrix[task.train, j]
        n_levels = int(schema.n_levels[j])
        code = np.where(np.isnan(level), n_levels, level).astype(np.int64)
        columns = np.flatnonzero(np.asarray(schema.column_feature) == j)
        rows = np.bincount(code, task.weight[task.train], n_levels + 1)[: len(columns)]
        found.append(Category(columns, rows / rows.sum() + _LEAST_SHARE))
    return tuple(found)


def with_level_groups(
    model: np.ndarray,
    categories: tuple[Category, ...],
    excluded: np.ndarray,
    n_groups: int | None = None,
) -> np.ndarray:
    """Return a model [A | theta] (k, c + 1) in which the largest set of levels has no coefficient.

    Levels are put into at most `n_groups` sets; with None, only categories of two levels change.
    Nor have levels a coefficient that no row of the node can have, `excluded` (c,).
    """
    model = model.copy()
    for category in categories:
        is_open = ~excluded[category.columns]
        columns, share = category.columns[is_open], category.share[is_open]
        model[:, category.columns[~is_open]] = 0.0
        size = 2 if len(columns) <= 2 else n_groups
        if size is None or not model[:, columns].any():
            continue
        for scores in model:
            own = grouped(scores[columns], share, size)
            values, place = np.unique(own, return_inverse=True)
            reference = values[np.bincount(place, share).argmax()]
            scores[columns] = own - reference
            scores[-1] += reference
    return model


def grouped(values: np.ndarray, share: np.ndarray, n_groups: int) -> np.ndarray:
    """Replace values by the means of at most `n_groups` groups, with the least squared error.

    Of sorted values the groups are intervals, and the best ones are found by dynamic programming.
    """
    levels, place = np.unique(values, return_inverse=True)
    n = len(levels)
    if n <= n_groups:
        return values
    weight = np.bincount(place, share)
    errors = _errors(levels, weight)
    least = np.full(n + 1, np.inf)  # of the first i values, in as many groups as there are so far
    least[0] = 0.0
    firsts = []
    for _ in range(n_groups):
        total = least[:, None] + errors
        firsts.append(total.argmin(axis=0))
        least = total.min(axis=0)
    group, last = np.empty(n, dtype=np.int64), n
    for g in range(n_groups - 1, -1, -1):
        first = int(firsts[g][last])
        group[first:last] = g
        last = first
    mean = np.bincount(group, weight * levels, n_groups) / np.bincount(group, weight, n_groups)
    found: np.ndarray = mean[group][place]
    return found


def _errors(levels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the squared error of the group of each interval, [first, last), of sorted values."""
    moments = [np.append(0.0, np.cumsum(weight * (levels - levels.mean()) ** p)) for p in range(3)]
    rows, sums, squares = (each[None, :] - each[:, None] for each in moments)
    is_interval = np.triu(np.ones_like(rows, dtype=bool), k=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(is_interval, np.maximum(squares - sums**2 / rows, 0.0), np.inf)
