"""Trees cut into blocks of a few levels, for languages that cannot nest as deep as a tree grows."""

from __future__ import annotations

from dataclasses import dataclass

from hardwood.export.plan import PlannedTree


@dataclass(frozen=True)
class Blocks:
    """A tree in blocks of at most ``n_levels`` levels of splits.

    Parameters
    ----------
    tree
        The tree.
    roots
        The node at the top of each block, the tree's root first: a split, or of a single leaf -1.
    n_levels
        Levels of splits in a block.
    """

    tree: PlannedTree
    roots: tuple[int, ...]
    n_levels: int

    @classmethod
    def of(cls, tree: PlannedTree, n_levels: int) -> Blocks:
        """Cut a tree."""
        roots, todo = [], [tree.root]
        while todo:
            root = todo.pop()
            roots.append(root)
            level = [root] if root >= 0 else []
            for _ in range(n_levels):
                children = [child for node in level for child in tree.children[node].tolist()]
                level = [child for child in children if child >= 0]
            todo += reversed(level)
        return cls(tree, tuple(roots), n_levels)

    def number(self, root: int) -> int:
        """Return the number of the block with this root."""
        return self.roots.index(root)
