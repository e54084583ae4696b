"""Model files, as the commands open them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hardwood.cli.errors import CommandError, check_readable

if TYPE_CHECKING:
    from hardwood.cli.output import Notes
    from hardwood.model import ObliqueForest, ObliqueTree
    from hardwood.model.base import Model


def open_model(path: Path) -> Model:
    """Load a model file; anything that is not one is a HardwoodError naming the path."""
    from hardwood.model import load

    check_readable(path, "a .hardwood model file")
    return load(path)


def hard_form(model: Model, path: Path, what: str) -> ObliqueTree | ObliqueForest:
    """Return the hard tree or forest that a model of a file is; ``what`` takes nothing else."""
    try:
        return model.hard(what)
    except TypeError as error:
        raise CommandError(f"{path}: {error}.") from None


def open_hardened(path: Path, what: str, notes: Notes) -> ObliqueTree | ObliqueForest:
    """Load a model file as hard trees; those of a soft ensemble are made, which a note says."""
    from hardwood.model import TreeEnsemble

    model = open_model(path)
    if not isinstance(model, TreeEnsemble):
        return hard_form(model, path, what)
    notes.add(f"the model is soft: {what} is made of the forest of its hard trees")
    return model.harden()
