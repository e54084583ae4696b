"""Which rows are kept back to score a tree on."""

from __future__ import annotations

import numpy as np

from hardwood.cli.failures import CommandError


def hold_out(
    n_rows: int, fraction: float, rng: np.random.Generator, labels: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Split the row numbers at random into a training and a test part, each in increasing order.

    With ``labels`` every class gives its share of the test part, to within a row, and at least
    one row to the training part. ``fraction`` 0 leaves the test part empty.

    Notes ----- The rows are lined up class by class, shuffled within a class, and every
    (1/fraction)-th is taken.
    """
    if fraction == 0:
        return np.arange(n_rows), np.arange(0)
    order = rng.permutation(n_rows)
    if labels is not None:
        classes = np.unique(labels, return_inverse=True)[1]
        order = order[np.argsort(classes[order], kind="stable")]
    steps = np.floor((np.arange(n_rows + 1) + rng.random()) * fraction)
    is_test = np.zeros(n_rows, dtype=bool)
    is_test[order] = np.diff(steps) > 0
    if labels is not None:
        _give_back(is_test, classes)
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    if train.size < 2 or test.size == 0:
        raise CommandError(
            f"{n_rows} rows are too few to hold out a fraction of {fraction:g} for testing; "
            "use --test-fraction 0 to learn from all of them, without a test score."
        )
    return train, test


def _give_back(is_test: np.ndarray, classes: np.ndarray) -> None:
    """Return one row to the training part for each class that has none there."""
    first_row = np.unique(classes, return_index=True)[1]
    absent = np.bincount(classes[~is_test], minlength=first_row.size) == 0
    is_test[first_row[absent]] = False
