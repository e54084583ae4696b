"""Random forests for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.table import Schema
from trees import LINKS, make_children, make_counts, make_leaf_weights, make_schema


def make_forest(
    rng: np.random.Generator | int = 0,
    *,
    sizes: tuple[int, ...] = (5, 0, 3),
    n_features: int = 4,
    k: int = 3,
    task: str = "classification",
    mixed: bool = False,
    counts: tuple[bool, ...] = (True,),
    linear: tuple[bool, ...] = (False,),
    combine: str = "mean",
) -> ObliqueForest:
    """Create a forest of random trees with these numbers of splits.

    ``counts`` and ``linear`` are repeated over the trees, so that only some may have them. The
    trees of a sum have scores, for every task.
    """
    rng = np.random.default_rng(rng)
    schema = make_schema(rng, n_features, mixed=mixed)
    trees = [
        make_member(
            rng,
            schema,
            n_splits,
            k=k,
            task="regression" if combine == "sum" else task,
            counts=counts[i % len(counts)],
            linear=linear[i % len(linear)],
        )
        for i, n_splits in enumerate(sizes)
    ]
    options: dict[str, Any] = {}
    if combine == "sum":
        options = {"link": LINKS[task], **names_of(task, k)}
    return ObliqueForest(trees, combine=combine, record={"trees": len(sizes)}, **options)


def names_of(task: str, k: int) -> dict[str, Any]:
    """Return names of classes and targets."""
    if task == "classification":
        return {"classes": [f"class {i}" for i in range(k)], "target_names": "species"}
    return {"target_names": [f"y{i}" for i in range(k)]}


def make_member(
    rng: np.random.Generator,
    schema: Schema,
    n_splits: int,
    *,
    k: int = 3,
    task: str = "classification",
    counts: bool = True,
    linear: bool = False,
) -> ObliqueTree:
    """Create a random tree with a given schema."""
    children = make_children(rng, n_splits)
    n_leaves = n_splits + 1
    options = names_of(task, k)
    values = {
        "classification": rng.dirichlet(np.ones(k), size=n_leaves),
        "regression": rng.normal(size=(n_leaves, k)) * 10,
        "multilabel": rng.random((n_leaves, k)),
    }[task]
    if linear:
        options["link"] = LINKS[task]
        options["leaf_weights"] = make_leaf_weights(rng, schema, n_leaves, k, 0.3)
    return ObliqueTree(
        rng.normal(size=(n_splits, schema.n_columns)) / schema.column_scale,
        rng.normal(size=n_splits),
        children,
        values,
        schema=schema,
        task=task,
        counts=make_counts(rng, children) if counts else None,
        record={"seed": int(rng.integers(100))},
        **options,
    )


@st.composite
def forests(draw: st.DrawFn) -> ObliqueForest:
    """Generate forests of all sizes, tasks, kinds of features and kinds of leaves."""
    task = draw(st.sampled_from(sorted(LINKS)))
    return make_forest(
        draw(st.integers(0, 2**32 - 1)),
        sizes=tuple(draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))),
        n_features=draw(st.integers(1, 5)),
        k=draw(st.integers(1, 4)),
        task=task,
        mixed=draw(st.booleans()),
        counts=tuple(draw(st.lists(st.booleans(), min_size=1, max_size=2))),
        linear=tuple(draw(st.lists(st.booleans(), min_size=1, max_size=2))),
        combine=draw(st.sampled_from(["mean", "sum", *(["vote"] * (task != "regression"))])),
    )
