"""The commands for the non-greedy paper's figures run, on small tables, and keep their rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Folder of tables by the names that the commands ask for."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    for name in ("pendigits", "letter", "connect4"):
        X = rng.normal(size=(500, 8)).astype(np.float32)
        y = (X[:, 0] + X[:, 1] > 0).astype(np.int64) + (X[:, 2] > X[:, 3])
        np.savez(folder / f"{name}.npz", X=X, y=y)
    return folder


def output_of(script: str, *options: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{script}", *map(str, options)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_figures_compare_all_methods(data):
    printed = output_of(
        "quality.non_greedy_figures", "--data", data, "--quick", "--names", "letter"
    )
    for method in ("axis-aligned", "random", "OC1", "CO2", "non-greedy"):
        assert f"| {method}" in printed


def test_three_ways_of_inference_take_turns_and_two_agree(data):
    printed = output_of("speed.non_greedy_inference", "--data", data, "--quick")
    assert printed.count("| yes ") == 4
    assert "A fit to this table says: the splits scored times p grow as" in printed


def test_the_page_is_what_the_results_say():
    output_of("quality.non_greedy_page", "--check")
