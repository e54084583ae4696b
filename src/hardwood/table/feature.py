"""One column of the user's table, as a model remembers it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Level = str | int | float | bool
"""A value of a categorical column: what JSON can hold, so that a model file can."""

MAX_LEVELS = 255
"""Levels kept per categorical column; each becomes a column of every split."""

_KEYS = {
    "numeric": {"name", "kind", "has_missing", "center", "scale"},
    "categorical": {"name", "kind", "has_missing", "levels"},
}


@dataclass(frozen=True)
class Feature:
    """What a model knows about one column of its training table.

    Parameters
    ----------
    name
        Name of the column.
    kind
        ``"numeric"`` or ``"categorical"``.
    levels
        Categorical only: the known values, in the order of their indicator columns; 1 to 255 of
        them, no two equal.
    center
        Numeric only: the (weighted) mean of the training values, subtracted in float64 before any
        float32 arithmetic.
    scale
        Numeric only: positive. What is learned is the power of two nearest their (weighted)
        standard deviation, 1 for a constant column.
    has_missing
        Whether training saw missing entries, which gives the feature a missing-flag column.

    Raises
    ------
    ValueError
        Where a part contradicts the above; the message names the feature.
    """

    name: str
    kind: str
    levels: tuple[Level, ...] = ()
    center: float = 0.0
    scale: float = 1.0
    has_missing: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"the name of a feature must be text, found {self.name!r}")
        if self.kind not in _KEYS:
            raise self._wrong("kind", self.kind, "'numeric' or 'categorical'")
        if not isinstance(self.has_missing, bool):
            raise self._wrong("has_missing", self.has_missing, "true or false")
        if not _is_finite_float(self.center):
            raise self._wrong("center", self.center, "a finite float")
        if not (_is_finite_float(self.scale) and self.scale > 0):
            raise self._wrong("scale", self.scale, "a positive finite float")
        if self.kind == "numeric" and self.levels != ():
            raise self._wrong("levels", self.levels, "none, as the feature is numeric")
        if self.kind == "categorical":
            self._check_categorical()

    def _check_categorical(self) -> None:
        if (self.center, self.scale) != (0.0, 1.0):
            raise self._wrong("center and scale", (self.center, self.scale), "0 and 1")
        if not isinstance(self.levels, tuple) or not 1 <= len(self.levels) <= MAX_LEVELS:
            raise self._wrong("levels", self.levels, f"a tuple of 1 to {MAX_LEVELS} values")
        for level in self.levels:
            if not is_level(level):
                raise self._wrong("levels", level, "text, finite numbers, true or false")
        if len(set(self.levels)) < len(self.levels):
            raise self._wrong("levels", self.levels, "values that are all different")

    def _wrong(self, part: str, found: object, expected: str) -> ValueError:
        shown = repr(found)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        return ValueError(f"{part} of feature {self.name!r} must be {expected}, found {shown}")

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold and `from_dict` reads back unchanged."""
        head = {"name": self.name, "kind": self.kind, "has_missing": self.has_missing}
        if self.kind == "categorical":
            return {**head, "levels": list(self.levels)}
        return {**head, "center": self.center, "scale": self.scale}

    @classmethod
    def from_dict(cls, content: object) -> Feature:
        """Read what `to_dict` wrote; `ValueError` says what is wrong with anything else."""
        if not isinstance(content, Mapping):
            raise ValueError(f"a feature must be a mapping, found {type(content).__name__}")
        kind = content.get("kind")
        expected = _KEYS.get(kind) if isinstance(kind, str) else None
        if expected is None:
            raise ValueError(
                f"kind of a feature must be 'numeric' or 'categorical', found {kind!r}"
            )
        if set(content) != expected:
            raise ValueError(
                f"a {kind} feature must have the keys {sorted(expected)}, "
                f"found {sorted(map(str, content))}"
            )
        parts = dict(content)
        for part in ("center", "scale"):
            # JSON written by other tools may hold 0 for 0.0; integers beyond float64 stay and are
            # refused by the constructor.
            if type(parts.get(part)) is int and abs(parts[part]) <= 2**1000:
                parts[part] = float(parts[part])
        if isinstance(parts.get("levels"), list):
            parts["levels"] = tuple(parts["levels"])
        return cls(**parts)


def is_level(value: object) -> bool:
    """Whether a value can be a level: text, a finite number or a boolean, of Python's own types."""
    return type(value) in (str, int, bool) or _is_finite_float(value)


def _is_finite_float(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
