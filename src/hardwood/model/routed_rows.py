"""Rows that went down a tree, with their weights and, where they are known, the true answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableError
from hardwood.model.paths import child_nodes, sums_of

if TYPE_CHECKING:
    from hardwood.model.base import Model
    from hardwood.model.kinds.tree import ObliqueTree
    from hardwood.model.structure import Label


@dataclass(frozen=True, eq=False)
class RoutedRows:
    """Rows in the order of the leaves they reach, so that those of any node are consecutive.

    Attributes
    ----------
    tree
        What the rows went down.
    n_table_rows
        How many rows the table has.
    row, leaf
        (n,) their numbers in the table, and the leaves they reach; without rows of weight zero.
    weight
        (n,) float64, positive.
    first, last
        (m + L,) int64: the rows of a node, splits numbered before leaves, are ``first:last``.
    """

    tree: ObliqueTree
    n_table_rows: int
    row: np.ndarray
    leaf: np.ndarray
    weight: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, tree: ObliqueTree, X: Any, sample_weight: Any = None) -> RoutedRows:
        """Take the rows of a table down a tree; ``TableError`` where the weights are unusable."""
        leaf = tree.apply(X)
        weight = row_weights(sample_weight, leaf.size)
        first_rank, last_rank = _leaf_ranks(tree)
        rank = first_rank[tree.n_splits :][leaf]
        used = np.flatnonzero(weight)
        row = used[np.argsort(rank[used], kind="stable")]
        sizes = np.bincount(rank[used], minlength=tree.n_leaves)
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        return cls(
            tree, leaf.size, row, leaf[row], weight[row], bounds[first_rank], bounds[last_rank]
        )

    def __len__(self) -> int:
        return self.row.size

    def at(self, node: int) -> slice:
        """Which of the rows reach a node."""
        return slice(int(self.first[node]), int(self.last[node]))

    @cached_property
    def counts(self) -> np.ndarray:
        """(m + L,) weight of the rows at each node; a split has what its children have."""
        at_leaves = np.bincount(self.leaf, self.weight, minlength=self.tree.n_leaves)
        return sums_of(self.tree.children, at_leaves)

    def outputs(self, X: Any) -> np.ndarray:
        """Return what the tree gives each row of its table X, (n, k): numbers or probabilities."""
        if not self.tree.has_linear_leaves:
            constants: np.ndarray = self.tree.values[self.leaf]
            return constants
        return self.tree.outputs(X)[self.row]

    def truth(self, y: Any) -> np.ndarray:
        """Read the true answers of all rows of the table; return those of the rows here."""
        return true_answers(self.tree, y, self.n_table_rows)[self.row]


def true_answers(model: Model, y: Any, n_rows: int) -> np.ndarray:
    """Read the true answers to the rows of a table.

    Returns
    -------
    truth
        (n,) int64 positions of classes, or (n, k) float64 numbers, or 0 and 1 for yes/no labels.

    Raises
    ------
    TableError
        Where an answer is missing, not finite, of another class, or there are too many.
    """
    if hasattr(y, "toarray"):  # labels may come in a sparse matrix
        y = y.toarray()
    given = np.asarray(y)
    if given.ndim == 0 or len(given) != n_rows:
        found = f"{len(given)} answers" if given.ndim else f"{y!r:.80}"
        raise TableError(f"y has {found} for {n_rows} rows of X; give one for each")
    if model.classes is None:
        return _numbers(model, y)
    return _class_positions(model.classes, given)


def row_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Read ``sample_weight``, (n,) finite numbers >= 0 of which one is positive; None for ones."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight)
    if weight.dtype.kind not in "biuf" or weight.shape != (n_rows,):
        raise TableError(
            f"sample_weight must hold one number for each of the {n_rows} rows, found "
            f"{weight.dtype} of shape {weight.shape}"
        )
    weight = weight.astype(np.float64)
    bad = ~np.isfinite(weight) | (weight < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise TableError(
            f"sample_weight must be finite and at least 0, but row {row} has {weight[row]}"
        )
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not 0 < total < np.inf:
        raise TableError(
            f"sample_weight adds up to {total}; some row must count, and all together be finite"
        )
    return weight


def _leaf_ranks(tree: ObliqueTree) -> tuple[np.ndarray, np.ndarray]:
    """Leaves below each node, (m + L,) twice: from rank ``first`` to before ``last``.

    Ranks count the leaves from the left.
    """
    sizes = sums_of(tree.children, np.ones(tree.n_leaves)).astype(np.int64)
    first = np.zeros(tree.n_nodes, dtype=np.int64)
    for i, (left, right) in enumerate(child_nodes(tree.children).tolist()):  # parents come first
        first[left] = first[i]
        first[right] = first[i] + sizes[left]
    return first, first + sizes


def _class_positions(classes: tuple[Label, ...], y: np.ndarray) -> np.ndarray:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise TableError(f"y of a classifier is one label per row, not of shape {y.shape}")
    place = {label: i for i, label in enumerate(classes)}
    labels = y.tolist()
    positions = np.array([place.get(label, -1) for label in labels], dtype=np.int64)
    if (positions < 0).any():
        row = int(np.argmax(positions < 0))
        shown = ", ".join(map(repr, classes[:8])) + (", ..." if len(classes) > 8 else "")
        raise TableError(
            f"y has {labels[row]!r:.80} at row {row}, which is no class of the model: {shown}. "
            "Leave out rows whose class is missing or unknown"
        )
    return positions


def _numbers(model: Model, y: Any) -> np.ndarray:
    numbers = np.asarray(y)
    if numbers.dtype.kind not in "biuf":
        raise TableError(f"y of a {model.task} model must hold numbers, not {numbers.dtype}")
    numbers = numbers.astype(np.float64)
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    if numbers.shape[1:] != (model.n_outputs,):
        raise TableError(
            f"the model gives {model.n_outputs} answer(s) per row, but y has shape {numbers.shape}"
        )
    if not np.isfinite(numbers).all():
        row = int(np.argwhere(~np.isfinite(numbers))[0, 0])
        raise TableError(f"y must be finite, but row {row} has {numbers[row].tolist()[:10]}")
    if model.task == "multilabel" and not np.isin(numbers, (0.0, 1.0)).all():
        row = int(np.argwhere((numbers != 0) & (numbers != 1))[0, 0])
        raise TableError(f"labels are 0 or 1, but row {row} of y has {numbers[row].tolist()[:10]}")
    return numbers
