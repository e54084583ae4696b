"""How well a hierarchy of clusters keeps classes together: dendrogram purity.

Take two rows of one class and the smallest cluster of the hierarchy that holds both. The share of
that class among its rows, averaged over all such pairs, is the dendrogram purity (Heller and
Ghahramani, 2005, over pairs as Kobren et al., 2017, count them): 1 where every class is a cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.parameters import flag, integer
from hardwood.text.numbers import plural


@dataclass(frozen=True)
class SampledPurity:
    """A dendrogram purity estimated from a sample of pairs.

    Attributes
    ----------
    value
        The mean over the pairs.
    standard_error
        Standard error of the value; the exact purity lies within two of them about 19 times out
        of 20.
    n_pairs
        Number of pairs drawn.
    """

    value: float
    standard_error: float
    n_pairs: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"{self.value:.4f} ± {self.standard_error:.4f} "
            f"({plural(self.n_pairs, 'pair', form=',')})"
        )


def dendrogram_purity(
    y: Any, hierarchy: Any, leaves: Any = None, *, self_pairs: bool = False
) -> float:
    """Return the exact dendrogram purity of a binary hierarchy.

    Every pair of rows of one class counts the same; two rows in one leaf form a pair at that leaf.
    Takes n log n time, for any number of classes.

    Parameters
    ----------
    y : array-like of shape (n,)
        The class of each row.
    hierarchy : array-like of shape (n_leaves - 1, 2) or (n_leaves - 1, 4), or fitted estimator
        Merges as in scikit-learn's ``children_``: numbers below n_leaves are leaves, and
        n_leaves + i is the result of merge i. Or a linkage matrix of SciPy, or an estimator that
        has ``children_``, such as `LatentTreeClustering` or `AgglomerativeClustering`.
    leaves : array-like of shape (n,), optional
        The leaf of each row, as `LatentTreeClustering.apply` returns for new rows. Default:
        ``leaves_`` of the estimator if it has that, otherwise row i is leaf i.
    self_pairs : bool, default=False
        Whether a row also forms a pair with itself, at half the weight, as in the code of the
        latent trees paper. With few rows this gives the purity of large leaves more weight.

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> from hardwood.report import dendrogram_purity
    >>> dendrogram_purity(["a", "a", "b", "b"], [[0, 1], [2, 3], [4, 5]])
    1.0
    >>> dendrogram_purity(["a", "b", "a", "b"], [[0, 1], [2, 3], [4, 5]])
    0.5
    """
    flag("self_pairs", self_pairs)
    rows = _Rows.of(y, hierarchy, leaves, self_pairs)
    n_pairs, purity_sum = rows.pairs_within_leaves(self_pairs)
    for pairs, shares in rows.pairs_across_leaves():
        n_pairs += pairs.sum()
        purity_sum += pairs @ shares
    return float(min(purity_sum / n_pairs, 1.0))


def sampled_dendrogram_purity(
    y: Any,
    hierarchy: Any,
    leaves: Any = None,
    *,
    n_pairs: int = 100_000,
    random_state: int | None = None,
) -> SampledPurity:
    """Estimate the dendrogram purity, and its standard error, from randomly drawn pairs.

    Parameters
    ----------
    y, hierarchy, leaves
        Same as in `dendrogram_purity`.
    n_pairs : int, default=100000
        Number of pairs to draw, with replacement, at least 2. Four times as many halve the error.
    random_state : int, optional
        Seed of the draws.
    """
    n_pairs = integer("n_pairs", n_pairs, 2)
    if random_state is not None:
        integer("random_state", random_state, 0)
    rows = _Rows.of(y, hierarchy, leaves)
    shares = rows.shares_of_drawn_pairs(n_pairs, np.random.default_rng(random_state))
    error = float(shares.std(ddof=1)) / math.sqrt(n_pairs)
    return SampledPurity(float(shares.mean()), error, n_pairs)


@dataclass(frozen=True)
class _Layout:
    """A hierarchy with its leaves in a line, so that every node is a range of positions.

    `boundary` holds, for each pair of neighboring positions, the smallest node that contains both.
    Nodes come after their children, so the smallest node over a range of positions is the largest
    of the boundaries within it.
    """

    place_of_leaf: np.ndarray
    start: np.ndarray
    middle: np.ndarray
    end: np.ndarray
    boundary: np.ndarray

    @classmethod
    def of(cls, children: np.ndarray) -> _Layout:
        n_leaves = len(children) + 1
        merges = children.tolist()
        width = [1] * n_leaves
        for left, right in merges:
            width.append(width[left] + width[right])
        start = [0] * len(width)
        for i in range(len(merges) - 1, -1, -1):
            left, right = merges[i]
            start[left] = start[n_leaves + i]
            start[right] = start[left] + width[left]
        starts = np.array(start)
        middle = np.append(starts[:n_leaves], starts[children[:, 1]])
        boundary = np.empty(n_leaves - 1, dtype=np.int64)
        boundary[middle[n_leaves:] - 1] = np.arange(n_leaves, len(width))
        return cls(starts[:n_leaves], starts, middle, starts + np.array(width), boundary)

    def smallest_common(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return the smallest node that holds places first < last, for many pairs of them."""
        found = np.empty(len(first), dtype=np.int64)
        step = np.frexp(last - first)[1] - 1  # the largest power of two within the range
        highest = self.boundary  # of each place, the largest boundary within 2^k from it
        for k in range(int(step.max(initial=0)) + 1):
            if k > 0:
                half = 1 << (k - 1)
                highest = np.maximum(highest[:-half], highest[half:])
            asked = np.flatnonzero(step == k)
            found[asked] = np.maximum(highest[first[asked]], highest[last[asked] - (1 << k)])
        return found


