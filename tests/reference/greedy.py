r"""NumPy reference of the engine's greedy trees, one row and one threshold at a time.

Breiman, Friedman, Olshen, Stone. Classification and Regression Trees. 1984.
Murthy, Kasif, Salzberg. A System for Induction of Oblique Decision Trees. JAIR 1994. [OC1]

What a side of a split adds to the decrease of the impurity, with S the weight of its rows and s_k
that of class k, or s_q = sum of w y_q:

.. math:: \sum_k s_k \log_2 s_k - S \log_2 S, \qquad \sum_k s_k^2 / S, \qquad
          \mathrm{mean}_q\, s_q^2 / S

for entropy, Gini and variance; of labels, the mean over labels of that of yes and no. Entropies are
added up in whole multiples of 2^-24, as the engine does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from reference.bootstrap import words

UNIT = 2.0**24
NO_WORTH = -math.inf


def x_log_x(x: float) -> int:
    """``x log2 x`` in multiples of 2^-24; 0 for 0."""
    return round(x * math.log2(x) * UNIT) if x > 0 else 0


@dataclass(frozen=True)
class Rows:
    """What a tree is grown from.

    Attributes
    ----------
    X
        (n, c) encoded columns, in the order in which they are tried.
    target
        (n, k) zeros and a one for classes, zeros and ones for labels, or numbers.
    weight
        (n,).
    measure
        "class entropy", "class gini", "label entropy", "label gini" or "variance".
    flag
        For each column the one that says where it is missing, or -1.
    """

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    measure: str
    flag: tuple[int, ...]

    def of(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.X[rows], self.target[rows], self.weight[rows], self.measure, self.flag)


def worth(rows: Rows, is_right: np.ndarray) -> float:
    """Return what both sides of a split add up to: the more, the lower the impurity."""
    sides = []
    for side in (~is_right, is_right):
        w = rows.weight[side]
        sides.append((math.fsum(w), [math.fsum(w * y) for y in rows.target[side].T]))
    if rows.measure == "class entropy":
        terms = [x_log_x(s) for _, sums in sides for s in sums]
        return (sum(terms) - sum(x_log_x(S) for S, _ in sides)) / UNIT
    if rows.measure == "label entropy":
        k = rows.target.shape[1]
        terms = [x_log_x(s) + x_log_x(S - s) for S, sums in sides for s in sums]
        return (sum(terms) - k * sum(x_log_x(S) for S, _ in sides)) / UNIT / k
    (L, left), (R, right) = sides
    total = _quotient(left, L) + _quotient(right, R)
    if rows.measure == "class gini":
        return total
    return (2 if rows.measure == "label gini" else 1) * (total / rows.target.shape[1])


def _quotient(sums: list[float], S: float) -> float:
    return sum(s * s for s in sums) / S if S > 0 else 0.0


def between(low: float, high: float) -> np.float32:
    """Return a number above `low` and not above `high`, the middle if there is one."""
    middle = np.float32(0.5 * float(low) + 0.5 * float(high))
    return middle if low < middle <= high else np.float32(high)


Split = tuple[np.ndarray, np.float32]  # weights (c,) and bias, float32


def axis_split(rows: Rows) -> tuple[float, Split | None]:
    """Try all thresholds on all columns; the first of equally good ones is returned."""
    best: tuple[float, Split | None] = (NO_WORTH, None)
    for c in range(rows.X.shape[1]):
        flag = rows.flag[c]
        missing = rows.X[:, flag] != 0 if flag >= 0 else np.zeros(len(rows.X), dtype=bool)
        for side in (0, 1) if missing.any() else (None,):
            values = np.unique(rows.X[~missing, c])
            for low, high in zip(values[:-1], values[1:], strict=True):
                is_right = np.where(missing, side == 1, rows.X[:, c] >= high)
                found = worth(rows, is_right)
                if found > best[0]:
                    best = found, _on_one_column(rows, c, between(low, high), side)
    return best


def _on_one_column(rows: Rows, c: int, threshold: np.float32, side: int | None) -> Split:
    weights = np.zeros(rows.X.shape[1], dtype=np.float32)
    weights[c] = 1.0
    if side is not None:
        margin = max(np.float32(1.0), abs(threshold))
        weights[rows.flag[c]] = threshold + (margin if side == 1 else -margin)
    return weights, -threshold


def threshold_split(rows: Rows, weights: np.ndarray) -> tuple[float, Split | None]:
    """Return the best threshold along a direction."""
    scores = (rows.X.astype(np.float64) @ weights.astype(np.float64)).astype(np.float32)
    best: tuple[float, Split | None] = (NO_WORTH, None)
    values = np.unique(scores)
    for low, high in zip(values[:-1], values[1:], strict=True):
        found = worth(rows, scores >= high)
        if found > best[0]:
            best = found, (weights, -between(low, high))
    return best


class Draws:
    """Random numbers of one stream, as the engine draws them."""

    def __init__(self, seed: int, stream: int) -> None:
        self._words: Iterator[int] = words(seed, stream)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> np.float32:
        """Return a uniform number, with 24 bits."""
        u = np.float32((next(self._words) >> 8) * 2.0**-24)
        return np.float32(low) + np.float32(high - low) * u

    def below(self, n: int) -> int:
        """Return one of 0, ..., n - 1."""
        return (next(self._words) << 32 | next(self._words)) * n >> 64

    def normal(self) -> np.float32:
        """Return a standard normal number, by Box and Muller."""
        u, v = 1.0 - float(self.uniform()), float(self.uniform())
        return np.float32(math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v))


def random_split(rows: Rows, n_candidates: int, seed: int, node: int) -> tuple[float, Split | None]:
    """Return the best of random directions, each with its best threshold."""
    best: tuple[float, Split | None] = (NO_WORTH, None)
    for candidate in range(n_candidates):
        draws = Draws(seed, node << 20 | candidate)
        weights = np.array([draws.normal() for _ in range(rows.X.shape[1])])
        found = threshold_split(rows, weights)
        if found[0] > best[0]:
            best = found
    return best


@dataclass
class Hyperplane:
    """Where OC1 stands: weights and bias, and the scores of all rows."""

    weights: np.ndarray
    bias: float
    scores: np.ndarray
    worth: float


class Oc1:
    """OC1 at one node, from one start [OC1, Sec. 3]."""

    def __init__(
        self, rows: Rows, draws: Draws, *, n_jumps: int, n_coordinates: int, max_sweeps: int
    ) -> None:
        self.rows = rows
        self.draws = draws
        self.n_jumps = n_jumps
        self.n_coordinates = n_coordinates
        self.max_sweeps = max_sweeps
        self.X = rows.X.astype(np.float64)
        self.varying = [c for c in range(self.X.shape[1]) if self._varies(c)]
        self.p_move = np.float32(1.0)

    def _varies(self, c: int) -> bool:
        flag = self.rows.flag[c]
        missing = self.X[:, flag] != 0 if flag >= 0 else np.zeros(len(self.X), dtype=bool)
        n_values = len(np.unique(self.X[~missing, c]))
        return n_values > 1 or (n_values == 1 and bool(missing.any()))

    def run(self, start: Split | None) -> tuple[float, Split | None]:
        """Improve a hyperplane, or a random one; return it with its threshold found anew."""
        here = self._random_start() if start is None else self._start_at(start)
        passes = jumps = 0
        while True:
            while passes < self.max_sweeps and self._pass(here):
                passes += 1
            passes += 1
            while jumps < self.n_jumps and not self._jump(here):
                jumps += 1
            if jumps >= self.n_jumps or passes >= self.max_sweeps:
                break
        norm = math.sqrt(sum(w * w for w in here.weights))
        if not norm > 0:
            return NO_WORTH, None
        return threshold_split(self.rows, (here.weights / norm).astype(np.float32))

    def _start_at(self, start: Split) -> Hyperplane:
        weights, bias = start[0].astype(np.float64), float(start[1])
        scores = self._scores(weights, bias)
        return Hyperplane(weights, bias, scores, worth(self.rows, scores >= 0))

    def _random_start(self) -> Hyperplane:
        weights = np.zeros(self.X.shape[1])
        for c in self._coordinates():
            weights[c] = self.draws.uniform(-1.0, 1.0)
        here = Hyperplane(weights, 0.0, self._scores(weights, 0.0), NO_WORTH)
        self._improve_bias(here)
        return here

    def _scores(self, weights: np.ndarray, bias: float) -> np.ndarray:
        scores = np.full(len(self.X), bias)
        for c in np.flatnonzero(weights):
            scores += weights[c] * self.X[:, c]
        return scores

    def _coordinates(self) -> list[int]:
        n = min(len(self.varying), self.n_coordinates)
        for i in range(n):
            j = i + self.draws.below(len(self.varying) - i)
            self.varying[i], self.varying[j] = self.varying[j], self.varying[i]
        return self.varying[:n]

    def _pass(self, here: Hyperplane) -> bool:
        coordinates = list(self._coordinates())
        helped = self._improve_bias(here)
        for c in coordinates:
            step, improved = self._line_search(here, self.X[:, c])
            here.weights[c] += step
            helped |= improved
        return helped

    def _improve_bias(self, here: Hyperplane) -> bool:
        step, improved = self._line_search(here, np.ones(len(self.X)))
        here.bias += step
        return improved

    def _jump(self, here: Hyperplane) -> bool:
        coordinates = list(self._coordinates())
        slope = np.zeros(len(self.X))
        direction = []
        for c in coordinates:
            direction.append(float(self.draws.uniform(-1.0, 1.0)))
            slope += direction[-1] * self.X[:, c]
        of_bias = float(self.draws.uniform(-1.0, 1.0))
        step, improved = self._line_search(here, slope + of_bias)
        for c, d in zip(coordinates, direction, strict=True):
            here.weights[c] += step * d
        here.bias += step * of_bias
        return improved

    def _line_search(self, here: Hyperplane, slope: np.ndarray) -> tuple[float, bool]:
        """Take the best step along a line: rows change sides where score + step slope = 0."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            crossing = (-here.scores / slope).astype(np.float32)
        moves = (slope != 0) & (np.abs(crossing) < np.float32(1e18))
        places = np.unique(crossing[moves]).astype(np.float64)
        if len(places) == 0:
            return 0.0, False
        steps = [places[0] - 1.0, *(0.5 * places[:-1] + 0.5 * places[1:]), places[-1] + 1.0]
        best, best_step = NO_WORTH, 0.0
        for step in steps:
            is_right = np.where(
                moves, np.where(slope > 0, crossing < step, crossing > step), here.scores >= 0
            )
            found = worth(self.rows, is_right)
            if found > best:
                best, best_step = found, float(step)
        return self._take(here, slope, best, best_step)

    def _take(
        self, here: Hyperplane, slope: np.ndarray, best: float, step: float
    ) -> tuple[float, bool]:
        improved = best > here.worth
        if improved:
            self.p_move = np.float32(1.0)
        elif best < here.worth or best == NO_WORTH or self.draws.uniform() >= self.p_move:
            return 0.0, False
        else:
            self.p_move = self.p_move - np.float32(0.1)
        here.scores = here.scores + step * slope
        here.worth = best
        return step, improved


