"""A tree as a list of rules that any program can evaluate: data, not text.

A rule holds if all of its conditions hold, and every row satisfies exactly one rule. A condition is
one of these mappings:

==================================================== ===============================================
``{"feature", "missing": true}``                     the value is missing
``{"feature", "missing": false}``                    the value is not missing
``{"feature", "is": ">=", "value": 30, "missing"}``  the comparison holds; a missing value satisfies
                                                     the condition if ``missing`` is true
``{"feature", "in": ["a", "b"], "missing"}``         the value is one of these; likewise
``{"sum": 0, "is": ">="}``                           the sum of this number is at least 0, or below
==================================================== ===============================================

A sum stands once in a list of its own, since it occurs in many rules. It is a ``constant`` plus its
``terms``: ``weight * (value - center)`` of a number, or the weight at the position of the level in
``levels``; the weight ``missing`` if the value is missing.
"""

from __future__ import annotations

import math
from typing import Any

from hardwood.export.conditions import Linear, conditions_of
from hardwood.export.plan import Plan, plan_of
from hardwood.export.rules.paths import LeafPath, Numbers, check_size, leaf_paths
from hardwood.model import ObliqueTree
from hardwood.table import Schema

Entry = dict[str, Any]


def rule_list(tree: ObliqueTree) -> tuple[list[Entry], list[tuple[int, list[Entry]]]]:
    """Return the sums of a tree, and its leaves from left to right with their conditions.

    Leaves that no row can reach are left out. Dates are seconds since 1970-01-01 (UTC).

    Raises
    ------
    ExportError
        If the rules would repeat too many conditions.
    """
    plan = plan_of(tree)
    check_size(plan)
    sums: dict[Linear, int] = {}
    rules = []
    for leaf, path in _paths(plan):
        if not path.never:
            rules.append((leaf, _conditions(path, plan.schema, sums)))
    return [_sum(linear, plan.schema) for linear in sums], rules


def _paths(plan: Plan) -> list[tuple[int, LeafPath]]:
    (planned,) = plan.trees
    conditions = conditions_of(planned, plan.encoding)
    return leaf_paths(conditions, planned.children, planned.root, plan.schema)


def _conditions(path: LeafPath, schema: Schema, sums: dict[Linear, int]) -> list[Entry]:
    found: list[Entry] = []
    for j, numbers in sorted(path.numbers.items()):
        found += _of_number(schema.names[j], numbers)
    for j, (allowed, missing) in sorted(path.levels.items()):
        levels = [schema.features[j].levels[i] for i in sorted(allowed)]
        found.append({"feature": schema.names[j], "in": levels, "missing": missing})
    for linear, right in path.sums:
        number = sums.setdefault(linear, len(sums))
        found.append({"sum": number, "is": ">=" if right else "<"})
    return found


def _of_number(name: str, numbers: Numbers) -> list[Entry]:
    if not numbers.present:
        return [{"feature": name, "missing": True}]
    found: list[Entry] = [
        {"feature": name, "is": relation, "value": value, "missing": numbers.missing}
        for relation, value in (
            (">=" if numbers.low_in else ">", numbers.low),
            ("<=" if numbers.high_in else "<", numbers.high),
        )
        if math.isfinite(value)
    ]
    if not found and not numbers.missing:
        return [{"feature": name, "missing": False}]
    return found


def _sum(linear: Linear, schema: Schema) -> Entry:
    flags = dict(linear.flags)
    terms: list[Entry] = []
    for j, weight, center in linear.numbers:
        term = {"feature": schema.names[j], "weight": weight, "center": center}
        terms.append(term | {"missing": flags.pop(j, 0.0)})
    for j, weight in flags.items():
        term = {"feature": schema.names[j], "weight": 0.0, "center": 0.0}
        terms.append(term | {"missing": weight})
    for item in linear.levels:
        levels = list(schema.features[item.feature].levels)
        term = {"feature": schema.names[item.feature], "levels": levels}
        terms.append(term | {"weights": list(item.weights), "missing": item.missing})
    return {"constant": linear.constant, "terms": terms}
