"""Files of every format ever written still load and answer as they did when they were written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from hardwood.model import LatentTreeModel, TreeEnsemble, dumps, load
from hardwood.model.base import Model
from hardwood.model.files.header import FORMAT, FURTHER_KEYS

DATA = Path(__file__).parents[2] / "data"
FILES = sorted(DATA.glob("*_format_*.hardwood"))


def written_header(path: Path) -> dict[str, object]:
    with safe_open(path, framework="numpy") as file:
        header: dict[str, object] = json.loads(file.metadata()["hardwood"])
    return header


def test_there_is_a_file_of_every_format_and_kind() -> None:
    heads = [(path.stem.rsplit("_", 1)[1], written_header(path)) for path in FILES]
    assert all(int(number) == head["format"] for number, head in heads)
    found = {(head["format"], head["kind"]) for _, head in heads}
    assert found == set(FURTHER_KEYS)
    assert max(format_ for format_, _ in found) == FORMAT


def tolerance(model: Model) -> float:
    """How far an answer may be off, relatively."""
    if isinstance(model, TreeEnsemble):
        return 1e-5  # float32, in which instruction sets differ by roundings
    if isinstance(model, LatentTreeModel):
        return 1e-9  # sums in the order of whichever BLAS there is
    # exp is the processor's or the system's, which may round its last bit otherwise.
    return 1e-13 if model.has_linear_leaves or model.link != "identity" else 0.0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_file_answers_as_ever(path: Path) -> None:
    model = load(path)
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    rows = expected["rows"]
    leaves = model.reachable_leaves if isinstance(model, TreeEnsemble) else model.apply
    assert leaves(rows).tolist() == expected["leaves"]
    answers = model.predict(rows)
    if model.task == "regression":
        np.testing.assert_allclose(answers, expected["predictions"], rtol=tolerance(model))
    else:
        assert answers.tolist() == expected["predictions"]
        np.testing.assert_allclose(
            model.predict_proba(rows), expected["values"], rtol=tolerance(model)
        )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_saved_again_it_is_the_same_to_the_byte(path: Path) -> None:
    """What is written may change in a new format only, for models that older ones cannot hold."""
    model = load(path)
    assert dumps(model) == path.read_bytes()
    again = type(model).from_json(model.to_json())
    assert again == model
    assert isinstance(again, Model)
