"""Checks of constructor parameters, made in `fit`: what was found, what was expected."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from hardwood.arguments import choice, flag, integer, real
from hardwood.learn.training import Callback, Training

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

_MAX_THREADS = 1024  # more would only wait for each other


def level(name: str, value: Any) -> int:
    """Return how much to say: an integer >= 0, or a boolean."""
    return int(value) if isinstance(value, bool) else integer(name, value, 0)


def n_threads(value: Any) -> int:
    """Return a number of threads: None is 1, negative numbers count from all processors."""
    if value is not None:
        integer("n_jobs", abs(value) if isinstance(value, numbers.Integral) else value, 1)
    return min(effective_n_jobs(value), _MAX_THREADS)


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
