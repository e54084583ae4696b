"""What a hostile table, terminal, disk or keyboard does to a command: a sentence, no traceback."""

from __future__ import annotations

import contextlib
import gzip
import os
import time

import pytest

from hardwood.cli.failures import CommandError
from hardwood.cli.tables import read_table
from hardwood.cli.whole_file import whole_file


@pytest.mark.parametrize("letter", ["n", "\N{EVERGREEN TREE}"])
def test_the_longest_name_can_be_written(tmp_path, letter):
    name = letter * ((255 - 4) // len(letter.encode())) + ".csv"
    with whole_file(tmp_path / name) as stream:
        stream.write(b"whole")
    assert os.listdir(tmp_path) == [name]


def killed_write(path, *, days_ago):
    """Leave what a process that was killed in the middle of a write leaves; return its name."""
    before = set(os.listdir(path.parent))
    with contextlib.suppress(KeyboardInterrupt), whole_file(path):
        (name,) = set(os.listdir(path.parent)) - before
        raise KeyboardInterrupt
    part = path.parent / name
    part.write_bytes(b"half")
    os.utime(part, (time.time() - days_ago * 86400,) * 2)
    return name


def test_leftovers_of_killed_writes_go_after_a_day(tmp_path):
    path = tmp_path / "out.csv"
    killed_write(path, days_ago=2)
    recent = killed_write(path, days_ago=0.5)
    foreign = killed_write(tmp_path / "out.csv.gz", days_ago=2)
    with whole_file(path) as stream:
        stream.write(b"whole")
    assert sorted(os.listdir(tmp_path)) == sorted([recent, foreign, "out.csv"])
    assert path.read_bytes() == b"whole"


def test_names_of_any_length_are_shortened_in_messages(run, tmp_path):
    long = "a" * 100_000
    (tmp_path / "t.csv").write_text(f"{long},{long}b,y\n" + "1,2,u\n2,3,v\n" * 4)
    for target in ("zz", long[:-1]):
        result = run("fit", "t.csv", "-t", target)
        assert result.exit_code == 2
        assert "no column" in result.stderr
        assert "aaa..." in result.stderr
        assert len(result.stderr) < 1000


def test_thousands_of_columns_are_read_in_no_time(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{i}" for i in range(8000)) + "\n" + ",".join(["1"] * 8000) + "\n")
    start = time.perf_counter()
    assert read_table(path).num_columns == 8000
    assert time.perf_counter() - start < 10  # a look at every name for every name takes a minute


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_entries_of_megabytes_are_read(tmp_path, compress):
    path = tmp_path / ("t.csv" if compress is bytes else "t.csv.gz")
    path.write_bytes(compress(b"a,b\n1,2\n" + b"x" * 3_000_000 + b',"3"\n'))
    assert [len(entry) for entry in read_table(path)["a"].to_pylist()] == [1, 3_000_000]
    path.write_bytes(compress(b"a," + b"x" * 3_000_000 + b"\n1,2\n"))
    assert len(read_table(path).column_names[1]) == 3_000_000


def test_an_open_quote_does_not_swallow_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n3,"' + "4,5\n" * 1_000_000)
    with pytest.raises(CommandError, match="quotation marks"):
        read_table(path)
