"""Checks of the arguments of `to_sql`: names of the table and its columns, and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hardwood.errors import ExportError
from hardwood.export.plan import Plan

_WHOLE_NUMBERS = range(-(2**63), 2**63)


def table_parts(table: str | Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a table's name: the table, or its schema and the table."""
    parts = (table,) if isinstance(table, str) else _texts("table", table)
    if not 1 <= len(parts) <= 2:
        raise ExportError(f"table must be a name, or a schema and a name, found {parts!r:.200}")
    if not all(parts):
        raise ExportError(f"table must not be an empty name; found {table!r}")
    return parts


def column_names(plan: Plan, columns: Mapping[str, str] | None) -> list[str]:
    """Return the names of the features in the database, all distinct in SQL."""
    if columns is None:
        columns = {}
    if not isinstance(columns, Mapping):
        raise ExportError(
            "columns must map feature names to column names of the database, "
            f"found {type(columns).__name__}"
        )
    unknown = [name for name in columns if name not in plan.schema.names]
    if unknown:
        raise ExportError(f"columns names {unknown[0]!r:.80}, which is not a feature of the model")
    _texts("columns", list(columns.values()))
    first: dict[str, str] = {}
    for feature in plan.schema.names:
        name = columns.get(feature, feature)
        other = first.setdefault(name.lower(), feature)
        if other != feature:
            raise ExportError(
                f"the features {other!r:.80} and {feature!r:.80} are the same column in SQL, "
                f"{name!r:.80}, because it ignores letter case. Name the column of one of them: "
                f"columns={{{feature!r:.80}: '...'}}."
            )
    return [columns.get(feature, feature) for feature in plan.schema.names]


def kept_columns(plan: Plan, keep: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to keep: each once, and none with the name of a result."""
    if isinstance(keep, str):
        raise ExportError(f"keep must be a list of columns, such as [{keep!r:.80}], not a string")
    names = _texts("keep", keep)
    seen: set[str] = set()
    results = {name.lower() for name in result_names(plan)}
    for name in names:
        if name.lower() in seen:
            raise ExportError(f"keep names the column {name!r:.80} twice")
        if name.lower() in results:
            raise ExportError(
                f"keep names the column {name!r:.80}, which is the name of a result. "
                "Rename it in a view of the table, or join on a key."
            )
        seen.add(name.lower())
    return names


def result_names(plan: Plan) -> list[str]:
    """Return the names of the statement's result columns."""
    predictions = ["prediction"]
    if plan.model.classes is None and (plan.model.task == "multilabel" or plan.model.n_outputs > 1):
        predictions = [f"prediction of {name}" for name in plan.output_names]
    if plan.model.task == "regression":
        return predictions
    return predictions + [f"probability of {name}" for name in plan.output_names]


def check_whole_numbers(plan: Plan) -> None:
    """Refuse integer categories that do not fit into the 64 bits of a database's integers."""
    for feature in plan.schema.features:
        for level in feature.levels:
            if isinstance(level, int) and level not in _WHOLE_NUMBERS:
                raise ExportError(
                    f"feature {feature.name!r:.80} has the category {str(level):.80}, too large "
                    "for the 64-bit integers of databases. Learn from a column of text instead."
                )


def _texts(argument: str, names: Any) -> tuple[str, ...]:
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ExportError(f"{argument} must be names, as strings; found {names!r:.80}")
    return tuple(names)
