"""Weights that could make probabilities NaN are refused, with the name of the array."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from hardwood.errors import ModelFileError
from hardwood.model import LatentTreeModel, ObliqueForest, ObliqueTree, dumps, loads
from hardwood.table import Feature, Schema

SCHEMA = Schema(
    (
        Feature("a", "numeric", center=1e3, scale=2.0**-10, has_missing=True),
        Feature("b", "numeric", center=0.0, scale=2.0**20),
    )
)
FAR = [[1.7e308, -1.7e308], [-1.7e308, 1.7e308], [np.nan, 1e-300], [0.0, 0.0]]
LABELS: dict[str, Any] = {"schema": SCHEMA, "task": "classification", "classes": ["no", "yes"]}


def linear(size: float, **parts: Any) -> ObliqueTree:
    weights = size * np.array([[[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]]]) / SCHEMA.column_scale
    return ObliqueTree(
        np.zeros((0, 3)),
        np.zeros(0),
        np.zeros((0, 2), int),
        np.zeros((1, 2)),
        leaf_weights=weights,
        **(parts or {"link": "softmax", **LABELS}),
    )


def summed(size: float) -> ObliqueForest:
    scores = linear(size, schema=SCHEMA, task="regression")
    return ObliqueForest([scores, scores], combine="sum", link="softmax", classes=["no", "yes"])


def latent(size: float, widths: tuple[int, ...] = ()) -> LatentTreeModel:
    sizes = (1 + 3, *widths, 2)
    head = [np.full(a * b, size) for a, b in zip(sizes, sizes[1:], strict=False)]
    return LatentTreeModel(
        [0],
        [1.0],
        np.zeros((0, 3)),
        np.zeros(0),
        np.concatenate(head) * (-1.0) ** np.arange(sum(map(len, head))),
        np.zeros(sum(sizes[1:])),
        widths=widths,
        skip_connection=True,
        **LABELS,
    )


@pytest.mark.filterwarnings("ignore:.*near the limit of float64")
@pytest.mark.parametrize("make", [linear, summed, latent])
@pytest.mark.parametrize("size", [1.0, 1e30, 1e75])
def test_probabilities_of_rows_far_out_are_numbers(make, size):
    model = make(size)
    found = model.predict_proba(FAR)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(loads(dumps(model)).predict_proba(FAR), found)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: linear(1e300), r"leaf_weights must be at most 1e\+200 in standard units"),
        (lambda: summed(1e300), r"leaf_weights must be at most 1e\+200 in standard units"),
        (lambda: latent(1e300), "head_weights and head_bias of layer 0 are too large"),
        (lambda: latent(1e150, (3,)), "head_weights and head_bias of layer 1 are too large"),
    ],
)
def test_weights_beyond_reach_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_file_with_such_weights_is_refused():
    content = json.loads(linear(1.0).to_json())
    content["leaf_weights"][0][1][0] = 1e300
    with pytest.raises(ModelFileError, match=r"leaf_weights\[0, 1, 0\] is 1e\+300"):
        ObliqueTree.from_json(json.dumps(content))
