"""Which arrays a file or a JSON text of each kind and format has; and those of a forest's trees.

The trees of a forest are one set of arrays in a file, one tree after the other. ``n_splits`` (T,)
is the number of splits of each. A tree with m splits takes m rows of ``weights``, ``bias`` and
``children``, which are numbered within the tree, and m + 1 rows of ``values``. Of what is optional,
``counts`` (2 m + 1 entries) and ``leaf_weights`` (m + 1 rows), only those trees have a share that
have such things at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hardwood.model.base import Model
from hardwood.model.files.container import Kinds
from hardwood.model.kinds.forest import ObliqueForest
from hardwood.model.kinds.latent_tree import LatentTreeModel
from hardwood.model.kinds.policy_tree import PolicyTree
from hardwood.model.kinds.soft_ensemble import TreeEnsemble
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.structure import Array

_KINDS = (ObliqueTree, ObliqueForest, TreeEnsemble, PolicyTree, LatentTreeModel)
KINDS: dict[str, type[Model]] = {kind.__name__: kind for kind in _KINDS}
N_SPLITS = Array("n_splits", "T", is_whole=True)


def arrays_of(version: int, kind: str) -> tuple[Array, ...]:
    """Return the arrays of a kind of model in a format; of a forest, those of its trees."""
    arrays = (ObliqueTree if KINDS[kind] is ObliqueForest else KINDS[kind]).arrays
    return tuple(a for a in arrays if version > 1 or a.name != "leaf_weights")


def contents(version: int, kind: str) -> tuple[Kinds, Kinds]:
    """Return dtypes and dimensions of what a file holds: what must be there, and what may be."""
    arrays = (*arrays_of(version, kind), *((N_SPLITS,) if KINDS[kind] is ObliqueForest else ()))
    places = {a.name: ("I32" if a.is_whole else "F64", len(a.axes)) for a in arrays}
    optional = {a.name for a in arrays if a.is_optional}
    return (
        {name: place for name, place in places.items() if name not in optional},
        {name: place for name, place in places.items() if name in optional},
    )


def arrays_in(model: Model) -> dict[str, np.ndarray]:
    """Return the arrays of a model, as a file has them."""
    if isinstance(model, ObliqueForest):
        return concatenate(model.trees)
    arrays = {a.name: getattr(model, a.name) for a in model.arrays}
    return {name: array for name, array in arrays.items() if array is not None}


def concatenate(trees: Sequence[ObliqueTree]) -> dict[str, np.ndarray]:
    """Put the arrays of trees one after the other; what no tree has is left out."""
    arrays = {N_SPLITS.name: np.array([tree.n_splits for tree in trees], dtype=np.int32)}
    for part in ObliqueTree.arrays:
        parts = [array for tree in trees if (array := getattr(tree, part.name)) is not None]
        if parts:
            arrays[part.name] = np.concatenate(parts)
    return arrays


def separate(
    arrays: Mapping[str, np.ndarray], has: Mapping[str, Sequence[bool]]
) -> list[dict[str, np.ndarray | None]]:
    """Take the arrays apart again: for each tree, those of its constructor.

    Parameters
    ----------
    has
        By the names of the arrays that are optional, whether each tree has one.

    Raises
    ------
    ValueError
        If the sizes do not add up. What the arrays hold is for the constructor to check.
    """
    n_trees = len(next(iter(has.values())))
    m = _sizes(arrays[N_SPLITS.name], n_trees)
    n_rows = {"m": m, "m+1": m + 1, "m+m+1": 2 * m + 1}
    pieces = {
        part.name: _pieces(
            part.name,
            arrays.get(part.name),
            n_rows[part.axes[0]],
            np.array(has.get(part.name, [True] * n_trees)),
        )
        for part in ObliqueTree.arrays
    }
    return [{name: of[i] for name, of in pieces.items()} for i in range(n_trees)]


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
