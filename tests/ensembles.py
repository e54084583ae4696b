"""Random soft ensembles for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from forests import names_of
from hardwood.model import TreeEnsemble
from trees import LINKS, columns_of, make_schema

ACTIVATIONS = ("smooth_step", "smooth_step_5", "logistic")


def make_ensemble(
    rng: np.random.Generator | int = 0,
    *,
    n_trees: int = 3,
    depth: int = 3,
    n_features: int = 4,
    k: int = 3,
    task: str = "classification",
    mixed: bool = False,
    counts: bool = True,
    gamma: float = 1.0,
    activation: str = "smooth_step",
    link: str | None = None,
) -> TreeEnsemble:
    """Create an ensemble of random trees; ``counts`` are those of simulated samples."""
    rng = np.random.default_rng(rng)
    schema = make_schema(rng, n_features, mixed=mixed)
    m = 2**depth - 1
    weights = rng.normal(size=(n_trees, m, schema.n_columns)) / schema.column_scale
    options = names_of(task, k)
    if counts:
        options["counts"] = _counts(rng, n_trees, m)
    return TreeEnsemble(
        weights * (rng.random(weights.shape) >= 0.2),
        rng.normal(size=(n_trees, m)),
        rng.normal(size=(n_trees, m + 1, k)),
        gamma=gamma,
        activation=activation,
        schema=schema,
        task=task,
        link=link or LINKS[task],
        record={"seed": 7},
        **options,
    )


def _counts(rng: np.random.Generator, n_trees: int, m: int) -> np.ndarray:
    counts = np.concatenate([np.zeros((n_trees, m)), rng.random((n_trees, m + 1))], axis=1)
    for i in range(m - 1, -1, -1):
        counts[:, i] = counts[:, 2 * i + 1] + counts[:, 2 * i + 2]
    return counts


def scores_by_hand(ensemble: TreeEnsemble, X: Any) -> np.ndarray:
    """Return scores (n, k) by the definition, in float64."""
    from reference import tel

    return tel.forward(
        columns_of(ensemble, X),
        ensemble.weights,
        ensemble.bias,
        ensemble.values,
        ensemble.gamma,
        ensemble.activation,
    )


@st.composite
def ensembles(draw: st.DrawFn) -> TreeEnsemble:
    """Generate ensembles of all sizes, tasks, kinds of features and activations."""
    task = draw(st.sampled_from(sorted(LINKS)))
    return make_ensemble(
        draw(st.integers(0, 2**32 - 1)),
        n_trees=draw(st.integers(1, 4)),
        depth=draw(st.integers(1, 4)),
        n_features=draw(st.integers(1, 5)),
        k=draw(st.integers(1, 4)),
        task=task,
        mixed=draw(st.booleans()),
        counts=draw(st.booleans()),
        gamma=draw(st.sampled_from([1e-4, 0.1, 1.0, 10.0])),
        activation=draw(st.sampled_from(ACTIVATIONS)),
        link="exp" if task == "regression" and draw(st.booleans()) else None,
    )
