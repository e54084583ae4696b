"""Model files, as the commands open them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hardwood.cli.failures import check_readable
from hardwood.cli.report import counted

if TYPE_CHECKING:
    from hardwood.model import ObliqueForest, ObliqueTree

    Model = ObliqueTree | ObliqueForest


def open_model(path: Path) -> Model:
    """Load a model file; anything that is not one is a HardwoodError naming the path."""
    from hardwood.model import load

    check_readable(path, "a .hardwood model file")
    return load(path)


def trees_of(model: Model) -> tuple[ObliqueTree, ...]:
    """Return the trees of a forest, or the tree."""
    return model.trees if is_forest(model) else (model,)


def is_forest(model: Model) -> bool:
    """Whether a model is a forest, even of one tree."""
    return hasattr(model, "trees")


def size_words(model: Model) -> str:
    """Sizes of a tree, or of all trees of a forest together, in a phrase."""
    kind = "linear " if model.has_linear_leaves else ""
    splits = counted(model.n_splits, "split")
    leaves = counted(model.n_leaves, f"{kind}leaf", f"{kind}leaves")
    features = counted(model.n_features, "feature")
    if is_forest(model):
        return f"depth up to {model.depth}, {splits} and {leaves} in all, {features}"
    return f"depth {model.depth}, {splits}, {leaves}, {features}"


def output_names(model: Model) -> tuple[str, ...]:
    """Names of what a model predicts, one per output; their numbers where it knows no names."""
    return model.target_names or tuple(str(i) for i in range(model.n_outputs))
