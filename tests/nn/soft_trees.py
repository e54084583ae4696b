"""The definition of the tree ensemble layer, naively: a product for every leaf, and autograd.

Hazimeh et al., ICML 2020, Eq. (1) to (4). Needs torch alone, as `cuda_check.py` does.
"""

from __future__ import annotations

import torch
from torch import Tensor


def share_to_the_right(t: Tensor, gamma: float, activation: str) -> Tensor:
    """Eq. (4), its sister of degree 5, or the logistic function."""
    if activation == "logistic":
        return torch.sigmoid(t / gamma)
    u = t / gamma
    if activation == "smooth_step":
        inside = -2 * u**3 + 1.5 * u + 0.5
    else:
        inside = 6 * u**5 - 5 * u**3 + 1.875 * u + 0.5
    outside = (t > 0).to(t.dtype)
    return torch.where(t.abs() < gamma / 2, inside, outside)


def leaf_probabilities(
    x: Tensor, weight: Tensor, bias: Tensor, gamma: float, activation: str
) -> Tensor:
    """Eq. (2): the product of the shares on the way to each leaf, (n, T, L)."""
    right = share_to_the_right(torch.einsum("nd,tmd->ntm", x, weight) + bias, gamma, activation)
    depth, probabilities = weight.shape[1].bit_length(), []
    for leaf in range(2**depth):
        p = torch.ones_like(right[:, :, 0])
        for i in range(depth):
            node = 2**i - 1 + (leaf >> (depth - i))
            goes_right = (leaf >> (depth - 1 - i)) & 1
            p = p * (right[:, :, node] if goes_right else 1 - right[:, :, node])
        probabilities.append(p)
    return torch.stack(probabilities, dim=2)


def prediction(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> Tensor:
    """Eq. (1) and (3); autograd gives the gradient by all four tensors, (n, k)."""
    probabilities = leaf_probabilities(x, weight, bias, gamma, activation)
    return torch.einsum("ntl,tlk->nk", probabilities, leaves)
