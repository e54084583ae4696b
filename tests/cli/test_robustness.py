"""Bad tables, terminals, disks and signals lead to an error message, never to a traceback."""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pytest

import hardwood
from hardwood.atomic_file import whole_file
from hardwood.cli.errors import CommandError, check_writable
from hardwood.cli.read import read_table, read_targets
from hardwood.model import ObliqueTree


@pytest.mark.parametrize("letter", ["n", "\N{EVERGREEN TREE}"])
def test_the_longest_name_can_be_written(tmp_path, letter):
    name = letter * ((255 - 4) // len(letter.encode())) + ".csv"
    with whole_file(tmp_path / name) as stream:
        stream.write(b"whole")
    assert os.listdir(tmp_path) == [name]


def killed_write(path, *, days_ago):
    """Create the leftover of a process that was killed while writing; return its name."""
    before = set(os.listdir(path.parent))
    with contextlib.suppress(KeyboardInterrupt), whole_file(path):
        (name,) = set(os.listdir(path.parent)) - before
        raise KeyboardInterrupt
    part = path.parent / name
    part.write_bytes(b"half")
    os.utime(part, (time.time() - days_ago * 86400,) * 2)
    return name


def test_leftovers_of_killed_writes_are_removed_after_a_day(tmp_path):
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


def test_thousands_of_columns_are_read_quickly(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{i}" for i in range(8000)) + "\n" + ",".join(["1"] * 8000) + "\n")
    start = time.process_time()
    assert read_table(path).num_columns == 8000
    assert time.process_time() - start < 10  # a look at every name for every name takes a minute


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_values_of_megabytes_are_read(tmp_path, compress):
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


ROWS = "a,y\n" + "1,u\n2,v\n" * 20


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "t.csv", "-t", "y", "--seed", 99999999999],
        ["demo", "--seed", 2**32],
        ["fit", "t.csv", "-t", "y", "--method", "dgt", "--n-restarts", 2_000_000_000],
        ["fit", "t.csv", "-t", "y", "--max-trials", 99999999999],
        ["fit", "t.csv", "-t", "y", "--jobs", 99999999999],
        ["predict", "sign.hardwood", "t.csv", "--jobs", 99999999999],
        ["benchmark", "sign.hardwood", "--jobs", 1025],
    ],
)
def test_absurd_numbers_are_refused(run, tmp_path, regressor_file, arguments):
    (tmp_path / "t.csv").write_text(ROWS)
    result = run(*arguments)
    assert result.exit_code == 2
    assert arguments[-2] in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["sign.hardwood", "t.csv"]


def test_the_largest_seed_and_number_of_threads_work(run, tmp_path):
    (tmp_path / "t.csv").write_text(ROWS)
    options = ["--seed", 2**32 - 1, "--jobs", 1024, "--max-depth", 1, "--max-trials", 2]
    assert run("fit", "t.csv", "-t", "y", *options).exit_code == 0


