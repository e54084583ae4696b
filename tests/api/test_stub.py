"""The checked-in stub of the engine is what its bindings say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import hardwood


def test_stub_is_up_to_date():
    stubgen = pytest.importorskip("nanobind.stubgen", reason="a build tool, in the development set")
    from hardwood import _native

    stub = stubgen.StubGen(_native)
    stub.put(_native)
    expected = (Path(hardwood.__file__).parent / "_native.pyi").read_text()
    assert stub.get().strip() == expected.strip(), (
        f"run: {sys.executable} -m nanobind.stubgen -m hardwood._native -o src/hardwood/_native.pyi"
    )
