"""A search space given as a mapping from parameters to values."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included: whole ones where both are.

    Parameters
    ----------
    low, high
        The ends.
    log
        Whether to draw on a logarithmic scale; `low` must then be positive.
    step
        Distance of neighboring values; None for every number between.
    or_zero
        Whether to draw zero instead, with even chances: for penalties, which may do nothing.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    or_zero: bool = False

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(f"A Range goes from a lower to a higher number, found {self!r}.")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError(
                f"A logarithmic Range is of positive numbers and has no step, found {self!r}."
            )
        if self.step is not None and not self.step > 0:
            raise ValueError(f"The step of a Range is positive, found {self!r}.")

    @property
    def is_whole(self) -> bool:
        """Whether only integers are meant."""
        given = (self.low, self.high, 1 if self.step is None else self.step)
        return all(isinstance(number, int) for number in given)


@dataclass(frozen=True)
class When:
    """Values that depend on a parameter which was chosen before, or is held.

    Parameters
    ----------
    parameter
        Its name.
    equals
        What it is compared with.
    then, otherwise
        The values where it is equal, and where it is not: lists or a `Range`.
    """

    parameter: str
    equals: Any
    then: Any
    otherwise: Any


Suggest = Callable[[Any], dict[str, Any]]
"""From an Optuna trial to parameters of an estimator."""


@dataclass(frozen=True)
class MappingSpace:
    """A space given as a mapping; calling it with a trial chooses parameters.

    Parameters
    ----------
    entries
        The mapping.
    held
        Parameters of the estimator, for what `When` asks of those that are not searched.
    """

    entries: Mapping[Any, Any]
    held: Mapping[str, Any]

    def __call__(self, trial: Any) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        for key, values in self.entries.items():
            names = names_of(key)
            label = ", ".join(names)
            if isinstance(values, When):
                label, values = self._branch(label, values, chosen)
            choice = _choose(trial, label, values, names)
            chosen.update(zip(names, choice if isinstance(key, tuple) else (choice,), strict=True))
        return chosen

    def _branch(self, label: str, when: When, chosen: Mapping[str, Any]) -> tuple[str, Any]:
        known = chosen.get(when.parameter, self.held.get(when.parameter))
        if known == when.equals:
            # Optuna wants the values of one name to be the same in every trial.
            return f"{label} ({when.parameter}={when.equals!r})", when.then
        return label, when.otherwise


def as_text(value: Any) -> str:
    """Return a value in words without anything that changes from run to run."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_text, value))}]"
    text = getattr(value, "__qualname__", None) or repr(value)
    return type(value).__name__ if " at 0x" in text else text


def described(suggest: Suggest) -> str:
    """Return a space as text, the same for the same space."""
    if not isinstance(suggest, MappingSpace):
        return f"function {getattr(suggest, '__qualname__', type(suggest).__name__)}"
    return repr({names_of(key): as_text(values) for key, values in suggest.entries.items()})


def names_of(key: Any) -> tuple[str, ...]:
    """Return the parameters that a key of a space chooses."""
    return key if isinstance(key, tuple) else (key,)


def check_entries(space: Mapping[Any, Any], held: Mapping[str, Any], estimator: str) -> None:
    """Raise a ValueError for a mapping that is no space of the estimator's parameters."""
    if not space:
        raise ValueError("The space is empty: there is nothing to choose.")
    seen: list[str] = []
    for key, values in space.items():
        for name in names_of(key):
            check_known(name, held, estimator)
            if name in seen:
                raise ValueError(f"'{name}' is in the space more than once.")
        if isinstance(values, When):
            check_known(values.parameter, held, estimator)
            later = {n for other in space for n in names_of(other)} - set(seen)
            if values.parameter in later:
                raise ValueError(
                    f"The values of {key!r} depend on '{values.parameter}', which must come before "
                    "it in the space."
                )
        for branch in (values.then, values.otherwise) if isinstance(values, When) else (values,):
            _check_values(key, branch)
        seen.extend(names_of(key))


def check_known(name: Any, known: Mapping[str, Any], estimator: str) -> None:
    """Raise a ValueError for what is no parameter of the estimator."""
    if name in known:
        return
    close = difflib.get_close_matches(str(name), list(known), n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    raise ValueError(f"{estimator} has no parameter {name!r}.{hint}")


def _check_values(key: Any, values: Any) -> None:
    if isinstance(values, Range):
        if isinstance(key, tuple):
            raise ValueError(f"{key!r} are chosen together, from a list of tuples; found {values}.")
        return
    if isinstance(values, str) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise ValueError(
            f"The values of {key!r} must be a list, a Range or a When, found {values!r}."
        )
    if len(values) == 0:
        raise ValueError(f"The list of values of {key!r} is empty.")
    if isinstance(key, tuple) and any(
        not isinstance(each, tuple | list) or len(each) != len(key) for each in values
    ):
        raise ValueError(
            f"{key!r} are chosen together: each value must be a tuple of {len(key)}, found "
            f"{values!r}."
        )
    words = _words(list(values), names_of(key))
    repeated = [word for i, word in enumerate(words) if word in words[:i]]
    if repeated:
        raise ValueError(f"The values of {key!r} hold {repeated[0]!r} more than once.")


def _choose(trial: Any, label: str, values: Any, names: tuple[str, ...]) -> Any:
    if isinstance(values, Range):
        return _choose_number(trial, label, values)
    values = [value.item() if hasattr(value, "item") else value for value in values]
    if len(values) == 1:
        return values[0]
    # Optuna stores plain values only: others are chosen by a word for each.
    words = _words(values, names)
    return values[words.index(trial.suggest_categorical(label, words))]


def _choose_number(trial: Any, label: str, values: Range) -> float:
    if values.or_zero and trial.suggest_categorical(f"{label} is zero", [True, False]):
        return 0.0
    if values.is_whole:
        step = 1 if values.step is None else values.step
        return trial.suggest_int(label, values.low, values.high, step=step, log=values.log)
    return trial.suggest_float(label, values.low, values.high, step=values.step, log=values.log)


def _words(values: list[Any], names: tuple[str, ...]) -> list[Any]:
    """Return each value itself where it is plain, else a text for it, the same in every process."""
    if len(names) > 1:
        return [
            ", ".join(f"{n}={part!r}" for n, part in zip(names, value, strict=True))
            for value in values
        ]
    return [
        value if value is None or isinstance(value, bool | int | float | str) else as_text(value)
        for value in values
    ]
