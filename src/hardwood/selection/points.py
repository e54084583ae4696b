"""All points of a search space."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from hardwood.selection.mapping_space import MappingSpace, Suggest

_MAX_GRID = 100_000
_MAX_POINTS = 10_000


def grid(suggest: Suggest, at_most: int = _MAX_GRID) -> list[dict[str, Any]]:
    """Enumerate a space: what its `suggest_...` calls return by name, on every path through it.

    Raises
    ------
    ValueError
        Where a parameter has no finite number of values, or there are more points than `at_most`.
    """
    points = list(itertools.islice(_paths(suggest), at_most + 1))
    if len(points) > at_most:
        raise ValueError(
            f"The grid has more than {at_most:,} points. Give fewer values, or sampler='random'."
        )
    return points


def finite_points(suggest: Suggest) -> list[dict[str, Any]]:
    """Enumerate a mapping of at most 10,000 points; an empty list for all other spaces."""
    try:
        return grid(suggest, _MAX_POINTS) if isinstance(suggest, MappingSpace) else []
    except ValueError:
        return []


class _Path:
    """A trial that chooses by a list of positions, and first values behind its end."""

    def __init__(self, positions: list[list[int]]) -> None:
        self.positions = positions
        self.params: dict[str, Any] = {}

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Return the choice at the position of this call."""
        if name in self.params:  # asked again: the same value, as in Optuna
            return self.params[name]
        depth = len(self.params)
        if depth == len(self.positions):
            self.positions.append([0, len(choices)])
        self.params[name] = choices[self.positions[depth][0]]
        return self.params[name]

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Choose among the integers; `log` changes their chances only."""
        return self.suggest_categorical(name, range(low, high + 1, step))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Choose among numbers at a distance of `step`."""
        if step is None:
            raise ValueError(
                f"A grid needs a finite number of values, but '{name}' is any number from {low:g} "
                f"to {high:g}. Give a list of values or a step, or sampler='random'."
            )
        n = math.floor((high - low) / step + 1e-9) + 1
        return self.suggest_categorical(name, [min(low + i * step, high) for i in range(n)])


def _paths(suggest: Suggest) -> Iterator[dict[str, Any]]:
    positions: list[list[int]] = []  # per call: which value, of how many
    while True:
        path = _Path(positions)
        suggest(path)
        yield path.params
        while positions and positions[-1][0] == positions[-1][1] - 1:
            positions.pop()
        if not positions:
            return
        positions[-1][0] += 1
