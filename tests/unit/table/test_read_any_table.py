"""`Table.of`: every kind of table gives the right matrix, or an error with the reason."""

from __future__ import annotations

import datetime as dt
import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from hardwood.errors import MissingExtraError, TableError, TableTypeError
from hardwood.table import Table
from hardwood.table import frames as frames_module

nan = np.nan


def check(table: Table, matrix, levels=None, names=None, dtype=np.float64):
    np.testing.assert_array_equal(table.matrix, np.array(matrix, dtype=float))
    assert table.matrix.dtype == dtype
    assert table.matrix.flags.c_contiguous
    assert table.levels == (levels or (None,) * table.n_features)
    assert table.names == names


# Arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_contiguous_float_array_is_not_copied_even_if_read_only(dtype):
    X = np.arange(12, dtype=dtype).reshape(4, 3)
    X.flags.writeable = False
    assert Table.of(X).matrix is X


@pytest.mark.parametrize(
    ("X", "dtype"),
    [
        (np.array([[1, 2], [3, 4]], np.float16), np.float32),
        (np.array([[1, 2], [3, 4]], np.longdouble), np.float64),
        (np.array([[1, 2], [3, 4]], ">f4"), np.float32),
        (np.array([[1, 2], [3, 4]], ">i2"), np.float64),
        (np.array([[1, 2], [3, 4]], np.uint64), np.float64),
        (np.asfortranarray(np.array([[1, 2], [3, 4]], np.float32)), np.float32),
        (np.array([[1, 9, 2], [9, 9, 9], [3, 9, 4]], np.float32)[::2, ::2], np.float32),
        (np.array([[4.0, 3.0], [2.0, 1.0]])[::-1, ::-1], np.float64),
        (np.matrix([[1.0, 2.0], [3.0, 4.0]]), np.float64),
        ([[1, 2], [3, 4]], np.float64),
        ((np.array([1, 2]), np.array([3, 4])), np.float64),
        (np.array([[1, 2.0], [np.int8(3), decimal.Decimal(4)]], dtype=object), np.float64),
    ],
    ids=str,
)
def test_arrays_of_every_type_and_order_give_the_same_matrix(X, dtype):
    check(Table.of(X), [[1, 2], [3, 4]], dtype=dtype)


def test_an_unaligned_array_is_copied():
    X = np.frombuffer(b"\0" + np.arange(4.0).tobytes(), np.uint8)[1:].view(np.float64)
    table = Table.of(X.reshape(2, 2))
    assert table.matrix.flags.aligned
    check(table, [[0, 1], [2, 3]])


def test_booleans_are_zero_and_one():
    check(Table.of(np.array([[True, False]])), [[1, 0]], dtype=np.float32)


def test_masked_values_are_missing():
    mask = [[False, True], [False, False]]
    check(Table.of(np.ma.array([[1.0, 2], [3, 4]], mask=mask)), [[1, nan], [3, 4]])
    check(Table.of(np.ma.array([[1, 2], [3, 4]], mask=mask)), [[1, nan], [3, 4]])
    text = Table.of(np.ma.array([["a", "b"], ["c", "d"]], mask=mask))
    check(text, [[0, nan], [1, 0]], (("a", "c"), ("d",)), dtype=np.float32)


def test_rows_with_numeric_and_text_columns_keep_their_types():
    table = Table.of([[1, "b"], [2.5, "a"], [None, None]])
    check(table, [[1, 1], [2.5, 0], [nan, nan]], (None, ("a", "b")))


@pytest.mark.parametrize("dtype", [str, "S1", object, np.dtypes.StringDType()])
def test_arrays_of_text_are_categorical(dtype):
    X = np.array([["b", "a"], ["a", "a"]]).astype(dtype)
    check(Table.of(X), [[1, 0], [0, 0]], (("a", "b"), ("a",)), dtype=np.float32)


