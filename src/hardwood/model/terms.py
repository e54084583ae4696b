"""The terms of a weighted sum, of a split or a linear leaf, with their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from hardwood.model.kinds.policy_tree import PolicyTree
    from hardwood.model.kinds.tree import ObliqueTree
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
    """One summand: ``weight`` times a column.

    ``importance`` is what the term adds to the sum over one training standard deviation of its
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


def terms_of(tree: ObliqueTree | PolicyTree, weights: np.ndarray) -> tuple[Term, ...]:
    """List the terms of a tree's columns with a weight other than zero.

    Parameters
    ----------
    tree
        Its columns are weighed.
    weights
        (c,) per column of the schema, in raw units.

    Returns
    -------
    terms
        The most important first, ties by column.
    """
    schema = tree.schema
    terms = []
    for j in np.flatnonzero(weights).tolist():
        column, weight = tree.columns[j], float(weights[j])
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
