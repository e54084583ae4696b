"""Model files, as the commands open them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hardwood.cli.failures import check_readable
from hardwood.report.subject import is_forest, is_soft, output_names, size_words, trees_of

if TYPE_CHECKING:
    from hardwood.model import ObliqueForest, ObliqueTree, TreeEnsemble

    Model = ObliqueTree | ObliqueForest | TreeEnsemble

__all__ = ["is_forest", "is_soft", "open_model", "output_names", "size_words", "trees_of"]


def open_model(path: Path) -> Model:
    """Load a model file; anything that is not one is a HardwoodError naming the path."""
    from hardwood.model import load

    check_readable(path, "a .hardwood model file")
    return load(path)
