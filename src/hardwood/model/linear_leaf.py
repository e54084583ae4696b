"""A linear leaf seen on its own: its terms with their names, most important first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hardwood.model.terms import Term, terms_of

if TYPE_CHECKING:
    from hardwood.model.kinds.tree import ObliqueTree


@dataclass(frozen=True, eq=False)
class LinearLeaf:
    """View of one output of a linear leaf: ``formula`` is its score, of which the link is taken."""

    tree: ObliqueTree
    index: int
    output: int = 0

    @property
    def weights(self) -> np.ndarray:
        """Weights per column of the schema, in raw units."""
        assert self.tree.leaf_weights is not None
        weights: np.ndarray = self.tree.leaf_weights[self.index, self.output]
        return weights

    @property
    def value(self) -> float:
        """Score of a row whose numbers are at their centres and whose flags are all off."""
        return float(self.tree.values[self.index, self.output])

    @property
    def intercept(self) -> float:
        """Score of a row of zeros in raw units, whose flags are all off."""
        return self.value - float(self.weights @ self.tree.schema.column_center)

    @property
    def count(self) -> float | None:
        """Weighted training samples that reached the leaf, where known."""
        counts = self.tree.counts
        return None if counts is None else float(counts[self.tree.n_splits + self.index])

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms with a weight other than zero, the most important first (ties by column)."""
        return terms_of(self.tree, self.weights)

    @property
    def formula(self) -> str:
        """The score in words, cut to its four largest terms."""
        return self.describe()

    def describe(self, *, max_terms: int | None = 4, digits: int | None = 3) -> str:
        """Write the score in words; ``None`` shows all terms, or numbers in full."""
        from hardwood.text.formula import formula

        written = formula(
            self.tree.schema, self.terms, self.value, max_terms=max_terms, digits=digits
        )
        return written.line()

    def __repr__(self) -> str:
        place = f"{self.index}" if self.tree.n_outputs == 1 else f"{self.index}, {self.output}"
        return f"LinearLeaf({place}: {self.formula})"