WEIGHTED = "a,y,w\n" + "".join(f"{i},{0.7 * i},{{}}\n" for i in range(40))


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("a,y\n" + "1,.5\n" * 20, [], "at least two distinct rows"),
        ("a,y\n" + "1,2\n" * 20, ["--task", "regression"], "at least two distinct rows"),
        (WEIGHTED.format(*["1e308"] * 40), ["--weight", "w"], "'w' contains 1e+308"),
        (WEIGHTED.format("1e300", *["1"] * 39), ["--weight", "w"], "'w' contains 1e+300"),
    ],
)
def test_tables_that_cannot_be_learned_are_explained(run, tmp_path, content, options, words):
    (tmp_path / "t.csv").write_text(content)
    result = run("fit", "t.csv", "-t", "y", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert os.listdir(tmp_path) == ["t.csv"]


def test_weights_of_any_scale_work(run, tmp_path):
    (tmp_path / "t.csv").write_text(WEIGHTED.format(*["1e30"] * 39, "1e-30"))
    assert run("fit", "t.csv", "-t", "y", "--weight", "w", "--max-depth", 1).exit_code == 0


def test_too_little_memory_is_explained(run, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr("hardwood.TreeClassifier.fit", fail)
    (tmp_path / "t.csv").write_text(ROWS)
    result = run("fit", "t.csv", "-t", "y")
    assert result.exit_code == 2
    assert "not enough memory" in result.stderr


def test_labels_are_never_wrapped():
    def target(*labels):
        table = pa.table({"y": pa.array([*labels] * 20, type=pa.uint64())})
        return read_targets(table, ("y",), Path("t.parquet"), "classification")

    assert target(5, 2**63 - 1).values.tolist()[:2] == [5, 2**63 - 1]
    with pytest.raises(CommandError, match="18446744073709551615"):
        target(5, 2**64 - 1)


def shell(command, cwd, **environment):
    """Run a line of bash in which $HARDWOOD is the command."""
    hardwood = shlex.join([sys.executable, "-c", "from hardwood.cli import main; main()"])
    return subprocess.run(
        ["bash", "-c", command.replace("$HARDWOOD", hardwood)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        timeout=120,
    )


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@needs_bash
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_commands_work_with_closed_streams(tmp_path, regressor_file, closed):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,0,u\n2,1,v\n" * 20)
    done = shell(f"$HARDWOOD predict sign.hardwood t.csv {closed}", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    done = shell(f"$HARDWOOD fit t.csv -t y --max-depth 1 {closed}", tmp_path)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert hardwood.load(tmp_path / "t.hardwood").n_features == 2


@pytest.fixture
def tree_file(tmp_path):
    """Return a model with characters in names that narrow encodings lack."""
    tree = ObliqueTree.of(
        [[1.0, 0.0]],
        thresholds=[0.0],
        values=[[0.9, 0.1], [0.2, 0.8]],
        feature_names=["\N{EVERGREEN TREE} größe", "…"],
        classes=["é", "n"],
    )
    tree.save(tmp_path / "tree.hardwood")
    return tree


@needs_bash
def test_characters_that_an_encoding_lacks_are_escaped(tmp_path, tree_file):
    narrow = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = shell("$HARDWOOD describe tree.hardwood", tmp_path, **narrow)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"gr\u00f6\u00dfe" in done.stdout
    done = shell("$HARDWOOD describe tree.hardwood --json", tmp_path, **narrow)
    assert json.loads(done.stdout)["classes"] == ["é", "n"]
    names = [entry["name"] for entry in json.loads(done.stdout)["features"]]
    assert names == list(tree_file.feature_names)


@needs_bash
@pytest.mark.parametrize("command", ["describe tree.hardwood", "describe tree.hardwood --json"])
def test_a_closed_output_pipe_is_not_an_error(tmp_path, tree_file, command):
    # the reader is gone before a word is written, whatever the size of the pipe
    line = f"(sleep 0.3; $HARDWOOD {command}; echo $? >&2) | true"
    assert shell(line, tmp_path).stderr == b"141\n"


def test_the_output_folder_is_checked_before_the_work(run, tmp_path, regressor_file, monkeypatch):
    def read_only(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), ".m.hardwood.1234.part")

    def never(*_, **__):
        pytest.fail("learned although nothing can be written")

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    monkeypatch.setattr("hardwood.TreeClassifier.fit", never)
    (tmp_path / "t.csv").write_text(ROWS)
    for arguments in (["fit", "t.csv", "-t", "y"], ["predict", regressor_file, "t.csv"]):
        result = run(*arguments, "-o", "out.csv")
        assert result.exit_code == 2
        assert result.stderr == "error: out.csv cannot be written: Read-only file system.\n"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_folder_that_cannot_be_written_is_found_at_once(tmp_path):
    with pytest.raises(CommandError, match=r"^/proc/m\.hardwood cannot be written"):
        check_writable(Path("/proc/m.hardwood"))
    check_writable(tmp_path / "m.hardwood")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_names_the_output_file(run, tmp_path, regressor_file, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,0,u\n2,1,v\n" * 20)
    for arguments in (
        ["fit", "t.csv", "-t", "y", "--max-depth", 1, "-o", "out.csv"],
        ["predict", regressor_file, "t.csv", "-o", "out.csv"],
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "error: out.csv cannot be written: No space left on device" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["sign.hardwood", "t.csv"]


def test_ctrl_c_after_learning_does_not_lose_the_tree(run, tmp_path, monkeypatch):
    save, before = ObliqueTree.save, signal.getsignal(signal.SIGINT)

    def interrupted_save(tree, path):
        signal.raise_signal(signal.SIGINT)
        save(tree, path)

    monkeypatch.setattr(ObliqueTree, "save", interrupted_save)
    (tmp_path / "t.csv").write_text(ROWS)
    result = run("fit", "t.csv", "-t", "y", "--max-depth", 1)
    assert result.exit_code == 130
    assert "error: interrupted when the work was nearly done; it was finished" in result.stderr
    assert hardwood.load(tmp_path / "t.hardwood").depth == 1
    assert signal.getsignal(signal.SIGINT) is before
