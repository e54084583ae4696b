r"""DGT as two torch operators: the hard prediction, and the gradient of Algorithm 2.

Karthikeyan, Jain, Natarajan, Jain. Learning Accurate Decision Trees with Bandit Feedback via
Quantized Gradient Descent. TMLR 2022. [DGT22]

``hardwood::dense_gradient_tree`` predicts, ``hardwood::dense_gradient_tree_backward`` estimates the
gradient, so that `torch.compile` and autograd take them as built-in ones. On the CPU in float32
both run in the engine (``native/learn/dgt/step.hpp``) where it is there; all else is the torch of
this file, level by level. A compiler gets to see what is inside of that, since it makes few kernels
of many small steps.

With decisions of +-1 the softmax over the path sums is a product of node probabilities
(``docs/papers/dgt.md``), so the gradient takes one pass up and one pass down the tree: O(2^h) work
per sample and h steps, with no path matrix, which would make it O(4^h).

========  ==========================  =======================================================
paper     here                        shape
========  ==========================  =======================================================
x         x                           (n, d)
W, b      weight, bias                (m, d), (m,)   m = 2^h - 1 splits in heap order
theta     leaves                      (L, k)   L = 2^h leaves from left to right
a         scores                      (m, n)   a level of the tree is a block of whole rows
l'(f)     slope                       (n, k)   loss by prediction
========  ==========================  =======================================================
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from hardwood.nn import operators

# Softmax over two path sums that differ in one decision: 1/2 (1 + tanh 1) where the sign points.
_TANH_1 = math.tanh(1.0)


def level(of_nodes: Tensor, depth: int) -> Tensor:
    """Return the rows of the nodes at one depth, (2^depth, n)."""
    return of_nodes[2**depth - 1 : 2 ** (depth + 1) - 1]


def scores(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """[DGT22], Alg. 2, line 7: a = W x + b, shape (m, n)."""
    return torch.addmm(bias[:, None], weight, x.T)


def leaf_of(scores: Tensor) -> Tensor:
    """Find the leaf that each sample reaches, (n,) int64; a score of 0 goes right, Eq. (3)."""
    m, n = scores.shape
    goes_right = scores >= 0  # (m, n); false for a score that is not a number
    place = torch.zeros((1, n), dtype=torch.int64, device=scores.device)
    for depth in range((m + 1).bit_length() - 1):
        place = torch.add(level(goes_right, depth).gather(0, place), place, alpha=2)  # (1, n)
    return place[0]


def score_gradient(scores: Tensor, leaves: Tensor, slope: Tensor) -> Tensor:
    r"""[DGT22], Alg. 2, lines 9 to 13, contracted with the slope: dLoss/da, shape (m, n).

    .. math:: \frac{d\ell}{da_i} = 1_{|a_i| \le 1} \, P_i \,
              \bigl( p_r (v_r - \bar v) - p_l (v_l - \bar v) \bigr)

    where :math:`P_i` is the product of the probabilities on the way to node i, :math:`p_l, p_r` its
    own two, :math:`v_l, v_r` the softmax means of the slope times the leaves below its children and
    :math:`\bar v` that of the root.
    """
    likely, unlikely = (scores.new_full((), 0.5 * (1.0 + t)) for t in (_TANH_1, -_TANH_1))
    p = torch.where(scores >= 0, likely, unlikely)  # (m, n), to the right
    means = _means_below(p, leaves @ slope.T)  # (2m + 1, n)
    root, left, right = means[:1], means[1::2], means[2::2]
    both = torch.sub(left + right, root, alpha=2)
    difference = torch.addcmul(root - left, p, both)  # (m, n); p_l = 1 - p_r
    passes = scores.abs() <= 1  # the straight-through estimator, line 10
    return torch.where(passes, _probabilities(p) * difference, 0.0)


def _means_below(p: Tensor, of_leaves: Tensor) -> Tensor:
    """Softmax mean below every node and leaf, (2m + 1, n) in heap order, from the leaves up."""
    means = [of_leaves]  # (L, n)
    for depth in reversed(range(len(of_leaves).bit_length() - 1)):
        left, right = means[-1][0::2], means[-1][1::2]
        means.append(torch.lerp(left, right, level(p, depth)))  # (2^depth, n)
    return torch.cat(means[::-1])


def _probabilities(p: Tensor) -> Tensor:
    """Softmax probability of the leaves below every node, (m, n), from the root down."""
    m, n = p.shape
    probabilities = [p.new_ones((1, n))]
    for depth in range((m + 1).bit_length() - 2):
        above = probabilities[-1]  # (2^depth, n)
        right = above * level(p, depth)
        probabilities.append(torch.stack([above - right, right], dim=1).flatten(0, 1))
    return torch.cat(probabilities)


def torch_forward(x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Predict by the hard tree: return the values (n, k) and indices (n,) int32 of leaves."""
    leaf = leaf_of(scores(x, weight, bias))
    return leaves.index_select(0, leaf), leaf.to(torch.int32)


