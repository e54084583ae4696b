"""Conditions and sums as expressions of a language, for Python and SQL.

Trees are cut into blocks of a few levels, because languages limit the depth of nesting.
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
    """Writes conditions; subclasses write the parts in their language."""

    zero: ClassVar[str]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @abstractmethod
    def number(self, value: float) -> str:
        """Write a number."""

    @abstractmethod
    def value(self, feature: int) -> str:
        """Write the value of a feature."""

    @abstractmethod
    def is_missing(self, feature: int, yes: bool) -> str:
        """Write the condition that a value is missing, or that it is not."""

    @abstractmethod
    def with_missing(self, condition: Threshold, text: str) -> str:
        """Add to the text of a threshold where missing values go."""

    @abstractmethod
    def is_one_of(self, condition: Levels, listed: list[int]) -> str:
        """Write that a value is one of the listed levels, or none if missing values go right."""

    @abstractmethod
    def terms(self, linear: Linear) -> list[str]:
        """Write the terms of a sum, without its constant."""

    def condition(self, condition: Condition) -> str:
        """Write the condition for going right."""
        if isinstance(condition, Always):
            return str(condition.right)
        if isinstance(condition, Linear):
            return f"{self.sum(condition)} >= {self.zero}"
        if isinstance(condition, Missing):
            return self.is_missing(condition.feature, condition.right_if_missing)
        if isinstance(condition, Threshold):
            text = f"{self.value(condition.feature)} {condition.relation}"
            return self.with_missing(condition, f"{text} {self.number(condition.value)}")
        # A missing value is no level: if it goes right, the levels that go left are listed.
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
    """Join terms on one line, ``a - b + c``; terms that begin with a minus sign are subtracted."""
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
        The root node of each block, that of the tree first: a split, or -1 for a single leaf.
    n_levels
        Largest number of levels of splits in a block.
    """

    tree: PlannedTree
    roots: tuple[int, ...]
    n_levels: int

    @classmethod
    def of(cls, tree: PlannedTree, n_levels: int) -> Blocks:
        """Cut a tree into blocks."""
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
    """Write the splits of a block as nested expressions.

    Parameters
    ----------
    blocks, root
        A tree in blocks, and the root node of one block.
    leaf
        Writes that a leaf was reached.
    deeper
        Writes that another block continues at a node.
    branch
        Writes a split: called with its number, and functions that write the sides where the
        condition holds and where it does not.
    """

    def below(node: int, level: int) -> Written:
        if node < 0:
            return leaf(~node)
        if level == blocks.n_levels:
            return deeper(node)
        left, right = blocks.tree.children[node].tolist()
        return branch(node, lambda: below(right, level + 1), lambda: below(left, level + 1))

    return below(root, 0)
