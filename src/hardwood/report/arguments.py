"""Options of reports, refused by their names where they are of no use."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return an integer, of Python or NumPy, that is neither too small nor too large.

    Raises
    ------
    TypeError
        If it is none; True and False are not.
    ValueError
        If it is out of range.
    """
    wanted = f"at least {least}" if most is None else f"from {least} to {most}"
    number = _integer(value)
    if number is None:
        raise TypeError(f"{name} must be an integer {wanted}, found {value!r:.80}")
    if number < least or (most is not None and number > most):
        raise ValueError(f"{name} must be {wanted}, found {value!r:.80}")
    return number


def thread_count(n_jobs: Any) -> int | None:
    """Return ``n_jobs`` where it is an integer that is not zero, or None."""
    number = None if n_jobs is None else _integer(n_jobs)
    if (n_jobs is not None and number is None) or number == 0:
        error = ValueError if number == 0 else TypeError
        raise error(
            f"n_jobs must be a positive number of threads, or -1 for all processors, "
            f"found {n_jobs!r:.80}"
        )
    return number


def generator(seed: Any) -> np.random.Generator:
    """Return the generator of a seed."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"seed must be an integer >= 0 or a numpy.random.Generator, found {seed!r:.80}"
        ) from None


def positive_seconds(name: str, value: Any) -> float:
    """Return a time that is positive and finite."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, found {value!r:.80}")
    seconds = float(value)
    if not 0 < seconds < math.inf:
        raise ValueError(f"{name} must be positive and finite, found {value!r:.80}")
    return seconds


def whole_numbers(name: str, values: Any, least: int) -> list[int]:
    """Return at least one integer, none of them too small."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{name} must list integers >= {least}, found {values!r:.80}")
    if len(values) == 0:
        raise ValueError(f"{name} must list at least one integer >= {least}, found {values!r:.80}")
    return [whole_number(f"each of {name}", value, least) for value in values]


def check_groups(groups: Any) -> None:
    """Refuse groups of features that have no names."""
    if groups is not None and not isinstance(groups, Mapping):
        raise TypeError(
            "groups must name each group and list its features, as in "
            f"{{'place': ['north', 'east']}}, found {groups!r:.80}"
        )


def feature_list(features: Any) -> list[Any]:
    """Return the names of features; one may come by itself."""
    if isinstance(features, str):
        return [features]
    try:
        return list(features)
    except TypeError:
        raise TypeError(f"features must list names, found {features!r:.80}") from None


def _integer(value: Any) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
