"""A statement run in SQLite, which comes with Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import ExportError
from hardwood.export.plan import Plan
from hardwood.export.probes import Probes
from hardwood.export.sql.text import identifier
from hardwood.export.verify import FLOAT_VALUES, Check, Predictions, verified
from hardwood.model.structure import Label
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    import sqlite3

_OWN_SCHEMAS = ("main", "temp")
_MAX_BYTES = 2_000_000  # SQLite compares every number of a statement with all earlier ones


def check_sql(
    probes: Probes,
    text: str,
    table: tuple[str, ...],
    columns: Sequence[str],
    keep: Sequence[str],
    labels: Sequence[Label],
) -> Check:
    """Run a statement in SQLite on the probes and compare its predictions.

    Parameters
    ----------
    probes
        The rows.
    text
        The statement.
    table, columns, keep
        Parts of the table's name, column names of the features, and columns to keep.
    labels
        Classes as the statement returns them.
    """
    import sqlite3  # some builds of Python are without it

    probes = probes.thinned(_cost(probes.plan))
    with closing(sqlite3.connect(":memory:")) as database:
        _add_exp(database)
        _fill(database, probes, table, columns, keep)
        try:
            rows = database.execute(text).fetchall()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise ExportError(
                f"the export to SQL was not written: SQLite {sqlite3.sqlite_version} does not run "
                f"it ({error}); the statement has {len(text)} characters. A smaller model may work."
            ) from error
    return verified(
        probes,
        predictions_of(probes.plan, [row[len(keep) :] for row in rows], labels),
        target="sql",
        method=f"run by SQLite {sqlite3.sqlite_version}",
        precision=FLOAT_VALUES,
    )


def check_length(text: str) -> None:
    """Refuse a statement that is too long for SQLite, before the probes are made."""
    import sqlite3

    size, trouble = len(text.encode()), ""
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("--".ljust(size))  # a comment as long; limits differ by builds
        except sqlite3.Error as error:
            trouble = f"does not accept it ({error})"
    if size > _MAX_BYTES:
        trouble = trouble or "would need minutes to read it, as the time grows with the square"
    if trouble:
        raise ExportError(
            f"the export to SQL was not written: it has {size} bytes, and SQLite "
            f"{sqlite3.sqlite_version}, which checks it, {trouble}. Prune the model, take fewer "
            "trees, or use to_c or to_onnx."
        )


def predictions_of(
    plan: Plan, rows: Sequence[Sequence[Any]], labels: Sequence[Label]
) -> Predictions:
    """Read the rows that a statement returned, without the kept columns."""
    k = plan.model.n_outputs
    if plan.model.classes is not None:
        position = {label: o for o, label in enumerate(labels)}
        positions = np.array([position.get(row[0], -1) for row in rows])
        return Predictions(np.array([row[1:] for row in rows], np.float64), positions)
    if plan.model.task == "multilabel":
        positions = np.array([row[:k] for row in rows])
        return Predictions(np.array([row[k:] for row in rows], np.float64), positions)
    return Predictions(np.array(rows, np.float64))


def _cost(plan: Plan) -> int:
    """Return the cost of a row, in about tenths of a microsecond.

    For a single tree, SQLite finds the leaf anew for every output.
    """
    width = plan.schema.n_columns + 50
    linear = (
        plan.model.n_leaves * 2 + width * plan.model.n_outputs
        if plan.model.has_linear_leaves
        else 0
    )
    per_tree = [(int(np.log2(tree.n_leaves)) + 1) * width + tree.n_leaves for tree in plan.trees]
    return (sum(per_tree) + linear) * (plan.model.n_outputs if len(plan.trees) == 1 else 1)


def _add_exp(database: sqlite3.Connection) -> None:
    """Give SQLite the function EXP if it was built without mathematical functions."""
    import sqlite3

    try:
        database.execute("SELECT EXP(0E0)")
    except sqlite3.OperationalError:
        database.create_function("EXP", 1, lambda x: math.exp(x) if x < 709.78 else math.inf)


def _fill(
    database: sqlite3.Connection,
    probes: Probes,
    table: tuple[str, ...],
    columns: Sequence[str],
    keep: Sequence[str],
) -> None:
    """Create the table: a column for each feature, and row numbers in the kept columns."""
    import sqlite3

    if len(table) == 2 and table[0].lower() not in _OWN_SCHEMAS:
        database.execute(f"ATTACH ':memory:' AS {identifier(table[0])}")
    known = {name.lower() for name in columns}
    others = [name for name in dict.fromkeys(keep) if name.lower() not in known]
    entries = [*probes.raw_columns, *([list(range(probes.n_rows))] * len(others))]
    names = ", ".join(identifier(name) for name in (*columns, *others))
    source = ".".join(identifier(part) for part in table)
    try:
        database.execute(f"CREATE TABLE {source} ({names})")
        places = ", ".join("?" * len(entries))
        rows = zip(*entries, strict=True)
        database.executemany(f"INSERT INTO {source} VALUES ({places})", rows)
    except sqlite3.Error as error:
        raise ExportError(
            f"the export to SQL was not written: SQLite cannot create a table with the model's "
            f"{plural(len(columns), 'column')} ({error})"
        ) from error
