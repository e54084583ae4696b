"""Checks of arguments: what was found, what was expected."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return an integer within [low, high], as a plain int."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < low or (high is not None and value > high):
        bound = f">= {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {bound}, got {value!r}.")
    return int(value)


def real(
    name: str,
    value: Any,
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = True,
) -> float:
    """Return a number between low and high, as a plain float."""
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if (
        not is_real
        or not low <= value <= high
        or (open_low and value == low)
        or (open_high and value == high)
    ):
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        raise ValueError(
            f"{name} must be a number in {left}{low:g}, {high:g}{right}, got {value!r}."
        )
    return float(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> Any:
    """Return one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}.")
    return value


def flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)
