"""A corrupt model file gives ``ModelFileError`` or a complete model; nothing else."""

from __future__ import annotations

import itertools
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensembles import make_ensemble
from forests import make_forest
from hardwood.errors import ModelFileError
from hardwood.model import (
    LatentTreeModel,
    ObliqueForest,
    ObliqueTree,
    PolicyTree,
    TreeEnsemble,
    dumps,
    loads,
)
from policies import make_policy
from trees import make_rows, make_tree

sys.path.insert(0, str(Path(__file__).parent))
import mutations as spoil  # noqa: E402  # beside this file, found by the line above

Model = ObliqueTree | ObliqueForest | TreeEnsemble | PolicyTree | LatentTreeModel


def make_latent(seed: int, *, mixed: bool, widths: tuple[int, ...] = (), **parts: Any) -> Model:
    rng = np.random.default_rng(seed)
    schema = make_tree(seed, n_splits=1, mixed=mixed).schema
    k = 2 if parts["task"] == "classification" else 1
    sizes = (4 + schema.n_columns, *widths, k)
    return LatentTreeModel(
        [0, 1, 2, 5],
        [1.0, 1.0, 0.5, 0.25],
        rng.normal(size=(2, schema.n_columns)),
        rng.normal(size=2),
        rng.normal(size=sum(a * b for a, b in itertools.pairwise(sizes))),
        rng.normal(size=sum(sizes[1:])),
        widths=widths,
        skip_connection=True,
        schema=schema,
        classes=["no", "yes"] if k == 2 else None,
        **parts,
    )


MODELS: dict[str, Model] = {
    "mixed": make_tree(0, n_splits=4, mixed=True),
    "leaf": make_tree(1, n_splits=0),
    "regression": make_tree(2, n_splits=3, task="regression", k=2, counts=False),
    "linear": make_tree(3, n_splits=3, mixed=True, linear=True),
    "exponential": make_tree(4, n_splits=2, task="regression", k=1, linear=True, link="exp"),
    "labels": make_tree(5, n_splits=2, task="multilabel", counts=False),
    "forest": make_forest(6, sizes=(3, 0, 2), mixed=True, counts=(True, False)),
    "linear forest": make_forest(
        7, sizes=(1, 2, 0), task="multilabel", linear=(False, True), combine="vote"
    ),
    "sum": make_forest(8, sizes=(2, 0, 1), mixed=True, linear=(False, True), combine="sum"),
    "ensemble": make_ensemble(9, n_trees=2, depth=2, mixed=True),
    "soft": make_ensemble(
        10, n_trees=1, depth=1, k=1, task="regression", activation="logistic", link="exp"
    ),
    "policy": make_policy(11, n_nodes=8, mixed=True),
    "policy of two ways": make_policy(
        12, parents=[-1, 0, 0, 1, 1], task="regression", k=1, counts=False
    ),
    "latent": make_latent(13, mixed=True, task="classification"),
    "latent with layers": make_latent(
        14, mixed=False, task="regression", widths=(3, 2), activation="elu", link="exp"
    ),
}
CONTENTS = {name: dumps(model) for name, model in MODELS.items()}
MUTATIONS = [
    spoil.truncated,
    spoil.flipped,
    spoil.relabelled,
    spoil.overwritten,
    spoil.forged,
    spoil.resized,
]


def check_whole(model: Model) -> None:
    """An accepted model must work in every way, and be the same after saving it."""
    rows = make_rows(0, model.schema, 3)
    with np.errstate(all="ignore"):  # what a flipped bit made of a linear leaf may be infinite
        try:
            expected = model.predict(rows)
        except ValueError:  # a flipped bit may have made text of a level that rows hold as a number
            rows = [[None] * model.n_features]
            expected = model.predict(rows)
        again = loads(dumps(model))
        assert again == model
        np.testing.assert_array_equal(again.predict(rows), expected)
        if model.task != "regression":
            assert not np.isnan(model.outputs(rows)).any()
        assert model.to_text()
        if isinstance(model, ObliqueTree):
            assert model.simplify().to_perfect().n_outputs == model.n_outputs
        elif isinstance(model, ObliqueForest):
            assert model.apply(rows).shape == (len(rows), model.n_trees)
        elif isinstance(model, PolicyTree):
            assert model.simplify().n_outputs == model.n_outputs
            assert not np.isnan(model.leaf_probabilities(rows)).any()
            assert model.apply(rows, path="most_probable").max() < model.n_leaves
        elif isinstance(model, LatentTreeModel):
            z = model.traversals(rows)
            assert ((z >= 0) & (z <= model.activity)).all()
            assert np.isin(model.apply(rows), model.nodes).all()
            assert model.routes().n_splits == model.n_splits
        else:
            assert not np.isnan(expected).any() if model.task == "regression" else True
            assert model.reachable_leaves(rows).shape == (len(rows), model.n_trees)
            assert model.harden().predict(rows).shape == expected.shape


def load_or_refuse(content: bytes) -> Model | None:
    try:
        return loads(content)
    except ModelFileError as error:
        refusal = str(error)
    assert refusal.startswith("cannot load a model from these bytes: ")
    assert len(refusal) < 1500
    return None


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_corrupt_files(mutation: Any) -> None:
    @settings(max_examples=300)
    @given(st.sampled_from(sorted(CONTENTS.values())).flatmap(mutation))
    def check(content: bytes) -> None:
        model = load_or_refuse(content)
        if model is not None:
            check_whole(model)

    check()


@settings(max_examples=20)
@given(spoil.nested(CONTENTS["mixed"]))
def test_deep_headers(content: bytes) -> None:
    assert load_or_refuse(content) is None


@settings(max_examples=100)
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    assert load_or_refuse(content) is None


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_every_truncation_is_detected(content: bytes) -> None:
    for length in range(0, len(content), 7):
        assert load_or_refuse(content[:length]) is None
    assert load_or_refuse(content) is not None


@pytest.mark.parametrize("mutation", [spoil.relabelled, spoil.resized, spoil.nested])
@pytest.mark.parametrize("name", ["mixed", "forest", "ensemble", "policy", "latent"])
def test_memory_stays_a_small_multiple_of_the_file(mutation: Any, name: str) -> None:
    @settings(max_examples=25)
    @given(mutation(CONTENTS[name]))
    def check(content: bytes) -> None:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        load_or_refuse(content)
        peak = tracemalloc.get_traced_memory()[1] - before
        assert peak < 100 * len(content) + 2**20

    tracemalloc.start()
    try:
        check()
    finally:
        tracemalloc.stop()


@settings(max_examples=300)
@given(st.data())
def test_corrupt_json(data: st.DataObject) -> None:
    """The JSON form with a random entry replaced."""
    model = MODELS[data.draw(st.sampled_from(sorted(MODELS)))]
    content = json.loads(model.to_json())
    target: Any = content
    for _ in range(data.draw(st.integers(0, 6))):
        inner = [v for v in spoil._values(target) if isinstance(v, dict | list) and v]
        if not inner:
            break
        target = data.draw(st.sampled_from(inner))
    keys = list(target) if isinstance(target, dict) else list(range(len(target)))
    target[data.draw(st.sampled_from(keys))] = data.draw(spoil.HOSTILE)
    try:
        read = type(model).from_json(json.dumps(content))
    except ModelFileError:
        return
    check_whole(read)
