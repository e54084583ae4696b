"""A split seen on its own: its terms with their names, most important first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from hardwood.model.tree import ObliqueTree
    from hardwood.table import Schema


@dataclass(frozen=True)
class Column:
    """What one column of the weights multiplies.

    ``number``: the raw value less its centre. ``level``: 1 when the feature has that level, else 0.
    ``missing``: 1 when the entry is missing, else 0.
    """

    feature: int
    kind: Literal["number", "level", "missing"]
    level: str | int | float | bool | None = None


def columns_of(schema: Schema) -> tuple[Column, ...]:
    """List the columns of a schema in the order of the weights."""
    columns: list[Column] = []
    for i, feature in enumerate(schema.features):
        if feature.kind == "numeric":
            columns.append(Column(i, "number"))
        else:
            columns.extend(Column(i, "level", level=level) for level in feature.levels)
        if feature.has_missing:
            columns.append(Column(i, "missing"))
    return tuple(columns)


@dataclass(frozen=True)
class Term:
    """One summand of a split: ``weight`` times a column.

    ``importance`` is what the term adds to the score over one training standard deviation of its
    column (`Schema.column_spread`): a level or a missing flag that is rare counts little.
    """

    column: int
    feature: int
    name: str
    kind: Literal["number", "level", "missing"]
    level: str | int | float | bool | None
    weight: float
    center: float
    importance: float


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
        used = np.flatnonzero(self.weights)
        columns = self.tree.columns
        schema = self.tree.schema
        terms = []
        for j in used.tolist():
            column, weight = columns[j], float(self.weights[j])
            terms.append(
                Term(
                    column=j,
                    feature=column.feature,
                    name=schema.names[column.feature],
                    kind=column.kind,
                    level=column.level,
                    weight=weight,
                    center=float(schema.column_center[j]),
                    importance=abs(weight) * float(schema.column_spread[j]),
                )
            )
        return tuple(sorted(terms, key=lambda term: -term.importance))

    @property
    def condition(self) -> str:
        """The split in words, cut to its four largest terms."""
        return self.describe()

    def describe(self, *, max_terms: int | None = 4, digits: int | None = 3) -> str:
        """Write the split in words; ``None`` shows all terms, or numbers in full."""
        from hardwood.show.condition import condition

        return condition(self, max_terms=max_terms, digits=digits)

    def __repr__(self) -> str:
        return f"Split({self.index}: {self.condition})"
