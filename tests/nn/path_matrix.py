"""The definition of the layer, naively: a matrix of paths, a softmax, autograd. O(4^h) per sample.

Karthikeyan et al., TMLR 2022, Algorithm 2. Needs torch alone, as `cuda_check.py` does.
"""

from __future__ import annotations

import torch
from torch import Tensor


def path_matrix(depth: int, like: Tensor) -> Tensor:
    """-1 where leaf l lies left of node i, +1 where right of it, 0 where not below it, (L, m)."""
    paths = torch.zeros(2**depth, 2**depth - 1, dtype=like.dtype, device=like.device)
    leaf = torch.arange(2**depth, device=like.device)
    for i in range(depth):
        node = 2**i - 1 + (leaf >> (depth - i))
        paths[leaf, node] = (2 * ((leaf >> (depth - 1 - i)) & 1) - 1).to(like.dtype)
    return paths


class StraightThroughSign(torch.autograd.Function):
    """+1 or -1 by Eq. (3), with the derivative 1 where |a| <= 1."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.where(a >= 0, torch.ones_like(a), -torch.ones_like(a))

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * (a.abs() <= 1)


def prediction(x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, paths: Tensor) -> Tensor:
    """Predict by the hard tree; autograd gives Algorithm 2's gradient by all four, (n, k)."""
    signs = StraightThroughSign.apply(x @ weight.T + bias)  # (n, m)
    q = torch.softmax(signs @ paths.T, dim=1)  # (n, L)
    hard = torch.nn.functional.one_hot(q.argmax(dim=1), len(leaves)).to(q.dtype)
    soft = q @ leaves.detach()  # what the splits and the input see
    return hard @ leaves + soft - soft.detach()  # leaves: at the arg-max only, line 5
