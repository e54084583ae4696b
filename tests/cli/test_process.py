"""The command as a process: streams, signals, missing packages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import hardwood

HARDWOOD = [sys.executable, "-c", "from hardwood.cli import main; main()"]


def hardwood_command(*arguments, cwd, **options):
    return subprocess.run(
        [*HARDWOOD, *map(str, arguments)], cwd=cwd, capture_output=True, timeout=120, **options
    )


def test_an_error_is_a_sentence_on_stderr(tmp_path):
    done = hardwood_command("fit", "absent.csv", "--target", "y", cwd=tmp_path, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: absent.csv does not exist; expected a CSV or Parquet file.\n"


def test_nothing_but_json_is_on_stdout(tmp_path, classifier_file):
    done = hardwood_command("describe", classifier_file, "--json", cwd=tmp_path, text=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["n_leaves"] == 2


@pytest.mark.parametrize("package", ["typer", "rich", "pyarrow"])
def test_missing_packages_are_named_with_the_install_line(tmp_path, package):
    program = (
        "import importlib.util as u; find = u.find_spec\n"
        f"u.find_spec = lambda name, *a: None if name == {package!r} else find(name, *a)\n"
        "from hardwood.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert f"'{package}'" in done.stderr
    assert "pip install '.[cli]'" in done.stderr
    assert "pip install '.[cli]'" in done.stderr  # of a checkout


def test_a_closed_pipe_ends_quietly(tmp_path, classifier_file):
    table = tmp_path / "t.csv"
    table.write_text("width,color,unused\n" + "1,red,0\n" * 200_000)
    command = [*HARDWOOD, "predict", str(classifier_file), str(table)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        words = process.stderr.read()
        process.wait(timeout=60)
    assert b"Traceback" not in words


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_on_stdout_is_explained(tmp_path, classifier_file):
    table = tmp_path / "t.csv"
    table.write_text("width,color,unused\n" + "1,red,0\n" * 200_000)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*HARDWOOD, "predict", str(classifier_file), str(table)],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert done.returncode == 2
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


def test_ctrl_c_keeps_the_best_tree_so_far(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    rows = np.column_stack([X, X @ rng.normal(size=20) + rng.normal(size=20_000)])
    header = ",".join([f"x{j}" for j in range(20)] + ["y"])
    np.savetxt(tmp_path / "t.csv", rows, fmt="%.4f", delimiter=",", header=header, comments="")
    command = [*HARDWOOD, "fit", "t.csv", "-t", "y", "--max-depth", "10", "--json"]
    command += ["--method", "dgt", "--n-restarts", "50"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"HARDWOOD_PROGRESS": "1", "COLUMNS": "200"},
    ) as process:
        shown = b""
        while b"loss" not in shown:  # the first epoch is done
            byte = process.stderr.read(1)
            assert byte, shown
            shown += byte
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert json.loads(stdout)["interrupted"] is True
    assert b"interrupted" in stderr
    assert hardwood.load(tmp_path / "t.hardwood").n_features == 20
