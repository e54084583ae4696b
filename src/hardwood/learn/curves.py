"""The learning curve of a run, as the record of a model keeps it: few points, few digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from hardwood.learn.training import Epoch

MAX_POINTS = 200  # of a model's curve
MAX_POINTS_OF_MEMBER = 50  # of each tree's curve in a forest, however many trees it has
_DIGITS = 4
_PLACE = {"restart", "epoch", "max_epochs"}  # fields of an epoch that say where, not how good


def learning_curve(
    epochs: Sequence[Epoch], *, best: int | None = None, max_points: int = MAX_POINTS
) -> dict[str, list[Any]]:
    """Return the curves of one run.

    Parameters
    ----------
    epochs
        Of the run, in order.
    best
        Place in ``epochs`` of the one that was kept; its point is never left out.
    max_points
        The first and the last point are kept, those between thinned evenly.

    Returns
    -------
    curves
        ``epoch``, counted from 1, and for everything that the epochs measure a list of the same
        length, with None where it is not a finite number. What is measured nowhere is left out.
        Empty for a run without epochs.
    """
    if not epochs:
        return {}
    n = len(epochs)
    kept = np.linspace(0, n - 1, min(n, max_points)).round().astype(np.int64)
    if best is not None:
        kept = np.append(kept, best)
    points = [epochs[i] for i in np.unique(kept).tolist()]
    curves: dict[str, list[Any]] = {"epoch": [point.epoch + 1 for point in points]}
    for field in fields(Epoch):
        if field.name in _PLACE:
            continue
        values = [_rounded(getattr(point, field.name)) for point in points]
        if any(value is not None for value in values):
            curves[field.name] = values
    return curves


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")