def oc1_split(
    rows: Rows,
    seed: int,
    node: int,
    *,
    n_split_restarts: int,
    n_jumps: int,
    n_coordinates: int,
    max_sweeps: int,
) -> tuple[float, Split | None]:
    """Return the best of OC1 from several starts and of the axis split, the first start."""
    best = axis = axis_split(rows)
    for start in range(n_split_restarts):
        if start == 0 and axis[1] is None:
            continue
        descent = Oc1(
            rows,
            Draws(seed, node << 20 | start),
            n_jumps=n_jumps,
            n_coordinates=n_coordinates,
            max_sweeps=max_sweeps,
        )
        found = descent.run(axis[1] if start == 0 else None)
        if found[0] > best[0]:
            best = found
    return best


Search = Callable[[Rows, int], tuple[float, Split | None]]
"""From the rows of a node, and how many nodes were searched before it, to the best split."""


class Growing:
    """A tree on its way, level by level."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.splits: list[Split] = []
        self.children: list[list[int]] = []
        self.leaf = np.zeros(len(rows.X), dtype=np.int32)
        self.n_leaves = 0

    def is_pure(self, node: np.ndarray) -> bool:
        """Whether all rows of a node have the same target."""
        return bool((self.rows.target[node] == self.rows.target[node[0]]).all())

    def hang(self, parent: int, side: int, what: int) -> None:
        """Make something the child of a split; the root is nobody's."""
        if parent >= 0:
            self.children[parent][side] = what

    def make_leaf(self, node: np.ndarray, parent: int, side: int) -> None:
        """End at a node."""
        self.leaf[node] = self.n_leaves
        self.hang(parent, side, -1 - self.n_leaves)
        self.n_leaves += 1

    def split(
        self, node: np.ndarray, parent: int, side: int, split: Split
    ) -> list[tuple[np.ndarray, int, int]]:
        """Split a node; return its children, each with its parent and side."""
        number = len(self.children)
        self.hang(parent, side, number)
        self.splits.append(split)
        self.children.append([0, 0])
        X, weights = self.rows.X[node].astype(np.float64), split[0].astype(np.float64)
        score = (X @ weights).astype(np.float32) + split[1]
        return [(node[score < 0], number, 0), (node[score >= 0], number, 1)]


def grow(
    rows: Rows, max_depth: int, search: Search
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Grow a tree: its weights, bias and children, and the leaf of each row."""
    tree = Growing(rows)
    level: list[tuple[np.ndarray, int, int]] = [(np.arange(len(rows.X)), -1, 0)]
    n_searched = 0
    for depth in range(max_depth + 1):
        open_nodes = [at for at in level if depth < max_depth and not tree.is_pure(at[0])]
        open_parents = {at[1:] for at in open_nodes}
        for at in level:
            if at[1:] not in open_parents:
                tree.make_leaf(*at)
        level = []
        for at in open_nodes:
            _, split = search(rows.of(at[0]), n_searched)
            n_searched += 1
            if split is None:
                tree.make_leaf(*at)
            else:
                level += tree.split(*at, split)
    return (
        np.array([w for w, _ in tree.splits], dtype=np.float32).reshape(-1, rows.X.shape[1]),
        np.array([b for _, b in tree.splits], dtype=np.float32),
        np.array(tree.children, dtype=np.int32).reshape(-1, 2),
        tree.leaf,
    )
