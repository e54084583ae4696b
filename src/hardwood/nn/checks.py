"""Checks of the input, device and precision of the layers."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn


def placement(layer: nn.Module, device: Any, dtype: torch.dtype | None) -> dict[str, Any]:
    """Return the device and dtype of a layer's parameters, for torch."""
    return {"device": device, "dtype": supported(layer, dtype or torch.get_default_dtype())}


def supported(layer: nn.Module, dtype: torch.dtype) -> torch.dtype:
    """Return a dtype that the layers compute in."""
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"{type(layer).__name__} computes in float32 or float64, got {dtype}. In half "
            "precision rows would take other paths than in the exported tree. Keep the layer in "
            "float32 (under torch.autocast its input may be in half precision)"
        )
    return dtype


def checked_input(layer: nn.Module, x: Any, dtype: torch.dtype) -> Tensor:
    """Return the input (..., in_features) of a layer that computes in `dtype`.

    Under autocast, half-precision input is converted; otherwise it must have that dtype.
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
    """Disable autocast: half-precision splits would differ from those of the exported tree."""
    return torch.autocast(x.device.type, enabled=False) if _is_autocast(x) else nullcontext()


def _is_autocast(x: Tensor) -> bool:
    return x.device.type != "meta" and torch.is_autocast_enabled(x.device.type)
