"""The forest in words: what it does, then its trees one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hardwood.show.text import summary, tree_text

if TYPE_CHECKING:
    from hardwood.model import ObliqueForest, ObliqueTree

_COMBINATIONS = {"mean": "mean", "vote": "votes", "sum": "sum"}


def forest_text(
    forest: ObliqueForest,
    *,
    max_trees: int | None = 3,
    max_depth: int | None = None,
    max_terms: int | None = 4,
    digits: int | None = 3,
) -> str:
    """Write a forest in words; arguments as in :meth:`hardwood.ObliqueForest.to_text`."""
    members = members_text(
        forest.trees.__getitem__,
        forest.n_trees,
        max_trees=max_trees,
        max_depth=max_depth,
        max_terms=max_terms,
        digits=digits,
    )
    return "\n".join([forest_summary(forest) + "\n", *members])


def members_text(
    tree: Callable[[int], ObliqueTree], n_trees: int, *, max_trees: int | None, **options: Any
) -> list[str]:
    """Write the first of several trees, and how many are not shown.

    Parameters
    ----------
    tree
        Gives a tree by its number, from 0.
    options
        As `hardwood.show.text.tree_text` takes them.
    """
    n_shown = n_trees if max_trees is None else min(max(max_trees, 0), n_trees)
    parts = [f"Tree {i + 1} of {n_trees}. {tree_text(tree(i), **options)}" for i in range(n_shown)]
    left_out = n_trees - n_shown
    if left_out:
        parts.append(f"... {left_out} more {'tree' if left_out == 1 else 'trees'} not shown\n")
    return parts


def forest_summary(forest: ObliqueForest) -> str:
    """One line: how the trees are combined, what is predicted, and how large all are together."""
    as_one: Any = forest  # it has all that the line about a tree speaks of
    how = _COMBINATIONS[forest.combine]
    if forest.link != "identity":
        how = f"{forest.link} of the {how}"
    trees = f"{forest.n_trees} tree" + ("s" if forest.n_trees != 1 else "")
    return f"Oblique forest: {how} of {trees}, {summary(as_one).removeprefix('Oblique tree: ')}"