def test_integers_as_text_stay_text_in_the_order_of_code_points():
    assert Table.of([["10"], ["9"], ["2"]]).levels == (("10", "2", "9"),)


@pytest.mark.parametrize("missing", [None, nan, float("nan"), pd.NA, pd.NaT, np.float32(nan)])
def test_every_marker_of_missing_is_missing(missing):
    X = np.array([[1, "a", True], [missing, missing, missing]], dtype=object)
    check(Table.of(X), [[1, 0, 1], [nan, nan, nan]], (None, ("a",), None))


def test_dates_durations_and_times_become_seconds():
    day = dt.datetime(2024, 1, 2, 3, 4, 5, 500000)
    zone = dt.timezone(dt.timedelta(hours=2))
    X = np.array(
        [
            [day, day.date(), dt.timedelta(hours=1), dt.time(1, 0, 1), np.datetime64("1970-01-02")],
            [day.replace(tzinfo=zone), None, pd.NaT, None, np.datetime64("NaT")],
        ],
        dtype=object,
    )
    seconds = day.replace(tzinfo=dt.timezone.utc).timestamp()
    midnight = dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc).timestamp()
    expected = [[seconds, midnight, 3600, 3601, 86400], [seconds - 7200, nan, nan, nan, nan]]
    check(Table.of(X), expected)


def test_date_arrays_become_seconds():
    X = np.array([["1970-01-02", "NaT"]], "M8[ns]")
    check(Table.of(X), [[86400, nan]])
    check(Table.of(X - np.datetime64(0, "s")), [[86400, nan]])


# Sparse


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, bool])
def test_sparse_matrices_and_arrays_become_csr(form, dtype):
    dense = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype)
    for make in (sp.csr_matrix, sp.csr_array):
        matrix = Table.of(make(dense).asformat(form)).matrix
        assert matrix.format == "csr"
        assert matrix.dtype == (np.float32 if dtype in (np.float32, bool) else np.float64)
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
        np.testing.assert_array_equal(matrix.toarray(), dense)


def test_a_float_csr_shares_its_values_and_64_bit_indices_become_32():
    X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    assert np.shares_memory(Table.of(X).matrix.data, X.data)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    matrix = Table.of(X).matrix
    assert matrix.indices.dtype == np.int32
    assert X.indices.dtype == np.int64


def test_repeated_sparse_entries_are_added_and_the_input_is_left_alone():
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), [1, 1, 0], [0, 3]), shape=(1, 2))
    matrix = Table.of(X).matrix
    assert (matrix.indices.tolist(), matrix.data.tolist()) == ([0, 1], [5.0, 3.0])
    assert (X.indices.tolist(), X.data.tolist()) == ([1, 1, 0], [1.0, 2.0, 5.0])


def test_sparse_nan_is_missing_and_stored_zero_is_zero():
    X = sp.csr_matrix((np.array([nan, 0.0]), [0, 1], [0, 2]), shape=(1, 3))
    np.testing.assert_array_equal(Table.of(X).matrix.toarray(), [[nan, 0, 0]])


@pytest.mark.parametrize(("indices", "indptr"), [([0, 7], [0, 1, 2]), ([0, -1], [0, 1, 2])])
def test_a_damaged_sparse_matrix_is_refused(indices, indptr):
    X = sp.csr_matrix((2, 3))
    X.data, X.indices, X.indptr = np.ones(2), np.array(indices), np.array(indptr)
    with pytest.raises(TableError, match="damaged sparse matrix"):
        Table.of(X)


def test_sparse_infinity_names_row_and_column():
    X = sp.csr_matrix(np.array([[0.0, 1, 0], [0, 0, 0], [2, 0, -np.inf]]))
    with pytest.raises(TableError, match=r"column 2 .* infinity \(-inf at row 2\)"):
        Table.of(X)


# Data frames

