"""A stored table in three parts: training, validation and test rows.

A folder holds ``NAME.npz`` with ``X`` (n, d) and ``y`` (n,), integers for classification or floats
for regression. If a split is published, it also has ``split`` (n,) or (s, n): 0 for training, 1 for
validation, 2 for test rows, in s published shuffles.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.quality.dgt_paper import Task

TEST_PART = 0.2
VALIDATION_PART = 0.2  # of the other rows: 64/16/20 if no split is published


class Parts(NamedTuple):
    """A table and its training, validation and test rows."""

    X: np.ndarray
    y: np.ndarray
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray

    @property
    def learnable(self) -> np.ndarray:
        """Training and validation rows, on which the final fit is trained."""
        return np.concatenate([self.train, self.valid])


class Stored(NamedTuple):
    """The content of a file; ``split`` is (s, n), with no rows if no split is published."""

    X: np.ndarray
    y: np.ndarray
    split: np.ndarray


def n_splits(folder: Path, task: Task) -> int:
    """Return the number of splits of a table: the published ones, or those drawn."""
    return len(_stored(folder, task).split) or task.n_draws


def split_words(folder: Path, task: Task) -> str:
    """Say where the split comes from."""
    split = _stored(folder, task).split
    if not len(split):
        return f"drawn, 64/16/20, {task.n_draws} seed(s) from 0"
    words = "published" if len(split) == 1 else f"{len(split)} published shuffles"
    if (split == 1).any():
        return words
    return f"{words}; 20 % of training, drawn with the number of the split, for validation"


def parts(folder: Path, task: Task, index: int, *, max_rows: int | None = None) -> Parts:
    """Return a table in parts.

    Parameters
    ----------
    folder
        Of the files.
    task
        The data set.
    index
        Number of the split, 0 to `n_splits` - 1.
    max_rows
        Most rows of each part, for a quick run.
    """
    stored = _stored(folder, task)
    rows = np.arange(len(stored.y))
    if len(stored.split):
        split = stored.split[index]
        train, valid, test = (rows[split == part] for part in (0, 1, 2))
    else:
        train, test = _cut(rows, stored.y, task, TEST_PART, index)
        valid = rows[:0]
    if not len(valid):
        train, valid = _cut(train, stored.y, task, VALIDATION_PART, index)
    if max_rows is not None:
        rng = np.random.default_rng(0)
        train, valid, test = (rng.permutation(part)[:max_rows] for part in (train, valid, test))
    return Parts(stored.X, stored.y, train, valid, test)


@lru_cache(maxsize=1)
def _stored(folder: Path, task: Task) -> Stored:
    with np.load(folder / f"{task.name}.npz") as arrays:
        X, y = arrays["X"].astype(np.float32), arrays["y"]
        split = arrays["split"] if "split" in arrays.files else np.empty((0, len(y)), np.int8)
    if not task.has_classes:
        y = y.astype(np.float64) * task.unit
    return Stored(X, y, np.atleast_2d(split))


def _cut(
    rows: np.ndarray, y: np.ndarray, task: Task, part: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    stratify = y[rows] if task.has_classes else None
    kept, cut = train_test_split(rows, test_size=part, random_state=seed, stratify=stratify)
    return kept, cut
