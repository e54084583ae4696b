"""Nonsense is refused before the engine reads it. `tests/fuzz` tries more of it, by chance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from hardwood import _native
from hardwood.bandit.parameters import BanditParameters
from hardwood.table import Schema
from trees import make_tree

BANDIT = BanditParameters(method="replay").for_engine(2, 3)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0, 3, 1, 0), "n_rows"), ((2**40, 3, 1, 0), "n_rows"), ((3, -1, 1, 0), "n_draws")],
)
def test_bootstrap_samples_have_rows(arguments, name):
    with pytest.raises(ValueError, match=f"{name} must lie between"):
        _native.bootstrap_counts(*arguments)
    assert sum(_native.bootstrap_counts(3, 5, 1, 0)) == 5


def test_indices_of_sparse_tables_are_converted_and_kept():
    schema = Schema.numeric(4)
    table = sparse.random(50, 4, density=0.5, format="csr", random_state=1)
    expected = schema.encoder.encode(table)
    for dtype in (np.int16, np.int64):
        csr = SimpleNamespace(
            data=table.data,
            indices=table.indices.astype(dtype),
            indptr=table.indptr.astype(dtype),
            shape=table.shape,
            format="csr",
        )
        np.testing.assert_array_equal(schema.encoder.encode(csr), expected)


def test_an_encoder_fills_each_column_once():
    good: dict[str, Any] = {
        "kinds": np.array([0, 1], "u1"),
        "first_column": np.array([0, 1], "i4"),
        "n_levels": np.array([0, 2], "i4"),
        "flag_column": np.array([-1, 3], "i4"),
        "center": np.zeros(2),
        "scale": np.ones(2),
        "n_columns": 4,
    }
    assert _native.Encoder(**good).n_columns == 4
    for change, words in (
        ({"n_levels": np.array([0, 2**31 - 1], "i4")}, "n_levels must lie between 0 and 4"),
        ({"n_levels": np.array([0, 1], "i4")}, "do not fill n_columns columns"),
        ({"first_column": np.array([1, 1], "i4")}, "out of range or filled twice"),
        ({"scale": np.array([1.0, 0.0])}, "scale must be positive and finite"),
        ({"center": np.array([np.nan, 0.0])}, "center must be finite"),
        ({"n_columns": 2**31 - 1}, "n_columns must lie between"),
    ):
        with pytest.raises(ValueError, match=words):
            _native.Encoder(**(good | change))


def test_a_split_has_one_parent(rng):
    tree = make_tree(rng, n_splits=3, n_features=2)
    children = np.array([[1, 2], [-1, -2], [-2, -4]], "i4")
    with pytest.raises(ValueError, match="two parents"):
        _native.Router(tree.schema.encoder, np.zeros((3, 2)), np.zeros(3), children, 4)


def test_targets_of_a_loss_are_classes():
    prediction, weight = np.zeros((2, 3), "f4"), np.ones(2, "f4")
    for y in (3.0, -1.0, np.nan, 1e30):
        with pytest.raises(ValueError, match="a class index is out of range"):
            _native.loss("cross_entropy", prediction, np.array([[0], [y]], "f4"), weight)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden": [2**16, 2**16]}, "too large"),
        ({"hidden": [2**24]}, "'hidden' must lie between"),
        ({"batch_size": 2**31 - 1}, "'batch_size' must lie between"),
        ({"exploration": np.nan}, "'exploration' must lie between"),
        ({"learning_rate": "fast"}, "'learning_rate' has another type"),
        ({"color": 1}, "'color' is unknown"),
    ],
    ids=str,
)
def test_options_of_a_bandit_are_checked(change, words):
    with pytest.raises(ValueError, match=words):
        _native.BanditEngine(2, 3, 2, BANDIT | change, 1)


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        ("powers", [2.0, 0.5], "'powers' of the state must lie between 0 and 1, got 2"),
        ("powers", [0.5], "'powers' of the state must have 2 values, found 1"),
        ("second_moment", None, "'second_moment' of the state must lie between 0"),
        ("columns", None, "counts of columns in the state must be finite and not negative"),
        ("due", ["x"], "'due' of the state has another type"),
    ],
)
def test_states_of_a_bandit_are_checked(entry, value, words):
    engine = _native.BanditEngine(2, 3, 2, BANDIT, 1)
    state = engine.state()
    state[entry] = -np.ones_like(state[entry]) if value is None else np.array(value)
    with pytest.raises(ValueError, match=words):
        engine.set_state(state)
    del state[entry]
    with pytest.raises(ValueError, match=f"'{entry}' of the state is missing"):
        engine.set_state(state)


def test_contexts_are_not_infinite():
    engine = _native.BanditEngine(2, 3, 2, BANDIT, 1)
    with pytest.raises(ValueError, match="must not be infinite"):
        engine.decide(np.array([1, np.inf], "f4"), None)


def test_arrays_are_aligned():
    room = np.zeros(8 * 7 + 1, "u1")
    x = np.frombuffer(room.data, "f8", 7, offset=1)
    schema = Schema.numeric(7)
    with pytest.raises(ValueError, match="X must be aligned"):
        schema.encoder.encode(x[None])
    with pytest.raises(TypeError):
        _native.apply_link(np.frombuffer(room.data, "f8", 6, offset=1).reshape(2, 3), "exp")
