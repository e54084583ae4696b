"""The frontier: the best tree of every size, and the choice of one of them.

Trees are compared by their losses on the same held-out rows, row by row. A tree is within one
standard error of the best if its mean loss exceeds the best's by no more than the standard error of
the difference. By default the smallest tree within one standard error is chosen. The size counts
every number that a reader must read: thresholds, coefficients and constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.model import ObliqueTree
from hardwood.text.blocks import Block, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import format_number
from hardwood.text.report import Report

if TYPE_CHECKING:
    from hardwood.text.report import Tables

Preference = Literal["balanced", "accuracy", "readable"]

READABLE_LEAVES = 12
READABLE_TERMS = 3


@dataclass(frozen=True)
class HeldOut:
    """A tree of one size, measured on held-out rows.

    Attributes
    ----------
    n_leaves, n_terms
        Leaves, and features in a split or a leaf, at most.
    size
        Numbers to read.
    losses
        (n,) of the held-out rows.
    """

    n_leaves: int
    n_terms: int
    size: float
    losses: np.ndarray

    @property
    def is_readable(self) -> bool:
        """Whether it has at most 12 leaves and 3 terms."""
        return self.n_leaves <= READABLE_LEAVES and self.n_terms <= READABLE_TERMS


def chosen(trees: Sequence[HeldOut], weight: np.ndarray, prefer: Preference = "balanced") -> int:
    """Return the place of the tree that a preference chooses.

    "balanced": the smallest within one standard error of the best. "accuracy": the best.
    "readable": the best with at most 12 leaves and 3 terms.
    """
    means = np.array([np.average(tree.losses, weights=weight) for tree in trees])
    allowed = np.arange(len(trees))
    if prefer == "readable":
        small = [i for i, tree in enumerate(trees) if tree.is_readable]
        allowed = np.array(small or [min(range(len(trees)), key=lambda i: trees[i].size)])
    best = int(allowed[np.argmin(means[allowed])])
    if prefer != "balanced":
        return best
    near = [
        i
        for i in range(len(trees))
        if means[i] - means[best] <= standard_error(trees[i].losses - trees[best].losses, weight)
    ]
    return min(near, key=lambda i: (trees[i].size, means[i]))


def standard_error(differences: np.ndarray, weight: np.ndarray) -> float:
    """Return the standard error of a weighted mean."""
    share = weight / weight.sum()
    mean = float(share @ differences)
    return math.sqrt(float(share**2 @ (differences - mean) ** 2))


def pareto(trees: Sequence[HeldOut], weight: np.ndarray) -> list[int]:
    """Return the places of the trees that no smaller or equal one beats, the smallest first."""
    means = [float(np.average(tree.losses, weights=weight)) for tree in trees]
    kept: list[int] = []
    for i in sorted(range(len(trees)), key=lambda i: (trees[i].size, means[i])):
        if not kept or means[i] < means[kept[-1]]:
            kept.append(i)
    return kept


@dataclass(frozen=True)
class FrontierPoint:
    """One tree of the frontier.

    Attributes
    ----------
    n_leaves, n_terms
        Leaves, and features in a split or a leaf, at most.
    size
        Numbers to read.
    loss, error
        The mean loss on held-out rows, and the standard error of its difference from the best.
    is_chosen
        Whether it is the tree of the estimator.
    tree
        The tree, fitted to all rows.
    """

    n_leaves: int
    n_terms: int
    size: float
    loss: float
    error: float
    is_chosen: bool
    tree: ObliqueTree


@dataclass(frozen=True, repr=False)
class Frontier(Report):
    """The best tree of every size that a search found; ``print`` shows it as a table.

    Attributes
    ----------
    points
        The smallest tree first.
    metric
        The name of the loss.
    """

    points: tuple[FrontierPoint, ...]
    metric: str

    @property
    def title(self) -> str:
        """How many sizes there are."""
        return f"The best tree of {len(self.points)} sizes"

    def at(self, max_leaves: int | None = None, max_terms: int | None = None) -> ObliqueTree:
        """Return the best tree within limits.

        Raises
        ------
        ValueError
            If no tree is as small.
        """
        leaves = math.inf if max_leaves is None else max_leaves
        terms = math.inf if max_terms is None else max_terms
        within = [p for p in self.points if p.n_leaves <= leaves and p.n_terms <= terms]
        if not within:
            smallest = self.points[0]
            raise ValueError(
                f"no tree has at most {max_leaves} leaves and {max_terms} terms; the smallest has "
                f"{smallest.n_leaves} leaves and {smallest.n_terms} terms."
            )
        return min(within, key=lambda point: point.loss).tree

    def _blocks(self) -> Sequence[Block]:
        header = ["leaves", "terms", "numbers to read", self.metric, "standard error", ""]
        rows = [
            [
                str(point.n_leaves),
                str(point.n_terms),
                f"{point.size:g}",
                format_number(point.loss),
                format_number(point.error),
                "chosen" if point.is_chosen else "",
            ]
            for point in self.points
        ]
        return [TextTable.of("Trees", header, rows, text_columns=(5,))]

    def _content(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "points": [_plain(point) for point in self.points],
        }

    def _tables(self) -> Tables:
        table = columns_of(FrontierPoint, self.points)
        table.pop("tree", None)
        return {"points": table}


def _plain(point: FrontierPoint) -> dict[str, Any]:
    return {name: value for name, value in vars(point).items() if name != "tree"}
