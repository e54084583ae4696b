"""The command for the best single tree runs on small tables, and keeps its rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from benchmarks.quality.best_tree import AgainstCart  # noqa: E402
from benchmarks.quality.best_tree_aims import CLASSES, LINEAR, NUMBERS, TABLES  # noqa: E402
from benchmarks.quality.best_tree_methods import METHODS, methods_of  # noqa: E402
from benchmarks.quality.dgt_paper import TASKS  # noqa: E402


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Folder of two tables by the names that the command asks for."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)).astype(np.float32)
    np.savez(folder / "segment.npz", X=X, y=(X[:, 0] + X[:, 1] > 0).astype(np.int64))
    np.savez(folder / "cpu_act.npz", X=X, y=(X[:, 0] * X[:, 1]).astype(np.float64))
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


def test_all_methods_are_compared_with_sizes_and_prices(data):
    pytest.importorskip("xgboost")
    printed = output_of(
        "quality.best_tree", "--data", data, "--quick", "--names", "segment,cpu_act"
    )
    for title in ("Tree, default", "DGT then TAO", "CART, tuned", "XGBoost", "TAO, linear leaves"):
        assert f"| {title}" in printed
    assert "Not recorded" not in printed


def test_the_page_is_what_the_results_say():
    output_of("quality.best_tree_page", "--check")


def test_every_data_set_has_a_setting_of_every_method():
    for name in (*CLASSES, *NUMBERS):
        for method in methods_of(TASKS[name]):
            assert method.settings(TASKS[name]), (name, method.name)
    assert len(METHODS["default"].settings(TASKS["letter"])) == 1
    fixed = {"leaves": "constant", "time_limit": 60.0}
    assert METHODS["default"].settings(TASKS["letter"])[0] == {"max_depth": 10, **fixed}


def test_aims_are_above_floors_and_floors_no_worse_than_what_is_published():
    for aims in TABLES.values():
        for name, aim in aims.items():
            assert TASKS[name].keeps(aim.aim, aim.floor)
            assert TASKS[name].keeps(aim.floor, aim.best)
    assert set(LINEAR) == set(NUMBERS)


@pytest.mark.parametrize(
    ("name", "ours", "cart", "sd", "is_kept"),
    [
        ("segment", 96.0, 95.0, 0.1, True),
        ("segment", 94.0, 95.0, 0.5, False),
        ("segment", 94.6, 95.0, 0.5, True),
        ("cpu_act", 2.5, 3.0, 0.1, True),
        ("cpu_act", 3.5, 3.0, 0.1, False),
    ],
)
def test_worse_than_cart_is_beyond_one_deviation(name, ours, cart, sd, is_kept):
    rows = ({"mean": ours, "sd": 0.05}, {"mean": cart, "sd": sd})
    assert AgainstCart(TASKS[name], *rows).is_kept is is_kept
