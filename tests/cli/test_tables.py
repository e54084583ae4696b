from __future__ import annotations

import gzip
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hardwood.cli.errors import CommandError
from hardwood.cli.read import check_column, read_table, without_columns, write_table
from hardwood.errors import TableWarning


@pytest.fixture
def table(tmp_path):
    def write(text, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_separators_are_recognized(table, delimiter):
    path = table("a,b,c\n1,x,2.5\n2,y,3.5\n".replace(",", delimiter))
    assert read_table(path).to_pydict() == {"a": [1, 2], "b": ["x", "y"], "c": [2.5, 3.5]}


def test_separators_inside_quotes_do_not_count(table):
    path = table('"a;b;c;d",e\n1,2\n')
    assert read_table(path).column_names == ["a;b;c;d", "e"]


def test_decimal_commas_between_semicolons(table):
    assert read_table(table("a;b\n1,5;x\n-2;y\n")).to_pydict() == {
        "a": [1.5, -2.0],
        "b": ["x", "y"],
    }


@pytest.mark.parametrize("entry", ["", "NA", "NaN", "null", "N/A"])
def test_missing_values_of_text_and_numbers(table, entry):
    read = read_table(table(f"a,b\n1,x\n{entry},{entry}\n"))
    assert read.to_pydict() == {"a": [1, None], "b": ["x", None]}


def test_types_beyond_the_first_megabyte_are_seen(table):
    path = table("a\n" + "1\n" * 800_000 + "1.5\n")
    assert read_table(path)["a"].type == pa.float64()


def test_byte_order_mark_and_compression(table):
    assert read_table(table(b"\xef\xbb\xbfa,b\n1,2\n")).column_names == ["a", "b"]
    path = table(gzip.compress(b"a,b\n1,2\n"), "t.csv.gz")
    assert read_table(path).num_rows == 1


def test_parquet_is_recognized_by_content(tmp_path):
    path = tmp_path / "no-suffix"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    assert read_table(path)["a"].to_pylist() == [1, 2]


def test_parquet_of_every_kind_of_text_is_read(tmp_path):
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        pq.write_table(pa.table({"a": pa.array(["x", "y"]).cast(kind)}), tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet").take([1])["a"].to_pylist() == ["y"]


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no string views")
def test_parquet_of_string_views_is_read(tmp_path):
    pq.write_table(pa.table({"a": pa.array(["x", "y"]).cast(pa.string_view())}), tmp_path / "t.pq")
    assert read_table(tmp_path / "t.pq").take([1])["a"].to_pylist() == ["y"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2,3\n", "Expected 2 columns, got 3"),
        ("a,b,a\n1,2,3\n", "more than one column named 'a'"),
        (b"PK\x03\x04\0\0\0\0", "binary data"),
        (b"PAR1 and then nothing", "damaged Parquet"),
        (b"a,b\nM\xfcller,1\n", "Column 'a'"),
        (b"stra\xdfe,b\n1,2\n", "header"),
    ],
)
def test_unreadable_files_are_explained(table, content, words):
    path = table(content)
    with pytest.raises(CommandError, match=words) as caught:
        read_table(path)
    assert path.name in str(caught.value)


def test_damaged_compression_is_explained(table):
    with pytest.raises(CommandError, match=r"t\.csv\.gz cannot be read"):
        read_table(table("a,b\n1,2\n", "t.csv.gz"))


def test_directories_and_absent_files_are_explained(tmp_path, table):
    with pytest.raises(CommandError, match="is a directory"):
        read_table(tmp_path)
    table("a\n1\n", "penguins.csv")
    with pytest.raises(CommandError, match="does not exist.*Did you mean 'penguins.csv'"):
        read_table(tmp_path / "pengiuns.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_permissions(table):
    path = table("a\n1\n")
    path.chmod(0)
    with pytest.raises(CommandError, match="cannot be read"):
        read_table(path)


def test_columns_without_a_name_are_left_out_with_a_warning(table):
    with pytest.warns(TableWarning, match="column 1 has no name"):
        assert read_table(table(",a\n0,5\n1,6\n")).column_names == ["a"]


def test_unknown_columns_suggest_close_ones(tmp_path):
    table = pa.table({"Species": ["a"], "body_mass_g": [1]})
    with pytest.raises(CommandError, match="Did you mean 'Species'"):
        check_column(table, "species", tmp_path / "t.csv")
    with pytest.raises(CommandError, match="Did you mean 'body_mass_g'"):
        without_columns(table, ["body_mass"], tmp_path / "t.csv")
    assert without_columns(table, ["Species"], tmp_path / "t.csv").column_names == ["body_mass_g"]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_written_tables_read_back(tmp_path, name):
    table = pa.table({"a": [1.5, None], "b": ['x,"', "y"]})
    write_table(table, tmp_path / name)
    assert read_table(tmp_path / name).to_pydict() == table.to_pydict()
    assert os.listdir(tmp_path) == [name]


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    path.write_text("precious")

    def disk_full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="No space left"):
        write_table(pa.table({"a": [1]}), path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["out.csv"]
