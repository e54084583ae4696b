"""Model files, as the commands open them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hardwood.cli.failures import check_readable
from hardwood.cli.report import counted

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree


def open_model(path: Path) -> ObliqueTree:
    """Load a model file; anything that is not one is a HardwoodError naming the path."""
    from hardwood.model import load

    check_readable(path, "a .hardwood model file")
    return load(path)


def size_words(tree: ObliqueTree) -> str:
    """Sizes of a tree in a phrase."""
    counts = (
        counted(tree.n_splits, "split"),
        counted(tree.n_leaves, "leaf", "leaves"),
        counted(tree.n_features, "feature"),
    )
    return f"depth {tree.depth}, {', '.join(counts)}"
