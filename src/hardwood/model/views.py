"""Readable views of the parts of a tree: splits, branches, linear leaves, and their terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from hardwood.text.terms import MAX_TERMS

if TYPE_CHECKING:
    from hardwood.model.kinds.policy_tree import PolicyTree
    from hardwood.model.kinds.tree import ObliqueTree
    from hardwood.table import Schema
    from hardwood.text.numbers import Digits


@dataclass(frozen=True)
class WeightColumn:
    """What one column of the weights multiplies.

    ``number``: the raw value minus its center. ``level``: 1 if the feature has that level, else 0.
    ``missing``: 1 if the value is missing, else 0.
    """

    feature: int
    kind: Literal["number", "level", "missing"]
    level: str | int | float | bool | None = None


def columns_of(schema: Schema) -> tuple[WeightColumn, ...]:
    """List the columns of a schema in the order of the weights."""
    columns: list[WeightColumn] = []
    for i, feature in enumerate(schema.features):
        if feature.kind == "numeric":
            columns.append(WeightColumn(i, "number"))
        else:
            columns.extend(WeightColumn(i, "level", level=level) for level in feature.levels)
        if feature.has_missing:
            columns.append(WeightColumn(i, "missing"))
    return tuple(columns)


@dataclass(frozen=True)
class Term:
    """One summand: ``weight`` times a column.

    ``importance`` is how much the sum changes over one training standard deviation of the column
    (`Schema.column_spread`): a rare level or missing indicator has a small importance.
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
    """List the terms with nonzero weights.

    Parameters
    ----------
    tree
        The tree.
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


class _WeightedSum(ABC):
    """The weighted sum of a split, a branch or a linear leaf: weights of the columns, and terms."""

    tree: ObliqueTree | PolicyTree

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """Weights per column of the schema, in raw units."""

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms with nonzero weights, the most important first (ties by column)."""
        return terms_of(self.tree, self.weights)

    def _formula(self, constant: float, max_terms: int | None, digits: Digits) -> str:
        from hardwood.text.formula import formula

        written = formula(
            self.tree.schema, self.terms, constant, max_terms=max_terms, digits=digits
        )
        return written.line()


@dataclass(frozen=True, eq=False)
class Split(_WeightedSum):
    """View of one internal node; a row goes right if ``condition`` holds, left otherwise."""

    tree: ObliqueTree
    index: int

    @property
    def weights(self) -> np.ndarray:
        """Weights per column of the schema, in raw units."""
        weights: np.ndarray = self.tree.weights[self.index]
        return weights

    @property
    def bias(self) -> float:
        """Score of a row whose numbers are at their centers and whose indicators are all 0."""
        return float(self.tree.bias[self.index])

    @property
    def threshold(self) -> float:
        """Right-hand side of the split in raw units: ``w.x >= threshold`` goes right."""
        return float(self.tree.thresholds[self.index])

    @property
    def left(self) -> int:
        """Child if the condition does not hold: a split number, or ``-1 - l`` for leaf l."""
        return int(self.tree.children[self.index, 0])

    @property
    def right(self) -> int:
        """Child if the condition holds: a split number, or ``-1 - l`` for leaf l."""
        return int(self.tree.children[self.index, 1])

    @property
    def count(self) -> float | None:
        """Weighted number of training samples at the split, if known."""
        return _count(self.tree, self.index)

    @property
    def condition(self) -> str:
        """The condition as text, with its twelve largest terms."""
        return self.describe()

    def describe(self, *, max_terms: int | None = MAX_TERMS, digits: Digits = "auto") -> str:
        """Return the condition as text; ``None`` shows all terms, or numbers in full."""
        from hardwood.text.condition import condition

        return condition(self, max_terms=max_terms, digits=digits)

    def __repr__(self) -> str:
        return f"Split({self.index}: {self.condition})"


