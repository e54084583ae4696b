"""Random policy trees for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from forests import names_of
from hardwood.model import PolicyTree
from trees import LINKS, make_schema


def make_parents(rng: np.random.Generator, n_nodes: int) -> np.ndarray:
    """Return the parents of a random tree with any number of children per node, from one."""
    parents = [-1] + [int(rng.integers(max(0, i - 4), i)) for i in range(1, n_nodes)]
    return np.array(parents, dtype=np.int32)


def make_perfect_parents(depth: int, n_branches: int = 2) -> np.ndarray:
    """Return the parents of a tree with all leaves at the same depth, level by level."""
    n_nodes = sum(n_branches**level for level in range(depth + 1))
    return np.array([-1, *((i - 1) // n_branches for i in range(1, n_nodes))], dtype=np.int32)


def make_policy(
    rng: np.random.Generator | int = 0,
    *,
    parents: Any = None,
    n_nodes: int = 9,
    n_features: int = 4,
    k: int = 3,
    task: str = "classification",
    mixed: bool = False,
    counts: bool = True,
    sparsity: float = 0.3,
    link: str | None = None,
) -> PolicyTree:
    """Create a random policy tree; ``counts`` are those of simulated samples."""
    rng = np.random.default_rng(rng)
    schema = make_schema(rng, n_features, mixed=mixed)
    parents = make_parents(rng, n_nodes) if parents is None else np.asarray(parents)
    n_leaves = len(parents) - len(set(parents[1:].tolist()))
    weights = rng.normal(size=(len(parents), schema.n_columns)) / schema.column_scale
    weights *= rng.random(weights.shape) >= sparsity
    bias = rng.normal(size=len(parents))
    weights[0], bias[0] = 0, 0
    options = names_of(task, k)
    if counts:
        options["counts"] = _counts(rng, parents)
    return PolicyTree(
        parents,
        weights,
        bias,
        rng.normal(size=(n_leaves, k)),
        schema=schema,
        task=task,
        link=link or LINKS[task],
        record={"seed": 7},
        **options,
    )


def _counts(rng: np.random.Generator, parents: np.ndarray) -> np.ndarray:
    counts = rng.integers(0, 4, size=len(parents)).astype(float)
    counts[np.unique(parents[1:])] = 0
    for i in range(len(parents) - 1, 0, -1):
        counts[parents[i]] += counts[i]
    return counts


@st.composite
def policies(draw: st.DrawFn) -> PolicyTree:
    """Generate policy trees of all shapes, tasks and kinds of features."""
    task = draw(st.sampled_from(sorted(LINKS)))
    return make_policy(
        draw(st.integers(0, 2**32 - 1)),
        n_nodes=draw(st.integers(1, 20)),
        n_features=draw(st.integers(1, 6)),
        k=draw(st.integers(1, 4)),
        task=task,
        mixed=draw(st.booleans()),
        counts=draw(st.booleans()),
        sparsity=draw(st.sampled_from([0.0, 0.5, 0.95])),
        link="exp" if task == "regression" and draw(st.booleans()) else None,
    )
