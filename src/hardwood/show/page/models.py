"""What has a page: trees, and forests of them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from hardwood.model import ObliqueForest, ObliqueTree

Model: TypeAlias = ObliqueTree | ObliqueForest


def is_hard(model: Any) -> bool:
    """Whether a row takes one path down a tree: that of a soft ensemble takes several."""
    return isinstance(model, ObliqueTree | ObliqueForest)


def trees_of(model: Model) -> tuple[ObliqueTree, ...]:
    """Return the trees of a forest, or the tree."""
    return model.trees if isinstance(model, ObliqueForest) else (model,)


def outputs_of(model: Model, table: Any) -> np.ndarray:
    """Return what a model answers in numbers, (n, k): probabilities, or regression values."""
    ask = model.predict if model.task == "regression" else model.predict_proba
    outputs: np.ndarray = ask(table).reshape(-1, model.n_outputs)
    return outputs
