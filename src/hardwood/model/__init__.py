"""The answer of every learner: one hard oblique tree, how it predicts, and the file it lives in."""

from __future__ import annotations

from hardwood.model.file import dumps, load, loads, save
from hardwood.model.linear_leaf import LinearLeaf
from hardwood.model.split import Split
from hardwood.model.terms import Term
from hardwood.model.tree import ObliqueTree

__all__ = ["LinearLeaf", "ObliqueTree", "Split", "Term", "dumps", "load", "loads", "save"]
