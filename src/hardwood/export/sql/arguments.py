"""What `to_sql` is told of a database, checked: its table, its columns, what they can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hardwood.errors import ExportError
from hardwood.export.plan import Plan

_WHOLE_NUMBERS = range(-(2**63), 2**63)


def table_parts(table: str | Sequence[str]) -> tuple[str, ...]:
    """Return the name of a table in its parts: itself, or its schema and itself."""
    parts = (table,) if isinstance(table, str) else _texts("table", table)
    if not 1 <= len(parts) <= 2:
        raise ExportError(f"a table is named by itself or with its schema, not by {parts!r:.200}")
    if not all(parts):
        raise ExportError(f"table must name a table, and SQL has no empty names; found {table!r}")
    return parts


def column_names(plan: Plan, columns: Mapping[str, str] | None) -> list[str]:
    """Return the names of the features in the database, all different to SQL."""
    if columns is None:
        columns = {}
    if not isinstance(columns, Mapping):
        raise ExportError(
            "columns must map names of features to names in the database, "
            f"found {type(columns).__name__}"
        )
    unknown = [name for name in columns if name not in plan.schema.names]
    if unknown:
        raise ExportError(f"columns speaks of {unknown[0]!r:.80}, which is no feature of the model")
    _texts("columns", list(columns.values()))
    first: dict[str, str] = {}
    for feature in plan.schema.names:
        name = columns.get(feature, feature)
        other = first.setdefault(name.lower(), feature)
        if other != feature:
            raise ExportError(
                f"the features {other!r:.80} and {feature!r:.80} are one column to SQL, "
                f"{name!r:.80}; its names have no letter case. Say what one is called: "
                f"columns={{{feature!r:.80}: '...'}}."
            )
    return [columns.get(feature, feature) for feature in plan.schema.names]


def kept_columns(plan: Plan, keep: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to pass on: each once, and none called as a result is."""
    if isinstance(keep, str):
        raise ExportError(f"keep must be a list of columns, such as [{keep!r:.80}], not a text")
    names = _texts("keep", keep)
    seen: set[str] = set()
    results = {name.lower() for name in result_names(plan)}
    for name in names:
        if name.lower() in seen:
            raise ExportError(f"keep names the column {name!r:.80} twice")
        if name.lower() in results:
            raise ExportError(
                f"keep names the column {name!r:.80}, which is what a result is called. "
                "Rename it in a view of the table, or join on a key."
            )
        seen.add(name.lower())
    return names


def result_names(plan: Plan) -> list[str]:
    """Return what the statement calls its answers."""
    predictions = ["prediction"]
    if plan.model.classes is None and (plan.model.task == "multilabel" or plan.model.n_outputs > 1):
        predictions = [f"prediction of {name}" for name in plan.output_names]
    if plan.model.task == "regression":
        return predictions
    return predictions + [f"probability of {name}" for name in plan.output_names]


def check_whole_numbers(plan: Plan) -> None:
    """Refuse levels that are whole numbers beyond those of databases, which have 64 bits."""
    for feature in plan.schema.features:
        for level in feature.levels:
            if isinstance(level, int) and level not in _WHOLE_NUMBERS:
                raise ExportError(
                    f"feature {feature.name!r:.80} has the level {str(level):.80}, and whole "
                    "numbers of databases have 64 bits. Learn from a column of text instead."
                )


def _texts(argument: str, names: Any) -> tuple[str, ...]:
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ExportError(f"{argument} must give names, which are text; found {names!r:.80}")
    return tuple(names)
