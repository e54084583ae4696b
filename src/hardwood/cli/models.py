"""Model files, as the commands open them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardwood.cli.failures import CommandError, check_readable
from hardwood.report.subject import (
    is_forest,
    is_policy,
    is_soft,
    output_names,
    size_words,
    trees_of,
)

if TYPE_CHECKING:
    from hardwood.model.files.header import Model

__all__ = [
    "is_forest",
    "is_policy",
    "is_soft",
    "not_latent",
    "oblique",
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


def oblique(model: Any, path: Path, what: str) -> Any:
    """Return the tree of a two-way policy tree; refuse latent trees; pass others on."""
    if not is_policy(not_latent(model, path, what)):
        return model
    if not model.is_binary:
        raise CommandError(
            f"{path} holds a policy tree with splits of up to {model.max_children} ways; {what} "
            f"takes two at every split. hardwood describe {path} shows it."
        )
    return model.to_oblique()


def open_model(path: Path) -> Model:
    """Load a model file; anything that is not one is a HardwoodError naming the path."""
    from hardwood.model import load

    check_readable(path, "a .hardwood model file")
    return load(path)
