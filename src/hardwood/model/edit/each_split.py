"""Change the splits of a tree one by one from the root down, each with its own rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.paths import child_nodes
from hardwood.model.routed_rows import RoutedRows


@dataclass(frozen=True, eq=False)
class RowsAtSplit:
    """Rows that reach a split.

    Attributes
    ----------
    split
        Its number.
    columns
        (n, c) float32, in units of `Schema.column_scale`, like in the engine.
    weight
        (n,) float64, positive.
    goes_right
        (n,) bool, the side that each row takes.
    """

    split: int
    columns: np.ndarray
    weight: np.ndarray
    goes_right: np.ndarray

    def __len__(self) -> int:
        return self.weight.size


Changed = tuple[np.ndarray, float, np.ndarray]
"""Weights (c,) in raw units and bias of a split, and the rows (n,) that may change sides."""


def change_each_split(
    rows: RoutedRows, X: Any, change: Callable[[RowsAtSplit], Changed]
) -> ObliqueTree:
    """Change splits, parents first.

    Parameters
    ----------
    rows
        The rows of ``X``, routed through the tree.
    X
        Their table.
    change
        Maps the rows at a split to the new split. Rows that an earlier split has moved are included
        only if there are no others. A split that no row reaches does not change.

    Notes
    -----
    The memory holds the encoded rows of one split at a time, four bytes per column.
    """
    tree = rows.tree
    table = tree.schema.read(X, who="ObliqueTree")
    weights, bias = tree.weights.copy(), tree.bias.copy()
    is_moved = np.zeros(len(rows), dtype=bool)
    nodes = child_nodes(tree.children)
    for i in range(tree.n_splits):
        is_here = ~is_moved[rows.at(i)]
        here = rows.first[i] + np.flatnonzero(is_here if is_here.any() else ~is_here)
        if here.size:
            columns = tree.schema.encoder.encode(table[rows.row[here]])
            goes_right = here >= rows.first[nodes[i, 1]]  # its rows come last
            at_split = RowsAtSplit(i, columns, rows.weight[here], goes_right)
            weights[i], bias[i], moved = change(at_split)
            is_moved[here] |= moved
    return tree.replace(weights=weights, bias=bias)


def share_elsewhere(rows: RoutedRows, X: Any, changed: ObliqueTree) -> float:
    """Return the fraction of rows, by weight, that reach another leaf in a changed tree."""
    is_elsewhere = changed.apply(X)[rows.row] != rows.leaf
    return float(rows.weight[is_elsewhere].sum() / rows.weight.sum())


def check_tolerance(tolerance: float) -> None:
    """Check the fraction of rows that may reach another leaf."""
    if not 0 <= tolerance < 1:
        raise ValueError(f"tolerance must be a fraction of the rows, in [0, 1), not {tolerance!r}")
