r"""TEL in torch: all nodes of all trees, level by level, and their exact gradient.

Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
Conditional Computation. ICML 2020. [TEL20]

This is the dense definition: what runs where the conditional passes do not (the engine on the CPU,
``native/tree/soft.hpp``; Triton on a GPU, ``tel_triton.py``), and on a GPU where samples reach so
many leaves that matrix products are the faster way.

==========  ==========================  ========================================================
paper       here                        shape
==========  ==========================  ========================================================
x           x                           (n, d)
W           weight, bias                (T, m, d), (T, m)   m = 2^h - 1 splits in heap order
O           leaves                      (T, L, k)   L = 2^h leaves from left to right
<w, x>      scores                      (T, m, n)   a level of a tree is a block of whole rows
S, 1 - S    to_right, to_left           (T, m, n)   departs: the paper goes left with S
P(x -> i)   probabilities               (T, 2^depth, n) for every depth
dL/dT       slope                       (n, k)   loss by prediction
==========  ==========================  ========================================================
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

Activation = Literal["smooth_step", "smooth_step_5", "logistic"]
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)


def _at_depth(of_nodes: Tensor, depth: int) -> Tensor:
    """Rows of the nodes at one depth of every tree, (T, 2^depth, n)."""
    return of_nodes[:, 2**depth - 1 : 2 ** (depth + 1) - 1]


def _in_gammas(x: Tensor, weight: Tensor, bias: Tensor, gamma: float) -> Tensor:
    """Scores (w x + b) / gamma of all splits, (T, m, n)."""
    scores = torch.addmm(bias.reshape(-1, 1), weight.flatten(0, 1), x.T)  # (T m, n)
    # By a tensor: GPUs multiply by the inverse of a number, and miss the edge u = 1/2 by rounding.
    return (scores / scores.new_full((), gamma)).reshape(*bias.shape, -1)


def _to_the_edge(u: Tensor) -> Tensor:
    """Distance to the edge of the band where a smooth step becomes sure, at most 1/2."""
    return torch.where(u.abs() < 0.5, 0.5 - u.abs(), 0.0)


def _a_number(u: Tensor) -> Tensor:
    """Take what is no number for sure, to the right: what a smooth step does by itself."""
    return torch.where(u.isnan(), torch.inf, u)


def sides(u: Tensor, activation: Activation) -> tuple[Tensor, Tensor]:
    """[TEL20], Eq. (4): the shares that go left and right, each to its own last place."""
    if activation == "logistic":
        u = _a_number(u)
        return torch.sigmoid(-u), torch.sigmoid(u)
    q = _to_the_edge(u)
    if activation == "smooth_step":
        lesser = q * q * (3 - 2 * q)
    else:
        lesser = q * q * q * (10 + q * (6 * q - 15))
    greater = 1 - lesser
    goes_left = u < 0
    return torch.where(goes_left, greater, lesser), torch.where(goes_left, lesser, greater)


def steepness(u: Tensor, gamma: float, activation: Activation) -> Tensor:
    """S'(t); 0 at the edges of the band and beyond."""
    if activation == "logistic":
        u = _a_number(u)
        return torch.sigmoid(u) * torch.sigmoid(-u) / gamma
    q = _to_the_edge(u)
    if activation == "smooth_step":
        return q * (1 - q) * (6 / gamma)
    return (q * (1 - q)).square() * (30 / gamma)


def _probabilities(to_left: Tensor, to_right: Tensor) -> list[Tensor]:
    """P(x -> i), Eq. (2), of the nodes at every depth, the leaves last: (T, 2^depth, n) each."""
    T, m, n = to_left.shape
    levels = [to_left.new_ones((T, 1, n))]
    for depth in range((m + 1).bit_length() - 1):
        above = levels[-1]
        # Not above - above * S for one of them, which cancels.
        both = [above * _at_depth(side, depth) for side in (to_left, to_right)]
        levels.append(torch.stack(both, dim=2).flatten(1, 2))
    return levels


def forward(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: Activation
) -> Tensor:
    """[TEL20], Eq. (1) and (3): the sum over trees of the expected values of their leaves."""
    u = _in_gammas(x, weight, bias, gamma)
    reached = _probabilities(*sides(u, activation))[-1]  # (T, L, n)
    return reached.flatten(0, 1).T @ leaves.flatten(0, 1)  # (n, k)


def backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    slope: Tensor,
    gamma: float,
    activation: Activation,
    *,
    with_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""[TEL20], Theorem 1 without its divisions: the gradients by x, weight, bias and leaves.

    .. math:: \frac{dL}{dt_i} = P(i) \, S'(t_i) \, (v(\text{right}) - v(\text{left}))

    where v of a leaf is the slope times its values, and of a node the expectation over its two
    children. Without `with_x` the first is empty, (0, d).
    """
    u = _in_gammas(x, weight, bias, gamma)
    to_left, to_right = sides(u, activation)
    *above, reached = _probabilities(to_left, to_right)
    v = (leaves.flatten(0, 1) @ slope.T).reshape(reached.shape)  # (T, L, n)
    differences = []
    for depth in reversed(range(len(above))):
        left, right = v[:, 0::2], v[:, 1::2]
        differences.append(right - left)
        v = _at_depth(to_left, depth) * left + _at_depth(to_right, depth) * right
    dt = torch.cat(above, dim=1) * torch.cat(differences[::-1], dim=1)  # (T, m, n)
    dt = (dt * steepness(u, gamma, activation)).flatten(0, 1)
    dx = dt.T @ weight.flatten(0, 1) if with_x else x.new_empty((0, x.shape[1]))
    dweight = (dt @ x).reshape(weight.shape)
    dleaves = (reached.flatten(0, 1) @ slope).reshape(leaves.shape)
    return dx, dweight, dt.sum(dim=1).reshape(bias.shape), dleaves


def reachable_leaves(
    x: Tensor, weight: Tensor, bias: Tensor, gamma: float, activation: Activation
) -> Tensor:
    """U of every sample and tree, (n, T) int32."""
    T, m, _ = weight.shape
    if activation == "logistic":  # positive, also where its floating point number is 0
        return torch.full((x.shape[0], T), m + 1, dtype=torch.int32, device=x.device)
    u = _in_gammas(x, weight, bias, gamma)
    reached = _probabilities(*sides(u, activation))[-1] > 0
    return reached.sum(dim=1, dtype=torch.int32).T.contiguous()
