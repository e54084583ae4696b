"""The conditions for reaching each leaf of a tree, those on one feature merged."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hardwood.errors import ExportError
from hardwood.export.conditions import (
    Always,
    Condition,
    Levels,
    Linear,
    Missing,
    Threshold,
)
from hardwood.export.plan import Plan
from hardwood.table import Schema

MAX_CONDITIONS = 500_000  # on all paths together; a rule repeats those of its path


def check_size(plan: Plan) -> None:
    """Refuse a model whose rules would repeat too many conditions."""
    depths = (tree.node_depths[tree.n_splits :] for tree in plan.model.hard_trees)
    n_conditions = sum(int(of_leaves.sum()) for of_leaves in depths)
    if n_conditions > MAX_CONDITIONS:
        raise ExportError(
            f"the rules would repeat {n_conditions:,} conditions, because there is one rule for "
            f"each of {plan.model.n_leaves:,} leaves and the tree is {plan.model.depth:,} splits "
            f"deep; at most {MAX_CONDITIONS:,} are written. Prune the model, or export it to "
            "Python, SQL, C or JSON, which write each split once"
        )


@dataclass
class Numbers:
    """Conditions of a path on one number: bounds, each inclusive or not, and missing values."""

    low: float = -math.inf
    low_in: bool = False
    high: float = math.inf
    high_in: bool = False
    present: bool = True
    missing: bool = True

    def above(self, value: float, belongs: bool) -> None:
        if (value, not belongs) > (self.low, not self.low_in):
            self.low, self.low_in = value, belongs

    def below(self, value: float, belongs: bool) -> None:
        if (value, belongs) < (self.high, self.high_in):
            self.high, self.high_in = value, belongs

    @property
    def is_empty(self) -> bool:
        closed = self.low_in and self.high_in
        some = self.present and (self.low < self.high or (self.low == self.high and closed))
        return not some and not self.missing


@dataclass
class LeafPath:
    """Conditions for reaching a leaf; all conditions on one feature are merged."""

    never: bool = False
    numbers: dict[int, Numbers] = field(default_factory=dict)
    levels: dict[int, tuple[set[int], bool]] = field(default_factory=dict)
    sums: list[tuple[Linear, bool]] = field(default_factory=list)

    def add(self, condition: Condition, right: bool, schema: Schema) -> None:
        if isinstance(condition, Always):
            self.never |= condition.right != right
        elif isinstance(condition, Linear):
            self.sums.append((condition, right))
        elif isinstance(condition, Levels):
            self._add_levels(condition, right, len(schema.features[condition.feature].levels))
        else:
            self._add_number(condition, right)

    def _add_levels(self, condition: Levels, right: bool, n_levels: int) -> None:
        allowed = set(condition.right) if right else set(range(n_levels)) - condition.right
        known, missing = self.levels.get(condition.feature, (set(range(n_levels)), True))
        missing = missing and condition.missing_right == right
        self.levels[condition.feature] = (known & allowed, missing)
        self.never |= not known & allowed and not missing

    def _add_number(self, condition: Threshold | Missing, right: bool) -> None:
        numbers = self.numbers.setdefault(condition.feature, Numbers())
        if isinstance(condition, Missing):
            is_missing = condition.right_if_missing == right
            numbers.present &= not is_missing
            numbers.missing &= is_missing
        else:
            numbers.missing &= condition.missing_right == right
            rising = condition.relation == ">="
            if rising == right:
                numbers.above(condition.value, right)
            else:
                numbers.below(condition.value, right)
        self.never |= numbers.is_empty


def leaf_paths(
    conditions: list[Condition], children: np.ndarray, root: int, schema: Schema
) -> list[tuple[int, LeafPath]]:
    """Return the leaves from left to right, each with its path."""
    found: list[tuple[int, LeafPath]] = []
    todo: list[tuple[int, tuple[Any, ...]]] = [(root, ())]
    while todo:
        node, steps = todo.pop()
        if node < 0:
            path = LeafPath()
            for split, right in _unlinked(steps):
                path.add(conditions[split], right, schema)
            found.append((~node, path))
            continue
        left, right = children[node].tolist()
        todo += [(right, (steps, node, True)), (left, (steps, node, False))]
    return found


def _unlinked(steps: tuple[Any, ...]) -> list[tuple[int, bool]]:
    """Turn linked steps, which share their first part, into a list from the root."""
    path = []
    while steps:
        steps, node, right = steps
        path.append((node, right))
    return path[::-1]
