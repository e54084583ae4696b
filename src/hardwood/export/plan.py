"""A model as an exporter needs it: the engine's own numbers, in the engine's order.

The engine meets a row as float32 values ``(x - center)`` of its numbers, 0 where missing, and a
list of the indicators (levels, missing flags) that are on. A split is scored in float32 by weights
that were rounded to float32 once. An export that uses these numbers, not those of the model file,
differs from the library in the order of additions at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hardwood.errors import ExportError
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
_MODERATE = 2.0**40  # scales within it and its inverse are left to the weights


@dataclass(frozen=True)
class Indicator:
    """What one 0/1 column says: a level of a feature (its position), or that an entry is missing.

    ``level`` is None for the missing flag.
    """

    feature: int
    level: int | None


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the engine turns rows into values and indicators.

    Parameters
    ----------
    schema
        The features.
    numeric
        (n,) the features that are numbers, in the order of the values.
    center, scale
        (n,) float64; a value is ``float32((x - center) / scale)``. Mostly the scale is 1: the
        weights have taken it over.
    indicators
        The 0/1 columns, in the engine's order.
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
        """(n,) float64, what the engine multiplies by: the last bit may differ from a division."""
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
        """Position of the missing flag of each feature that has one."""
        return {item.feature: q for q, item in enumerate(self.indicators) if item.level is None}

    @cached_property
    def value_columns(self) -> np.ndarray:
        """(n,) the column of the schema that each value is."""
        return self.schema.first_column[self.numeric]

    @cached_property
    def indicator_columns(self) -> np.ndarray:
        """(q,) the column of the schema that each indicator is."""
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
            (r, p) what `Schema.read` returns: numbers, positions of levels, NaN where missing.

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
    """One tree in the engine's numbers.

    Parameters
    ----------
    weights, indicators, bias
        (m, n), (m, q), (m,) float32: a split goes right where ``bias + weights . values +`` those
        of ``indicators`` that are on is at least 0.
    exponents
        (m,) powers of two: multiplied by them, splits are in the raw units of the table.
    children
        (m, 2): a split by its number, leaf ``l`` as ``-1 - l``.
    values
        (L, k) float64: what leaves add to the model's answer; votes where the forest votes. Of
        linear leaves: their scores at the centers.
    leaf_weights, leaf_indicators
        (L, k, n), (L, k, q) float64 of linear leaves; None where leaves are constant.
    link
        From the scores of linear leaves to what they answer.
    vote
        What a linear leaf's answer is turned into; constant leaves hold their vote already.
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
        """The root as children are written: split 0, or leaf 0 as -1."""
        return 0 if self.n_splits else -1


@dataclass(frozen=True, eq=False)
class Plan:
    """A model in the engine's numbers.

    Outputs are the sum of what the trees add, divided by ``divisor``, times two to the power of
    ``exponent`` (which is 0 unless leaves are near the limits of float64), and of that the
    ``link``.
    """

    model: HardModel
    encoding: Encoding
    trees: tuple[PlannedTree, ...]
    divisor: int
    exponent: int
    link: Link

    @property
    def schema(self) -> Schema:
        """The features that go in."""
        return self.encoding.schema

    @property
    def is_forest(self) -> bool:
        """Whether the model is a forest, even of one tree."""
        return isinstance(self.model, ObliqueForest)

    def combined(self, total: np.ndarray) -> np.ndarray:
        """Turn the sum (r, k) of what the trees say into outputs."""
        outputs = total / self.divisor
        if self.exponent:  # no mean of finite numbers is beyond them; rounding could make it so
            limit = np.ldexp(np.finfo(np.float64).max, -self.exponent)
            outputs = np.ldexp(np.clip(outputs, -limit, limit), self.exponent)
        return linked(outputs, self.link, 1)

    @property
    def summary(self) -> str:
        """One line: what the model predicts and how large it is."""
        return summary(self.model)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Names of labels or regression outputs; their numbers where the model knows none."""
        if self.model.classes is not None:
            return tuple(str(label) for label in self.model.classes)
        return self.model.target_names or tuple(str(i) for i in range(self.model.n_outputs))


def plan_of(model: Any) -> Plan:
    """Make a plan of a tree or forest; of a policy tree with two branches, by its oblique tree.

    Raises
    ------
    TypeError
        If it is none of these.
    ExportError
        If a name cannot be written as Unicode text.
    """
    if not isinstance(model, Model):
        raise TypeError(
            f"an export takes an ObliqueTree or ObliqueForest, got a {type(model).__name__}; of a "
            "fitted estimator give its tree_ or forest_"
        )
    model = model.hard("an export")
    _check_names(model)
    encoding = Encoding.of(model.schema)
    trees = model.hard_trees
    combine = model.combine if isinstance(model, ObliqueForest) else "sum"
    # Leaves near the limits of float64 are scaled down before they are added up.
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
    """Turn answers (r, k) into votes, where the forest votes."""
    if vote == "none":
        return values
    if vote == "labels":
        return (values >= 0.5).astype(np.float64)
    votes = np.zeros_like(values)
    votes[np.arange(len(values)), values.argmax(axis=1)] = 1.0
    return votes


def _check_names(model: HardModel) -> None:
    names = [*model.schema.names, *(model.target_names or ())]
    for feature in model.schema.features:
        names += [level for level in feature.levels if isinstance(level, str)]
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ExportError(
                f"the name {name!r:.80} is not valid Unicode ({error.reason}) and can be written "
                "in no file. Rename the column or level."
            ) from error
