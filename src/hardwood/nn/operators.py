"""What the torch operators of all methods share: the engine, and their backward pass.

Tensors are handed to the engine as they are (by DLPack, without a copy and without NumPy); it
writes into memory that torch allocated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

_IS_BUILT = find_spec("hardwood._native") is not None


def engine_available() -> bool:
    """Whether layers on the CPU use the engine, which is part of a built hardwood.

    Without it (a checkout that was not built, say) they run in torch: the same up to rounding, and
    slower. `DenseGradientTree` uses the engine in float32 only, `TreeEnsembleLayer` in float64 too.
    Other devices do without it.
    """
    return _IS_BUILT


def run_engine(name: str, *parts: Any, in_parallel: bool = True) -> None:
    """Call a function of the engine, which writes its result into the last of the tensors."""
    from hardwood import _native

    # Tensors that require a gradient cannot be passed to the engine.
    given = (part.detach().contiguous() if isinstance(part, Tensor) else part for part in parts)
    options = {"n_threads": torch.get_num_threads()} if in_parallel else {}
    getattr(_native, name)(*given, **options)


def empty_gradients(x: Tensor, parts: Sequence[Tensor], with_x: bool) -> tuple[Tensor, ...]:
    """Allocate gradients of x (without rows unless `with_x`) and of each parameter."""
    dx = x.new_empty((x.shape[0] if with_x else 0, x.shape[1]))
    return dx, *(part.new_empty(part.shape) for part in parts)


def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Save the inputs and the second output; everything else is recomputed.

    To keep that too would cost numbers for every node and sample.
    """
    tensors = [part for part in inputs if isinstance(part, Tensor)]
    ctx.options = [part for part in inputs if not isinstance(part, Tensor)]
    ctx.save_for_backward(*tensors, output[1])


def gradient_by(backward: Callable[..., Sequence[Tensor]]) -> Callable[..., Any]:
    """Return the gradient of the first output by ``backward(*kept, slope, *options, with_x)``."""

    def gradient(ctx: Any, slope: Tensor, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        needs_x = ctx.needs_input_grad[0]
        dx, *others = backward(*ctx.saved_tensors, slope, *ctx.options, needs_x)
        return (dx if needs_x else None, *others, *(None for _ in ctx.options))

    return gradient


def without_operator(
    run: Callable[..., tuple[Tensor, Tensor]], run_back: Callable[..., Sequence[Tensor]]
) -> type[torch.autograd.Function]:
    """Return an autograd function that calls two functions, transparent to a compiler."""
    gradient = gradient_by(run_back)

    class WithoutOperator(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
            output = run(*inputs)
            keep(ctx, inputs, output)
            ctx.mark_non_differentiable(output[1])
            return output

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor) -> Any:
            return gradient(ctx, *slopes)

    return WithoutOperator


def no_second_derivative(why: str) -> Callable[..., None]:
    """Return the backward pass of a backward operator, which raises an error."""

    def refuse(ctx: Any, *_: Tensor) -> None:
        raise RuntimeError(
            f"{why} Leave out create_graph=True, or keep the layer out of what is differentiated "
            "twice."
        )

    return refuse
