"""Files of every format ever written still load and answer as they did when they were written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from hardwood.model import load
from hardwood.model.document import FORMAT, header

DATA = Path(__file__).parents[2] / "data"
FILES = sorted(DATA.glob("*_format_*.hardwood"))


def test_there_is_a_file_of_every_format() -> None:
    formats = {int(path.stem.rsplit("_", 1)[1]) for path in FILES}
    assert formats == set(range(1, FORMAT + 1))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_file_answers_as_ever(path: Path) -> None:
    tree = load(path)
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    rows = expected["rows"]
    assert tree.apply(rows).tolist() == expected["leaves"]
    assert tree.predict(rows).tolist() == expected["predictions"]
    np.testing.assert_array_equal(tree.values[tree.apply(rows)], expected["values"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_change_of_the_header_needs_a_new_format(path: Path) -> None:
    with safe_open(path, framework="numpy") as file:
        written = json.loads(file.metadata()["hardwood"])
    if written["format"] == FORMAT:
        assert header(load(path)) == written
