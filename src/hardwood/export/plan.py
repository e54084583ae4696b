"""A model in the form that exporters need: the engine's own numbers, in the engine's order.

The engine sees a row as float32 values ``(x - center)`` of its numbers, 0 where missing, and a list
of the indicators (levels, missing indicators) that are on. Splits are scored in float32, with
weights that were rounded to float32 once. An export that uses these numbers, rather than those of
the model file, differs from the library only in the order of additions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.model.base import Model
from hardwood.model.engine import linked, scaled_splits
from hardwood.model.kinds.forest import HardModel
from hardwood.model.structure import Link, TaskKind
from hardwood.show.text import summary
from hardwood.table import Schema

Vote = Literal["none", "class", "labels"]

LARGEST = float(np.finfo(np.float32).max)  # finite numbers stay finite in float32
LANES = 16  # running sums of the engine's dot product: value j goes to sum j mod 16
_MODERATE = 2.0**40  # scales between its inverse and it are absorbed by the weights


@dataclass(frozen=True)
class Indicator:
    """The meaning of one 0/1 column: a level of a feature, or a missing value.

    ``level`` is the position of the level, or None for a missing indicator.
    """

    feature: int
    level: int | None


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the engine encodes rows as values and indicators.

    Parameters
    ----------
    schema
        The features.
    numeric
        (n,) the numeric features, in the order of the values.
    center, scale
        (n,) float64; a value is ``float32((x - center) / scale)``. The scale is usually 1, because
        the weights have absorbed it.
    indicators
        The 0/1 columns, in the order of the engine.
    """

    schema: Schema
    numeric: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    indicators: tuple[Indicator, ...]

    @classmethod
    def of(cls, schema: Schema) -> Encoding:
        """Lay out the columns of a schema as the engine does."""
        numeric = np.flatnonzero(schema.n_levels == 0)
        first = schema.first_column[numeric]
        scale = schema.column_scale[first]
        moderate = bool(((scale >= 1 / _MODERATE) & (scale <= _MODERATE)).all())
        indicators: list[Indicator] = []
        for j, feature in enumerate(schema.features):
            indicators += [Indicator(j, level) for level in range(len(feature.levels))]
            indicators += [Indicator(j, None)] if feature.has_missing else []
        return cls(
            schema,
            numeric,
            schema.column_center[first],
            np.ones(len(scale)) if moderate else scale,
            tuple(indicators),
        )

    @property
    def n_values(self) -> int:
        """Number of numeric values, n."""
        return len(self.numeric)

    @property
    def n_indicators(self) -> int:
        """Number of 0/1 columns, q."""
        return len(self.indicators)

    @cached_property
    def is_scaled(self) -> bool:
        """Whether values are divided by a scale."""
        return bool((self.scale != 1.0).any())

    @property
    def inverse_scale(self) -> np.ndarray:
        """(n,) float64, the engine's factor; the last bit may differ from a division."""
        return 1.0 / self.scale

    @cached_property
    def value_of_feature(self) -> dict[int, int]:
        """Position of each numeric feature among the values."""
        return {int(feature): j for j, feature in enumerate(self.numeric)}

    @cached_property
    def first_level(self) -> dict[int, int]:
        """Position of the first level of each categorical feature among the indicators."""
        return {item.feature: q for q, item in enumerate(self.indicators) if item.level == 0}

    @cached_property
    def flag(self) -> dict[int, int]:
        """Position of the missing indicator of each feature that has one."""
        return {item.feature: q for q, item in enumerate(self.indicators) if item.level is None}

    @cached_property
    def value_columns(self) -> np.ndarray:
        """(n,) the schema's column of each value."""
        return self.schema.first_column[self.numeric]

    @cached_property
    def indicator_columns(self) -> np.ndarray:
        """(q,) the schema's column of each indicator."""
        first, flag = self.schema.first_column, self.schema.flag_column
        return np.array(
            [
                flag[item.feature] if item.level is None else first[item.feature] + item.level
                for item in self.indicators
            ],
            dtype=np.int64,
        )

    def encode(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Encode rows as the engine does.

        Parameters
        ----------
        matrix
            (r, p) as returned by `Schema.read`: numbers, positions of levels, NaN where missing.

        Returns
        -------
        values, on
            (r, n) float32 and (r, q) bool.
        """
        x = matrix[:, self.numeric].astype(np.float64)
        with np.errstate(over="ignore"):
            values = np.clip((x - self.center) * self.inverse_scale, -LARGEST, LARGEST)
        on = np.zeros((len(matrix), self.n_indicators), dtype=bool)
        for feature in self.flag.keys() | self.first_level.keys():
            entries = matrix[:, feature]
            missing = np.isnan(entries)
            first = self.first_level.get(feature)
            if first is not None:
                n_levels = len(self.schema.features[feature].levels)
                missing = missing | (entries < 0) | (entries >= n_levels)
                known = np.flatnonzero(~missing)
                on[known, first + entries[known].astype(np.int64)] = True
            if feature in self.flag:
                on[:, self.flag[feature]] = missing
        return np.where(np.isnan(x), 0.0, values).astype(np.float32), on


@dataclass(frozen=True, eq=False)
class PlannedTree:
    """One tree with the engine's numbers.

    Parameters
    ----------
    weights, indicators, bias
        (m, n), (m, q), (m,) float32: a split goes right where ``bias + weights . values +`` those
        of ``indicators`` that are on is at least 0.
    exponents
        (m,) powers of two that convert splits to the raw units of the table.
    children
        (m, 2): a split by its number, leaf ``l`` as ``-1 - l``.
    values
        (L, k) float64: contributions of leaves to the model's output, or votes if the forest
        votes. For linear leaves: their scores at the centers.
    leaf_weights, leaf_indicators
        (L, k, n), (L, k, q) float64 of linear leaves; None where leaves are constant.
    link
        Link function from the scores of linear leaves to outputs.
    vote
        How outputs of linear leaves become votes; constant leaves already hold votes.
    """

    weights: np.ndarray
    indicators: np.ndarray
    bias: np.ndarray
    exponents: np.ndarray
    children: np.ndarray
    values: np.ndarray
    leaf_weights: np.ndarray | None
    leaf_indicators: np.ndarray | None
    link: Link
    vote: Vote

    @property
    def n_splits(self) -> int:
        """Number of splits, m."""
        return len(self.bias)

    @property
    def n_leaves(self) -> int:
        """Number of leaves, L."""
        return len(self.values)

    @property
    def root(self) -> int:
        """The root, as in ``children``: split 0, or leaf 0 as -1."""
        return 0 if self.n_splits else -1


@dataclass(frozen=True, eq=False)
class Plan:
    """A model with the engine's numbers.

    Outputs are the sum of the trees' outputs, divided by ``divisor``, times two to the power of
    ``exponent`` (0 unless leaves are near the limits of float64), followed by the ``link``.
    """

    model: HardModel
    encoding: Encoding
    trees: tuple[PlannedTree, ...]
    divisor: int
    exponent: int
    link: Link

    @property
    def schema(self) -> Schema:
        """The schema of the features."""
        return self.encoding.schema

    @property
    def decision_weights(self) -> np.ndarray | None:
        """(k,) what probabilities are multiplied by before the largest is predicted; or None."""
        return self.model.decision_weights

    @property
    def is_forest(self) -> bool:
        """Whether the model is a forest, even of one tree."""
        return isinstance(self.model, ObliqueForest)

    def combined(self, total: np.ndarray) -> np.ndarray:
        """Turn the sum (r, k) of the trees' outputs into the model's outputs."""
        outputs = total / self.divisor
        if self.exponent:  # a mean of finite numbers is finite; rounding could change that
            limit = np.ldexp(np.finfo(np.float64).max, -self.exponent)
            outputs = np.ldexp(np.clip(outputs, -limit, limit), self.exponent)
        return linked(outputs, self.link, 1)

    @property
    def summary(self) -> str:
        """Task and size of the model, on one line."""
        return summary(self.model)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Names of labels or regression targets, or their numbers if the model has no names."""
        if self.model.classes is not None:
            return tuple(str(label) for label in self.model.classes)
        return self.model.target_names or tuple(str(i) for i in range(self.model.n_outputs))


def plan_of(model: Any) -> Plan:
    """Return the plan of a tree or forest, or of a policy tree with two branches per split.

    Raises
    ------
    TypeError
        If the model is none of these.
    """
    if not isinstance(model, Model):
        raise TypeError(
            f"an export takes an ObliqueTree or ObliqueForest, got a {type(model).__name__}; for a "
            "fitted estimator pass its tree_ or forest_"
        )
    model = model.hard("an export")
    encoding = Encoding.of(model.schema)
    trees = model.hard_trees
    combine = model.combine if isinstance(model, ObliqueForest) else "sum"
    # Leaves near the limits of float64 are scaled down before they are added.
    exponent = model._packed[1] if isinstance(model, ObliqueForest) else 0
    vote = _vote(model.task) if combine == "vote" else "none"
    return Plan(
        model=model,
        encoding=encoding,
        trees=tuple(_planned(tree, encoding, vote, exponent) for tree in trees),
        divisor=1 if combine == "sum" else len(trees),
        exponent=exponent,
        link=model.link if isinstance(model, ObliqueForest) else "identity",
    )


def _planned(tree: ObliqueTree, encoding: Encoding, vote: Vote, exponent: int) -> PlannedTree:
    weights, bias, exponents = scaled_splits(tree)
    values, indicators = encoding.value_columns, encoding.indicator_columns
    linear = tree.leaf_weights
    leaf_values = tree.values if linear is not None else voted(tree.values, vote)
    return PlannedTree(
        weights=(weights[:, values] * encoding.scale).astype(np.float32),
        indicators=weights[:, indicators].astype(np.float32),
        bias=bias.astype(np.float32),
        exponents=exponents,
        children=tree.children,
        values=np.ldexp(leaf_values, -exponent),
        leaf_weights=None if linear is None else linear[:, :, values] * encoding.scale,
        leaf_indicators=None if linear is None else linear[:, :, indicators],
        link=tree.link,
        vote=vote,
    )


def _vote(task: TaskKind) -> Vote:
    return "class" if task == "classification" else "labels"


def voted(values: np.ndarray, vote: Vote) -> np.ndarray:
    """Turn outputs (r, k) into votes, if the forest votes."""
    if vote == "none":
        return values
    if vote == "labels":
        return (values >= 0.5).astype(np.float64)
    votes = np.zeros_like(values)
    votes[np.arange(len(values)), values.argmax(axis=1)] = 1.0
    return votes
