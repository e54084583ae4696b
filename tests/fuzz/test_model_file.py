"""A spoiled model file gives ``ModelFileError`` or a whole tree; never anything else."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.errors import ModelFileError
from hardwood.model import ObliqueTree, dumps, loads
from trees import make_rows, make_tree

sys.path.insert(0, str(Path(__file__).parent))
import mutations as spoil  # noqa: E402  # beside this file, found by the line above

TREES = [
    make_tree(0, n_splits=4, mixed=True),
    make_tree(1, n_splits=0),
    make_tree(2, n_splits=3, task="regression", k=2, counts=False),
]
CONTENTS = [dumps(tree) for tree in TREES]
MUTATIONS = [spoil.truncated, spoil.flipped, spoil.relabelled, spoil.overwritten]


def check_whole(tree: ObliqueTree) -> None:
    """Whatever is accepted must work in every way, and be what is saved again."""
    rows = make_rows(0, tree.schema, 3)
    try:
        expected = tree.predict(rows)
    except ValueError:  # a flipped bit may have made text of a level that rows hold as a number
        rows = [[None] * tree.n_features]
        expected = tree.predict(rows)
    again = loads(dumps(tree))
    assert again == tree
    np.testing.assert_array_equal(again.predict(rows), expected)
    assert tree.to_text()
    assert tree.simplify().to_perfect().n_outputs == tree.n_outputs


def load_or_refuse(content: bytes) -> ObliqueTree | None:
    try:
        return loads(content)
    except ModelFileError as error:
        refusal = str(error)
    assert refusal.startswith("cannot load a model from these bytes: ")
    assert len(refusal) < 1500
    return None


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_spoiled_files(mutation: Any) -> None:
    @settings(max_examples=150)
    @given(st.sampled_from(CONTENTS).flatmap(mutation))
    def check(content: bytes) -> None:
        tree = load_or_refuse(content)
        if tree is not None:
            check_whole(tree)

    check()


@settings(max_examples=20)
@given(spoil.nested(CONTENTS[0]))
def test_deep_headers(content: bytes) -> None:
    assert load_or_refuse(content) is None


@settings(max_examples=100)
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    assert load_or_refuse(content) is None


@pytest.mark.parametrize("content", CONTENTS, ids=["mixed", "leaf", "regression"])
def test_every_truncation_is_noticed(content: bytes) -> None:
    for length in range(0, len(content), 7):
        assert load_or_refuse(content[:length]) is None
    assert load_or_refuse(content) is not None


@pytest.mark.parametrize("mutation", [spoil.relabelled, spoil.nested])
def test_memory_stays_a_small_multiple_of_the_file(mutation: Any) -> None:
    @settings(max_examples=25)
    @given(mutation(CONTENTS[0]))
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


@settings(max_examples=150)
@given(st.data())
def test_spoiled_json(data: st.DataObject) -> None:
    """The JSON form, an entry anywhere in it replaced by something else."""
    content = json.loads(data.draw(st.sampled_from(TREES)).to_json())
    target: Any = content
    for _ in range(data.draw(st.integers(0, 4))):
        inner = [v for v in spoil._values(target) if isinstance(v, dict | list) and v]
        if not inner:
            break
        target = data.draw(st.sampled_from(inner))
    keys = list(target) if isinstance(target, dict) else list(range(len(target)))
    target[data.draw(st.sampled_from(keys))] = data.draw(spoil.HOSTILE)
    try:
        tree = ObliqueTree.from_json(json.dumps(content))
    except ModelFileError:
        return
    check_whole(tree)
