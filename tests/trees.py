"""Random trees and tables for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from hardwood.model import ObliqueTree
from hardwood.table import Feature, Schema

LEVELS = ("Adelie", "Chinstrap", "Gentoo")
LINKS = {"classification": "softmax", "regression": "identity", "multilabel": "logistic"}


def make_schema(rng: np.random.Generator, n_features: int, *, mixed: bool = False) -> Schema:
    """Return a schema of numbers far from 0; with ``mixed`` also categories and missing values."""
    features = []
    for j in range(n_features):
        has_missing = mixed and bool(rng.random() < 0.5)
        if mixed and j % 2:
            features.append(Feature(f"f{j}", "categorical", levels=LEVELS, has_missing=has_missing))
        else:
            center, scale = float(rng.normal() * 100), float(np.exp(rng.normal()))
            features.append(
                Feature(f"f{j}", "numeric", center=center, scale=scale, has_missing=has_missing)
            )
    return Schema(tuple(features))


def make_children(rng: np.random.Generator, n_splits: int) -> np.ndarray:
    """Return the children of a random tree: repeatedly turn a random leaf into a split."""
    children = np.full((n_splits, 2), -1, dtype=np.int32)
    places = [(-1, 0)]
    for i in range(n_splits):
        parent, side = places.pop(int(rng.integers(len(places))))
        if parent >= 0:
            children[parent, side] = i
        places += [(i, 0), (i, 1)]
    for leaf, place in enumerate(rng.permutation(len(places)).tolist()):
        parent, side = places[place]
        if parent >= 0:
            children[parent, side] = ~leaf
    return children


def make_tree(
    rng: np.random.Generator | int = 0,
    *,
    n_splits: int = 5,
    n_features: int = 4,
    k: int = 3,
    task: str = "classification",
    mixed: bool = False,
    counts: bool = True,
    sparsity: float = 0.3,
    linear: bool = False,
    link: str | None = None,
    decides: bool = False,
) -> ObliqueTree:
    """Create a random tree.

    ``counts`` are those of simulated samples; ``decides`` adds decision weights for classes.
    """
    rng = np.random.default_rng(rng)
    schema = make_schema(rng, n_features, mixed=mixed)
    weights = rng.normal(size=(n_splits, schema.n_columns)) / schema.column_scale
    weights *= rng.random(weights.shape) >= sparsity
    children = make_children(rng, n_splits)
    options: dict[str, Any] = {"target_names": [f"y{i}" for i in range(k)]}
    values = rng.normal(size=(n_splits + 1, k)) * 10
    if task == "classification":
        values = rng.dirichlet(np.ones(k), size=n_splits + 1)
        options = {"classes": [f"class {i}" for i in range(k)], "target_names": "species"}
    if task == "multilabel":
        values = rng.random((n_splits + 1, k))
    if linear:
        options["link"] = link or LINKS[task]
        options["leaf_weights"] = make_leaf_weights(rng, schema, len(values), k, sparsity)
        values = rng.normal(size=values.shape)
    if decides and task == "classification":
        options["decision_weights"] = np.exp(2 * rng.normal(size=k))
    return ObliqueTree(
        weights,
        rng.normal(size=n_splits),
        children,
        values,
        schema=schema,
        task=task,
        counts=make_counts(rng, children) if counts else None,
        record={"seed": 7, "loss": [0.5, 0.25]},
        **options,
    )


def make_leaf_weights(
    rng: np.random.Generator, schema: Schema, n_leaves: int, k: int, sparsity: float
) -> np.ndarray:
    weights = rng.normal(size=(n_leaves, k, schema.n_columns)) / schema.column_scale
    return weights * (rng.random(weights.shape) >= sparsity)


def make_counts(rng: np.random.Generator, children: np.ndarray) -> np.ndarray:
    m = len(children)
    counts = np.concatenate([np.zeros(m), rng.integers(0, 4, size=m + 1)]).astype(float)
    for i in range(m - 1, -1, -1):
        counts[i] = sum(counts[c if c >= 0 else m + ~c] for c in children[i].tolist())
    return counts


def make_rows(
    rng: np.random.Generator | int, schema: Schema, n: int, *, unseen: Any = None
) -> list[list[Any]]:
    """Return rows as a person would type them: numbers, levels, and None for missing values.

    ``unseen`` is a level that the schema does not have: `Schema.read` warns of one.
    """
    rng = np.random.default_rng(rng)
    rows = []
    for _ in range(n):
        row: list[Any] = []
        for feature in schema.features:
            if rng.random() < 0.15:
                row.append(None)
            elif feature.kind == "categorical":
                row.append([*feature.levels, unseen][rng.integers(len(feature.levels) + 1)])
            else:
                row.append(float(feature.center + feature.scale * rng.normal()))
        rows.append(row)
    return rows


def columns_of(model: Any, X: Any) -> np.ndarray:
    """Return the columns that the weights of a model multiply, (n, c) float64."""
    from reference.encode import encode

    schema = model.schema
    return encode(schema, schema.read(X)).astype(np.float64) * schema.column_scale


@st.composite
def trees(draw: st.DrawFn) -> ObliqueTree:
    """Generate trees of all shapes, tasks, kinds of features and kinds of leaves."""
    task = draw(st.sampled_from(sorted(LINKS)))
    linear = draw(st.booleans())
    return make_tree(
        draw(st.integers(0, 2**32 - 1)),
        n_splits=draw(st.integers(0, 12)),
        n_features=draw(st.integers(1, 6)),
        k=draw(st.integers(1, 4)),
        task=task,
        mixed=draw(st.booleans()),
        counts=draw(st.booleans()),
        sparsity=draw(st.sampled_from([0.0, 0.5, 0.95])),
        linear=linear,
        decides=draw(st.booleans()),
        link="exp" if linear and task == "regression" and draw(st.booleans()) else None,
    )
