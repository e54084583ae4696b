"""Trees as torch layers: on top of any network, under any loss, on any device.

The layers need only torch, neither NumPy nor the engine. They use the engine if it is available
(see `engine_available`).
"""

from __future__ import annotations

from importlib.util import find_spec

from hardwood.errors import MissingExtraError

if find_spec("torch") is None:
    raise MissingExtraError("torch", extra="torch", purpose="hardwood.nn")

from hardwood.nn.dgt import DenseGradientTree
from hardwood.nn.latent import LatentTree, latent_projection
from hardwood.nn.latent_pruned import PrunedLatentTree
from hardwood.nn.operators import engine_available
from hardwood.nn.reinforced import ReinforcedTree
from hardwood.nn.semantic import SemanticTree
from hardwood.nn.tel import TreeEnsembleLayer

__all__ = [
    "DenseGradientTree",
    "LatentTree",
    "PrunedLatentTree",
    "ReinforcedTree",
    "SemanticTree",
    "TreeEnsembleLayer",
    "engine_available",
    "latent_projection",
]
