"""What a tree is wanted to answer, and where it answers so: a union of polyhedra."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.model import ObliqueTree, engine
from hardwood.model.outputs import YES
from hardwood.model.paths import parents_of
from hardwood.table import Schema

LeafRegion = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Half-spaces of a linear leaf: normals (q, c), bias (q,), and the room (q,) for a margin."""


class Goal(ABC):
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
            (k,) scores at the centers.
        weights
            (k, c) in raw units.
        """


@dataclass(frozen=True)
class ClassGoal(Goal):
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
class LabelsGoal(Goal):
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
class IntervalGoal(Goal):
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


def read_goal(tree: ObliqueTree, wanted: Any) -> Goal:
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
        return LabelsGoal(np.array([_yes_or_no(a) for a in _per_output(wanted, names, "label")]))
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
    return IntervalGoal(low, high, *_before_link(tree.link, low, high))


def _classes(classes: Sequence[Any], wanted: Any) -> ClassGoal:
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
    return ClassGoal(frozenset(classes.index(label) for label in labels))


def other_classes(tree: ObliqueTree, position: int) -> ClassGoal:
    """Any class but one."""
    return ClassGoal(frozenset(range(tree.n_outputs)) - {position})


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


# Where the goal is reached


@dataclass(frozen=True, eq=False)
class Regions:
    """A union of polyhedra in the columns of a schema.

    Parameters
    ----------
    normals, bias
        (h, c), (h,): the scores. The first m are those of the splits.
    room
        (h,) what a margin may take up at most, in units of the score.
    first, members
        Region r is ``members[first[r]:first[r + 1]]``: i where score i must be at least 0, ~i where
        it must be below.
    """

    normals: np.ndarray
    bias: np.ndarray
    room: np.ndarray
    first: np.ndarray
    members: np.ndarray

    def __len__(self) -> int:
        return self.first.size - 1

    def sizes(self, spread: np.ndarray, margin: float) -> np.ndarray:
        """Return the standard deviation of each score, as if columns varied on their own, (h,).

        Less where `margin` times that is more than there is room for.
        """
        with np.errstate(over="ignore"):
            deviations = np.sqrt(np.square(self.normals * spread).sum(axis=1))
        return np.minimum(deviations, self.room / margin)


def regions_of(tree: ObliqueTree, goal: Goal) -> Regions:
    """List the regions where a tree gives the wanted answer.

    A region is the way to a subtree of which all leaves give it, or to a linear leaf together with
    the half-spaces in which that leaf does.
    """
    weights, bias, _ = engine.scaled_splits(tree)
    if tree.leaf_weights is None:
        ways = _ways(tree)
        lists = [ways[node] for node in _highest(tree, goal.holds(tree.values))]
        return _packed(weights, bias, np.full(bias.size, np.inf), lists)
    return _with_linear_leaves(tree, goal, weights, bias)


def _with_linear_leaves(
    tree: ObliqueTree, goal: Goal, weights: np.ndarray, bias: np.ndarray
) -> Regions:
    assert tree.leaf_weights is not None
    ways = _ways(tree)
    normals, biases, rooms = [weights], [bias], [np.full(bias.size, np.inf)]
    lists, n = [], bias.size
    for leaf in range(tree.n_leaves):
        for region in goal.in_leaf(tree.values[leaf], tree.leaf_weights[leaf]):
            of_leaf = _scaled(*region, tree.schema)
            lists.append([*ways[tree.n_splits + leaf], *range(n, n + region[1].size)])
            n += region[1].size
            for whole, part in zip((normals, biases, rooms), of_leaf, strict=True):
                whole.append(part)
    return _packed(np.vstack(normals), np.concatenate(biases), np.concatenate(rooms), lists)


def _scaled(
    normals: np.ndarray, bias: np.ndarray, room: np.ndarray, schema: Schema
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide half-spaces by the size of their largest term, as those of splits are."""
    terms = np.abs(normals * schema.column_scale).max(axis=1, initial=0.0)
    size = np.maximum(terms, np.abs(bias))
    size[size == 0] = 1.0
    return normals / size[:, None], bias / size, room / size


def _packed(
    normals: np.ndarray, bias: np.ndarray, room: np.ndarray, lists: list[list[int]]
) -> Regions:
    first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    members = np.array([member for way in lists for member in way], dtype=np.int32)
    return Regions(np.ascontiguousarray(normals), bias, room, first, members)


def _ways(tree: ObliqueTree) -> list[list[int]]:
    """List the way to each node, splits before leaves: i where it goes right at i, else ~i."""
    m = tree.n_splits
    right = np.where(tree.children >= 0, tree.children, m + ~tree.children)[:, 1].tolist()
    ways: list[list[int]] = []
    for node, parent in enumerate(parents_of(tree.children).tolist()):  # parents come first
        way = [] if parent < 0 else [*ways[parent], parent if right[parent] == node else ~parent]
        ways.append(way)
    return ways


def _highest(tree: ObliqueTree, is_wanted: np.ndarray) -> list[int]:
    """List the highest nodes of which all leaves are wanted, splits before leaves."""
    m = tree.n_splits
    nodes = np.where(tree.children >= 0, tree.children, m + ~tree.children)
    whole = np.concatenate([np.zeros(m, dtype=bool), is_wanted])
    for split in range(m - 1, -1, -1):
        whole[split] = whole[nodes[split]].all()
    parents = parents_of(tree.children)
    is_top = whole & ((parents < 0) | ~whole[parents])
    return np.flatnonzero(is_top).tolist()
