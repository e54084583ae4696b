"""TEL as two torch operators, so that `torch.compile` and others take them as built-in ones.

``hardwood::tree_ensemble`` answers, ``hardwood::tree_ensemble_backward`` has its gradient. Each
goes the conditional way where there is one: by the engine on the CPU, by Triton on a GPU.
Elsewhere it is dense, in torch; a compiler then gets to see what is inside, since it makes few
kernels of many small steps. Where nobody looks on, the same functions are called without the
operators around them, which take longer than a small batch does.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode

from hardwood.nn import tel_engine, tel_gradient

_HAS_TRITON = find_spec("triton") is not None
_OLDEST_GPU = (8, 0)  # that Triton supports


def _may_run_in_triton(x: Tensor, activation: str) -> bool:
    """Whether it does if the GPU and the trees are such that it can."""
    # A logistic split is never sure: there is nothing to leave out.
    is_conditional = activation != "logistic"
    return x.device.type == "cuda" and _HAS_TRITON and torch.version.hip is None and is_conditional


def _triton(x: Tensor, weight: Tensor, activation: str) -> ModuleType | None:
    """Return the module of the GPU's conditional passes where they compute."""
    if not _may_run_in_triton(x, activation):
        return None
    from hardwood.nn import tel_triton

    is_deep = weight.shape[1] >= 2**tel_triton.MOST_DEPTH
    is_old = torch.cuda.get_device_capability(x.device) < _OLDEST_GPU
    return None if is_deep or is_old else tel_triton


def _other(x: Tensor) -> ModuleType:
    """Return the module that computes where Triton does not."""
    return tel_engine if tel_engine.takes(x) else tel_gradient


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> tuple[Tensor, Tensor]:
    """Answer by soft trees, see `tel_gradient.forward`; and the order that Triton goes back in."""
    inputs = (*(part.contiguous() for part in (x, weight, bias, leaves)), gamma, activation)
    triton = _triton(x, weight, activation)
    if triton is None:
        return _other(x).forward(*inputs), x.new_empty((0, 0), dtype=torch.int64)
    with torch.cuda.device_of(x):
        order = triton.order(*inputs)
        return triton.forward(*inputs, order), order


def _backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    order: Tensor,
    slope: Tensor,
    gamma: float,
    activation: str,
    with_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the exact gradient; see `tel_gradient.backward`."""
    parts = (part.contiguous() for part in (x, weight, bias, leaves, slope))
    triton = _triton(x, weight, activation)
    # Triton adds gradients up in the order in which they come.
    if triton is None or torch.are_deterministic_algorithms_enabled():
        return _other(x).backward(*parts, gamma, activation, with_x=with_x)
    with torch.cuda.device_of(x):
        return triton.backward(*parts, gamma, activation, order, with_x=with_x)


tree_ensemble = torch.library.custom_op(
    "hardwood::tree_ensemble",
    _forward,
    mutates_args=(),
    schema=(
        "(Tensor x, Tensor weight, Tensor bias, Tensor leaves, float gamma, str activation)"
        " -> (Tensor, Tensor)"
    ),
)
tree_ensemble_backward = torch.library.custom_op(
    "hardwood::tree_ensemble_backward",
    _backward,
    mutates_args=(),
    schema=(
        "(Tensor x, Tensor weight, Tensor bias, Tensor leaves, Tensor order, Tensor slope, "
        "float gamma, str activation, bool with_x) -> (Tensor, Tensor, Tensor, Tensor)"
    ),
)


@tree_ensemble.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> tuple[Tensor, Tensor]:
    triton = _triton(x, weight, activation)
    shape = (0, 0) if triton is None else triton.order_shape(x, weight)
    answer = x.new_empty((x.shape[0], leaves.shape[2]))
    return answer, x.new_empty(shape, dtype=torch.int64)


@tree_ensemble_backward.register_fake
def _(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    order: Tensor,
    slope: Tensor,
    gamma: float,
    activation: str,
    with_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    n, d = x.shape
    return (
        x.new_empty((n if with_x else 0, d)),
        weight.new_empty(weight.shape),
        bias.new_empty(bias.shape),
        leaves.new_empty(leaves.shape),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    # The way is walked again to go back: keeping it would cost numbers for every node reached.
    *tensors, ctx.gamma, ctx.activation = inputs
    ctx.save_for_backward(*tensors, output[1])


def _gradient(
    ctx: Any,
    slope: Tensor,
    _: Tensor | None,
    run: Callable[..., tuple[Tensor, ...]] = tree_ensemble_backward,
) -> tuple[Tensor | None, ...]:
    needs_x = ctx.needs_input_grad[0]
    dx, *others = run(*ctx.saved_tensors, slope, ctx.gamma, ctx.activation, needs_x)
    return (dx if needs_x else None, *others, None, None)


def _no_second_derivative(ctx: Any, *_: Tensor) -> None:
    raise RuntimeError(
        "TreeEnsembleLayer has no second derivative: the smooth step of degree 3 has none at the "
        "edges of its band, and none is implemented for the others. Leave out create_graph=True, "
        "or keep the layer out of what is differentiated twice."
    )


class _Direct(torch.autograd.Function):
    """The operators' functions without the operators."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        answer, order = _forward(*inputs)
        _keep(ctx, inputs, (answer, order))
        return answer

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        # The operator knows that there is no second derivative.
        run = tree_ensemble_backward if torch.is_grad_enabled() else _backward
        return _gradient(ctx, slope, None, run)


class _Transparent(torch.autograd.Function):
    """The dense passes, open to a compiler, which takes no second derivative either."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *tensors, ctx.gamma, ctx.activation = inputs
        ctx.save_for_backward(*tensors)
        return tel_gradient.forward(*inputs)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        needs_x = ctx.needs_input_grad[0]
        dx, *others = tel_gradient.backward(
            *ctx.saved_tensors, slope, ctx.gamma, ctx.activation, with_x=needs_x
        )
        return (dx if needs_x else None, *others, None, None)


def answer(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> Tensor:
    """Return the sum over trees of the expected values of their leaves, (n, k)."""
    inputs = (x, weight, bias, leaves, gamma, activation)
    if torch.compiler.is_compiling():
        is_dense = not (tel_engine.takes(x) or _may_run_in_triton(x, activation))
        return _Transparent.apply(*inputs) if is_dense else tree_ensemble(*inputs)[0]
    # Somebody who follows what tensors go through, or tensors without numbers, need operators.
    if _get_current_dispatch_mode() is None and type(x) in (Tensor, nn.Parameter):
        return _Direct.apply(*inputs)
    return tree_ensemble(*inputs)[0]


def reachable_leaves(
    x: Tensor, weight: Tensor, bias: Tensor, gamma: float, activation: str
) -> Tensor:
    """Return how many leaves of each tree each sample reaches, (n, T) int32."""
    way = _triton(x, weight, activation) or _other(x)
    parts = (part.contiguous() for part in (x, weight, bias))
    with torch.cuda.device_of(x):  # changes nothing elsewhere
        return way.reachable_leaves(*parts, gamma, activation)


tree_ensemble.register_autograd(_gradient, setup_context=_keep)
tree_ensemble_backward.register_autograd(_no_second_derivative)
