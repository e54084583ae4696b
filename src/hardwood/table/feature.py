"""What a model stores about one column of its training table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hardwood.errors import TableError

Level = str | int | float | bool
"""A value of a categorical column: what JSON can hold, so that a model file can."""

MAX_LEVELS = 255
"""Maximum number of levels per categorical column; each has a weight in every split."""

ORIGINS = ("number", "integer", "boolean", "date", "duration")
"""What the numbers of a column can represent; dates and durations are in seconds."""

_KEYS = {
    "numeric": {"name", "kind", "has_missing", "spread", "center", "scale", "origin"},
    "categorical": {"name", "kind", "has_missing", "spread", "levels"},
}


@dataclass(frozen=True)
class Feature:
    """One column of a training table.

    Parameters
    ----------
    name
        Name of the column.
    kind
        ``"numeric"`` or ``"categorical"``.
    levels
        Categorical only: 1 to 255 distinct values, in the order of their indicator columns.
    center
        Numeric only: the (weighted) mean of the training values, subtracted in float64 before any
        float32 arithmetic.
    scale
        Numeric only: positive. The power of two nearest the (weighted) standard deviation; 1 for a
        constant column.
    has_missing
        Whether the training table had missing values; the feature then has a missing indicator.
    spread
        The (weighted) standard deviation of each column of the feature: of the numbers, of each
        0/1 indicator, of the 0/1 missing indicator. Finite, at least 0; empty if unknown. It ranks
        the terms of a split and does not affect predictions.
    origin
        Numeric only: ``"number"``, ``"integer"`` (all training values were whole), ``"boolean"``,
        ``"date"`` (seconds since 1970) or ``"duration"`` (seconds).

    Raises
    ------
    ValueError
        If a value contradicts the above; the message names the feature.
    """

    name: str
    kind: str
    levels: tuple[Level, ...] = ()
    center: float = 0.0
    scale: float = 1.0
    has_missing: bool = False
    spread: tuple[float, ...] = ()
    origin: str = "number"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"the name of a feature must be text, found {self.name!r:.80}")
        check_text("the column name", self.name)
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
        if self.origin not in ORIGINS:
            raise self._wrong("origin", self.origin, f"one of {', '.join(map(repr, ORIGINS))}")
        if self.kind == "categorical":
            self._check_categorical()
        self._check_spread()

    def _check_categorical(self) -> None:
        if (self.center, self.scale) != (0.0, 1.0):
            raise self._wrong("center and scale", (self.center, self.scale), "0 and 1")
        if self.origin != "number":
            raise self._wrong("origin", self.origin, "'number', as the feature is categorical")
        if not isinstance(self.levels, tuple) or not 1 <= len(self.levels) <= MAX_LEVELS:
            raise self._wrong("levels", self.levels, f"a tuple of 1 to {MAX_LEVELS} values")
        for level in self.levels:
            if not is_level(level):
                raise self._wrong("levels", level, "text, finite numbers, true or false")
            if isinstance(level, str):
                check_text(f"column {self.name!r:.80}: the level", level)
        if len(set(self.levels)) < len(self.levels):
            raise self._wrong("levels", self.levels, "values that are all different")

    def _check_spread(self) -> None:
        fits = isinstance(self.spread, tuple) and len(self.spread) in (0, self.n_columns)
        if not (fits and all(_is_finite_float(s) and s >= 0 for s in self.spread)):
            raise self._wrong(
                "spread", self.spread, f"{self.n_columns} finite floats at least 0, or empty"
            )

    @property
    def n_columns(self) -> int:
        """Number of weights per split: one, or one per level, and one for the missing indicator."""
        return max(len(self.levels), 1) + self.has_missing

    def _wrong(self, part: str, found: object, expected: str) -> ValueError:
        shown = repr(found)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        return ValueError(f"{part} of feature {self.name!r:.80} must be {expected}, found {shown}")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary for `from_dict`."""
        head = {
            "name": self.name,
            "kind": self.kind,
            "has_missing": self.has_missing,
            "spread": list(self.spread),
        }
        if self.kind == "categorical":
            return {**head, "levels": list(self.levels)}
        return {**head, "center": self.center, "scale": self.scale, "origin": self.origin}

    @classmethod
    def from_dict(cls, content: object) -> Feature:
        """Read the result of `to_dict`; raise `ValueError` for anything else."""
        if not isinstance(content, Mapping):
            raise ValueError(f"a feature must be a mapping, found {type(content).__name__}")
        kind = content.get("kind")
        expected = _KEYS.get(kind) if isinstance(kind, str) else None
        if expected is None:
            raise ValueError(
                f"kind of a feature must be 'numeric' or 'categorical', found {kind!r:.80}"
            )
        if set(content) != expected:
            raise ValueError(
                f"a {kind} feature must have the keys {sorted(expected)}, "
                f"found {sorted(map(str, content))!r:.200}"
            )
        parts = dict(content)
        for part in ("center", "scale"):
            if part in parts:
                parts[part] = _as_float(parts[part])
        for part in ("levels", "spread"):
            if isinstance(parts.get(part), list):
                parts[part] = tuple(parts[part])
        if isinstance(parts["spread"], tuple):
            parts["spread"] = tuple(map(_as_float, parts["spread"]))
        return cls(**parts)


def is_level(value: object) -> bool:
    """Whether a value can be a level: a Python string, finite number or boolean."""
    return type(value) in (str, int, bool) or _is_finite_float(value)


def check_text(what: str, text: str) -> str:
    """Return text; refuse half of a surrogate pair, which UTF-8 and thus no file can hold.

    Raises
    ------
    TableError
        It names the text, and ``what`` it is.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TableError(
            f"{what} {text!r:.80} is not valid Unicode: {error.reason} at character {error.start}. "
            "Replace it, for example by text.encode(errors='replace').decode()."
        ) from error
    return text


def _as_float(value: Any) -> Any:
    """Convert integers to floats, because some tools write 0.0 as 0 in JSON.

    Integers beyond float64 and other types are left to the constructor, which refuses them.
    """
    return float(value) if type(value) is int and abs(value) <= 2**1000 else value


def _is_finite_float(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
