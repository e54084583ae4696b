"""Methods that make a tree smaller: fewer splits (`prune`), fewer weights (`sparsify`)."""

from __future__ import annotations

from hardwood.model.edit.prune import prune, prune_by_validation
from hardwood.model.edit.pruning_path import PruningPath, cost_complexity_path
from hardwood.model.edit.rewrite import prune_unreached
from hardwood.model.edit.sparsify import Sparsified, sparsify

__all__ = [
    "PruningPath",
    "Sparsified",
    "cost_complexity_path",
    "prune",
    "prune_by_validation",
    "prune_unreached",
    "sparsify",
]
