"""Fixtures and settings for all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Before NumPy is imported. Tests run in parallel, one per core: threads of BLAS and torch would
# only wait for each other. Plots do not need a screen.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one, such as trees.py

# No deadlines: times on a shared machine say nothing about correctness. The same examples in every
# run: a correct change must not fail by chance, and `make fuzz` searches at random.
settings.register_profile("hardwood", deadline=None, derandomize=True)
settings.load_profile("hardwood")


@pytest.fixture
def rng() -> np.random.Generator:
    """One seeded generator per test."""
    return np.random.default_rng(20240607)
