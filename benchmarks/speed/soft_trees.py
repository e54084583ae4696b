"""Dense soft tree ensembles in PyTorch: every row reaches every leaf.

All splits of all trees in one product, probabilities level by level. Needs only torch.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Activation = Callable[[Tensor], Tensor]


def logistic(width: float) -> Activation:
    return lambda scores: torch.sigmoid(scores / width)


def smooth_step(gamma: float) -> Activation:
    """Eq. (4) of the TEL paper."""

    def of(scores: Tensor) -> Tensor:
        u = (scores / gamma).clamp(-0.5, 0.5)
        return 0.5 + u * (1.5 - 2 * u * u)

    return of


def dense_ensemble(x: Tensor, W: Tensor, b: Tensor, O: Tensor, activation: Activation) -> Tensor:
    """Sum of the trees, (n, k), for W (T, m, d), b (T, m) and O (T, L, k)."""
    n_trees, n_nodes, d = W.shape
    to_right = activation(x @ W.reshape(-1, d).t() + b.reshape(-1)).reshape(-1, n_trees, n_nodes)
    reached = torch.ones(len(x), n_trees, 1, dtype=x.dtype, device=x.device)
    first = 0
    while first < n_nodes:  # level by level: nodes first .. 2 first
        share = to_right[:, :, first : 2 * first + 1]
        reached = torch.stack([reached * (1 - share), reached * share], -1).flatten(2)
        first = 2 * first + 1
    return reached.flatten(1) @ O.flatten(0, 1)
