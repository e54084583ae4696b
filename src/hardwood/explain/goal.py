"""What a tree is wanted to answer, and where it answers so: a union of polyhedra."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.model import ObliqueTree
from hardwood.model.outputs import YES

LeafRegion = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Half-spaces of a linear leaf: normals (q, c), bias (q,), and the room (q,) for a margin."""


class Wanted(ABC):
    """An answer that is asked for."""

    @abstractmethod
    def holds(self, outputs: np.ndarray) -> np.ndarray:
        """Whether outputs (n, k) give the answer, (n,)."""

    @abstractmethod
    def in_leaf(self, values: np.ndarray, weights: np.ndarray) -> Iterator[LeafRegion]:
        """Where a linear leaf gives the answer: regions, in any one of which it does.

        Parameters
        ----------
        values
            (k,) scores at the centres.
        weights
            (k, c) in raw units.
        """


@dataclass(frozen=True)
class WantedClass(Wanted):
    """One of some classes, by their positions."""

    positions: frozenset[int]

    def holds(self, outputs: np.ndarray) -> np.ndarray:
        return np.isin(outputs.argmax(axis=1), list(self.positions))

    def in_leaf(self, values: np.ndarray, weights: np.ndarray) -> Iterator[LeafRegion]:
        # One class has at least the score of every class that is not wanted. The first of equal
        # classes is predicted, so that against earlier ones it takes more.
        others = np.array([i for i in range(len(values)) if i not in self.positions], dtype=int)
        for mine in sorted(self.positions):
            lead = values[mine] - values[others]
            lead[others < mine] = np.nextafter(lead[others < mine], -np.inf)
            yield weights[mine] - weights[others], lead, np.full(others.size, np.inf)


@dataclass(frozen=True, eq=False)
class WantedLabels(Wanted):
    """Yes (1) or no (0) to each of k labels; NaN where either will do."""

    answers: np.ndarray

    def holds(self, outputs: np.ndarray) -> np.ndarray:
        agreed = ((outputs >= YES) == self.answers) | np.isnan(self.answers)
        return np.all(agreed, axis=1)

    def in_leaf(self, values: np.ndarray, weights: np.ndarray) -> Iterator[LeafRegion]:
        # A label has a probability of at least a half where its score is at least 0.
        asked = np.flatnonzero(~np.isnan(self.answers))
        yes = self.answers[asked] == 1
        sign = np.where(yes, 1.0, -1.0)
        bias = sign * values[asked]
        bias[~yes] = np.nextafter(bias[~yes], -np.inf)
        yield sign[:, None] * weights[asked], bias, np.full(asked.size, np.inf)


@dataclass(frozen=True, eq=False)
class WantedInterval(Wanted):
    """Outputs between bounds (k,), which are included and may be infinite.

    ``score_low`` and ``score_high`` are the same bounds before the link.
    """

    low: np.ndarray
    high: np.ndarray
    score_low: np.ndarray
    score_high: np.ndarray

    def holds(self, outputs: np.ndarray) -> np.ndarray:
        return np.all((self.low <= outputs) & (outputs <= self.high), axis=1)

    def in_leaf(self, values: np.ndarray, weights: np.ndarray) -> Iterator[LeafRegion]:
        # Two half-spaces per output; a margin may take up a quarter of what is between them.
        room = np.maximum(self.score_high - self.score_low, 0.0) / 4
        above, below = np.isfinite(self.score_low), np.isfinite(self.score_high)
        if (self.score_low == np.inf).any() or (self.score_high == -np.inf).any():
            return  # no score is so
        yield (
            np.vstack([weights[above], -weights[below]]),
            np.concatenate([(values - self.score_low)[above], (self.score_high - values)[below]]),
            np.concatenate([room[above], room[below]]),
        )


def read_wanted(tree: ObliqueTree, wanted: Any) -> Wanted:
    """Read what `nearest_change` was asked for.

    Raises
    ------
    ValueError, TypeError
        If the tree cannot give such an answer; the message says which ones it can.
    """
    if tree.classes is not None:
        return _classes(tree.classes, wanted)
    names = tree.target_names or tuple(f"output {i}" for i in range(tree.n_outputs))
    if tree.task == "multilabel":
        return WantedLabels(np.array([_yes_or_no(a) for a in _per_output(wanted, names, "label")]))
    if tree.n_outputs == 1 and not isinstance(wanted, Mapping):
        wanted = [wanted]
    pairs = [_interval(pair) for pair in _per_output(wanted, names, "output")]
    low, high = np.array(pairs).T
    if np.isinf(low).all() and np.isinf(high).all():
        raise ValueError("wanted says nothing: every number lies in it. Give a bound")
    if tree.has_linear_leaves and (low == high).any():
        raise ValueError(
            "the numbers of linear leaves are reached up to rounding errors only: wanted must be "
            "an interval with low < high"
        )
    return WantedInterval(low, high, *_before_link(tree.link, low, high))


def _classes(classes: Sequence[Any], wanted: Any) -> WantedClass:
    several = isinstance(wanted, list | tuple | set | frozenset | np.ndarray)
    labels = [_plain(label) for label in wanted] if several else [_plain(wanted)]
    for label in labels:
        if label not in classes:
            raise ValueError(
                f"wanted must be one of the classes {list(classes)!r:.200}, or several of them in "
                f"a list, found {label!r:.80}"
            )
    if not labels:
        raise ValueError("wanted is an empty list of classes: name one at least")
    return WantedClass(frozenset(classes.index(label) for label in labels))


def other_classes(tree: ObliqueTree, position: int) -> WantedClass:
    """Any class but one."""
    return WantedClass(frozenset(range(tree.n_outputs)) - {position})


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _per_output(wanted: Any, names: Sequence[str], what: str) -> list[Any]:
    """One entry per output, None where any answer will do."""
    if isinstance(wanted, Mapping):
        for name in wanted:
            if name not in names:
                raise ValueError(f"wanted names the {what} {name!r:.80}, found only {list(names)}")
        return [wanted.get(name) for name in names]
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise TypeError(f"wanted must have one entry per {what}, found {wanted!r:.80}")
    entries = list(wanted)
    if len(entries) != len(names):
        raise ValueError(
            f"wanted must have one entry for each of the {len(names)} {what}s "
            f"{list(names)!r:.200}, or be a mapping of some of them, found {len(entries)} entries"
        )
    return entries


def _yes_or_no(answer: Any) -> float:
    if answer is None:
        return math.nan
    if _plain(answer) in (0, 1):
        return float(answer)
    raise ValueError(f"what is wanted of a label is 1, 0, or None for either, found {answer!r:.80}")


def _interval(pair: Any) -> tuple[float, float]:
    """Read bounds, of which either may be None."""
    if pair is None:
        return -math.inf, math.inf
    try:
        low, high = pair
        ends = (
            -math.inf if low is None else float(low),
            math.inf if high is None else float(high),
        )
    except (TypeError, ValueError):
        raise TypeError(
            "what is wanted of a number is an interval (low, high), None for an open end, found "
            f"{pair!r:.80}"
        ) from None
    if not ends[0] <= ends[1]:
        raise ValueError(f"an interval has low <= high, found {pair!r:.80}")
    return ends


def _before_link(link: str, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if link == "identity":
        return low, high
    with np.errstate(divide="ignore"):  # whatever the score, its exponential is above 0
        return np.log(np.maximum(low, 0.0)), np.log(np.maximum(high, 0.0))
