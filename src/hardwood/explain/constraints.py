"""Constraints on a counterfactual: which features may change, how far, and at what cost."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hardwood.errors import TableError
from hardwood.parameters import is_auto, real
from hardwood.table import Feature, Schema
from hardwood.table.columns import column_label, objects_column
from hardwood.text.numbers import plural

CONTINUOUS, WHOLE, CATEGORY = 0, 1, 2  # as the engine numbers them
_EPOCH = datetime.datetime(1970, 1, 1)
_CALENDAR = tuple(
    (end - _EPOCH).total_seconds() for end in (datetime.datetime.min, datetime.datetime.max)
)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints and costs of each feature.

    Parameters
    ----------
    kind
        (p,) uint8: ``CONTINUOUS``, ``WHOLE`` or ``CATEGORY``.
    cost
        (p,) positive: per unit of a number, or of a change of category.
    low, high
        (p,) bounds of numbers.
    is_fixed
        (p,) whether a feature must not change.
    may_become
        (c,) uint8, which levels may be chosen.
    """

    schema: Schema
    kind: np.ndarray
    cost: np.ndarray
    low: np.ndarray
    high: np.ndarray
    is_fixed: np.ndarray
    may_become: np.ndarray

    @classmethod
    def of(
        cls,
        schema: Schema,
        weights: Mapping[Any, Any] | None,
        fixed: Iterable[Any],
        bounds: Mapping[Any, Any] | None,
        integers: Iterable[Any] | Literal["auto"],
        X: np.ndarray,
    ) -> Constraints:
        """Read the arguments of `counterfactual`, for the rows X (n, p)."""
        p = schema.n_features
        self = cls(
            schema,
            kind=np.where(schema.n_levels > 0, CATEGORY, CONTINUOUS).astype(np.uint8),
            cost=_usual_costs(schema),
            low=np.full(p, -np.inf),
            high=np.full(p, np.inf),
            is_fixed=np.zeros(p, dtype=bool),
            may_become=np.ones(schema.n_columns, dtype=np.uint8),
        )
        for j, feature in enumerate(schema.features):
            if feature.origin == "boolean":
                self.kind[j], self.low[j], self.high[j] = WHOLE, 0.0, 1.0
            elif feature.origin == "date":
                self.low[j], self.high[j] = _CALENDAR
        for name, weight in (weights or {}).items():
            j = _position(schema, name, "weights")
            self.cost[j] = real(f"the weight of {schema.names[j]!r}", weight, 0, open_low=True)
        for name in _learned_integers(schema, X) if is_auto(integers) else _names(integers):
            self._make_whole(_position(schema, name, "integers"))
        for name, bound in (bounds or {}).items():
            self._bind(_position(schema, name, "bounds"), bound)
        for name in _names(fixed):
            self._fix(_position(schema, name, "fixed"))
        return self

    def _make_whole(self, j: int) -> None:
        if self.kind[j] == CATEGORY:
            raise ValueError(
                f"integers names {self.schema.names[j]!r}, which is categorical. List numeric "
                "features only"
            )
        self.kind[j] = WHOLE

    def _bind(self, j: int, bound: Any) -> None:
        feature = self.schema.features[j]
        if self.kind[j] == CATEGORY:
            first = int(self.schema.first_column[j])
            for i, allowed in enumerate(_allowed(feature, bound)):
                self.may_become[first + i] = allowed
            return
        low, high = _ends(feature, bound)
        if self.kind[j] == WHOLE:
            low, high = np.ceil(low), np.floor(high)
        self.low[j], self.high[j] = max(low, self.low[j]), min(high, self.high[j])

    def _fix(self, j: int) -> None:
        self.is_fixed[j] = True
        first, n = int(self.schema.first_column[j]), int(self.schema.n_levels[j])
        self.may_become[first : first + n] = 0

    def boxes(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of each row's numbers: low and high, (n, p).

        Missing, fixed and categorical values stay. A number outside its bounds may stay or move
        toward them.

        Raises
        ------
        TableError
            If a number that should be whole is not.
        """
        self._check_whole(X)
        stays = np.isnan(X) | self.is_fixed | (self.kind == CATEGORY)
        x = np.where(np.isnan(X), 0.0, X)
        low, high = np.minimum(self.low, x), np.maximum(self.high, x)
        return np.where(stays, x, low), np.where(stays, x, high)

    def _check_whole(self, X: np.ndarray) -> None:
        is_off = (self.kind == WHOLE) & ~self.is_fixed & (np.round(X) != X) & ~np.isnan(X)
        if is_off.any():
            row, j = np.argwhere(is_off)[0].tolist()
            raise TableError(
                f"{column_label(self.schema.names, j)} holds {X[row, j]} at row {row}, but it must "
                "hold whole numbers: it is boolean, or listed in integers. Round it, or list the "
                "column in fixed"
            )

    def sizes(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return the size of each feature's change, (n, p): its absolute value times its cost."""
        with np.errstate(invalid="ignore"):
            change = np.abs(after - before)
        change[np.isnan(change)] = 0.0
        change = np.where(self.kind == CATEGORY, change > 0, change)
        return np.asarray(change * self.cost)


def _learned_integers(schema: Schema, X: np.ndarray) -> list[int]:
    """List the features that held whole numbers in training, unless a row has a fraction."""
    is_whole = ((np.rint(X) == X) | np.isnan(X)).all(axis=0)
    return [j for j, f in enumerate(schema.features) if f.origin == "integer" and is_whole[j]]


def _usual_costs(schema: Schema) -> np.ndarray:
    """One over the standard deviation of a number; 1 for a change of category."""
    costs = 1.0 / deviations(schema)[schema.first_column]
    return np.where(schema.n_levels > 0, 1.0, costs)


def deviations(schema: Schema) -> np.ndarray:
    """Return the standard deviation of each column, (c,); its scale where that is unknown or 0."""
    return np.where(schema.column_spread > 0, schema.column_spread, schema.column_scale)


def _names(names: Any) -> Iterable[Any]:
    return [names] if isinstance(names, str | int) else names


def _position(schema: Schema, name: Any, argument: str) -> int:
    """Find a feature by its name or its position."""
    if isinstance(name, str) and name in schema.names:
        return schema.names.index(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        if 0 <= name < schema.n_features:
            return int(name)
        raise ValueError(
            f"{argument} has the position {name}, but the model has "
            f"{plural(schema.n_features, 'feature')}"
        )
    raise ValueError(
        f"{argument} names the feature {name!r:.80}, but the features are "
        f"{list(schema.names)!r:.300}"
    )


def _ends(feature: Feature, bound: Any) -> tuple[float, float]:
    """Read the bounds of a number, a date or a duration; None is an open end."""
    problem = f"bounds of {feature.name!r:.80} must be (low, high), with None for an open end, "
    if isinstance(bound, str) or not isinstance(bound, Iterable):
        raise TypeError(f"{problem}found {bound!r:.80}")
    ends = list(bound)
    if len(ends) != 2:
        raise ValueError(f"{problem}found {bound!r:.80}")
    column = objects_column(ends, f"bounds of {feature.name!r:.80}")
    if column.levels:
        raise TypeError(f"{problem}found the text {ends!r:.80}")
    read = np.full(2, np.nan)
    column.write_to(read)
    low, high = read.tolist()
    low, high = -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high
    if low > high:
        raise ValueError(f"bounds of {feature.name!r:.80} have low > high: {bound!r:.80}")
    return low, high


def _allowed(feature: Feature, bound: Any) -> list[bool]:
    if isinstance(bound, str) or not isinstance(bound, Iterable):
        raise TypeError(
            f"bounds of the categorical feature {feature.name!r:.80} must be a list of the "
            f"categories that may be chosen, found {bound!r:.80}"
        )
    levels = list(bound)
    for level in levels:
        if level not in feature.levels:
            raise ValueError(
                f"bounds of {feature.name!r:.80} list the category {level!r:.80}, but there are "
                f"only {list(feature.levels)!r:.300}"
            )
    return [level in levels for level in feature.levels]
