"""Conditions and sums as expressions of a language: one walk over them, for Python and SQL.

Trees are cut into blocks of a few levels, as languages cannot nest as deep as a tree grows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from hardwood.export.conditions import Always, Condition, Levels, Linear, Missing, Threshold
from hardwood.export.plan import Plan, PlannedTree

Written = TypeVar("Written")


class Expressions(ABC):
    """Writes conditions; a language says how it writes their parts."""

    zero: ClassVar[str]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @abstractmethod
    def number(self, value: float) -> str:
        """Write a number."""

    @abstractmethod
    def entry(self, feature: int) -> str:
        """Write the entry of a feature."""

    @abstractmethod
    def is_missing(self, feature: int, yes: bool) -> str:
        """Write that an entry is missing, or that it is not."""

    @abstractmethod
    def with_missing(self, condition: Threshold, words: str) -> str:
        """Say in the words of a threshold where missing entries go."""

    @abstractmethod
    def is_one_of(self, condition: Levels, listed: list[int]) -> str:
        """Write that an entry is one of the listed levels; that it is none where missing is."""

    @abstractmethod
    def terms(self, linear: Linear) -> list[str]:
        """Write the terms of a sum, but for its constant."""

    def condition(self, condition: Condition) -> str:
        """Write when a row goes right."""
        if isinstance(condition, Always):
            return str(condition.right)
        if isinstance(condition, Linear):
            return f"{self.sum(condition)} >= {self.zero}"
        if isinstance(condition, Missing):
            return self.is_missing(condition.feature, condition.right_if_missing)
        if isinstance(condition, Threshold):
            words = f"{self.entry(condition.feature)} {condition.relation}"
            return self.with_missing(condition, f"{words} {self.number(condition.value)}")
        # What is missing is no level: where it goes right, the levels that go left are listed.
        n_levels = len(self.plan.schema.features[condition.feature].levels)
        is_listed = [(i in condition.right) != condition.missing_right for i in range(n_levels)]
        return self.is_one_of(condition, [i for i in range(n_levels) if is_listed[i]])

    def sum(self, linear: Linear) -> str:
        """Write a weighted sum."""
        terms = self.terms(linear)
        if linear.constant or not terms:
            terms.append(self.number(linear.constant))
        return self.added(terms)

    def added(self, terms: Sequence[str]) -> str:
        """Write the sum of terms."""
        return joined(terms)


def joined(terms: Sequence[str]) -> str:
    """Put terms in a line, ``a - b + c``; those that begin with a minus sign are subtracted."""
    rest = (f" - {term[1:]}" if term.startswith("-") else f" + {term}" for term in terms[1:])
    return "".join([terms[0], *rest])


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


def nested(
    blocks: Blocks,
    root: int,
    *,
    leaf: Callable[[int], Written],
    deeper: Callable[[int], Written],
    branch: Callable[[int, Callable[[], Written], Callable[[], Written]], Written],
) -> Written:
    """Write the splits of a block inside each other.

    Parameters
    ----------
    blocks, root
        A tree in blocks, and the node at the top of one.
    leaf
        Writes that a leaf was reached.
    deeper
        Writes that another block begins at a node.
    branch
        Writes a split: its number, and what writes the sides where its condition holds and does
        not.
    """

    def below(node: int, level: int) -> Written:
        if node < 0:
            return leaf(~node)
        if level == blocks.n_levels:
            return deeper(node)
        left, right = blocks.tree.children[node].tolist()
        return branch(node, lambda: below(right, level + 1), lambda: below(left, level + 1))

    return below(root, 0)
