"""A split seen on its own: its terms with their names, most important first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hardwood.model.terms import Term, terms_of

if TYPE_CHECKING:
    from hardwood.model.kinds.tree import ObliqueTree


@dataclass(frozen=True, eq=False)
class Split:
    """View of one internal node; a row goes right where ``condition`` holds, left otherwise."""

    tree: ObliqueTree
    index: int

    @property
    def weights(self) -> np.ndarray:
        """Weights per column of the schema, in raw units."""
        weights: np.ndarray = self.tree.weights[self.index]
        return weights

    @property
    def bias(self) -> float:
        """Score of a row whose numbers are at their centres and whose flags are all off."""
        return float(self.tree.bias[self.index])

    @property
    def threshold(self) -> float:
        """Right-hand side of the split in raw units: ``w.x >= threshold`` goes right."""
        return float(self.tree.thresholds[self.index])

    @property
    def left(self) -> int:
        """Child taken where the condition fails: a split by number, leaf ``l`` as ``-1 - l``."""
        return int(self.tree.children[self.index, 0])

    @property
    def right(self) -> int:
        """Child taken where the condition holds: a split by number, leaf ``l`` as ``-1 - l``."""
        return int(self.tree.children[self.index, 1])

    @property
    def count(self) -> float | None:
        """Weighted training samples that reached the split, where known."""
        counts = self.tree.counts
        return None if counts is None else float(counts[self.index])

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms with a weight other than zero, the most important first (ties by column)."""
        return terms_of(self.tree, self.weights)

    @property
    def condition(self) -> str:
        """The split in words, cut to its four largest terms."""
        return self.describe()

    def describe(self, *, max_terms: int | None = 4, digits: int | None = 3) -> str:
        """Write the split in words; ``None`` shows all terms, or numbers in full."""
        from hardwood.text.condition import condition

        return condition(self, max_terms=max_terms, digits=digits)

    def __repr__(self) -> str:
        return f"Split({self.index}: {self.condition})"
