"""SQL: one statement, the same predictions in SQLite and in DuckDB."""

from __future__ import annotations

import sqlite3

import numpy as np
import pyarrow as pa
import pytest

from forests import make_forest
from hardwood import ObliqueTree
from hardwood.errors import ExportError
from hardwood.export import to_sql
from hardwood.export.plan import plan_of
from hardwood.export.probes import Probes
from hardwood.export.sql import statement as sql_module
from hardwood.export.sql.check import predictions_of
from hardwood.export.sql.statement import labels_of
from hardwood.export.sql.text import identifier
from hardwood.export.verify import FLOAT_VALUES, verified
from hardwood.table import Feature, Schema
from trees import make_rows, make_tree

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")


def type_of(feature):
    if feature.kind == "numeric":
        return "BOOLEAN" if feature.origin == "boolean" else "DOUBLE"
    level = feature.levels[-1]
    if isinstance(level, str):
        return "VARCHAR"
    return "BOOLEAN" if isinstance(level, bool) else "DOUBLE"


def filled(database, schema, columns, *, table="data", names=None):
    """A table with these columns, and ids."""
    names = names or schema.names
    types = [type_of(feature) for feature in schema.features]
    fields = ", ".join(f"{identifier(n)} {t}" for n, t in zip(names, types, strict=True))
    database.execute(f'CREATE TABLE {identifier(table)} ("id" INTEGER, {fields})')
    columns = [list(column) for column in columns]
    if isinstance(database, sqlite3.Connection):
        marks = ", ".join("?" * (len(names) + 1))
        rows = [(i, *row) for i, row in enumerate(zip(*columns, strict=True))]
        database.executemany(f"INSERT INTO {identifier(table)} VALUES ({marks})", rows)
    else:  # row by row, DuckDB is slow
        columns = [pa.array(range(len(columns[0]))), *map(pa.array, columns)]
        arrow = pa.table(dict(zip(map(str, range(len(columns))), columns, strict=True)))
        database.register("entries", arrow)
        database.execute(f"INSERT INTO {identifier(table)} SELECT * FROM entries")
    return database


def test_every_kind_of_model_in_sqlite_and_duckdb(model):
    text = to_sql(model, keep=["id"])
    assert text.check.method.startswith("run by SQLite")
    assert text.check.n_on_edge <= 5
    plan = plan_of(model)
    probes = Probes.of(plan).thinned(10**5)
    columns = [
        # DuckDB's columns of booleans hold no third level, and cast any number but 0 to true.
        [None if type_of(f) == "BOOLEAN" and x not in (0, 1) else x for x in column]
        for f, column in zip(plan.schema.features, probes.raw_columns, strict=True)
    ]
    origins = np.array([f.origin == "boolean" for f in plan.schema.features])
    matrix = probes.matrix.copy()
    matrix[:, origins] = np.where(np.isin(matrix[:, origins], (0, 1)), matrix[:, origins], np.nan)
    probes = Probes(plan, matrix, probes.n_typical, False)
    database = filled(duckdb.connect(), plan.schema, columns)
    rows = sorted(database.execute(text).fetchall())
    answers = predictions_of(plan, [row[1:] for row in rows], labels_of(plan))
    check = verified(probes, answers, target="sql", method="DuckDB", precision=FLOAT_VALUES)
    assert check.n_on_edge <= 5


@pytest.mark.parametrize("engine", [sqlite3, duckdb], ids=["SQLite", "DuckDB"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: make_tree(2, n_splits=40, n_features=10, mixed=True),
        lambda: make_tree(3, n_splits=20, n_features=6, task="regression", k=1),
        lambda: make_forest(1, sizes=(7, 0, 9), n_features=8, mixed=True),
    ],
    ids=["classes", "numbers", "forest"],
)
def test_ten_thousand_rows(make, engine):
    model, n = make(), 10_000
    rows = make_rows(3, model.schema, n)
    database = filled(engine.connect(":memory:"), model.schema, zip(*rows, strict=True))
    found = sorted(database.execute(to_sql(model, keep=["id"])).fetchall())
    assert [row[0] for row in found] == list(range(n))
    np.testing.assert_array_equal([row[1] for row in found], model.predict(rows))
    if model.task == "classification":
        proba = [row[2:] for row in found]
        np.testing.assert_allclose(proba, model.predict_proba(rows), atol=1e-15)


