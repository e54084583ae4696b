"""The fuzzer of tables runs; tables that once failed, and others, are learned and looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "messy_tables.py"
sys.path.insert(0, str(SCRIPT.parent))

MENDED = {
    17: "numbers of 1e308 had no integers for C",
    20: "residuals of 1e300 could not be drawn",
    47: "a policy of one leaf had no branches",
    20480: "the mean of predictions of 1.7e308 was infinite",
    600: "all weights of held-out rows were 0 in float32",
}
"""Seeds of cases that failed, and why."""


@pytest.mark.filterwarnings("ignore")  # these tables deserve all of them
@pytest.mark.parametrize("seed", MENDED)
def test_what_failed_does_not_fail_again(seed):
    tables = pytest.importorskip("messy_tables", reason="tables of pandas and pyarrow")
    assert tables.try_case(seed, sees_all=True) in ("learned", "refused")


def test_some_tables_are_learned_or_refused(tmp_path):
    pytest.importorskip("pandas", reason="tables of pandas and pyarrow")
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--cases", "8", "--jobs", "2", "--failures", tmp_path],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "'learned'" in ran.stdout
    assert "'refused'" in ran.stdout


def test_a_crash_and_an_endless_case_are_counted(tmp_path):
    """A campaign goes on after them, and says which cases they were."""
    program = (
        f"import os, sys, time; sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
        "from pathlib import Path\n"
        "from campaign import Campaign\n"
        "def try_case(case):\n"
        "    if case == 3: os.abort()\n"
        "    if case == 5: 1 / 0\n"
        "    while case == 7: pass\n"
        "    return 'fine'\n"
        f"campaign = Campaign(10, n_jobs=2, case_seconds=0.2, folder=Path({str(tmp_path)!r}))\n"
        "print(sorted(campaign.run(try_case).items()))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600
    )
    assert "[('failed', 3), ('fine', 7)]" in ran.stdout, ran.stdout + ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3.txt", "5.txt", "7.txt"]
    assert "try_case" in (tmp_path / "3.txt").read_text()  # where it crashed
    assert "TimeoutError" in (tmp_path / "7.txt").read_text()