@dataclass(frozen=True)
class _Rows:
    """Rows of several classes at the leaves of a hierarchy.

    Rows of one class and one leaf are a cell; cells are sorted by class, then place. `cell` is
    class * n_leaves + place, `n_before` how many rows the cells before it hold.
    """

    layout: _Layout
    n_leaves: int
    cell: np.ndarray
    size: np.ndarray
    n_before: np.ndarray
    n_rows_before_place: np.ndarray

    @classmethod
    def of(cls, y: Any, hierarchy: Any, leaves: Any, self_pairs: bool = False) -> _Rows:
        children = _children_of(hierarchy)
        n_leaves = len(children) + 1
        if leaves is None:
            leaves = getattr(hierarchy, "leaves_", None)
        classes = _classes_of(y)
        leaf = _leaves_of(leaves, len(classes), n_leaves)
        layout = _Layout.of(children)
        place = layout.place_of_leaf[leaf]
        cell, size = np.unique(classes * n_leaves + place, return_counts=True)
        n_before = np.append(0, np.cumsum(size))
        n_rows = np.append(0, np.cumsum(np.bincount(place, minlength=n_leaves)))
        if np.bincount(classes, minlength=1).max() < (1 if self_pairs else 2):
            raise ValueError("y has no two rows of one class, so there is no pair to average over.")
        return cls(layout, n_leaves, cell, size, n_before, n_rows)

    def pairs_within_leaves(self, self_pairs: bool) -> tuple[float, float]:
        """Return the number of pairs within a leaf, and the sum of their purities."""
        pairs = self.size * (self.size - (0 if self_pairs else 1)) / 2
        place = self.cell % self.n_leaves
        in_leaf = self.n_rows_before_place[place + 1] - self.n_rows_before_place[place]
        return pairs.sum(), pairs @ (self.size / in_leaf)

    def pairs_across_leaves(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return numbers of pairs and their purities, by class and smallest common node."""
        classes, place = np.divmod(self.cell, self.n_leaves)
        has_next = np.flatnonzero(classes[1:] == classes[:-1])
        if not len(has_next):
            return []
        # Neighboring cells of a class meet at every node where any of its cells do.
        node = self.layout.smallest_common(place[has_next], place[has_next + 1])
        n_nodes = len(self.layout.start)
        met = np.unique(classes[has_next] * n_nodes + node)
        classes, node = np.divmod(met, n_nodes)
        layout = self.layout
        left = self._n_rows(classes, layout.start[node], layout.middle[node])
        right = self._n_rows(classes, layout.middle[node], layout.end[node])
        return [(left * right, (left + right) / self._n_rows_in(node))]

    def shares_of_drawn_pairs(self, n_pairs: int, rng: np.random.Generator) -> np.ndarray:
        """Draw pairs of different rows of one class, and return the purity of each, (n_pairs,)."""
        in_cell = np.repeat(np.arange(len(self.cell)), self.size)
        of_class = self.cell[in_cell] // self.n_leaves
        n_rows = np.bincount(of_class)
        start = np.append(0, np.cumsum(n_rows))
        weight = n_rows * (n_rows - 1.0)
        drawn = rng.choice(len(n_rows), size=n_pairs, p=weight / weight.sum())
        one = rng.integers(n_rows[drawn])
        other = rng.integers(n_rows[drawn] - 1)
        other += other >= one  # any row but the first
        rows = np.sort(start[drawn] + np.stack([one, other]), axis=0)
        first, last = self.cell[in_cell[rows]] % self.n_leaves
        node = np.empty(n_pairs, dtype=np.int64)
        is_same = first == last
        leaf_at = np.argsort(self.layout.place_of_leaf)
        node[is_same] = leaf_at[first[is_same]]
        node[~is_same] = self.layout.smallest_common(first[~is_same], last[~is_same])
        own = self._n_rows(drawn, self.layout.start[node], self.layout.end[node])
        return own / self._n_rows_in(node)

    def _n_rows(self, classes: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return how many rows of a class are at positions from start to end, as float64."""
        first = np.searchsorted(self.cell, classes * self.n_leaves + start)
        last = np.searchsorted(self.cell, classes * self.n_leaves + end)
        return (self.n_before[last] - self.n_before[first]).astype(np.float64)

    def _n_rows_in(self, node: np.ndarray) -> np.ndarray:
        before = self.n_rows_before_place
        return before[self.layout.end[node]] - before[self.layout.start[node]]


def _children_of(hierarchy: Any) -> np.ndarray:
    """Return the merges (n_leaves - 1, 2) of a hierarchy, or raise an error with the reason."""
    merges = np.asarray(getattr(hierarchy, "children_", hierarchy))
    if merges.size == 0:
        merges = merges.reshape(0, 2)
    if merges.ndim != 2 or merges.shape[1] not in (2, 4) or merges.dtype.kind not in "iuf":
        raise ValueError(
            "hierarchy must hold merges, (n_leaves - 1, 2) numbers of nodes, be a linkage matrix "
            "of SciPy, (n_leaves - 1, 4), or an estimator with children_; got "
            f"{type(hierarchy).__name__} of shape {merges.shape} and type {merges.dtype}."
        )
    if not np.isfinite(merges).all():
        raise ValueError("hierarchy holds NaN or infinity; expected numbers of nodes.")
    children = merges[:, :2].astype(np.int64)
    n_leaves = len(children) + 1
    made = n_leaves + np.arange(len(children))
    wrong = np.flatnonzero(
        ((children < 0) | (children >= made[:, None]) | (children != merges[:, :2])).any(axis=1)
    )
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"Merge {i} of the hierarchy joins {merges[i, :2].tolist()}; expected two of the "
            f"{plural(n_leaves, 'leaf', 'leaves')}, 0 to {n_leaves - 1}, or of the merges "
            "before it, up to "
            f"{n_leaves + i - 1}."
        )
    uses = np.bincount(children.ravel(), minlength=2 * n_leaves - 1)
    if (uses[:-1] != 1).any():
        node = int(np.flatnonzero(uses[:-1] != 1)[0])
        raise ValueError(
            f"Every node but the last is joined once, but node {node} is joined {uses[node]} times."
        )
    return children


def _classes_of(y: Any) -> np.ndarray:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must hold one class per row, (n,); got shape {labels.shape}.")
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"y must hold classes of one type that can be sorted: {error}.") from error


def _leaves_of(leaves: Any, n_rows: int, n_leaves: int) -> np.ndarray:
    if leaves is None:
        if n_rows != n_leaves:
            raise ValueError(
                f"y has {plural(n_rows, 'row')}, but the hierarchy has "
                f"{plural(n_leaves, 'leaf', 'leaves')}. Give leaves=, the "
                "leaf that each row is in."
            )
        return np.arange(n_leaves)
    leaf = np.asarray(leaves)
    if leaf.shape != (n_rows,) or leaf.dtype.kind not in "iu":
        raise ValueError(
            f"leaves must hold one integer per row, shape ({n_rows},); got shape {leaf.shape} of "
            f"type {leaf.dtype}."
        )
    if leaf.size and (leaf.min() < 0 or leaf.max() >= n_leaves):
        raise ValueError(
            f"leaves must be from 0 to {n_leaves - 1}, got {leaf.min()} to {leaf.max()}."
        )
    return leaf.astype(np.int64)
