"""Models, which learners return: trees, forests, soft ensembles, policy trees and latent trees."""

from __future__ import annotations

from hardwood.model.files.file import dumps, load, loads, save
from hardwood.model.from_sklearn import from_sklearn
from hardwood.model.kinds.forest import ObliqueForest
from hardwood.model.kinds.latent_tree import LatentTreeModel
from hardwood.model.kinds.policy_tree import PolicyTree
from hardwood.model.kinds.soft_ensemble import TreeEnsemble
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.views import LinearLeaf, PolicySplit, Split, Term

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
