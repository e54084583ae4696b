"""A frozen file of every kind of model loads, predicts as recorded, and is saved unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from hardwood.model import LatentTreeModel, TreeEnsemble, dumps, load
from hardwood.model.base import Model
from hardwood.model.files.arrays import KINDS
from hardwood.model.files.format import FORMAT

DATA = Path(__file__).parents[2] / "data"
FILES = sorted(DATA.glob("*.hardwood"))


def written_header(path: Path) -> dict[str, object]:
    with safe_open(path, framework="numpy") as file:
        header: dict[str, object] = json.loads(file.metadata()["hardwood"])
    return header


def test_there_is_a_file_of_every_kind() -> None:
    heads = [written_header(path) for path in FILES]
    assert {head["format"] for head in heads} == {FORMAT}
    assert {head["kind"] for head in heads} == set(KINDS)


def tolerance(model: Model) -> float:
    """Return the allowed relative difference from the recorded prediction."""
    if isinstance(model, TreeEnsemble):
        return 1e-5  # float32: instruction sets round differently
    if isinstance(model, LatentTreeModel):
        return 1e-9  # the order of sums depends on the BLAS library
    # exp comes from the processor or the system library, which may round the last bit differently.
    return 1e-13 if model.has_linear_leaves or model.link != "identity" else 0.0


@pytest.mark.filterwarnings("ignore:levels that the model did not learn")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_frozen_file_predicts_as_recorded(path: Path) -> None:
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
def test_saving_it_again_gives_the_same_bytes(path: Path) -> None:
    """Bytes may change only together with the number of the format."""
    model = load(path)
    assert dumps(model) == path.read_bytes()
    again = type(model).from_json(model.to_json())
    assert again == model
    assert isinstance(again, Model)
