"""The losses of `hardwood.learn.losses` in torch: one differentiable value per row."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from hardwood.learn.losses import Custom, Loss


def row_losses(loss: Loss, scores: Tensor, y: Tensor) -> Tensor:
    """Return the loss of each row, (n,), defined in `tests/reference/losses.py`.

    Parameters
    ----------
    loss
        Which one.
    scores
        (n, k), before the link.
    y
        (n, t) in the units of the loss: class indices or numbers.
    """
    if loss.name == "custom":
        assert isinstance(loss, Custom)
        return _CustomLoss.apply(scores, y, loss)  # type: ignore[no-untyped-call]
    if loss.name == "cross_entropy":
        return functional.cross_entropy(scores, y[:, 0].long(), reduction="none")
    if loss.name in ("hinge", "squared_codes"):
        codes = 2.0 * functional.one_hot(y[:, 0].long(), scores.shape[1]) - 1.0
        is_hinge = loss.name == "hinge"
        each = functional.relu(1.0 - codes * scores) if is_hinge else (scores - codes).square()
        return each.sum(dim=1)
    if loss.name == "logistic":
        each = functional.binary_cross_entropy_with_logits(scores, y, reduction="none")
    elif loss.name == "poisson":
        each = scores.exp() - y * scores
    else:
        each = _of_residual(loss, scores - y)
    return each.mean(dim=1)


def _of_residual(loss: Loss, residual: Tensor) -> Tensor:
    size = residual.abs()
    if loss.name == "squared_error":
        return residual.square()
    if loss.name == "absolute_error":
        return size
    if loss.name == "huber":
        delta = loss.parameter
        return torch.where(size <= delta, 0.5 * size.square(), delta * (size - 0.5 * delta))
    if loss.name == "quantile":
        return torch.where(residual < 0, loss.parameter * size, (1.0 - loss.parameter) * size)
    raise ValueError(
        f"Latent trees do not know the loss {loss.name!r}. Give its name, a loss object of "
        "hardwood.learn.losses, or a function (prediction, target) -> gradient."
    )


class _CustomLoss(torch.autograd.Function):
    """A user's function: its gradient, and its values if it has some (else NaN)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, y: Tensor, loss: Custom) -> Tensor:
        values, gradient = loss(scores.detach().numpy(), y.numpy())
        ctx.save_for_backward(torch.from_numpy(gradient))
        if values is None:
            return torch.full((len(scores),), torch.nan)
        return torch.from_numpy(values)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return slope[:, None] * gradient, None, None
