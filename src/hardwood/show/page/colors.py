"""Colors of the rows on a page: by class, or by a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.kinds.forest import HardModel
from hardwood.show.page.packing import packed

if TYPE_CHECKING:
    from hardwood.show.page.rows import DataRows

MAX_GROUPS = 10  # colors that can be told apart; further classes share the last
MAX_SHADED_OUTPUTS = 6
_CLIPPED = (1.0, 99.0)  # percentiles at the ends of the color scale


@dataclass(frozen=True)
class Colors:
    """The colors of rows.

    Attributes
    ----------
    group_of_class
        (k,) color of each class; None if numbers determine the color.
    low, high
        (s,) ends of the color scale, for each output that can be shown in color; empty for classes.
    are_true
        Whether colors show true values rather than predictions.
    """

    group_of_class: np.ndarray | None
    low: np.ndarray
    high: np.ndarray
    are_true: bool

    @property
    def n_groups(self) -> int:
        """Number of class colors; 1 if numbers determine the color."""
        return 1 if self.group_of_class is None else int(self.group_of_class.max()) + 1

    @property
    def n_shades(self) -> int:
        """Number of outputs that can be shown in color."""
        return self.low.size

    def share(self, numbers: np.ndarray) -> np.ndarray:
        """Return the positions of numbers (n, s) on the scale, clipped to 0 (low) to 1 (high)."""
        with np.errstate(over="ignore", invalid="ignore"):
            share = (numbers - self.low) / (self.high - self.low)
        return np.clip(np.nan_to_num(share), 0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the colors for the page."""
        groups = self.group_of_class
        return {
            "groupOfClass": None if groups is None else packed(groups),
            "groups": self.n_groups,
            "low": packed(self.low),
            "high": packed(self.high),
            "areTrue": self.are_true,
        }


def colors_of(model: HardModel, rows: DataRows | None) -> Colors:
    """Choose the colors for a model and its rows."""
    are_true = rows is not None and rows.truth is not None
    if model.classes is not None:
        nothing = np.empty(0)
        return Colors(_groups(_class_sizes(model, rows)), nothing, nothing, are_true)
    n_shades = min(model.n_outputs, MAX_SHADED_OUTPUTS)
    if model.task == "multilabel":
        return Colors(None, np.zeros(n_shades), np.ones(n_shades), are_true)
    numbers = _leaf_numbers(model) if rows is None else colored_by(rows)
    low, high = np.percentile(numbers[:, :n_shades], _CLIPPED, axis=0)
    above = low + np.maximum(np.abs(low), 1.0)
    return Colors(None, low, np.where(high > low, high, above), are_true)


def colored_by(rows: DataRows) -> np.ndarray:
    """Return what determines the colors: (n,) positions of classes, or (n, k) numbers."""
    return rows.outputs if rows.truth is None else rows.truth


def row_groups(colors: Colors, rows: DataRows) -> np.ndarray:
    """Return the class color of each row, (n,); all 0 if numbers determine the color."""
    if colors.group_of_class is None:
        return np.zeros(len(rows), dtype=np.int64)
    positions = rows.predicted if rows.truth is None else rows.truth
    groups: np.ndarray = colors.group_of_class[positions]
    return groups


def _groups(sizes: np.ndarray) -> np.ndarray:
    """Return one color per class, in order; the smallest of many classes share the last."""
    k = sizes.size
    if k <= MAX_GROUPS:
        return np.arange(k)
    groups = np.full(k, MAX_GROUPS - 1)
    largest = np.sort(np.argsort(-sizes, kind="stable")[: MAX_GROUPS - 1])
    groups[largest] = np.arange(MAX_GROUPS - 1)
    return groups


def _class_sizes(model: HardModel, rows: DataRows | None) -> np.ndarray:
    """Return the size of each class, (k,), as far as it is known."""
    if rows is not None and rows.truth is not None:
        return np.bincount(rows.truth, minlength=model.n_outputs)
    outputs = _leaf_numbers(model) if rows is None else rows.outputs
    sizes: np.ndarray = outputs.sum(axis=0)
    return sizes


def _leaf_numbers(model: HardModel) -> np.ndarray:
    """Return the values of all leaves, (leaves, k)."""
    return np.concatenate([tree.values for tree in model.hard_trees])
