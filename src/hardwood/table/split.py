"""Stratified splits of the rows of a table: a held-out part, or folds.

Rows are ordered by class, shuffled within each class, and assigned in that order; the same
generator gives the same split. `hold_out` and `fold_numbers` hold out rows to evaluate models;
`validation_part` and `validation_folds` hold out rows within a learner. They differ only in how
they draw random numbers. Results depend on both, so do not merge them.
"""

from __future__ import annotations

import numpy as np

from hardwood.errors import TableError
from hardwood.text.numbers import plural


def hold_out(
    n_rows: int, fraction: float, rng: np.random.Generator, labels: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Split row numbers at random into a training and a held-out part, each in increasing order.

    With ``labels`` the split is stratified, to within a row per class, and the training part has at
    least one row of each class. With ``fraction`` 0 the held-out part is empty.

    Raises
    ------
    TableError
        If either part would have too few rows.
    """
    if fraction == 0:
        return np.arange(n_rows), np.arange(0)
    order = _order(n_rows, labels, rng)
    # Every (1 / fraction)-th of the rows, which are ordered by class.
    steps = np.floor((np.arange(n_rows + 1) + rng.random()) * fraction)
    is_held = np.zeros(n_rows, dtype=bool)
    is_held[order] = np.diff(steps) > 0
    return separated(is_held, labels, f"a fraction of {fraction:g}")


def fold_numbers(
    n_rows: int, n_folds: int, rng: np.random.Generator, labels: np.ndarray | None = None
) -> np.ndarray:
    """Assign rows to folds in turn, class by class; return the fold of each row, (n,)."""
    number = np.empty(n_rows, dtype=np.int64)
    number[_order(n_rows, labels, rng)] = np.arange(n_rows) % n_folds
    return number


def separated(
    is_held: np.ndarray, labels: np.ndarray | None, words: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the training rows and of the held-out rows.

    A class without a training row gets one back: otherwise no model could predict it. ``words``
    describe the held-out part in the error message for too few rows.
    """
    if labels is not None:
        _, first_row, classes = np.unique(labels, return_index=True, return_inverse=True)
        absent = np.bincount(classes[~is_held], minlength=first_row.size) == 0
        is_held[first_row[absent]] = False
    train, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    if train.size < 2 or held.size == 0:
        raise TableError(
            f"A table of {plural(is_held.size, 'row')} is too small to hold out {words}."
        )
    return train, held


def _order(n_rows: int, labels: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    order = rng.permutation(n_rows)
    if labels is None:
        return order
    classes = np.unique(labels, return_inverse=True)[1]
    return order[np.argsort(classes[order], kind="stable")]


def validation_part(group: np.ndarray, fraction: float, random: np.random.Generator) -> np.ndarray:
    """Choose a fraction of the rows, stratified by group, leaving each group at least one row.

    The sizes follow the largest remainder method, so that they add up to the fraction of all rows.

    Returns
    -------
    is_chosen
        (n,) bool.
    """
    is_chosen = np.zeros(len(group), dtype=bool)
    if fraction == 0:
        return is_chosen
    sizes = np.unique(group, return_counts=True)[1]
    quota = sizes * fraction
    wanted = np.floor(quota).astype(np.int64)
    n_more = max(1, round(len(group) * fraction)) - int(wanted.sum())
    wanted[np.argsort(wanted - quota, kind="stable")[: max(0, n_more)]] += 1
    wanted = np.minimum(wanted, sizes - 1)
    place_in_group = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shuffled = _shuffled(group, random)
    is_chosen[shuffled[place_in_group < np.repeat(wanted, sizes)]] = True
    return is_chosen


def validation_folds(
    group: np.ndarray, n_folds: int, random: np.random.Generator
) -> list[np.ndarray]:
    """Assign rows to folds, group by group; the only row of a group is in no fold.

    Returns
    -------
    folds
        For each fold that is neither empty nor everything, which rows are in it, (n,) bool.
    """
    number = np.empty(len(group), dtype=np.int64)
    number[_shuffled(group, random)] = np.arange(len(group)) % n_folds
    _, member, sizes = np.unique(group, return_inverse=True, return_counts=True)
    is_alone = sizes[member] == 1
    folds = [(number == i) & (~is_alone | is_alone.all()) for i in range(n_folds)]
    return [fold for fold in folds if fold.any() and not fold.all()]


def _shuffled(group: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return row numbers ordered by group, shuffled within each group."""
    return np.lexsort((random.random(len(group)), group))
