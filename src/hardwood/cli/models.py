"""Model files, as the commands open them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardwood.cli.failures import CommandError, check_readable
from hardwood.report.subject import is_forest, is_soft, output_names, size_words, trees_of

if TYPE_CHECKING:
    from hardwood.model import LatentTreeModel, ObliqueForest, ObliqueTree, TreeEnsemble

    Model = ObliqueTree | ObliqueForest | TreeEnsemble | LatentTreeModel

__all__ = [
    "is_forest",
    "is_soft",
    "not_latent",
    "open_model",
    "output_names",
    "size_words",
    "trees_of",
]


def not_latent(model: Any, path: Path, what: str) -> Any:
    """Return any model but a latent tree, whose hard form needs rows."""
    if hasattr(model, "routes"):
        raise CommandError(
            f"{path} holds a latent tree; {what} takes hard trees. From Python, "
            "hardwood.load(path).harden(X, y) makes one of it."
        )
    return model


def open_model(path: Path) -> Model:
    """Load a model file; anything that is not one is a HardwoodError naming the path."""
    from hardwood.model import load

    check_readable(path, "a .hardwood model file")
    return load(path)
