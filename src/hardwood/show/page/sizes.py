"""Trees of several sizes on one page, among which the reader chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hardwood.show.page.packing import packed
from hardwood.show.text import summary
from hardwood.text.numbers import format_number

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree
    from hardwood.show.page.rows import DataRows


class ShownSize(Protocol):
    """A tree, its size, and its loss on held-out rows: a point of `hardwood.search.frontier`."""

    @property
    def tree(self) -> ObliqueTree: ...
    @property
    def n_leaves(self) -> int: ...
    @property
    def n_terms(self) -> int: ...
    @property
    def size(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def above(self) -> float: ...
    @property
    def error(self) -> float: ...
    @property
    def is_chosen(self) -> bool: ...
    @property
    def words(self) -> str: ...
    @property
    def above_words(self) -> str: ...


class Sizes(Protocol):
    """The trees, those with the fewest numbers to read first, and the name of the loss."""

    @property
    def points(self) -> Sequence[ShownSize]: ...
    @property
    def metric(self) -> str: ...


def sizes_content(
    sizes: Sizes, rows: Sequence[DataRows | None], features: np.ndarray, max_rows: int
) -> dict[str, Any]:
    """Return the sizes for the page, which has these features; `rows` has each tree's own."""
    return {
        "metric": sizes.metric,
        "points": [
            _point(point, own, features, max_rows)
            for point, own in zip(sizes.points, rows, strict=True)
        ],
    }


def _point(
    point: ShownSize, rows: DataRows | None, features: np.ndarray, max_rows: int
) -> dict[str, Any]:
    weights = point.tree.decision_weights
    return {
        "summary": summary(point.tree),
        "words": point.words,
        "leaves": point.n_leaves,
        "terms": point.n_terms,
        "numbers": point.size,
        "loss": point.loss,
        "lossText": format_number(point.loss),
        "above": point.above,
        "aboveText": point.above_words,
        "error": point.error,
        "isChosen": point.is_chosen,
        "importances": packed(point.tree.feature_importances[features]),
        "decisionWeights": None if weights is None else weights.tolist(),
        "outputs": None if rows is None else packed(rows.outputs[rows.chosen(max_rows)]),
    }
