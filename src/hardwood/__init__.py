"""Accurate, small, hard oblique decision trees, learned by gradient descent.

>>> from hardwood import DGTClassifier
>>> tree = DGTClassifier(max_depth=3).fit(X, y).tree_   # doctest: +SKIP
>>> print(tree.to_text())                               # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hardwood.errors import (
        FitInterruptedWarning,
        HardwoodError,
        ModelFileError,
        TableError,
        TableWarning,
    )
    from hardwood.estimators.clustering import LatentTreeClustering
    from hardwood.estimators.dgt import DGTClassifier, DGTRegressor
    from hardwood.estimators.forest import DGTForestClassifier, DGTForestRegressor
    from hardwood.estimators.greedy import GreedyTreeClassifier, GreedyTreeRegressor
    from hardwood.estimators.latent import LatentTreeClassifier, LatentTreeRegressor
    from hardwood.estimators.non_greedy import NonGreedyTreeClassifier, NonGreedyTreeRegressor
    from hardwood.estimators.reinforced import ReinforcedTreeClassifier, ReinforcedTreeRegressor
    from hardwood.estimators.rewards import learn_from_rewards
    from hardwood.estimators.tao import TAOClassifier, TAORegressor
    from hardwood.estimators.tel import TELClassifier, TELRegressor
    from hardwood.estimators.tree import TreeClassifier, TreeRegressor
    from hardwood.learn.dgt import Relaxation
    from hardwood.learn.losses import Huber, Quantile
    from hardwood.learn.training import Epoch, Training
    from hardwood.model import (
        LatentTreeModel,
        ObliqueForest,
        ObliqueTree,
        PolicyTree,
        TreeEnsemble,
        from_sklearn,
        load,
    )
    from hardwood.report.purity import dendrogram_purity, sampled_dendrogram_purity
    from hardwood.search.refine import refine
    from hardwood.selection import compare, tune

__version__ = "0.1.0"

# Names are imported when first used, so that `import hardwood` costs next to nothing and a saved
# model loads without scikit-learn.
_HOME = {
    "DGTClassifier": "hardwood.estimators.dgt",
    "DGTForestClassifier": "hardwood.estimators.forest",
    "DGTForestRegressor": "hardwood.estimators.forest",
    "DGTRegressor": "hardwood.estimators.dgt",
    "Epoch": "hardwood.learn.training",
    "FitInterruptedWarning": "hardwood.errors",
    "GreedyTreeClassifier": "hardwood.estimators.greedy",
    "GreedyTreeRegressor": "hardwood.estimators.greedy",
    "HardwoodError": "hardwood.errors",
    "Huber": "hardwood.learn.losses",
    "LatentTreeClassifier": "hardwood.estimators.latent",
    "LatentTreeClustering": "hardwood.estimators.clustering",
    "LatentTreeModel": "hardwood.model",
    "LatentTreeRegressor": "hardwood.estimators.latent",
    "ModelFileError": "hardwood.errors",
    "NonGreedyTreeClassifier": "hardwood.estimators.non_greedy",
    "NonGreedyTreeRegressor": "hardwood.estimators.non_greedy",
    "ObliqueForest": "hardwood.model",
    "ObliqueTree": "hardwood.model",
    "PolicyTree": "hardwood.model",
    "Quantile": "hardwood.learn.losses",
    "ReinforcedTreeClassifier": "hardwood.estimators.reinforced",
    "ReinforcedTreeRegressor": "hardwood.estimators.reinforced",
    "Relaxation": "hardwood.learn.dgt",
    "TAOClassifier": "hardwood.estimators.tao",
    "TAORegressor": "hardwood.estimators.tao",
    "TELClassifier": "hardwood.estimators.tel",
    "TELRegressor": "hardwood.estimators.tel",
    "TableError": "hardwood.errors",
    "TableWarning": "hardwood.errors",
    "Training": "hardwood.learn.training",
    "TreeClassifier": "hardwood.estimators.tree",
    "TreeEnsemble": "hardwood.model",
    "TreeRegressor": "hardwood.estimators.tree",
    "compare": "hardwood.selection",
    "dendrogram_purity": "hardwood.report.purity",
    "from_sklearn": "hardwood.model",
    "learn_from_rewards": "hardwood.estimators.rewards",
    "load": "hardwood.model",
    "refine": "hardwood.search.refine",
    "sampled_dendrogram_purity": "hardwood.report.purity",
    "tune": "hardwood.selection",
}

__all__ = [
    "DGTClassifier",
    "DGTForestClassifier",
    "DGTForestRegressor",
    "DGTRegressor",
    "Epoch",
    "FitInterruptedWarning",
    "GreedyTreeClassifier",
    "GreedyTreeRegressor",
    "HardwoodError",
    "Huber",
    "LatentTreeClassifier",
    "LatentTreeClustering",
    "LatentTreeModel",
    "LatentTreeRegressor",
    "ModelFileError",
    "NonGreedyTreeClassifier",
    "NonGreedyTreeRegressor",
    "ObliqueForest",
    "ObliqueTree",
    "PolicyTree",
    "Quantile",
    "ReinforcedTreeClassifier",
    "ReinforcedTreeRegressor",
    "Relaxation",
    "TAOClassifier",
    "TAORegressor",
    "TELClassifier",
    "TELRegressor",
    "TableError",
    "TableWarning",
    "Training",
    "TreeClassifier",
    "TreeEnsemble",
    "TreeRegressor",
    "compare",
    "dendrogram_purity",
    "from_sklearn",
    "learn_from_rewards",
    "load",
    "refine",
    "sampled_dendrogram_purity",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hardwood' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
