"""Parameters that declare and check their own range, with uniform error messages.

This module does not import NumPy, because `hardwood.nn` loads without it.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

MAX_COUNT = 2**31 - 1  # the largest integer of the engine
_MAX_THREADS = 1024  # more threads would only wait for each other
_BEYOND_USE = 1e30  # larger bounds only keep numbers finite and are not shown

# [DGT22], Table 12: hidden sizes of DGT by the depth of the tree, for L = 3.
_HIDDEN_SIZES = {2: 240, 4: 600, 6: 1008, 8: 1530, 10: 2046}

Check = Callable[[str, Any], Any]
"""Takes the name and value of a parameter; returns the checked value, or raises an error."""


# --- checks of single values ------------------------------------------------------------------


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return an integer within [low, high], as a plain int."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < low or (high is not None and value > high):
        bound = f">= {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {bound}, got {value!r:.200}.")
    return int(value)


def real(
    name: str,
    value: Any,
    low: float,
    high: float = math.inf,
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
            f"{name} must be a number in {left}{low:g}, {high:g}{right}, got {value!r:.200}."
        )
    return float(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> Any:
    """Return one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r:.200}.")
    return value


def flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not _is_bool(value):
        raise ValueError(f"{name} must be True or False, got {value!r:.200}.")
    return bool(value)


def switch(name: str, value: Any) -> bool | str:
    """Return True, False or "auto"."""
    if _is_bool(value):
        return bool(value)
    if is_auto(value):
        return "auto"
    raise ValueError(f"{name} must be 'auto', True or False, got {value!r:.200}.")


def level(name: str, value: Any) -> int:
    """Return a verbosity: an integer >= 0, or a boolean."""
    return int(value) if isinstance(value, bool) else integer(name, value, 0)


def n_threads(n_jobs: Any) -> int:
    """Return the number of threads: 1 for None; negative numbers count back from all processors."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(
            "n_jobs must be None, a positive number of threads, or -1 for all processors, got "
            f"{n_jobs!r:.200}."
        )
    number = int(n_jobs)
    if abs(number) > _MAX_THREADS:
        raise ValueError(
            f"n_jobs must be from -{_MAX_THREADS} to {_MAX_THREADS}, got {number!r:.200}. -1 uses "
            f"all processors, of which this machine has {_n_processors()}."
        )
    return number if number > 0 else max(1, _n_processors() + 1 + number)


def callback_list(callbacks: Any, argument: str = "Epoch") -> list[Callable[[Any], Any]]:
    """Return the callbacks as a list; a single function becomes a list."""
    if callbacks is None:
        return []
    each = [callbacks] if callable(callbacks) else callbacks
    if not isinstance(each, Sequence) or not all(callable(one) for one in each):
        raise TypeError(
            f"callbacks must be None, a function of one {argument}, or a list of such functions, "
            f"got {callbacks!r}."
        )
    return list(each)


def is_auto(value: Any) -> bool:
    """Whether a parameter is "auto"."""
    return isinstance(value, str) and value == "auto"


def _is_bool(value: Any) -> bool:
    # NumPy's boolean is recognized by its name, because NumPy is not imported.
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _n_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# --- a default that `learn` and `nn` share -----------------------------------------------------


def hidden_size(max_depth: int) -> int:
    """Return DGT's hidden size from Table 12, interpolated linearly and clipped to its ends."""
    lowest, highest = min(_HIDDEN_SIZES), max(_HIDDEN_SIZES)
    depth = min(max(max_depth, lowest), highest)
    below, above = depth - depth % 2, depth + depth % 2
    return (_HIDDEN_SIZES[below] + _HIDDEN_SIZES[above]) // 2


# --- fields that carry their check ------------------------------------------------------------

Kind = Literal[
    "integer", "real", "choice", "flag", "switch", "text", "one_or_more", "sequence", "object"
]
"""Kinds of parameters; "one_or_more" is a number or several numbers, "sequence" is several."""


