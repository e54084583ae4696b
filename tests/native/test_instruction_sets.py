"""Every instruction set of this machine passes the tests of the engine, not only the best one.

The kernels of the baseline are also those of other architectures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hardwood import ObliqueTree, _native, _probes

ROOT = Path(__file__).parents[2]
OTHERS = [name for name in _probes.instruction_sets() if name != _native.instruction_set()]

# Tests that compare the engine with the NumPy reference; first those that take a second or two. Of
# this file only one test: the instruction sets do not test each other.
QUICK = [
    "tests/native/test_core.py",
    "tests/native/test_instruction_sets.py::test_a_score_that_is_not_a_number_goes_left",
    "tests/native/test_losses.py",
    "tests/native/test_optimize.py",
    "tests/native/test_policy.py",
    "tests/native/test_route.py",
    "tests/unit/table/test_encode.py",
]
LONGER = [
    "tests/native/test_dgt.py",
    "tests/native/test_semantic.py",
    "tests/native/test_ensemble.py",
    "tests/native/test_forest.py",
    "tests/native/test_greedy.py",
    "tests/native/test_layers.py",
    "tests/native/test_loop.py",
    "tests/native/test_shapley.py",
    "tests/native/test_tel.py",
]


def run(instruction_set: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "HARDWOOD_ISA": instruction_set},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("tests", [QUICK, pytest.param(LONGER, marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("name", OTHERS)
def test_every_instruction_set_equals_the_reference(name, tests):
    answer = run(name, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests)
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-1000:]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_score_that_is_not_a_number_goes_left(dtype):
    """Lanes overflow to both infinities; a single row takes the same path as in a batch."""
    tree = ObliqueTree.of(
        np.array([[1.0, -1.0] * 16]),
        thresholds=np.zeros(1),
        children=np.array([[-1, -2]], np.int32),
        values=np.array([[0.0], [1.0]]),
    )
    X = np.ones((37, 32), dtype)
    X[1::2] = 3e38
    expected = np.arange(37) % 2 == 0  # a score of 0 goes right
    np.testing.assert_array_equal(tree.apply(X), expected)
    np.testing.assert_array_equal([tree._router.apply_one(x) for x in X], expected)


SCRIPT = """
import json
import numpy as np
from hardwood import DGTClassifier, _native
rng = np.random.default_rng(0)
X = (rng.integers(-8, 9, size=(400, 20)) / 4).astype(np.float32)
y = (X[:, :3].sum(axis=1) > 0).astype(int) + (X[:, 3] > 1)
model = DGTClassifier(max_depth=3, max_epochs=3, random_state=0).fit(X, y)
print(json.dumps([_native.instruction_set(), model.tree_.weights.sum(), model.score(X, y)]))
"""


@pytest.mark.parametrize("name", _probes.instruction_sets()[:-1])
def test_every_instruction_set_learns_about_the_same_tree(name):
    def learned(instruction_set: str) -> list:
        answer = run(instruction_set, "-c", SCRIPT)
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    best, other = learned(_probes.instruction_sets()[-1]), learned(name)
    assert other[0] == name
    assert abs(best[2] - other[2]) < 0.05
    if name == "avx2":  # the same sums in the same order
        assert best[1:] == other[1:]


def test_an_instruction_set_that_the_machine_has_not_is_refused():
    answer = run("mmx", "-c", "from hardwood import _native; _native.instruction_set()")
    assert answer.returncode != 0
    assert "HARDWOOD_ISA=mmx is not an instruction set of this machine" in answer.stderr
