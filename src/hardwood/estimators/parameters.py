"""Checks of constructor parameters, made in `fit`: what was found, what was expected."""

from __future__ import annotations

from typing import Any

from hardwood import parameters
from hardwood.learn.training import Training
from hardwood.parameters import callback_list, choice, flag, integer, level, n_threads, real

__all__ = [
    "callback_list",
    "choice",
    "flag",
    "integer",
    "level",
    "n_threads",
    "real",
    "switch",
    "training_options",
]


def switch(name: str, value: Any) -> bool | None:
    """Return True, False, or None for "auto"."""
    answer = parameters.switch(name, value)
    return None if isinstance(answer, str) else answer


def training_options(value: Any, default: Training) -> Training:
    """Return the options of the training loop; the learner's own for None."""
    if value is None:
        return default
    if not isinstance(value, Training):
        raise TypeError(f"training must be None or a hardwood.Training, got {value!r}.")
    return value
