"""DGT as two torch operators, so that `torch.compile` and autograd take them as built-in ones.

``hardwood::dense_gradient_tree`` predicts, ``hardwood::dense_gradient_tree_backward`` estimates the
gradient. On the CPU in float32 both run in the engine where it is there, otherwise in torch; a
compiler then gets to see what is inside, since it makes few kernels of many small steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hardwood.nn import dgt_gradient, engine


@torch.library.custom_op(
    "hardwood::dense_gradient_tree",
    mutates_args=(),
    schema="(Tensor x, Tensor weight, Tensor bias, Tensor leaves) -> (Tensor, Tensor)",
)
def dense_gradient_tree(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor
) -> tuple[Tensor, Tensor]:
    """Predict by a hard tree; see `dgt_gradient.forward`."""
    if engine.takes(x):
        return engine.forward(x, weight, bias, leaves)
    return dgt_gradient.forward(x, weight, bias, leaves)


@dense_gradient_tree.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor]:
    n, k = x.shape[0], leaves.shape[1]
    return x.new_empty((n, k)), x.new_empty((n,), dtype=torch.int32)


@torch.library.custom_op(
    "hardwood::dense_gradient_tree_backward",
    mutates_args=(),
    schema=(
        "(Tensor x, Tensor weight, Tensor bias, Tensor leaves, Tensor leaf, Tensor slope, "
        "bool with_x) -> (Tensor, Tensor, Tensor, Tensor)"
    ),
)
def dense_gradient_tree_backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    leaf: Tensor,
    slope: Tensor,
    with_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Estimate the gradient by Algorithm 2; see `dgt_gradient.backward`."""
    run = engine.backward if engine.takes(x) else dgt_gradient.backward
    return run(x, weight, bias, leaves, leaf, slope, with_x=with_x)


@dense_gradient_tree_backward.register_fake
def _(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    leaf: Tensor,
    slope: Tensor,
    with_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    n, d = x.shape
    return (
        x.new_empty((n if with_x else 0, d)),
        weight.new_empty(weight.shape),
        bias.new_empty(bias.shape),
        leaves.new_empty(leaves.shape),
    )


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    # Scores are computed again on the way back: keeping them would cost (2^h - 1) numbers a sample.
    ctx.save_for_backward(*inputs, output[1])


def _gradient(ctx: Any, slope: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    needs_x = ctx.needs_input_grad[0]
    dx, *others = dense_gradient_tree_backward(*ctx.saved_tensors, slope, needs_x)
    return (dx if needs_x else None, *others)


def _no_second_derivative(ctx: Any, *_: Tensor) -> None:
    raise RuntimeError(
        "DenseGradientTree has no second derivative: its gradient is a straight-through estimate "
        "(Algorithm 2 of the DGT paper), not the derivative of a function. Leave out "
        "create_graph=True, or keep the tree out of what is differentiated twice."
    )


class _Transparent(torch.autograd.Function):
    """The same two functions, open to a compiler, which takes no second derivative either."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor
    ) -> tuple[Tensor, Tensor]:
        prediction, leaf = dgt_gradient.forward(x, weight, bias, leaves)
        ctx.save_for_backward(x, weight, bias, leaves, leaf)
        ctx.mark_non_differentiable(leaf)
        return prediction, leaf

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        needs_x = ctx.needs_input_grad[0]
        dx, *others = dgt_gradient.backward(*ctx.saved_tensors, slope, with_x=needs_x)
        return (dx if needs_x else None, *others)


def descend(x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Return the values (n, k) and the numbers (n,) int32 of the leaves that rows reach."""
    if torch.compiler.is_compiling() and not engine.takes(x):
        return _Transparent.apply(x, weight, bias, leaves)
    return dense_gradient_tree(x, weight, bias, leaves)


dense_gradient_tree.register_autograd(_gradient, setup_context=_keep)
dense_gradient_tree_backward.register_autograd(_no_second_derivative)
