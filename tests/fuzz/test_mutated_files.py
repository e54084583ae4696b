"""The counting fuzzer of files runs, and finds nothing in a few hundred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "mutated_files.py"


def test_some_mutated_files_are_refused_or_work(tmp_path):
    pytest.importorskip("pandas", reason="a table of the bandit files to start from")
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--cases", "300", "--jobs", "2", "--failures", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "'refused'" in ran.stdout
    assert "'worked'" in ran.stdout
