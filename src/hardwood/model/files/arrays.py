"""The arrays of each kind of model, as a file and a JSON text have them.

A file holds the trees of a forest as one set of arrays, one tree after the other. ``n_splits`` (T,)
is the number of splits of each tree. A tree with m splits has m rows of ``weights``, ``bias`` and
``children``, which count its own splits and leaves from 0, and m + 1 rows of ``values``. Of the
optional arrays, ``counts`` (2 m + 1 entries) and ``leaf_weights`` (m + 1 rows), only the trees that
have them take rows.
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
from hardwood.text.numbers import plural

KINDS: dict[str, type[Model]] = {
    "tree": ObliqueTree,
    "forest": ObliqueForest,
    "ensemble": TreeEnsemble,
    "policy_tree": PolicyTree,
    "latent_tree": LatentTreeModel,
}
N_SPLITS = Array("n_splits", "T", is_whole=True)
# Of each tree of a forest, which has no decision weights.
MEMBER_ARRAYS = tuple(array for array in ObliqueTree.arrays if array.name != "decision_weights")
OPTIONAL_OF_A_MEMBER = tuple(array.name for array in MEMBER_ARRAYS if array.is_optional)


def kind_of(model: Model) -> str:
    """Return the kind that a file of a model has."""
    return next(name for name, kind in KINDS.items() if isinstance(model, kind))


def arrays_of(kind: str) -> tuple[Array, ...]:
    """Return the arrays of a kind of model; for a forest, those of each tree."""
    return MEMBER_ARRAYS if kind == "forest" else KINDS[kind].arrays


def contents(kind: str) -> tuple[Kinds, Kinds]:
    """Return dtypes and dimensions of the arrays in a file: the required and the optional ones."""
    arrays = (*arrays_of(kind), *((N_SPLITS,) if kind == "forest" else ()))
    required, optional = (
        {
            array.name: ("I32" if array.is_whole else "F64", len(array.axes))
            for array in arrays
            if array.is_optional == is_optional
        }
        for is_optional in (False, True)
    )
    return required, optional


def arrays_in(model: Model) -> dict[str, np.ndarray]:
    """Return the arrays of a model, as a file has them."""
    if isinstance(model, ObliqueForest):
        return concatenate(model.trees)
    arrays = {a.name: getattr(model, a.name) for a in model.arrays}
    return {name: array for name, array in arrays.items() if array is not None}


def concatenate(trees: Sequence[ObliqueTree]) -> dict[str, np.ndarray]:
    """Put the arrays of trees one after the other; leave out arrays that no tree has."""
    arrays = {N_SPLITS.name: np.array([tree.n_splits for tree in trees], dtype=np.int32)}
    for part in MEMBER_ARRAYS:
        parts = [array for tree in trees if (array := getattr(tree, part.name)) is not None]
        if parts:
            arrays[part.name] = np.concatenate(parts)
    return arrays


def separate(
    arrays: Mapping[str, np.ndarray], has: Mapping[str, Sequence[bool]]
) -> list[dict[str, np.ndarray | None]]:
    """Split the arrays of a forest into those of each tree.

    Parameters
    ----------
    has
        For each optional array, by name, whether each tree has it.

    Raises
    ------
    ValueError
        If the sizes do not add up. The constructor of each tree checks the contents.
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
        for part in MEMBER_ARRAYS
    }
    return [{name: of[i] for name, of in pieces.items()} for i in range(n_trees)]


def _sizes(n_splits: np.ndarray, n_trees: int) -> np.ndarray:
    if n_splits.size != n_trees:
        raise ValueError(
            f"n_splits has {plural(n_splits.size, 'entry', 'entries')} for "
            f"{plural(n_trees, 'tree')}"
        )
    if n_trees and int(n_splits.min()) < 0:
        raise ValueError(f"n_splits must not be negative, but one is {n_splits.min()}")
    return n_splits.astype(np.int64)  # sums of int32 could overflow


def _pieces(
    name: str, array: np.ndarray | None, sizes: np.ndarray, owns: np.ndarray
) -> list[np.ndarray | None]:
    """Cut an array into one piece per tree, None for a tree without it; use every row."""
    if array is not None and not owns.any():
        raise ValueError(f"the file has an array {name}, but no tree has {name}")
    if array is None and owns.any():
        raise ValueError(f"the file has no array {name}, but a tree has {name}")
    if array is None:
        return [None] * owns.size
    sizes = np.where(owns, sizes, 0)
    total = int(sizes.sum())
    if array.shape[0] != total:
        raise ValueError(
            f"the trees have {plural(total, 'row')} of {name}, but there are {len(array)}"
        )
    ends = np.cumsum(sizes)
    cuts = zip((ends - sizes).tolist(), ends.tolist(), owns.tolist(), strict=True)
    return [array[first:last] if is_owner else None for first, last, is_owner in cuts]