def torch_backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    leaf: Tensor,
    slope: Tensor,
    with_x: bool,
) -> tuple[Tensor, ...]:
    """[DGT22], Alg. 2 for a batch: the gradients of x, weight, bias and leaves.

    Without `with_x` the first is empty, (0, d). Leaves change where samples arrived only (lines 4
    and 5): at `leaf`, which is what the forward pass returned.
    """
    da = score_gradient(scores(x, weight, bias), leaves, slope)  # (m, n)
    dx = da.T @ weight if with_x else x.new_empty((0, x.shape[1]))
    dleaves = torch.zeros_like(leaves).index_add_(0, leaf, slope)
    return dx, da @ x, da.sum(dim=1), dleaves


def engine_forward(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute `torch_forward` in the engine."""
    output = _empty_output(x, weight, bias, leaves)
    operators.run_engine("dgt_layer_forward", x, weight, bias, leaves, *output)
    return output


def engine_backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    leaf: Tensor,
    slope: Tensor,
    with_x: bool,
) -> tuple[Tensor, ...]:
    """Compute `torch_backward` in the engine."""
    dx, *others = operators.empty_gradients(x, (weight, bias, leaves), with_x)
    inputs = (x, weight, bias, leaves, leaf, slope)
    operators.run_engine("dgt_layer_backward", *inputs, dx if with_x else None, *others)
    return dx, *others


def _empty_output(x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor]:
    n, k = x.shape[0], leaves.shape[1]
    return x.new_empty((n, k)), x.new_empty((n,), dtype=torch.int32)


def takes_engine(x: Tensor) -> bool:
    """Whether the engine is used for `x`."""
    is_right = x.device.type == "cpu" and x.dtype == torch.float32
    return is_right and operators.engine_available()


@torch.library.custom_op(
    "hardwood::dense_gradient_tree",
    mutates_args=(),
    schema="(Tensor x, Tensor weight, Tensor bias, Tensor leaves) -> (Tensor, Tensor)",
)
def dense_gradient_tree(x: Tensor, *tree: Tensor) -> tuple[Tensor, Tensor]:
    """Predict by a hard tree; see `torch_forward`."""
    return (engine_forward if takes_engine(x) else torch_forward)(x, *tree)


@torch.library.custom_op(
    "hardwood::dense_gradient_tree_backward",
    mutates_args=(),
    schema=(
        "(Tensor x, Tensor weight, Tensor bias, Tensor leaves, Tensor leaf, Tensor slope, "
        "bool with_x) -> (Tensor, Tensor, Tensor, Tensor)"
    ),
)
def dense_gradient_tree_backward(x: Tensor, *others: Any) -> tuple[Tensor, ...]:
    """Estimate the gradient by Algorithm 2; see `torch_backward`."""
    return (engine_backward if takes_engine(x) else torch_backward)(x, *others)


@dense_gradient_tree_backward.register_fake
def _(x: Tensor, *others: Any) -> tuple[Tensor, ...]:
    return operators.empty_gradients(x, others[:3], with_x=others[-1])


dense_gradient_tree.register_fake(_empty_output)
dense_gradient_tree.register_autograd(
    operators.gradient_by(dense_gradient_tree_backward), setup_context=operators.keep
)
dense_gradient_tree_backward.register_autograd(
    operators.no_second_derivative(
        "DenseGradientTree has no second derivative: its gradient is a straight-through estimate "
        "(Algorithm 2 of the DGT paper), not the derivative of a function."
    )
)
_Transparent = operators.without_operator(torch_forward, torch_backward)


def descend(x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Return the values (n, k) and indices (n,) int32 of the leaves that rows reach."""
    if torch.compiler.is_compiling() and not takes_engine(x):
        return _Transparent.apply(x, weight, bias, leaves)
    return dense_gradient_tree(x, weight, bias, leaves)
