"""The answer of every learner: a hard oblique tree, or a forest of them; and the file for both."""

from __future__ import annotations

from hardwood.model.file import dumps, load, loads, save
from hardwood.model.forest import ObliqueForest
from hardwood.model.linear_leaf import LinearLeaf
from hardwood.model.split import Split
from hardwood.model.terms import Term
from hardwood.model.tree import ObliqueTree

__all__ = [
    "LinearLeaf",
    "ObliqueForest",
    "ObliqueTree",
    "Split",
    "Term",
    "dumps",
    "load",
    "loads",
    "save",
]