@dataclass(frozen=True, eq=False)
class Branch(_WeightedSum):
    """View of the branch to one child: its score relative to that of the first child.

    With two branches, the second is taken if this is at least 0, like the right side of an oblique
    split.
    """

    tree: PolicyTree
    node: int

    @property
    def weights(self) -> np.ndarray:
        """Weights per column of the schema, in raw units, minus those of the first branch."""
        weights: np.ndarray = self.tree.relative_weights[self.node]
        return weights

    @property
    def bias(self) -> float:
        """Score of a row whose numbers are at their centers and whose indicators are all 0."""
        return float(self.tree.relative_bias[self.node])

    @property
    def count(self) -> float | None:
        """Weighted number of training samples that took this branch, if known."""
        return _count(self.tree, self.node)

    def describe(self, *, max_terms: int | None = MAX_TERMS, digits: Digits = "auto") -> str:
        """Return the score as text; ``None`` shows all terms, or numbers in full."""
        return self._formula(self.bias, max_terms, digits)

    def __repr__(self) -> str:
        return f"Branch(to node {self.node}: {self.describe()})"


@dataclass(frozen=True, eq=False)
class PolicySplit:
    """View of one internal node; a row takes the branch with the largest score (ties: the last).

    The softmax of the scores are the probabilities of the branches.
    """

    tree: PolicyTree
    index: int

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """The branches to its children, in the order of nodes; the score of the first is 0."""
        return tuple(Branch(self.tree, child) for child in self.tree.children(self.index))

    @property
    def children(self) -> tuple[int, ...]:
        """Nodes that the branches lead to."""
        return self.tree.children(self.index)

    @property
    def count(self) -> float | None:
        """Weighted number of training samples at the split, if known."""
        return _count(self.tree, self.index)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Terms of all branches, those of the second branch first."""
        return tuple(term for branch in self.branches for term in branch.terms)

    @property
    def condition(self) -> str:
        """The split as text, with the twelve largest terms of each score."""
        return self.describe()

    def describe(self, *, max_terms: int | None = MAX_TERMS, digits: Digits = "auto") -> str:
        """Return the split as one line: a condition for two branches, or all scores."""
        from hardwood.show.text import split_line

        return split_line(self, max_terms=max_terms, digits=digits)

    def __repr__(self) -> str:
        return f"PolicySplit({self.index}: {self.condition})"


@dataclass(frozen=True, eq=False)
class LinearLeaf(_WeightedSum):
    """View of one output of a linear leaf: ``formula`` is its score, before the link.

    If another output is given for comparison, the score is relative to that output.
    """

    tree: ObliqueTree
    index: int
    output: int = 0
    less: int | None = None

    @property
    def weights(self) -> np.ndarray:
        """Weights per column of the schema, in raw units."""
        assert self.tree.leaf_weights is not None
        leaf = self.tree.leaf_weights[self.index]  # (k, c)
        weights: np.ndarray = leaf[self.output]
        return weights if self.less is None else weights - leaf[self.less]

    @property
    def value(self) -> float:
        """Score of a row whose numbers are at their centers and whose indicators are all 0."""
        leaf = self.tree.values[self.index]  # (k,)
        return float(leaf[self.output] - (0.0 if self.less is None else leaf[self.less]))

    @property
    def intercept(self) -> float:
        """Score of a row of zeros in raw units, whose indicators are all 0."""
        return self.value - float(self.weights @ self.tree.schema.column_center)

    @property
    def count(self) -> float | None:
        """Weighted number of training samples at the leaf, if known."""
        return _count(self.tree, self.tree.n_splits + self.index)

    @property
    def formula(self) -> str:
        """The score as text, with its twelve largest terms."""
        return self.describe()

    def describe(self, *, max_terms: int | None = MAX_TERMS, digits: Digits = "auto") -> str:
        """Return the score as text; ``None`` shows all terms, or numbers in full."""
        return self._formula(self.value, max_terms, digits)

    def __repr__(self) -> str:
        place = f"{self.index}" if self.tree.n_outputs == 1 else f"{self.index}, {self.output}"
        return f"LinearLeaf({place}: {self.formula})"


def _count(tree: ObliqueTree | PolicyTree, node: int) -> float | None:
    return None if tree.counts is None else float(tree.counts[node])
