"""The wanted prediction, and the regions where a tree makes it: a union of polyhedra."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.model import ObliqueTree, engine
from hardwood.model.outputs import YES, class_positions
from hardwood.model.paths import parents_of
from hardwood.table import Schema

LeafRegion = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Half-spaces of a linear leaf: normals (q, c), bias (q,), and the room (q,) for a margin."""


class Goal(ABC):
    """A wanted prediction."""

    @abstractmethod
    def holds(self, outputs: np.ndarray) -> np.ndarray:
        """Whether outputs (n, k) are as wanted, (n,)."""

    @abstractmethod
    def in_leaf(self, values: np.ndarray, weights: np.ndarray) -> Iterator[LeafRegion]:
        """Yield the regions in which a linear leaf predicts what is wanted.

        Parameters
        ----------
        values
            (k,) scores at the centers.
        weights
            (k, c) in raw units.
        """


@dataclass(frozen=True, eq=False)
class ClassGoal(Goal):
    """One of several classes, given by their positions; ``decision_weights`` (k,) or None."""

    positions: frozenset[int]
    decision_weights: np.ndarray | None

    def holds(self, outputs: np.ndarray) -> np.ndarray:
        return np.isin(class_positions(outputs, self.decision_weights), list(self.positions))

    def in_leaf(self, values: np.ndarray, weights: np.ndarray) -> Iterator[LeafRegion]:
        # A wanted class needs at least the score of every unwanted class, and more than that of an
        # earlier one: of equal classes the first is predicted.
        if self.decision_weights is not None:
            values = values + np.log(self.decision_weights)
        others = np.array([i for i in range(len(values)) if i not in self.positions], dtype=int)
        for mine in sorted(self.positions):
            lead = values[mine] - values[others]
            lead[others < mine] = np.nextafter(lead[others < mine], -np.inf)
            yield weights[mine] - weights[others], lead, np.full(others.size, np.inf)


@dataclass(frozen=True, eq=False)
class LabelsGoal(Goal):
    """1 or 0 for each of k labels; NaN accepts either."""

    wanted: np.ndarray

    def holds(self, outputs: np.ndarray) -> np.ndarray:
        agreed = ((outputs >= YES) == self.wanted) | np.isnan(self.wanted)
        return np.all(agreed, axis=1)

    def in_leaf(self, values: np.ndarray, weights: np.ndarray) -> Iterator[LeafRegion]:
        # A label has a probability of at least a half where its score is at least 0.
        chosen = np.flatnonzero(~np.isnan(self.wanted))
        yes = self.wanted[chosen] == 1
        sign = np.where(yes, 1.0, -1.0)
        bias = sign * values[chosen]
        bias[~yes] = np.nextafter(bias[~yes], -np.inf)
        yield sign[:, None] * weights[chosen], bias, np.full(chosen.size, np.inf)


@dataclass(frozen=True, eq=False)
class IntervalGoal(Goal):
    """Outputs between bounds (k,), which are included and may be infinite.

    ``score_low`` and ``score_high`` are the same bounds on the score before the link function.
    """

    low: np.ndarray
    high: np.ndarray
    score_low: np.ndarray
    score_high: np.ndarray

    def holds(self, outputs: np.ndarray) -> np.ndarray:
        return np.all((self.low <= outputs) & (outputs <= self.high), axis=1)

    def in_leaf(self, values: np.ndarray, weights: np.ndarray) -> Iterator[LeafRegion]:
        # Two half-spaces per output; a margin may use a quarter of the interval.
        room = np.maximum(self.score_high - self.score_low, 0.0) / 4
        above, below = np.isfinite(self.score_low), np.isfinite(self.score_high)
        if (self.score_low == np.inf).any() or (self.score_high == -np.inf).any():
            return  # no score satisfies this
        yield (
            np.vstack([weights[above], -weights[below]]),
            np.concatenate([(values - self.score_low)[above], (self.score_high - values)[below]]),
            np.concatenate([room[above], room[below]]),
        )


def read_goal(tree: ObliqueTree, wanted: Any) -> Goal:
    """Read the argument ``wanted`` of `counterfactual`.

    Raises
    ------
    ValueError, TypeError
        If the tree cannot make such a prediction; the message says which ones it can.
    """
    if tree.classes is not None:
        return ClassGoal(_positions(tree.classes, wanted), tree.decision_weights)
    names = tree.target_names or tuple(f"output {i}" for i in range(tree.n_outputs))
    if tree.task == "multilabel":
        return LabelsGoal(
            np.array([_yes_or_no(value) for value in _per_output(wanted, names, "label")])
        )
    if tree.n_outputs == 1 and not isinstance(wanted, Mapping):
        wanted = [wanted]
    pairs = [_interval(pair) for pair in _per_output(wanted, names, "output")]
    low, high = np.array(pairs).T
    if np.isinf(low).all() and np.isinf(high).all():
        raise ValueError("wanted includes every number: at least one bound is needed")
    if tree.has_linear_leaves and (low == high).any():
        raise ValueError(
            "wanted must be an interval with low < high, because the tree has linear leaves, whose "
            "values can be reached only up to rounding errors"
        )
    return IntervalGoal(low, high, *_before_link(tree.link, low, high))


def _positions(classes: Sequence[Any], wanted: Any) -> frozenset[int]:
    several = isinstance(wanted, list | tuple | set | frozenset | np.ndarray)
    labels = [_plain(label) for label in wanted] if several else [_plain(wanted)]
    for label in labels:
        if label not in classes:
            raise ValueError(
                f"wanted must be one of the classes {list(classes)!r:.200}, or several of them in "
                f"a list, found {label!r:.80}"
            )
    if not labels:
        raise ValueError("wanted is an empty list: it needs at least one class")
    return frozenset(classes.index(label) for label in labels)


