"""The trees of a forest as one set of arrays, one tree after the other, and back.

``n_splits`` (T,) is the number of splits of each tree. A tree with m splits takes m rows of
``weights``, ``bias`` and ``children``, which are numbered within the tree, and m + 1 rows of
``values``. Of ``counts`` (2 m + 1 entries) and ``leaf_weights`` (m + 1 rows) only those trees have
a share that have such things at all, which `Shares` say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hardwood.model.kinds.tree import ObliqueTree


@dataclass(frozen=True)
class Shares:
    """Which of the arrays that are optional a tree has."""

    counts: bool
    linear_leaves: bool


def concatenate(trees: Sequence[ObliqueTree]) -> dict[str, np.ndarray]:
    """Put the arrays of trees one after the other; what no tree has is left out."""
    arrays = {"n_splits": np.array([tree.n_splits for tree in trees], dtype=np.int32)}
    for name in ("weights", "bias", "children", "values", "counts", "leaf_weights"):
        parts = [array for tree in trees if (array := getattr(tree, name)) is not None]
        if parts:
            arrays[name] = np.concatenate(parts)
    return arrays


def separate(
    arrays: Mapping[str, np.ndarray], shares: Sequence[Shares]
) -> list[dict[str, np.ndarray | None]]:
    """Take the arrays apart again: for each tree, those of its constructor.

    Raises
    ------
    ValueError
        If the sizes do not add up. What the arrays hold is for the constructor to check.
    """
    m = _sizes(arrays["n_splits"], len(shares))
    everybody = np.ones(len(shares), dtype=bool)
    has_counts = np.array([share.counts for share in shares])
    is_linear = np.array([share.linear_leaves for share in shares])
    pieces = {
        "weights": _pieces("weights", arrays.get("weights"), m, everybody),
        "bias": _pieces("bias", arrays.get("bias"), m, everybody),
        "children": _pieces("children", arrays.get("children"), m, everybody),
        "values": _pieces("values", arrays.get("values"), m + 1, everybody),
        "counts": _pieces("counts", arrays.get("counts"), 2 * m + 1, has_counts),
        "leaf_weights": _pieces("leaf_weights", arrays.get("leaf_weights"), m + 1, is_linear),
    }
    return [{name: of[i] for name, of in pieces.items()} for i in range(len(shares))]


def _sizes(n_splits: np.ndarray, n_trees: int) -> np.ndarray:
    if n_splits.size != n_trees:
        raise ValueError(f"n_splits has {n_splits.size} entries for {n_trees} trees")
    if n_trees and int(n_splits.min()) < 0:
        raise ValueError(f"n_splits must not be negative, but one is {n_splits.min()}")
    return n_splits.astype(np.int64)  # sums of int32 could overflow


def _pieces(
    name: str, array: np.ndarray | None, sizes: np.ndarray, owns: np.ndarray
) -> list[np.ndarray | None]:
    """Cut an array into the trees' shares, None for a tree without one; each row is somebody's."""
    if (array is not None) != bool(owns.any()):
        raise ValueError(f"{name} is there and no tree has it, or the other way round")
    if array is None:
        return [None] * owns.size
    sizes = np.where(owns, sizes, 0)
    total = int(sizes.sum())
    if array.shape[0] != total:
        raise ValueError(f"the trees have {total} rows of {name}, but there are {len(array)}")
    ends = np.cumsum(sizes)
    cuts = zip((ends - sizes).tolist(), ends.tolist(), owns.tolist(), strict=True)
    return [array[first:last] if is_owner else None for first, last, is_owner in cuts]
