"""What the layers ask of their input and of the place they compute in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn


def placement(layer: nn.Module, device: Any, dtype: torch.dtype | None) -> dict[str, Any]:
    """Return where a layer's parameters are, and in what precision, as torch takes it."""
    return {"device": device, "dtype": supported(layer, dtype or torch.get_default_dtype())}


def supported(layer: nn.Module, dtype: torch.dtype) -> torch.dtype:
    """Return a dtype that the layers compute in."""
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"{type(layer).__name__} computes in float32 or float64, got {dtype}: half precision "
            "would send rows another way than the tree that is kept. Leave the layer in float32 "
            "(under torch.autocast its input may be half)"
        )
    return dtype


def checked_input(layer: nn.Module, x: Any, dtype: torch.dtype) -> Tensor:
    """Return the input (..., in_features) of a layer that computes in `dtype`.

    Under autocast, input of half precision is converted; elsewhere it has to be of that dtype.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{type(layer).__name__} takes a tensor (..., {layer.in_features}), got "
            f"{type(x).__name__}. Use torch.as_tensor(x, dtype=torch.float32)."
        )
    if _is_autocast(x) and x.dtype in (torch.float16, torch.bfloat16):
        x = x.to(dtype)
    if x.dim() == 0 or x.shape[-1] != layer.in_features:
        raise ValueError(
            f"expected input of shape (..., {layer.in_features}), got {tuple(x.shape)}"
        )
    supported(layer, dtype)
    if x.dtype != dtype:
        raise TypeError(
            f"expected input of the layer's dtype, {dtype}, got {x.dtype}. "
            f"Convert the input, as x.to({dtype}), or the layer, as layer.double()"
        )
    return x


def own_precision(x: Tensor) -> AbstractContextManager[Any]:
    """Keep autocast away: half-precision splits would be other ones than those that are kept."""
    return torch.autocast(x.device.type, enabled=False) if _is_autocast(x) else nullcontext()


def _is_autocast(x: Tensor) -> bool:
    return x.device.type != "meta" and torch.is_autocast_enabled(x.device.type)
