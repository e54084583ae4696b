"""The frontier: the best tree of every size, and the choice of one of them.

Trees are compared by their losses on the same held-out rows, row by row. A tree is within one
standard error of the best if its mean loss exceeds the best's by no more than the standard error of
the difference. By default the smallest tree within one standard error is chosen: the one with the
fewest numbers to read, which are thresholds, coefficients and constants.

A tree is on the frontier if no tree with as few numbers to read has a smaller loss, or no tree with
as few leaves and terms. So the best tree within any limits is on it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.model import ObliqueTree
from hardwood.parameters import integer
from hardwood.search import frontier_plot
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import format_number, format_with_error, plural
from hardwood.text.report import PlottedReport, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hardwood.show.page import Page
    from hardwood.text.report import Tables

Preference = Literal["balanced", "accuracy", "readable"]
TreeKind = Literal["linear", "constant", "smoothed", "oblique"]
"""Linear leaves; CART, with constant leaves as they are or smoothed; or oblique splits."""

READABLE_LEAVES = 12
READABLE_TERMS = 3


@dataclass(frozen=True)
class HeldOut:
    """A tree of one size, measured on held-out rows.

    Attributes
    ----------
    kind
        Its leaves and splits.
    n_leaves, n_terms
        Leaves, and features in a split or a leaf, at most.
    size
        Numbers to read.
    losses
        (n,) of the held-out rows.
    """

    kind: TreeKind
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

    "balanced": the smallest within one standard error of the best, of the trees that no tree with
    as few numbers to read beats. "accuracy": the best. "readable": the best with at most 12 leaves
    and 3 terms.
    """
    means = mean_losses(trees, weight)
    allowed = np.arange(len(trees))
    if prefer == "readable":
        small = [i for i, tree in enumerate(trees) if tree.is_readable]
        allowed = np.array(small or [min(range(len(trees)), key=lambda i: trees[i].size)])
    best = int(allowed[np.argmin(means[allowed])])
    if prefer != "balanced":
        return best
    near = [
        i
        for i in unbeaten_by_size(trees, weight)
        if means[i] - means[best] <= standard_error(trees[i].losses - trees[best].losses, weight)
    ]
    return min(near, key=lambda i: (trees[i].size, means[i]))


def mean_losses(trees: Sequence[HeldOut], weight: np.ndarray) -> np.ndarray:
    """Return the weighted mean loss of each tree."""
    return np.array([np.average(tree.losses, weights=weight) for tree in trees])


def standard_error(differences: np.ndarray, weight: np.ndarray) -> float:
    """Return the standard error of a weighted mean."""
    share = weight / weight.sum()
    mean = float(share @ differences)
    return math.sqrt(float(share**2 @ (differences - mean) ** 2))


def unbeaten_by_size(trees: Sequence[HeldOut], weight: np.ndarray) -> list[int]:
    """Return the places of the trees that no tree with as few numbers to read beats."""
    return _unbeaten(trees, weight, ("size",))


def pareto(trees: Sequence[HeldOut], weight: np.ndarray) -> list[int]:
    """Return the places of the trees of the frontier, the smallest first."""
    kept = {
        *unbeaten_by_size(trees, weight),
        *_unbeaten(trees, weight, ("n_leaves", "n_terms")),
    }
    losses = mean_losses(trees, weight)
    return sorted(kept, key=lambda i: (trees[i].size, losses[i]))


def _unbeaten(trees: Sequence[HeldOut], weight: np.ndarray, measures: tuple[str, ...]) -> list[int]:
    """Return the places of the trees that no other beats that is as small in all measures.

    Of trees with the same loss the smallest is kept, of equal trees the first.
    """
    sizes = np.array([(tree.size, tree.n_leaves, tree.n_terms) for tree in trees])
    measured = np.array([[getattr(tree, name) for name in measures] for tree in trees])
    kept: list[int] = []
    for i in np.lexsort((*sizes.T[::-1], mean_losses(trees, weight))).tolist():
        if not (measured[kept] <= measured[i]).all(axis=1).any():
            kept.append(i)
    return kept