def test_names_of_the_columns():
    model = make_tree(1, k=2)
    cursor = filled(sqlite3.connect(":memory:"), model.schema, [[0.0]] * 4).execute(
        to_sql(model, keep=["id", "f0"])
    )
    assert [column[0] for column in cursor.description] == [
        "id",
        "f0",
        "prediction",
        "probability of class 0",
        "probability of class 1",
    ]
    labels = to_sql(make_tree(1, k=2, task="multilabel"))
    assert 'AS "prediction of y1"' in labels
    assert 'AS "probability of y1"' in labels
    assert 'AS "prediction of y1"' in to_sql(make_tree(1, k=2, task="regression"))


@pytest.mark.parametrize("engine", [sqlite3, duckdb], ids=["SQLite", "DuckDB"])
def test_hostile_names(hostile, engine):
    """Hostile names of columns, categories, classes and the table, some renamed."""
    columns = {"": "no name", "X": "the X"}  # there is an x0, and x * 5000
    table, key = 'ta"ble; DROP TABLE x;--\n', "id'\"*/"
    text = to_sql(hostile, table=table, keep=[key, "it's"], columns=columns)
    rows = make_rows(1, hostile.schema, 100)
    entries = [[None if x == "never seen" else x for x in c] for c in zip(*rows, strict=True)]
    names = [columns.get(name, name) for name in hostile.feature_names]
    database = filled(engine.connect(":memory:"), hostile.schema, entries, table=table, names=names)
    database.execute(f'ALTER TABLE {identifier(table)} RENAME COLUMN "id" TO {identifier(key)}')
    found = sorted(database.execute(text).fetchall(), key=lambda row: row[0])
    assert [row[2] for row in found] == hostile.predict(rows).tolist()
    assert database.execute(f"SELECT COUNT(*) FROM {identifier(table)}").fetchone() == (100,)


def test_names_that_sql_cannot_hold_are_refused():
    def named(*names):
        return ObliqueTree.of(
            np.ones((1, len(names))), bias=[0.0], values=[0.0, 1.0], feature_names=names
        )

    with pytest.raises(ExportError, match="no empty names"):
        to_sql(named("", "b"))
    assert to_sql(named("", "b"), columns={"": "a"})
    with pytest.raises(ExportError, match="'a' and 'A' are the same column in SQL"):
        to_sql(named("a", "A"))
    assert to_sql(named("a", "A"), columns={"A": "b"})
    with pytest.raises(ExportError, match="NUL"):
        to_sql(named("a\0b"))
    with pytest.raises(ExportError, match="'z', which is not a feature"):
        to_sql(named("a"), columns={"z": "b"})
    schema = Schema((Feature("x", "categorical", levels=(1, "a")),))
    mixed = ObliqueTree.of([[1.0, -1.0]], bias=[0.0], values=[0.0, 1.0], schema=schema)
    with pytest.raises(ExportError, match="'x' has categories that are text and categories"):
        to_sql(mixed)


def test_a_table_in_a_schema():
    text = to_sql(make_tree(1), table=("my schema", "rows"))
    assert 'FROM "my schema"."rows" AS "t"' in text
    assert 'FROM "main"."rows"' in to_sql(make_tree(1), table=("main", "rows"))
    with pytest.raises(ExportError, match="a schema and a name"):
        to_sql(make_tree(1), table=("a", "b", "c"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": ""}, "table must not be an empty name"),
        ({"table": ("a", "")}, "table must not be an empty name"),
        ({"table": 3}, "table must be names, as strings; found 3"),
        ({"table": ()}, "a schema and a name"),
        ({"columns": {"a": "c", "b": "c"}}, "'a' and 'b' are the same column in SQL, 'c'"),
        ({"columns": {"a": 1}}, "columns must be names"),
        ({"columns": ["a"]}, "columns must map feature names"),
        ({"keep": "id"}, r"keep must be a list of columns, such as \['id'\]"),
        ({"keep": [1]}, "keep must be names"),
        ({"keep": ["id", "ID"]}, "keep names the column 'ID' twice"),
        ({"keep": ["Prediction"]}, "'Prediction', which is the name of a result"),
        ({"keep": ["probability of yes"]}, "which is the name of a result"),
        ({"materialized": "no"}, "materialized must be True, False or None, found 'no'"),
    ],
)
def test_wrong_arguments_are_refused_by_name(options, words):
    tree = ObliqueTree.of(
        [[1.0, 1.0]],
        bias=[0.0],
        values=[[1, 0], [0, 1]],
        feature_names=["a", "b"],
        classes=["no", "yes"],
    )
    with pytest.raises(ValueError, match=words):
        to_sql(tree, **options)


