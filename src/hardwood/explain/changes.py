"""What would have to be different: changed rows, and what was changed in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np

from hardwood.explain.constraints import Freedom
from hardwood.explain.entries import entry
from hardwood.model import ObliqueTree
from hardwood.text.frames import Backend, make_frame
from hardwood.text.numbers import format_quantity
from hardwood.text.terms import label_text

Norm = Literal["l2", "l1", "l0"]


@dataclass(frozen=True)
class Move:
    """One feature that changes.

    ``step`` is what it counts: the size of the change times its weight, in standard deviations by
    default; for another level, its weight.
    """

    feature: str
    before: Any
    after: Any
    step: float
    words: str = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Change:
    """The smallest change of one row.

    Attributes
    ----------
    row
        Number of the row in the table.
    found
        Whether there is a change that leads to the wanted answer.
    is_exact
        Whether the search was complete: no smaller change exists, or none at all.
    distance
        0 where the answer is as wanted already; infinity where no change was found.
    moves
        What changes, the largest step first.
    x
        The changed row, by the names of the features; None where no change was found.
    leaf, prediction
        Where the changed row arrives, and what it is answered; None where no change was found.
    """

    row: int
    found: bool
    is_exact: bool
    distance: float
    moves: tuple[Move, ...]
    x: dict[str, Any] | None
    leaf: int | None
    prediction: Any

    def __str__(self) -> str:
        if not self.found:
            return "no change leads there" if self.is_exact else "no change was found"
        words = ", ".join(map(str, self.moves)) or "as it is"
        return f"{words}: {_plain(self.prediction)!r}"


@dataclass(frozen=True, eq=False)
class Changes(Sequence[Change]):
    """The smallest changes of the rows of a table: a sequence of `Change`, and arrays of them all.

    Attributes
    ----------
    tree
        What was asked.
    norm
        How changes were measured.
    found, is_exact, distance
        (n,) as in `Change`.
    before, after
        (n, p) float64: the rows and the changed rows as the engine takes them, levels by their
        positions. A row for which no change was found stays as it was.
    leaf
        (n,) leaves that the changed rows reach; -1 where no change was found.
    outputs
        (n, k) what they are given there: probabilities or values.
    """

    tree: ObliqueTree
    norm: Norm
    freedom: Freedom = field(repr=False)
    found: np.ndarray
    is_exact: np.ndarray
    distance: np.ndarray
    before: np.ndarray
    after: np.ndarray
    leaf: np.ndarray
    outputs: np.ndarray
    predictions: np.ndarray

    @cached_property
    def X(self) -> np.ndarray:
        """The changed rows as a table that the model reads, (n, p).

        Float64, or objects where there are categories: levels, numbers, None where missing.
        """
        if self.tree.schema.is_numeric:
            return self.after
        table = np.empty(self.after.shape, dtype=object)
        for i, row in enumerate(self.after):
            table[i] = [self._entry(j, value) for j, value in enumerate(row.tolist())]
        return table

    @cached_property
    def has_moved(self) -> np.ndarray:
        """Which features change, (n, p)."""
        return self._steps > 0

    @cached_property
    def _steps(self) -> np.ndarray:
        return self.freedom.steps(self.before, self.after)

    def _entry(self, j: int, value: float) -> Any:
        """Return an entry of the engine's matrix as it is in the table."""
        return entry(self.tree.schema, j, value)

    def _move(self, i: int, j: int) -> Move:
        feature = self.tree.schema.features[j]
        before, after = (self._entry(j, float(rows[i, j])) for rows in (self.before, self.after))
        if feature.levels:
            texts = [label_text(level) for level in (before, after)]
        else:
            # Digits enough for the smaller of what it varies by and what it moves by.
            fine = min(1 / self.freedom.cost[j], abs(after - before))
            texts = [format_quantity(x, feature.origin, 3, spread=fine) for x in (before, after)]
        words = f"{feature.name} {texts[0]} -> {texts[1]}"
        return Move(feature.name, before, after, float(self._steps[i, j]), words)

    def _change(self, i: int) -> Change:
        moved = sorted(np.flatnonzero(self.has_moved[i]).tolist(), key=lambda j: -self._steps[i, j])
        found = bool(self.found[i])
        entries = [self._entry(j, value) for j, value in enumerate(self.after[i].tolist())]
        return Change(
            row=i,
            found=found,
            is_exact=bool(self.is_exact[i]),
            distance=float(self.distance[i]),
            moves=tuple(self._move(i, j) for j in moved),
            x=dict(zip(self.tree.schema.names, entries, strict=True)) if found else None,
            leaf=int(self.leaf[i]) if found else None,
            prediction=self.predictions[i] if found else None,
        )

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, which: int) -> Change: ...
    @overload
    def __getitem__(self, which: slice) -> list[Change]: ...
    def __getitem__(self, which: int | slice) -> Change | list[Change]:
        places = range(len(self))[which]
        return (
            [self._change(i) for i in places] if isinstance(places, range) else self._change(places)
        )

    def __iter__(self) -> Iterator[Change]:
        return map(self._change, range(len(self)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the changed rows column by column, then what is known of them.

        Further columns are ``(found)``, ``(is_exact)``, ``(distance)``, ``(leaf)`` and, but for
        several outputs, ``(prediction)``.
        """
        rows = self.X.tolist()
        table = {name: [row[j] for row in rows] for j, name in enumerate(self.tree.schema.names)}
        for name in ("found", "is_exact", "distance", "leaf"):
            table[f"({name})"] = getattr(self, name).tolist()
        if self.predictions.ndim == 1:
            told = zip(self.predictions.tolist(), self.found.tolist(), strict=True)
            table["(prediction)"] = [answer if found else None for answer, found in told]
        return table

    def to_frame(self, *, backend: Backend | None = None) -> Any:
        """Return `to_dict` as a data frame of pandas, polars or pyarrow: the first there is."""
        return make_frame(self.to_dict(), backend, purpose="Changes as a data frame")

    def __str__(self) -> str:
        lines = [f"row {change.row}: {change}" for change in self[:20]]
        more = len(self) - len(lines)
        return "\n".join([*lines, *([f"... and {more} more rows"] if more else [])])

    def __repr__(self) -> str:
        n, stay = len(self), int((self.distance == 0).sum())
        found = int(self.found.sum())
        return (
            f"Changes({n} rows, {self.norm}: {found - stay} changed, {stay} as wanted already, "
            f"{n - found} without a change)"
        )


def _plain(answer: Any) -> Any:
    return answer.tolist() if isinstance(answer, np.ndarray | np.generic) else answer