def other_classes(tree: ObliqueTree, position: int) -> ClassGoal:
    """Any class but one."""
    others = frozenset(range(tree.n_outputs)) - {position}
    return ClassGoal(others, tree.decision_weights)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _per_output(wanted: Any, names: Sequence[str], what: str) -> list[Any]:
    """Return one wanted value per output; None accepts any."""
    if isinstance(wanted, Mapping):
        for name in wanted:
            if name not in names:
                raise ValueError(f"wanted names the {what} {name!r:.80}, found only {list(names)}")
        return [wanted.get(name) for name in names]
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise TypeError(f"wanted must have one value per {what}, found {wanted!r:.80}")
    values = list(wanted)
    if len(values) != len(names):
        raise ValueError(
            f"wanted must have one value for each of the {len(names)} {what}s "
            f"{list(names)!r:.200}, or be a mapping of some of them, found {len(values)}"
        )
    return values


def _yes_or_no(value: Any) -> float:
    if value is None:
        return math.nan
    if _plain(value) in (0, 1):
        return float(value)
    raise ValueError(
        f"wanted must be 1, 0, or None for either, for each label, found {value!r:.80}"
    )


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
            f"wanted must be an interval (low, high), with None for an open end, found {pair!r:.80}"
        ) from None
    if not ends[0] <= ends[1]:
        raise ValueError(f"wanted must have low <= high, found {pair!r:.80}")
    return ends


def _before_link(link: str, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if link == "identity":
        return low, high
    with np.errstate(divide="ignore"):  # the exponential of any score is above 0
        return np.log(np.maximum(low, 0.0)), np.log(np.maximum(high, 0.0))


# Regions where the goal holds


@dataclass(frozen=True, eq=False)
class Regions:
    """A union of polyhedra in the columns of a schema.

    Parameters
    ----------
    normals, bias
        (h, c), (h,): the scores. The first m are those of the splits.
    room
        (h,) the most that a margin may use, in units of the score.
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
        """Return the standard deviation of each score, as if columns were independent, (h,).

        Smaller where `margin` times that would exceed ``room``.
        """
        with np.errstate(over="ignore"):
            deviations = np.sqrt(np.square(self.normals * spread).sum(axis=1))
        return np.minimum(deviations, self.room / margin)


def regions_of(tree: ObliqueTree, goal: Goal) -> Regions:
    """List the regions where a tree makes the wanted prediction.

    A region is the path to a subtree all of whose leaves make it, or the path to a linear leaf with
    the half-spaces in which that leaf makes it.
    """
    weights, bias, _ = engine.scaled_splits(tree)
    if tree.leaf_weights is None:
        paths = _paths(tree)
        lists = [paths[node] for node in _highest(tree, goal.holds(tree.values))]
        return _packed(weights, bias, np.full(bias.size, np.inf), lists)
    return _with_linear_leaves(tree, goal, weights, bias)


def _with_linear_leaves(
    tree: ObliqueTree, goal: Goal, weights: np.ndarray, bias: np.ndarray
) -> Regions:
    assert tree.leaf_weights is not None
    paths = _paths(tree)
    normals, biases, rooms = [weights], [bias], [np.full(bias.size, np.inf)]
    lists, n = [], bias.size
    for leaf in range(tree.n_leaves):
        for region in goal.in_leaf(tree.values[leaf], tree.leaf_weights[leaf]):
            of_leaf = _scaled(*region, tree.schema)
            lists.append([*paths[tree.n_splits + leaf], *range(n, n + region[1].size)])
            n += region[1].size
            for whole, part in zip((normals, biases, rooms), of_leaf, strict=True):
                whole.append(part)
    return _packed(np.vstack(normals), np.concatenate(biases), np.concatenate(rooms), lists)


def _scaled(
    normals: np.ndarray, bias: np.ndarray, room: np.ndarray, schema: Schema
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide half-spaces by the size of their largest term, as is done for splits."""
    terms = np.abs(normals * schema.column_scale).max(axis=1, initial=0.0)
    size = np.maximum(terms, np.abs(bias))
    size[size == 0] = 1.0
    return normals / size[:, None], bias / size, room / size


def _packed(
    normals: np.ndarray, bias: np.ndarray, room: np.ndarray, lists: list[list[int]]
) -> Regions:
    first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    members = np.array([member for path in lists for member in path], dtype=np.int32)
    return Regions(np.ascontiguousarray(normals), bias, room, first, members)


def _paths(tree: ObliqueTree) -> list[list[int]]:
    """List the path to each node, splits before leaves: i to go right at split i, ~i to go left."""
    m = tree.n_splits
    right = np.where(tree.children >= 0, tree.children, m + ~tree.children)[:, 1].tolist()
    paths: list[list[int]] = []
    for node, parent in enumerate(parents_of(tree.children).tolist()):  # parents come first
        if parent < 0:
            paths.append([])
        else:
            paths.append([*paths[parent], parent if right[parent] == node else ~parent])
    return paths


def _highest(tree: ObliqueTree, is_wanted: np.ndarray) -> list[int]:
    """List the highest nodes all of whose leaves are wanted, splits before leaves."""
    m = tree.n_splits
    nodes = np.where(tree.children >= 0, tree.children, m + ~tree.children)
    whole = np.concatenate([np.zeros(m, dtype=bool), is_wanted])
    for split in range(m - 1, -1, -1):
        whole[split] = whole[nodes[split]].all()
    parents = parents_of(tree.children)
    is_top = whole & ((parents < 0) | ~whole[parents])
    return np.flatnonzero(is_top).tolist()