@pytest.mark.parametrize("level", [2**63, -(2**63) - 1])
def test_integers_of_more_than_64_bits_are_refused(level):
    schema = Schema((Feature("x", "categorical", levels=(level, 1)),))
    tree = ObliqueTree.of([[1.0, -1.0]], bias=[0.0], values=[0.0, 1.0], schema=schema)
    with pytest.raises(ExportError, match=f"'x' has the category {level}.*column of text"):
        to_sql(tree)


def test_a_statement_too_long_for_sqlite_is_refused_before_it_is_tried(monkeypatch):
    class Limited(sqlite3.Connection):
        def __init__(self, *args):
            super().__init__(*args)
            self.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1000)

    if not hasattr(sqlite3.Connection, "setlimit"):
        pytest.skip("Python sets SQLite's limits since 3.11")
    monkeypatch.setattr(sqlite3, "connect", Limited)
    monkeypatch.setattr("hardwood.export.sql.statement.Probes", None)
    with pytest.raises(ExportError, match=r"it has \d+ bytes.*does not accept it.*Prune"):
        to_sql(make_tree(1))


def test_stages_do_not_hide_the_table():
    text = to_sql(make_tree(1), table="Stage 0")
    assert 'FROM "Stage 0" AS "t"' in text
    assert 'WITH "stage 0_" AS' in text


def test_an_absent_column_is_an_error_of_the_database_not_a_text():
    """SQLite treats an unknown quoted name as text unless it is qualified."""
    model = make_tree(1)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE data (f0, f1, f2)")
    with pytest.raises(sqlite3.OperationalError, match="no such column: t.f3"):
        database.execute(to_sql(model))


def test_trees_deeper_than_the_nesting_of_a_parser(zoo):
    """Sixty levels; SQLite's parser accepts about twenty nested CASE expressions."""
    text = to_sql(zoo("deep"))
    assert "MATERIALIZED" in text
    assert "MATERIALIZED" not in to_sql(make_tree(1))
    assert "MATERIALIZED" not in to_sql(make_forest(1), materialized=False)
    assert "MATERIALIZED" in to_sql(make_tree(1), materialized=True)


def test_the_splits_are_not_copied_for_each_of_many_outputs():
    """SQLite would copy them, and take memory for each copy."""
    few, many = (make_tree(1, n_splits=5, task="regression", k=k) for k in (8, 9))
    assert "MATERIALIZED" not in to_sql(few)
    assert "MATERIALIZED" in to_sql(many)


@pytest.mark.parametrize("classes", [[7, 3], [True, False], [0.5, 2.25], ["a", 1]])
def test_predictions_are_the_classes(classes):
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[[1, 0], [0, 1]], classes=classes)
    for engine in (sqlite3, duckdb):
        database = filled(engine.connect(":memory:"), tree.schema, [[-1.0, 1.0]])
        found = [row[0] for row in database.execute(to_sql(tree)).fetchall()]
        assert found == ([str(c) for c in classes] if classes == ["a", 1] else classes)


def test_a_statement_that_differs_is_refused(monkeypatch, tmp_path):
    tree = make_tree(1, n_splits=7, n_features=4)
    plan = plan_of(tree.replace(bias=tree.bias + 0.01))
    object.__setattr__(plan, "model", tree)
    monkeypatch.setattr(sql_module, "plan_of", lambda model: plan)
    with pytest.raises(ExportError, match=r"was not written: run by SQLite.*differs"):
        to_sql(tree, tmp_path / "m.sql")
    assert list(tmp_path.iterdir()) == []


def test_a_statement_that_does_not_run_is_refused(monkeypatch):
    monkeypatch.setattr(sql_module.Stages, "statement", lambda self, columns: "SELECT FROM")
    with pytest.raises(ExportError, match="does not run it"):
        to_sql(make_tree(1))


def test_a_file_is_written(tmp_path):
    path = tmp_path / "m.sql"
    text = to_sql(make_tree(1), path)
    assert path.read_text() == text
