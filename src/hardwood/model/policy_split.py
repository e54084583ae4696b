"""A split of a policy tree seen on its own: its ways, and the terms of the score of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hardwood.model.terms import Term, terms_of

if TYPE_CHECKING:
    from hardwood.model.kinds.policy_tree import PolicyTree


@dataclass(frozen=True, eq=False)
class Way:
    """View of the way to one child: how far its score is ahead of that of the first child.

    Of two ways the second is taken where that is at least 0, as the right one of an oblique split
    is: ``condition`` then says when.
    """

    tree: PolicyTree
    node: int

    @property
    def weights(self) -> np.ndarray:
        """Weights per column of the schema, in raw units, less those of the first way."""
        weights: np.ndarray = self.tree.advantages[self.node]
        return weights

    @property
    def bias(self) -> float:
        """Score of a row whose numbers are at their centres and whose flags are all off."""
        return float(self.tree.leads[self.node])

    @property
    def count(self) -> float | None:
        """Weighted training samples that took this way, where known."""
        counts = self.tree.counts
        return None if counts is None else float(counts[self.node])

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms with a weight other than zero, the most important first (ties by column)."""
        return terms_of(self.tree, self.weights)

    def describe(self, *, max_terms: int | None = 4, digits: int | None = 3) -> str:
        """Write the score in words; ``None`` shows all terms, or numbers in full."""
        from hardwood.text.formula import formula

        written = formula(
            self.tree.schema, self.terms, self.bias, max_terms=max_terms, digits=digits
        )
        return written.line()

    def __repr__(self) -> str:
        return f"Way(to node {self.node}: {self.describe()})"


@dataclass(frozen=True, eq=False)
class PolicySplit:
    """View of one internal node; a row takes the way whose score is the largest, the last of such.

    The softmax of the scores are the probabilities of the ways.
    """

    tree: PolicyTree
    index: int

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """The ways to its children, in the order of nodes; the score of the first is 0."""
        return tuple(Way(self.tree, child) for child in self.tree.children(self.index))

    @property
    def children(self) -> tuple[int, ...]:
        """Nodes that the ways lead to."""
        return self.tree.children(self.index)

    @property
    def count(self) -> float | None:
        """Weighted training samples that reached the split, where known."""
        counts = self.tree.counts
        return None if counts is None else float(counts[self.index])

    @property
    def terms(self) -> tuple[Term, ...]:
        """Terms of all ways, those of the second way first."""
        return tuple(term for way in self.ways for term in way.terms)

    @property
    def condition(self) -> str:
        """The split in words, cut to the four largest terms of each score."""
        return self.describe()

    def describe(self, *, max_terms: int | None = 4, digits: int | None = 3) -> str:
        """Write the split on one line: when the second of two ways is taken, or all scores."""
        from hardwood.show.policy import split_line

        return split_line(self, max_terms=max_terms, digits=digits)

    def __repr__(self) -> str:
        return f"PolicySplit({self.index}: {self.condition})"
