"""Checks of constructor parameters, made in `fit`: what was found, what was expected."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from hardwood.learn.training import Callback, Training

_MAX_THREADS = 1024  # more would only wait for each other


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


def level(name: str, value: Any) -> int:
    """Return how much to say: an integer >= 0, or a boolean."""
    return int(value) if isinstance(value, bool) else integer(name, value, 0)


def n_threads(value: Any) -> int:
    """Return a number of threads: None is 1, negative numbers count from all processors."""
    if value is not None:
        integer("n_jobs", abs(value) if isinstance(value, numbers.Integral) else value, 1)
    return min(effective_n_jobs(value), _MAX_THREADS)


def flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def switch(name: str, value: Any) -> bool | None:
    """Return True, False, or None for "auto"."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str) and value == "auto":
        return None
    raise ValueError(f"{name} must be 'auto', True or False, got {value!r}.")


def training_options(value: Any, default: Training) -> Training:
    """Return the options of the training loop; the learner's own for None."""
    if value is None:
        return default
    if not isinstance(value, Training):
        raise TypeError(f"training must be None or a hardwood.Training, got {value!r}.")
    return value


def callback_list(value: Any) -> list[Callback]:
    """Return the callbacks as a list; one function alone is a list of one."""
    if value is None:
        return []
    callbacks = [value] if callable(value) else value
    if not isinstance(callbacks, Sequence) or not all(callable(each) for each in callbacks):
        raise TypeError(
            "callbacks must be None, a function of one Epoch, or a list of such functions, got "
            f"{value!r}."
        )
    return list(callbacks)