@dataclass(frozen=True)
class MeasuredSize:
    """The loss of trees of one kind and size on held-out rows.

    Attributes
    ----------
    kind
        Leaves and splits of the trees: "linear" leaves; "constant" leaves and splits on one
        feature, as in CART; the same with "smoothed" leaves; or "oblique" splits and constant
        leaves.
    n_leaves, n_terms
        Leaves, and features in a split or a leaf, at most.
    size
        Numbers to read.
    loss
        The mean loss.
    above, error
        By how much it exceeds that of the best tree, and the standard error of this difference.
    """

    kind: TreeKind
    n_leaves: int
    n_terms: int
    size: float
    loss: float
    above: float
    error: float

    @property
    def words(self) -> str:
        """Its leaves and terms."""
        return f"{plural(self.n_leaves, 'leaf', 'leaves')}, {plural(self.n_terms, 'term')}"

    @property
    def above_words(self) -> str:
        """By how much its loss exceeds the best, with the standard error of that."""
        return format_with_error(self.above, self.error) if self.above else "best"


def measured_sizes(trees: Sequence[HeldOut], weight: np.ndarray) -> list[MeasuredSize]:
    """Return the size of each tree, with its loss."""
    means = mean_losses(trees, weight)
    best = int(means.argmin())
    return [
        MeasuredSize(
            tree.kind,
            tree.n_leaves,
            tree.n_terms,
            float(round(tree.size)),  # oblique trees have the mean of folds
            float(mean),
            float(mean - means[best]),
            standard_error(tree.losses - trees[best].losses, weight),
        )
        for tree, mean in zip(trees, means, strict=True)
    ]


def best_of_each_size(measured: Sequence[MeasuredSize]) -> tuple[MeasuredSize, ...]:
    """Return the best of each kind and number of leaves and terms, in this order."""
    best: dict[tuple[str, int, int], MeasuredSize] = {}
    for each in sorted(measured, key=lambda each: each.loss):
        best.setdefault((each.kind, each.n_leaves, each.n_terms), each)
    return tuple(best[key] for key in sorted(best))


@dataclass(frozen=True)
class FrontierPoint(MeasuredSize):
    """One tree of the frontier.

    Attributes
    ----------
    is_chosen
        Whether it is the tree of the estimator.
    tree
        The tree, fitted to all rows.
    """

    is_chosen: bool
    tree: ObliqueTree


def most_terms(tree: ObliqueTree) -> int:
    """Return the most features that a split or a leaf of a tree has."""
    parts = [*(tree.weights != 0)]
    if tree.leaf_weights is not None:
        parts += [*(tree.leaf_weights != 0).any(axis=1)]
    feature = tree.schema.column_feature
    return max((len(np.unique(feature[part])) for part in parts), default=0)


