"""What a hostile table, terminal, disk or keyboard does to a command: a sentence, no traceback."""

from __future__ import annotations

import contextlib
import os
import time

import pytest

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