@dataclass(frozen=True)
class Values:
    """The values that a parameter takes, for help texts and for the command line.

    Attributes
    ----------
    kind
        The kind of value.
    low, high
        The range of a number; None for no bound.
    open_low, open_high
        Whether the bounds are excluded.
    choices
        The words it takes.
    or_none, or_auto
        Whether it also takes None or "auto".
    """

    kind: Kind
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()
    or_none: bool = False
    or_auto: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """All words it takes, with "none" for None."""
        return (
            *self.choices,
            *(["auto"] if self.or_auto else []),
            *(["none"] if self.or_none else []),
        )

    @property
    def bounds(self) -> str:
        """The range in words, such as "1 to 16" or "> 0"; empty without bounds."""
        low, high = (f"{bound:.8g}" if bound is not None else "" for bound in (self.low, self.high))
        above = f"{'>' if self.open_low else '>='} {low}" if low else ""
        if not high:
            return above
        if not low or self.open_low or self.open_high:
            below = f"{'<' if self.open_high else '<='} {high}"
            return f"{above} and {below}" if low else below
        return f"{low} to {high}"


def checked(default: Any, check: Check, values: Values) -> Any:
    """Declare a parameter with its default and its check; None or "auto" may be accepted."""

    def passed(name: str, value: Any) -> Any:
        if (values.or_none and value is None) or (values.or_auto and is_auto(value)):
            return value
        return check(name, value)

    return field(default=default, metadata={"check": passed, "values": values})


def integer_field(
    default: Any,
    low: int,
    high: int | None = MAX_COUNT,
    *,
    or_none: bool = False,
    or_auto: bool = False,
) -> Any:
    """Declare an integer within [low, high]."""
    shown = None if high == MAX_COUNT else high  # too large to show
    return checked(
        default,
        lambda name, value: integer(name, value, low, high),
        Values("integer", low, shown, or_none=or_none, or_auto=or_auto),
    )


def real_field(
    default: Any,
    low: float,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = True,
    or_none: bool = False,
    or_auto: bool = False,
) -> Any:
    """Declare a number between low and high."""

    def check(name: str, value: Any) -> float:
        return real(name, value, low, high, open_low=open_low, open_high=open_high)

    values = Values(
        "real",
        None if low == -math.inf else low,
        None if high >= _BEYOND_USE else high,
        open_low,
        open_high,
        or_none=or_none,
        or_auto=or_auto,
    )
    return checked(default, check, values)


def choice_field(default: Any, allowed: tuple[str, ...], *, or_none: bool = False) -> Any:
    """Declare one of a few words."""
    return checked(
        default,
        lambda name, value: choice(name, value, allowed),
        Values("choice", choices=allowed, or_none=or_none),
    )


def flag_field(default: bool) -> Any:
    """Declare True or False."""
    return checked(default, flag, Values("flag"))


def switch_field(default: bool | str = "auto") -> Any:
    """Declare True, False or "auto"."""
    return checked(default, switch, Values("switch"))


def object_field(default: Any, *, named: str) -> Any:
    """Declare an object of the class `named`, that of the default; None means the default."""
    kind = type(default)

    def check(name: str, value: Any) -> Any:
        if value is None:
            return default
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be None or a {named}, got {value!r}.")
        return value

    return checked(default, check, Values("object"))


def unchecked_field(
    default: Any,
    kind: Literal["text", "object"],
    *,
    choices: tuple[str, ...] = (),
    or_none: bool = False,
    or_auto: bool = False,
) -> Any:
    """Declare a parameter that is checked elsewhere, such as the name of a scorer."""
    values = Values(kind, choices=choices, or_none=or_none, or_auto=or_auto)
    return checked(default, lambda _, value: value, values)


class Parameters:
    """Base of frozen dataclasses that check their fields on construction."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        for each in fields(self):
            if "check" in each.metadata:
                value = each.metadata["check"](each.name, getattr(self, each.name))
                object.__setattr__(self, each.name, value)


_Kind = TypeVar("_Kind", bound=Parameters)


def parameters_of(kind: type[_Kind], source: Any, **further: Any) -> _Kind:
    """Build an instance from attributes of the same names; `further` take precedence."""
    names = {each.name for each in fields(kind)} - set(further)
    return kind(
        **{name: getattr(source, name) for name in names if hasattr(source, name)}, **further
    )