@dataclass(frozen=True, repr=False)
class Frontier(PlottedReport):
    """The best tree of every size that a search found; ``print`` shows it as a table.

    Attributes
    ----------
    points
        The trees, those with the fewest numbers to read first.
    measured
        The loss of every size that was measured, for each kind of tree; without trees.
    metric
        The name of the loss.
    """

    points: tuple[FrontierPoint, ...]
    measured: tuple[MeasuredSize, ...]
    metric: str

    @property
    def title(self) -> str:
        """How many sizes there are."""
        return f"The best tree of {plural(len(self.points), 'size')}"

    @property
    def chosen(self) -> FrontierPoint:
        """The tree of the estimator."""
        return next(point for point in self.points if point.is_chosen)

    @property
    def best(self) -> MeasuredSize:
        """The size with the smallest held-out loss."""
        return min(self.measured, key=lambda each: each.loss)

    @property
    def steps(self) -> tuple[FrontierPoint, ...]:
        """The chosen tree, and those that no tree with as few numbers to read beats."""
        best = np.minimum.accumulate([point.loss for point in self.points])
        is_step = np.diff(best, prepend=np.inf) < 0
        return tuple(p for p, step in zip(self.points, is_step, strict=True) if step or p.is_chosen)

    def at(self, max_leaves: int | None = None, max_terms: int | None = None) -> ObliqueTree:
        """Return the best tree within limits.

        Parameters
        ----------
        max_leaves
            Maximum number of leaves, >= 1; None for no limit.
        max_terms
            Maximum number of features in a leaf or a split, >= 0; None for no limit.

        Raises
        ------
        ValueError
            If no tree is as small.
        """
        leaves = math.inf if max_leaves is None else integer("max_leaves", max_leaves, 1)
        terms = math.inf if max_terms is None else integer("max_terms", max_terms, 0)
        within = [
            point
            for point in self.points
            if point.tree.n_leaves <= leaves and most_terms(point.tree) <= terms
        ]
        if not within:
            raise ValueError(self._too_small(max_leaves, max_terms))
        return min(within, key=lambda point: point.loss).tree

    def of_fit(self, chosen: ObliqueTree) -> Frontier:
        """Return the frontier of a fit with this tree, whose record the others get, too."""
        points = tuple(
            replace(
                point,
                tree=chosen
                if point.is_chosen
                else point.tree.replace(record=chosen.record | point.tree.record),
            )
            for point in self.points
        )
        return replace(self, points=points)

    def _too_small(self, max_leaves: int | None, max_terms: int | None) -> str:
        limits = []
        if max_leaves is not None:
            limits.append(plural(max_leaves, "leaf", "leaves"))
        if max_terms is not None:
            limits.append(plural(max_terms, "term"))
        return (
            f"no tree of the frontier has at most {' and '.join(limits)}. The smallest has "
            f"{self.points[0].words}; print the frontier to see all sizes."
        )

    def show(
        self,
        path: str | os.PathLike[str] | None = None,
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        max_rows: int = 300,
    ) -> Page:
        """Create an interactive page on which readers slide from size to size.

        Arguments are those of :meth:`hardwood.ObliqueTree.show`; the chosen tree is shown first.
        """
        from hardwood.show.page import show

        tree, sizes = self.chosen.tree, self if len(self.points) > 1 else None
        return show(tree, path, X, y, title=title, max_rows=max_rows, sizes=sizes)

    def plot(self, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Figure:
        """Plot the held-out loss against the number of leaves; return the figure.

        Trees with linear leaves have a curve for each of a few numbers of terms. CART, with splits
        on one feature and constant leaves, is measured on the same rows. The band is one standard
        error around the curve with the best tree: where it reaches the line of the smallest loss, a
        tree is within one standard error of the best.

        Parameters
        ----------
        path
            Where to write the plot, as PNG, PDF or SVG by the name's ending; None for nowhere.
        ax
            Axes of matplotlib to draw into; None for a new figure.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        if ax is None:
            return super().plot(path)
        frontier_plot.draw(self, ax)
        figure: Any = ax.get_figure()
        if path is not None:
            write_figure(figure, path)
        return figure

    def _figure_size(self) -> tuple[float, float]:
        return frontier_plot.FIGURE_SIZE

    def _draw(self, figure: Figure) -> None:
        frontier_plot.draw(self, figure.subplots())

    @property
    def _image_text(self) -> str:
        return f"Held-out {self.metric} against the number of leaves"

    def _blocks(self) -> Sequence[Block]:
        header = ["leaves", "terms", "numbers to read", self.metric, "above the best", ""]
        shown = self.steps
        rows = [
            [
                str(point.n_leaves),
                str(point.n_terms),
                f"{point.size:g}",
                format_number(point.loss),
                point.above_words,
                "chosen" if point.is_chosen else "",
            ]
            for point in shown
        ]
        more = len(self.points) - len(shown)
        note = "Above the best: how much larger the loss is, and the standard error of that."
        table = TextTable.of("Trees", header, rows, text_columns=(5,), note=note)
        if not more:
            return [table]
        words = f"{plural(more, 'more tree')} with fewer leaves or terms, such as at(max_terms=1)."
        return [table, Text(words)]

    def _content(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "points": [_plain(point) for point in self.points],
            "measured": [vars(each) for each in self.measured],
        }

    def _tables(self) -> Tables:
        points = columns_of(FrontierPoint, self.points)
        points.pop("tree")
        return {"points": points, "measured": columns_of(MeasuredSize, self.measured)}


def _plain(point: FrontierPoint) -> dict[str, Any]:
    return {name: value for name, value in vars(point).items() if name != "tree"}
