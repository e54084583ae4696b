"""Layers are tested where torch is installed; elsewhere their tests say that they were skipped."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for path_matrix.py

HAS_TORCH = find_spec("torch") is not None


class WithoutTorch(pytest.Module):
    """A file of tests that cannot be imported."""

    def collect(self):
        pytest.skip("torch is not installed: pip install '.[torch]'")


def pytest_pycollect_makemodule(module_path, parent):
    if HAS_TORCH or module_path.name == "test_imports.py":
        return None
    return WithoutTorch.from_parent(parent, path=module_path)


@pytest.fixture(autouse=True)
def _steady():
    """One seed, and one thread: torch's threads wait long for each other on a busy machine."""
    if not HAS_TORCH:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
