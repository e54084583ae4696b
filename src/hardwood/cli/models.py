"""Model files, as the commands open them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hardwood.cli.failures import check_readable

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree


def open_model(path: Path) -> ObliqueTree:
    """Load a model file; anything that is not one is a HardwoodError naming the path."""
    from hardwood.model import load

    check_readable(path, "a .hardwood model file")
    return load(path)


def size_words(tree: ObliqueTree) -> str:
    """Sizes of a tree in a phrase."""
    return (
        f"depth {tree.depth}, {tree.n_splits} splits, {tree.n_leaves} leaves, "
        f"{tree.n_features} features"
    )
