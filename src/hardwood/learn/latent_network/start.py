"""Data-dependent initialization of a latent tree: given splits, and a solved predictor."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from hardwood.nn.latent import LatentTree

_CHUNK_ROWS = 2**14
_RIDGE = 1.0  # penalty on the predictor's weights, relative to the weight of one row
_LEAST_DEVIATION = 1e-3  # of a split's scores: constant scores keep a nonzero slope


@torch.no_grad()
def place_splits(tree: LatentTree, weights: np.ndarray, bias: np.ndarray, rows: Tensor) -> None:
    """Set the splits of a tree such that the scores of these rows, as a batch, are w x + b.

    Parameters
    ----------
    tree
        With "linear" or "elu" splits.
    weights, bias
        (splits, c) and (splits,), in heap order.
    rows
        (n, c) that the batch normalization sees: the training rows, or some of them.
    """
    assert tree.linear is not None
    tree.linear.weight.copy_(torch.from_numpy(weights))
    tree.linear.bias.copy_(torch.from_numpy(bias))
    if tree.norm is None:
        return
    scores = tree.linear(rows)
    # Normalized scores have mean 0 and deviation 1, so scale and shift restore the original ones.
    deviation = scores.std(0, correction=0).clamp_min(_LEAST_DEVIATION)
    tree.norm.weight.copy_(deviation)
    tree.norm.bias.copy_(scores.mean(0))


@torch.no_grad()
def solve_predictor(layer: nn.Linear, features: Tensor, y: Tensor, weight: Tensor) -> None:
    """Set a linear predictor to the solution of ridge regression.

    Parameters
    ----------
    layer
        (k, f) weights and (k,) biases, to be overwritten.
    features, y, weight
        (n, f), (n, k) and (n,) of the training rows.
    """
    f, k = features.shape[1], y.shape[1]
    total, means, products = 0.0, torch.zeros(f + k).double(), torch.zeros(f + k, f + k).double()
    for first in range(0, len(y), _CHUNK_ROWS):
        part = slice(first, first + _CHUNK_ROWS)
        both = torch.cat([features[part], y[part]], dim=1).double()
        w = weight[part].double()[:, None]
        total += float(w.sum())
        means += (w * both).sum(0)
        products += both.T @ (w * both)
    means /= total
    spread = products - total * torch.outer(means, means)
    solved = torch.linalg.solve(spread[:f, :f] + _RIDGE * torch.eye(f).double(), spread[:f, f:])
    layer.weight.copy_(solved.T)
    layer.bias.copy_(means[f:] - means[:f] @ solved)