VALUES = {
    "number": [1.5, None, 3.0],
    "integer": [1, 2, 3],
    "gaps": [1, None, 3],
    "truth": [True, False, True],
    "maybe": [True, None, False],
    "text": ["b", None, "a"],
    "date": [dt.datetime(1970, 1, 2), None, dt.datetime(1970, 1, 1, 0, 0, 1)],
    "wait": [dt.timedelta(seconds=1.5), None, dt.timedelta(0)],
}
MATRIX = np.array(
    [
        [1.5, 1, 1, 1, 1, 1, 86400, 1.5],
        [nan, 2, nan, 0, nan, nan, nan, nan],
        [3, 3, 3, 1, 0, 0, 1, 0],
    ]
)
LEVELS = (None,) * 5 + (("a", "b"),) + (None,) * 2


class ArrowStream:
    """A frame of a library that narwhals does not know."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        lambda values: pd.DataFrame(values, dtype=object),
        lambda values: pd.DataFrame(values).convert_dtypes(),
        lambda values: pl.DataFrame(values).to_pandas(use_pyarrow_extension_array=True),
        pl.DataFrame,
        pa.table,
        lambda values: pa.table(values).to_batches()[0],
        lambda values: ArrowStream(pa.table(values)),
        lambda values: ArrowStream(pl.DataFrame(values)),
    ],
    ids=[
        "pandas",
        "object",
        "nullable",
        "backed",
        "polars",
        "arrow",
        "batch",
        "stream",
        "s_polars",
    ],
)
def test_frames_of_every_library_give_the_same_table(make):
    check(Table.of(make(VALUES)), MATRIX, LEVELS, tuple(VALUES))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.Categorical(["b", None, "a"], categories=["c", "b", "a"])),
        pd.Series(pd.Categorical(["b", None, "a"], categories=["b", "a"], ordered=True)),
        pd.Series(["b", None, "a"], dtype="string"),
        pd.Series(["b", pd.NA, "a"], dtype=object),
        pd.Series(["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        pl.Series(["b", None, "a"], dtype=pl.Categorical),
        pl.Series(["b", None, "a"], dtype=pl.Enum(["c", "b", "a"])),
        pa.array(["b", None, "a"]).dictionary_encode(),
        pa.array(["b", None, "a"], pa.large_string()),
    ],
    ids=lambda column: f"{type(column).__module__}-{getattr(column, 'dtype', '')}",
)
def test_text_and_categories_of_every_library_have_the_same_codes(column):
    if isinstance(column, pa.Array):
        frame = pa.table({"c": column})
    else:
        frame = (
            column.rename("c").to_frame() if isinstance(column, pd.Series) else column.to_frame("c")
        )
    check(Table.of(frame), [[1], [nan], [0]], (("a", "b"),), ("c",), np.float32)


def test_pandas_categories_keep_their_types():
    frame = pd.DataFrame(
        {
            "integer": pd.Categorical([10, 9, None]),
            "truth": pd.Categorical([True, False, None]),
            "float": pd.Categorical([1.5, -2.5, None]),
            "mixed": pd.Categorical(["1", 2, None]),
            "range": pd.Categorical([pd.Interval(0, 1), pd.Interval(1, 2), None]),
        }
    )
    table = Table.of(frame)
    assert table.levels == ((9, 10), (False, True), (-2.5, 1.5), (2, "1"), ("(0, 1]", "(1, 2]"))
    types = [[type(level) for level in levels] for levels in table.levels]
    assert types == [[int] * 2, [bool] * 2, [float] * 2, [int, str], [str] * 2]
    expected = [[1, 1, 1, 1, 0], [0, 0, 0, 0, 1], [nan] * 5]
    np.testing.assert_array_equal(table.matrix, expected)


def test_float32_frames_with_booleans_and_categories_stay_float32():
    columns = {"x": np.array([1, 2], np.float32), "b": [True, False], "c": ["u", "v"]}
    assert Table.of(pd.DataFrame(columns)).matrix.dtype == np.float32
    assert Table.of(pd.DataFrame({**columns, "i": [1, 2]})).matrix.dtype == np.float64


def test_other_numeric_types_of_frames():
    polars = pl.DataFrame(
        {
            "decimal": pl.Series(["1.5", None]).cast(pl.Decimal(10, 2)),
            "int128": pl.Series([7, None], dtype=pl.Int128),
            "day": [dt.date(1970, 1, 2), None],
            "time": [dt.time(0, 1), None],
            "null": [None, None],
            "zoned": pl.Series([dt.datetime(1970, 1, 1), None]).dt.replace_time_zone("Asia/Tokyo"),
        }
    )
    expected = [[1.5, 7, 86400, 60, nan, -32400], [nan] * 6]
    check(Table.of(polars), expected, names=tuple(polars.columns))
    sparse = pd.DataFrame({"s": pd.arrays.SparseArray([0.0, 1.0])})
    check(Table.of(sparse), [[0], [1]], names=("s",))


@pytest.mark.parametrize(
    "make",
    [
        pa.table,
        pl.DataFrame,
        lambda values: pd.DataFrame(values, dtype=object),
        lambda values: pa.table(values).to_pandas(types_mapper=pd.ArrowDtype),
    ],
    ids=["arrow", "polars", "objects", "backed"],
)
def test_dates_as_far_as_the_calendar_goes(make):
    """A date such as 9999-12-31 often means that something has no end."""
    frame = make({"end": [dt.datetime(9999, 12, 31), None, dt.datetime(1, 1, 1)]})
    check(Table.of(frame), [[253402214400], [nan], [-62135596800]], names=("end",))
    ends = make({"end": [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1)]})
    check(Table.of(ends), [[253402214400], [-62135596800]], names=("end",))


def test_columns_without_names_are_read_by_position():
    assert Table.of(pd.DataFrame([[1.0, 2.0]])).names is None
    assert (
        Table.of(pd.DataFrame([[1.0]], columns=pd.MultiIndex.from_tuples([("a", 1)]))).names is None
    )


def test_a_column_may_have_any_name():
    names = ("", 'say "hi"', "two\nlines", "columns", "column_names", "ж")
    frame = pd.DataFrame([[1.0] * 6, [1.0] * 6], columns=names)
    assert Table.of(frame).names == names


def test_only_reads_the_given_columns_in_this_order():
    frame = pd.DataFrame({"a": [1.0], "junk": [{}], "b": [2.0]})
    check(Table.of(frame, only=("b", "a")), [[2, 1]], names=("b", "a"))
    with pytest.raises(TableError, match="lacks 2 columns that.*: 'c', 'd'"):
        Table.of(frame, only=("c", "a", "d"))


def test_a_table_is_returned_as_it_is():
    table = Table.of([[1.0]])
    assert Table.of(table) is table


# Refusals


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones(3), "Reshape your data"),
        ([1.0, 2.0], "Reshape your data"),
        (np.float64(3), "Reshape your data"),
        ("text", "Reshape your data"),
        (None, "Reshape your data"),
        ({"a": [1.0]}, "Reshape your data"),
        (np.ones((2, 2, 2)), "dim 3.*Reshape your data"),
        (pd.Series([1.0]), "Reshape your data"),
        (pl.Series([1.0]), "Reshape your data"),
        (pl.LazyFrame({"a": [1]}), r"collect\(\)"),
        (np.ones((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.ones((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        ([], "Reshape your data"),
        ([[]], r"0 feature\(s\)"),
        ([{"a": 1}, {"a": 2}], r"a list of mappings.*pandas\.DataFrame"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\)"),
        (pl.DataFrame(), r"0 sample\(s\)"),
        (sp.csr_matrix((0, 3)), r"0 sample\(s\)"),
        (sp.csr_matrix((3, 0)), r"0 feature\(s\)"),
        ([[1, 2], [3]], "rows of equal length"),
        (np.ones((2, 2), complex), "Complex data not supported"),
        (sp.csr_matrix(np.ones((2, 2), complex)), "Complex data not supported"),
        (pd.DataFrame({"a": [1j]}), "Complex data not supported: column 'a'"),
        ([["a", 1j]], "Complex data not supported: column 1"),
        ([[1.0, np.inf]], r"column 1 \(counting from 0\) holds infinity \(inf at row 0\)"),
        (pd.DataFrame({"a": [1.0, -np.inf]}), r"column 'a' holds infinity \(-inf at row 1\)"),
        (np.array([[np.longdouble("1e400")]]), "infinity"),
        (pd.DataFrame({"a": pd.Categorical([np.inf, 1.0])}), "column 'a' has the level inf"),
        ([[10**400]], "column 0 .* too large"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "unique column names.*'a'"),
        (pa.table([[1], [2]], names=["a", "a"]), "unique column names.*'a'"),
        (pa.record_batch([[1], [2]], names=["a", "a"]), "unique column names.*'a'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_anything_but_a_table_is_refused_with_the_reason(X, words):
    with pytest.raises(TableError, match=f"(?s){words}") as caught:
        Table.of(X)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (
            np.array([[1, {}]], dtype=object),
            "column 1 .* dict at row 0.*argument must be a string or a number",
        ),
        (pd.DataFrame({"a": [1.0, [2]]}), "column 'a' holds a list at row 1"),
        (pd.DataFrame({"a": [b"x"]}), "column 'a' holds a bytes"),
        (pd.DataFrame({"a": [1, "x", 2]}), "column 'a' mixes .*number .1, row 0.*text .'x', row 1"),
        (
            pd.DataFrame({"a": [1, "2", "x"]}),
            "column 'a' mixes .*number .1, row 0.*text .'x', row 2",
        ),
        (pd.DataFrame({"a": [nan, "x", dt.date(2020, 1, 1)]}), "column 'a' mixes .*date.*text"),
        (pd.DataFrame({"a": pd.period_range("2020", periods=2)}), "column 'a' holds a Period"),
        (pl.DataFrame({"a": [[1]]}), "column 'a' holds values of type List"),
        (pl.DataFrame({"a": [{"b": 1}]}), "column 'a' holds values of type Struct"),
        (pl.DataFrame({"a": [b"x"]}), "column 'a' holds"),
        (pa.table({"a": [b"x"]}), "column 'a' holds"),
        (pd.DataFrame([[1, 2]], columns=["a", 1]), "all input features have string names"),
        (np.zeros((2, 1), [("a", float)]), "column 0 .* holds a tuple"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_error_for_unknown_types_names_the_column(X, words):
    with pytest.raises(TableTypeError, match=f"(?s){words}") as caught:
        Table.of(X)
    assert isinstance(caught.value, TypeError)


def test_an_arrow_stream_without_pyarrow_says_what_to_install(monkeypatch):
    stream = ArrowStream(pl.DataFrame({"a": [1]}))
    monkeypatch.setattr(frames_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[data\]'"):
        Table.of(stream)


def test_reading_an_array_imports_no_other_library():
    code = (
        "import sys, numpy as np; from hardwood.table import Schema, Table\n"
        "Schema.learn(Table.of(np.eye(3))).read([[1, 2, 3]])\n"
        "print([m for m in ('sklearn', 'pandas', 'polars', 'pyarrow', 'scipy', 'narwhals', 'torch')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_a_frame_imports_no_further_library():
    code = (
        "import sys, polars as pl; from hardwood.table import Schema, Table\n"
        "table = Table.of(pl.DataFrame({'a': [1.5, None], 'b': ['x', 'y']}))\n"
        "Schema.learn(table).read(table)\n"
        "print([m for m in ('sklearn', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
