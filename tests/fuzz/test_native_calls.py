"""Hostile calls of the engine return or raise an error that says what was wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import native_calls  # noqa: E402  # beside this file, found by the line above


def test_every_function_of_the_engine_is_called() -> None:
    assert sorted(native_calls.SEEDS) == native_calls.entry_points()


@pytest.mark.parametrize("name", sorted(native_calls.SEEDS))
def test_calls_to_start_from_are_valid(name: str) -> None:
    for mixed in (False, True):
        objects = native_calls.Objects(np.random.default_rng(3), mixed=mixed)
        for _ in range(8):
            function, arguments = native_calls.SEEDS[name](objects)
            function(**arguments)


@pytest.mark.filterwarnings("ignore:nanobind")  # about objects that were never initialized
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of values beyond float32
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("seed", range(4))
def test_hostile_calls_are_refused_or_answered(seed: int) -> None:
    fuzzer = native_calls.Fuzzer(seed)
    fuzzer.run(700)
    assert fuzzer.outcomes["answer"] > 200
    assert fuzzer.outcomes["ValueError"] > 100
