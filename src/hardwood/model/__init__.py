"""The answer of every learner: trees, forests, soft trees, policies, latent trees; their file."""

from __future__ import annotations

from hardwood.model.ensemble import TreeEnsemble
from hardwood.model.file import dumps, load, loads, save
from hardwood.model.forest import ObliqueForest
from hardwood.model.from_sklearn import from_sklearn
from hardwood.model.latent_tree import LatentTreeModel
from hardwood.model.linear_leaf import LinearLeaf
from hardwood.model.policy_split import PolicySplit
from hardwood.model.policy_tree import PolicyTree
from hardwood.model.split import Split
from hardwood.model.terms import Term
from hardwood.model.tree import ObliqueTree

__all__ = [
    "LatentTreeModel",
    "LinearLeaf",
    "ObliqueForest",
    "ObliqueTree",
    "PolicySplit",
    "PolicyTree",
    "Split",
    "Term",
    "TreeEnsemble",
    "dumps",
    "from_sklearn",
    "load",
    "loads",
    "save",
]
