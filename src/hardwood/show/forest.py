"""The forest in words: what it does, then its trees one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardwood.show.text import summary, tree_text

if TYPE_CHECKING:
    from hardwood.model import ObliqueForest


def forest_text(
    forest: ObliqueForest,
    *,
    max_trees: int | None = 3,
    max_depth: int | None = None,
    max_terms: int | None = 4,
    digits: int | None = 3,
) -> str:
    """Write a forest in words; arguments as in :meth:`hardwood.ObliqueForest.to_text`."""
    shown = forest.trees if max_trees is None else forest.trees[: max(max_trees, 0)]
    parts = [forest_summary(forest) + "\n"]
    for i, tree in enumerate(shown):
        text = tree_text(tree, max_depth=max_depth, max_terms=max_terms, digits=digits)
        parts.append(f"Tree {i + 1} of {forest.n_trees}. {text}")
    left_out = forest.n_trees - len(shown)
    if left_out:
        parts.append(f"... {left_out} more {'tree' if left_out == 1 else 'trees'} not shown\n")
    return "\n".join(parts)


def forest_summary(forest: ObliqueForest) -> str:
    """One line: how the trees are combined, what is predicted, and how large all are together."""
    as_one: Any = forest  # it has all that the line about a tree speaks of
    how = "votes" if forest.combine == "vote" else "mean"
    trees = f"{forest.n_trees} tree" + ("s" if forest.n_trees != 1 else "")
    return f"Oblique forest: {how} of {trees}, {summary(as_one).removeprefix('Oblique tree: ')}"
