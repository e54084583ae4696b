"""How the rows of a table are divided: a part held out, or folds, of every class in proportion.

Rows are lined up class by class, shuffled within a class, and dealt out in that order; the same
generator gives the same division. What is held out to judge models (`hold_out`, `fold_numbers`)
and what a learner holds out for itself (`validation_part`, `validation_folds`) differ in how they
draw random numbers, and nothing else: results depend on either, so neither is changed lightly.
"""

from __future__ import annotations

import numpy as np

from hardwood.errors import TableError


def hold_out(
    n_rows: int, fraction: float, rng: np.random.Generator, labels: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Divide row numbers at random into a training and a held-out part, each in increasing order.

    With ``labels`` every class gives its share of the held-out part, to within a row, and at least
    one row to the training part. ``fraction`` 0 leaves the held-out part empty.

    Raises
    ------
    TableError
        Where either part would have too few rows.
    """
    if fraction == 0:
        return np.arange(n_rows), np.arange(0)
    order = _order(n_rows, labels, rng)
    # Every (1 / fraction)-th of the rows, which are lined up class by class.
    steps = np.floor((np.arange(n_rows + 1) + rng.random()) * fraction)
    is_held = np.zeros(n_rows, dtype=bool)
    is_held[order] = np.diff(steps) > 0
    return separated(is_held, labels, f"a fraction of {fraction:g}")


def fold_numbers(
    n_rows: int, n_folds: int, rng: np.random.Generator, labels: np.ndarray | None = None
) -> np.ndarray:
    """Deal the rows out like cards, class by class: (n,) the number of each row's fold."""
    number = np.empty(n_rows, dtype=np.int64)
    number[_order(n_rows, labels, rng)] = np.arange(n_rows) % n_folds
    return number


def separated(
    is_held: np.ndarray, labels: np.ndarray | None, words: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the rows to learn from, and of those that are held out.

    A class without any row to learn from gets one back: it would be wrong whatever is tried.
    ``words`` say what is held out, should there be too few rows.
    """
    if labels is not None:
        _, first_row, classes = np.unique(labels, return_index=True, return_inverse=True)
        absent = np.bincount(classes[~is_held], minlength=first_row.size) == 0
        is_held[first_row[absent]] = False
    train, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    if train.size < 2 or held.size == 0:
        raise TableError(f"{is_held.size} rows are too few to hold out {words}.")
    return train, held


def _order(n_rows: int, labels: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    order = rng.permutation(n_rows)
    if labels is None:
        return order
    classes = np.unique(labels, return_inverse=True)[1]
    return order[np.argsort(classes[order], kind="stable")]


def validation_part(group: np.ndarray, fraction: float, random: np.random.Generator) -> np.ndarray:
    """Choose a fraction of the rows, of every group alike, leaving each group at least one row.

    Sizes follow the method of the largest remainder, so that they add up to the fraction of all.

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
    """Deal the rows out, group by group; the only row of a group is in no fold.

    Returns
    -------
    folds
        For each fold that has a row and lacks one, which rows are in it, (n,) bool.
    """
    number = np.empty(len(group), dtype=np.int64)
    number[_shuffled(group, random)] = np.arange(len(group)) % n_folds
    _, member, sizes = np.unique(group, return_inverse=True, return_counts=True)
    is_alone = sizes[member] == 1
    folds = [(number == i) & (~is_alone | is_alone.all()) for i in range(n_folds)]
    return [fold for fold in folds if fold.any() and not fold.all()]


def _shuffled(group: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Row numbers group by group, at random within a group."""
    return np.lexsort((random.random(len(group)), group))
