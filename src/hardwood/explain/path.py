r"""The decisions that led to an answer: what was asked, by how much it was decided, and by what.

At split i of the path the row has the score

.. math:: s_i(x) = b_i + \sum_j w_{ij} (x_j - c_j) + \dots

(`hardwood.ObliqueTree`). The bias is the score of a row whose numbers are at their averages and
which has no level and no missing flag; each further term is what one feature of this row adds to
it. The margin is the score in the direction taken, divided by the standard deviation of the split's
score: over given rows, or where none are given, as if the columns were independent with their
deviations in training, :math:`\sqrt{\sum_j (w_{ij} \sigma_j)^2}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableError
from hardwood.explain.entries import dense_matrix, entry, entry_text
from hardwood.model import ObliqueTree
from hardwood.model.base import model_of
from hardwood.model.outputs import answer_of_one
from hardwood.show.text import leaf_text
from hardwood.table import encode_row
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import format_number, plural
from hardwood.text.report import Report

if TYPE_CHECKING:
    from hardwood.text.report import Tables

_MAX_TREES = 5  # of a forest, whose decisions are written out
_ROWS = 4096  # that are encoded at a time


@dataclass(frozen=True)
class TermAtRow:
    """What one feature of a row adds to the score of a split.

    Attributes
    ----------
    feature
        Name of the feature.
    entry
        Of the row: a number, the name of a level, or None where it is missing.
    text
        The entry in words.
    adds
        To the score; positive to the right. A number adds what it is above or below its average.
    """

    feature: str
    entry: Any
    text: str
    adds: float


@dataclass(frozen=True)
class Decision:
    """One split on the way of a row.

    Attributes
    ----------
    split
        Its number in the tree.
    condition
        In words: when a row goes right.
    holds
        Whether it holds for this row, which then went right.
    score
        The row's: right where it is at least 0.
    bias
        The score of the average row: numbers at their centers, levels and missing flags off.
    terms
        What the features add to that, the largest first; features that add nothing are left out.
    deviation
        Standard deviation of the split's score.
    margin
        How far the score is from 0 in the direction taken, in deviations. Negative only where the
        decision hangs on the rounding of float32.
    """

    split: int
    condition: str
    holds: bool
    score: float
    bias: float
    terms: tuple[TermAtRow, ...]
    deviation: float
    margin: float


@dataclass(frozen=True, repr=False)
class TreePath(Report):
    """The way of one row down a tree, made by `path`; a sequence of `decisions`.

    Attributes
    ----------
    decisions
        From the root to the leaf.
    leaf
        Number of the leaf.
    leaf_words
        What it answers, in words.
    outputs
        What the tree answers to the row: probabilities, or numbers.
    prediction
        What ``predict_one`` gives.
    max_terms
        Terms per decision to write; None for all.
    """

    decisions: tuple[Decision, ...]
    leaf: int
    leaf_words: str
    outputs: tuple[float, ...]
    prediction: Any
    max_terms: int | None = 4

    def __len__(self) -> int:
        return len(self.decisions)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __getitem__(self, index: int) -> Decision:
        return self.decisions[index]

    @property
    def narrowest(self) -> Decision | None:
        """The decision with the smallest margin; None where there is no split."""
        return min(self.decisions, key=lambda decision: decision.margin, default=None)

    @property
    def title(self) -> str:
        """Where the path leads."""
        return f"{plural(len(self), 'decision')} to leaf {self.leaf}: {self.leaf_words}"

    def _blocks(self) -> Sequence[Block]:
        if not self.decisions:
            return [Text("The tree is a single leaf: it answers every row alike.")]
        return [self._decision_words(), self._terms_grid()]

    def _decision_words(self) -> Text:
        lines = []
        for i, decision in enumerate(self.decisions):
            lines += [
                f"{i + 1}. {'yes' if decision.holds else 'no'}: {decision.condition}",
                f"   score {format_number(decision.score)}, {format_number(decision.margin)} "
                "standard deviations from the other side",
            ]
        return Text("\n".join(lines), "Decisions")

    def _terms_grid(self) -> TextTable:
        rows = []
        for i, decision in enumerate(self.decisions):
            shown = decision.terms[: self.max_terms]
            rows.append([str(i + 1), "constant", "", f"{decision.bias:+.4g}"])
            rows += [["", term.feature, term.text, f"{term.adds:+.4g}"] for term in shown]
            rest = decision.terms[len(shown) :]
            if rest:
                total = sum(term.adds for term in rest)
                rows.append(["", plural(len(rest), "smaller term"), "", f"{total:+.4g}"])
        return TextTable.of(
            "What made the scores",
            ["", "feature", "entry", "adds"],
            rows,
            text_columns=(0, 1, 2),
            note="The constant is the score of a row whose numbers are at their averages and which "
            "has no level.",
        )

    def _content(self) -> dict[str, Any]:
        return asdict(self)

    def _tables(self) -> Tables:
        names = ("split", "condition", "holds", "score", "bias", "deviation", "margin")
        terms = [term for decision in self.decisions for term in decision.terms]
        splits = [decision.split for decision in self.decisions for _ in decision.terms]
        return {
            "decisions": columns_of(names, self.decisions),
            "terms": {"split": splits} | columns_of(("feature", "text", "adds"), terms),
        }


@dataclass(frozen=True, repr=False)
class ForestPath(Report):
    """The ways of one row down the trees of a forest, made by `path`; a sequence of `trees`.

    Attributes
    ----------
    trees
        The paths, in the order of the trees.
    combine
        How the forest makes one answer of theirs.
    outputs
        What the forest answers to the row.
    prediction
        What ``predict_one`` gives.
    """

    trees: tuple[TreePath, ...]
    combine: str
    outputs: tuple[float, ...]
    prediction: Any

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[TreePath]:
        return iter(self.trees)

    def __getitem__(self, index: int) -> TreePath:
        return self.trees[index]

    @property
    def title(self) -> str:
        """What the forest answers, and how."""
        shown = ", ".join(map(format_number, self.outputs[:4])) + ", ..." * (len(self.outputs) > 4)
        return f"{self.combine} of {plural(len(self), 'tree')}: {self.prediction} ({shown})"

    def _blocks(self) -> Sequence[Block]:
        rows = []
        for i, way in enumerate(self.trees):
            narrowest = way.narrowest
            margin = format_number(None if narrowest is None else narrowest.margin)
            rows.append([str(i + 1), way.leaf_words, str(len(way)), margin])
        blocks: list[Block] = [
            TextTable.of(
                "Trees, with the narrowest margin on the way",
                ["tree", "answers", "decisions", "margin"],
                rows,
                text_columns=(0, 1),
            )
        ]
        for i, way in enumerate(self.trees[:_MAX_TREES]):
            blocks += [Text(way.title, f"Tree {i + 1}"), *way._blocks()]
        left = len(self) - _MAX_TREES
        if left > 0:
            blocks.append(Text(f"{plural(left, 'more tree')} not written out"))
        return blocks

    def _content(self) -> dict[str, Any]:
        return asdict(self)

    def _tables(self) -> Tables:
        tables: Tables = {}
        for i, way in enumerate(self.trees):
            for name, columns in way._tables().items():
                length = len(next(iter(columns.values())))
                so_far = tables.setdefault(name, {key: [] for key in ("tree", *columns)})
                for key, column in ({"tree": [i] * length} | columns).items():
                    so_far[key] += column
        return tables


def path(
    model: Any, x: Any, *, X: Any = None, max_terms: int | None = 4, digits: int | None = 3
) -> TreePath | ForestPath:
    """List the decisions that a model takes for a row.

    Parameters
    ----------
    model
        An `ObliqueTree`, an `ObliqueForest`, or a fitted estimator.
    x
        One row: a 1-D array, a sequence in the order of the features, a mapping by their names, or
        a table of one row.
    X
        A table, whose rows say how far scores vary; None takes the deviations of the training.
    max_terms, digits
        Terms to write per decision, and significant digits of conditions; None for all.

    Returns
    -------
    way
        A `TreePath`, a sequence of `Decision`; of a forest a `ForestPath`, a sequence of those.
        They print as text, show as HTML in a notebook, and give JSON and data frames.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> from hardwood.explain import path
    >>> tree = ObliqueTree.of([[1.0, -1.0]], thresholds=[0.0], values=[0.0, 1.0])
    >>> [decision.condition for decision in path(tree, [2.0, 0.5])]
    ['x0 - x1 >= 0']
    """
    found = model_of(model).hard("an explanation")
    table = _as_table(x, found.feature_names)
    row = dense_matrix(found.schema, table, type(found).__name__)
    if len(row) != 1:
        raise TableError(
            f"path takes one row, found a table of {len(row)}. Give one of them, as X[:1]"
        )
    data = None if X is None else dense_matrix(found.schema, X, type(found).__name__)
    writer = _DecisionWriter(row, data, max_terms, digits)
    if isinstance(found, ObliqueTree):
        return writer.tree_path(found, table)
    outputs = found.outputs(table)[0]
    return ForestPath(
        trees=tuple(writer.tree_path(tree, table) for tree in found.trees),
        combine=found.combine,
        outputs=tuple(outputs.tolist()),
        prediction=answer_of_one(outputs, found.task, found.classes),
    )


def _as_table(x: Any, names: Sequence[str]) -> Any:
    """Return a table of one row; what has two dimensions is one already."""
    return x if len(getattr(x, "shape", ())) == 2 else encode_row.as_table(x, names, who="path")


@dataclass(frozen=True)
class _DecisionWriter:
    """One row, and how its paths are to be written.

    ``row`` (1, p) and ``data`` (n, p) are as `Schema.read` gives them.
    """

    row: np.ndarray
    data: np.ndarray | None
    max_terms: int | None
    digits: int | None

    def tree_path(self, tree: ObliqueTree, table: Any) -> TreePath:
        """Write the way of the row, read from ``table``, down a tree."""
        outputs = tree.outputs(table)[0]
        nodes = tree.decision_path(table).indices.tolist()  # from the root down, the leaf last
        leaf, splits = nodes[-1] - tree.n_splits, nodes[:-1]
        deviations = _deviations(tree, splits, self.data)
        columns = _columns(tree, self.row)[0]
        decisions = tuple(
            self._decision(tree, split, below, columns, deviation)
            for split, below, deviation in zip(splits, nodes[1:], deviations, strict=True)
        )
        return TreePath(
            decisions=decisions,
            leaf=leaf,
            leaf_words=leaf_text(tree, leaf, max_terms=self.max_terms, digits=self.digits),
            outputs=tuple(outputs.tolist()),
            prediction=answer_of_one(outputs, tree.task, tree.classes),
            max_terms=self.max_terms,
        )

    def _decision(
        self, tree: ObliqueTree, split: int, below: int, columns: np.ndarray, deviation: float
    ) -> Decision:
        """Describe one decision; ``below`` is the node that the row went to."""
        view = tree.split(split)
        right = view.right if view.right >= 0 else tree.n_splits + ~view.right
        holds = below == right
        adds = tree.weights[split] * columns
        score = math.fsum([view.bias, *adds.tolist()])
        return Decision(
            split=split,
            condition=view.describe(max_terms=self.max_terms, digits=self.digits),
            holds=holds,
            score=score,
            bias=view.bias,
            terms=self._terms(tree, adds),
            deviation=deviation,
            margin=_in_deviations(score if holds else -score, deviation),
        )

    def _terms(self, tree: ObliqueTree, adds: np.ndarray) -> tuple[TermAtRow, ...]:
        """List what the columns add, the largest first; of a feature at most one column adds."""
        terms = []
        for j in np.argsort(-np.abs(adds), kind="stable").tolist():
            if adds[j] != 0:
                feature = tree.columns[j].feature
                value = float(self.row[0, feature])
                terms.append(
                    TermAtRow(
                        feature=tree.feature_names[feature],
                        entry=entry(tree.schema, feature, value),
                        text=entry_text(tree.schema, feature, value),
                        adds=float(adds[j]),
                    )
                )
        return tuple(terms)


def _columns(tree: ObliqueTree, matrix: np.ndarray) -> np.ndarray:
    """Return what a tree's weights multiply, (n, c) float64, for rows that are read already."""
    columns: np.ndarray = tree.schema.encoder.encode(matrix) * tree.schema.column_scale
    return columns


def _deviations(tree: ObliqueTree, splits: list[int], data: np.ndarray | None) -> list[float]:
    """Return the standard deviations of the scores of some splits."""
    weights = tree.weights[splits]
    if data is None:
        spreads = [row.tolist() for row in weights * tree.schema.column_spread]
        return [math.hypot(*row) for row in spreads]
    scores = np.empty((len(data), len(splits)))
    for first in range(0, len(data), _ROWS):
        block = slice(first, first + _ROWS)
        scores[block] = _columns(tree, data[block]) @ weights.T
    return [float(deviation) for deviation in scores.std(axis=0)]


def _in_deviations(distance: float, deviation: float) -> float:
    if deviation > 0:
        return distance / deviation
    return 0.0 if distance == 0 else math.copysign(math.inf, distance)
