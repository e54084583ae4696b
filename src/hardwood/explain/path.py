r"""The path of a row: the decisions that lead to its prediction, and their margins.

At split i of the path the row has the score

.. math:: s_i(x) = b_i + \sum_j w_{ij} (x_j - c_j) + \dots

(`hardwood.ObliqueTree`). The bias is the score of a row whose numbers are at their means, without
categories and missing values; each further term is the contribution of one feature of this row. The
margin is the score in the direction taken, divided by the standard deviation of the split's score:
over given rows, or if none are given, as if the columns were independent with their standard
deviations in training, :math:`\sqrt{\sum_j (w_{ij} \sigma_j)^2}`.

The scores of a linear leaf are sums of the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableError
from hardwood.explain.values import dense_matrix, value_of, value_text
from hardwood.model import ObliqueTree
from hardwood.model.base import model_of
from hardwood.model.outputs import check_finite
from hardwood.show.text import leaf_text
from hardwood.table import encode_row
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.leaf import leaf_equations, leaf_scores, says_equations
from hardwood.text.numbers import Digits, format_number, plural
from hardwood.text.report import Report
from hardwood.text.terms import MAX_TERMS

if TYPE_CHECKING:
    from hardwood.text.report import Tables

_MAX_TREES = 5  # trees of a forest whose decisions are printed
_ROWS = 4096  # rows to encode at a time


@dataclass(frozen=True)
class TermAtRow:
    """The contribution of one feature to the score of a split.

    Attributes
    ----------
    feature
        Name of the feature.
    value
        The row's value: a number, a category, or None if missing.
    text
        The value as text.
    contribution
        What the feature adds to the score; positive is toward the right. A number contributes its
        difference from the mean, times its weight.
    """

    feature: str
    value: Any
    text: str
    contribution: float


@dataclass(frozen=True)
class Decision:
    """One split on the path of a row.

    Attributes
    ----------
    split
        Number of the split in the tree.
    condition
        The condition for going right, as text.
    holds
        Whether the condition holds for this row, which then goes right.
    score
        Score of the row, which goes right if the score is at least 0.
    bias
        Score of the average row: numbers at their means, no categories, nothing missing.
    terms
        Contributions of the features, the largest first. Zero contributions are left out.
    standard_deviation
        Standard deviation of the split's score.
    margin
        Distance of the score from 0 in the direction taken, in standard deviations. Negative only
        where rounding in float32 decides.
    """

    split: int
    condition: str
    holds: bool
    score: float
    bias: float
    terms: tuple[TermAtRow, ...]
    standard_deviation: float
    margin: float


@dataclass(frozen=True)
class LeafScore:
    """One score of a linear leaf: the prediction, or what its link makes a prediction of.

    Attributes
    ----------
    equation
        The equation of the leaf, as text.
    score
        The sum of bias and terms.
    bias
        Score of the average row: numbers at their means, no categories, nothing missing.
    terms
        Contributions of the features, the largest first. Zero contributions are left out.
    """

    equation: str
    score: float
    bias: float
    terms: tuple[TermAtRow, ...]


@dataclass(frozen=True, repr=False)
class TreePath(Report):
    """The path of one row through a tree, made by `path`; a sequence of `decisions`.

    Attributes
    ----------
    decisions
        Decisions from the root to the leaf.
    leaf
        Number of the leaf.
    leaf_text
        Prediction of the leaf, as text.
    outputs
        Outputs of the tree for the row: probabilities or values.
    prediction
        The result of ``predict_one``.
    max_terms
        Number of terms to print per decision; None for all.
    scores
        Scores of a linear leaf, one per equation of `to_text`; empty for a constant leaf.
    """

    decisions: tuple[Decision, ...]
    leaf: int
    leaf_text: str
    outputs: tuple[float, ...]
    prediction: Any
    max_terms: int | None = MAX_TERMS
    scores: tuple[LeafScore, ...] = ()

    def __len__(self) -> int:
        return len(self.decisions)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __getitem__(self, index: int) -> Decision:
        return self.decisions[index]

    @property
    def narrowest(self) -> Decision | None:
        """The decision with the smallest margin; None if there is no split."""
        return min(self.decisions, key=lambda decision: decision.margin, default=None)

    @property
    def title(self) -> str:
        """Number of decisions, and the leaf."""
        return f"{plural(len(self), 'decision')} to leaf {self.leaf}: {self.leaf_text}"

    def _blocks(self) -> Sequence[Block]:
        if not self.decisions and not self.scores:
            return [Text("The tree is a single leaf: all rows get the same prediction.")]
        parts = [(str(i), decision.bias, decision.terms) for i, decision in enumerate(self, 1)]
        parts += [("leaf", score.bias, score.terms) for score in self.scores]
        blocks: list[Block] = [self._decisions_text()] if self.decisions else []
        if self.scores:
            lines = [
                f"{each.equation}\n   score {format_number(each.score)}" for each in self.scores
            ]
            blocks.append(Text("\n".join(lines), "Scores of the leaf"))
        return [*blocks, self._terms_grid(parts)]

    def _decisions_text(self) -> Text:
        lines = []
        for i, decision in enumerate(self.decisions):
            lines += [
                f"{i + 1}. {'yes' if decision.holds else 'no'}: {decision.condition}",
                f"   score {format_number(decision.score)}, {format_number(decision.margin)} "
                "standard deviations from the threshold",
            ]
        return Text("\n".join(lines), "Decisions")

    def _terms_grid(self, parts: Sequence[tuple[str, float, tuple[TermAtRow, ...]]]) -> TextTable:
        rows = []
        for name, bias, terms in parts:
            shown = terms[: self.max_terms]
            rows.append([name, "constant", "", f"{bias:+.4g}"])
            rows += [["", term.feature, term.text, f"{term.contribution:+.4g}"] for term in shown]
            rest = terms[len(shown) :]
            if rest:
                total = sum(term.contribution for term in rest)
                rows.append(["", plural(len(rest), "smaller term"), "", f"{total:+.4g}"])
        return TextTable.of(
            "Contributions to the scores",
            ["", "feature", "value", "contribution"],
            rows,
            text_columns=(0, 1, 2),
            note="The constant is the score of a row whose numbers are at their means, without "
            "categories.",
        )

    def _content(self) -> dict[str, Any]:
        return asdict(self)

    def _tables(self) -> Tables:
        names = ("split", "condition", "holds", "score", "bias", "standard_deviation", "margin")
        terms = [term for decision in self.decisions for term in decision.terms]
        splits = [decision.split for decision in self.decisions for _ in decision.terms]
        return {
            "decisions": columns_of(names, self.decisions),
            "terms": {"split": splits} | columns_of(("feature", "text", "contribution"), terms),
        }


@dataclass(frozen=True, repr=False)
class ForestPath(Report):
    """The paths of one row through the trees of a forest, made by `path`; a sequence of `trees`.

    Attributes
    ----------
    trees
        The paths, in the order of the trees.
    combine
        How the forest combines the predictions of its trees.
    outputs
        Outputs of the forest for the row.
    prediction
        The result of ``predict_one``.
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
        """Prediction of the forest, and how it combines its trees."""
        shown = ", ".join(map(format_number, self.outputs[:4])) + ", ..." * (len(self.outputs) > 4)
        is_number = isinstance(self.prediction, float | np.ndarray)  # then the outputs say it all
        prediction = shown if is_number else f"{self.prediction} ({shown})"
        return f"{self.combine} of {plural(len(self), 'tree')}: {prediction}"

    def _blocks(self) -> Sequence[Block]:
        rows = []
        for i, path in enumerate(self.trees):
            narrowest = path.narrowest
            margin = format_number(None if narrowest is None else narrowest.margin)
            rows.append([str(i + 1), path.leaf_text, str(len(path)), margin])
        blocks: list[Block] = [
            TextTable.of(
                "Trees",
                ["tree", "prediction", "decisions", "smallest margin"],
                rows,
                text_columns=(0, 1),
            )
        ]
        for i, path in enumerate(self.trees[:_MAX_TREES]):
            blocks += [Text(path.title, f"Tree {i + 1}"), *path._blocks()]
        left = len(self) - _MAX_TREES
        if left > 0:
            blocks.append(Text(f"... and {plural(left, 'more tree')}"))
        return blocks

    def _content(self) -> dict[str, Any]:
        return asdict(self)

    def _tables(self) -> Tables:
        tables: Tables = {}
        for i, path in enumerate(self.trees):
            for name, columns in path._tables().items():
                length = len(next(iter(columns.values())))
                so_far = tables.setdefault(name, {key: [] for key in ("tree", *columns)})
                for key, column in ({"tree": [i] * length} | columns).items():
                    so_far[key] += column
        return tables


def path(
    model: Any,
    x: Any,
    *,
    X: Any = None,
    max_terms: int | None = MAX_TERMS,
    digits: Digits = "auto",
) -> TreePath | ForestPath:
    """List the decisions that lead to the prediction for a row.

    Parameters
    ----------
    model
        An `ObliqueTree`, an `ObliqueForest`, or a fitted estimator.
    x
        One row: a 1-D array, a sequence in the order of the features, a mapping by feature name, or
        a table of one row.
    X
        A table to compute the standard deviations of the scores from; None uses the training
        statistics in the model.
    max_terms, digits
        Number of terms to print per decision, and significant digits in conditions, as in
        `ObliqueTree.to_text`; None for all.

    Returns
    -------
    path
        A `TreePath`, which is a sequence of `Decision`; for a forest a `ForestPath`, a sequence of
        `TreePath`. Both print as text, render as HTML in a notebook, and convert to JSON and data
        frames.

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
            f"path takes one row, found a table of {plural(len(row), 'row')}. Pass one of "
            "them, as in X[:1]"
        )
    data = None if X is None else dense_matrix(found.schema, X, type(found).__name__)
    writer = _DecisionWriter(row, data, max_terms, digits)
    if isinstance(found, ObliqueTree):
        return writer.tree_path(found, table)
    outputs = found.outputs(table)
    check_finite(outputs)
    return ForestPath(
        trees=tuple(writer.tree_path(tree, table) for tree in found.trees),
        combine=found.combine,
        outputs=tuple(outputs[0].tolist()),
        prediction=found.prediction_for(outputs[0]),
    )


def _as_table(x: Any, names: Sequence[str]) -> Any:
    """Return a table of one row; an object with two dimensions already is one."""
    return x if len(getattr(x, "shape", ())) == 2 else encode_row.as_table(x, names, who="path")


@dataclass(frozen=True)
class _DecisionWriter:
    """Writes the paths of one row.

    ``row`` (1, p) and ``data`` (n, p) are as `Schema.read` returns them.
    """

    row: np.ndarray
    data: np.ndarray | None
    max_terms: int | None
    digits: Digits

    def tree_path(self, tree: ObliqueTree, table: Any) -> TreePath:
        """Return the path through a tree of the row, which was read from ``table``."""
        outputs = tree.outputs(table)
        check_finite(outputs)
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
            leaf_text=leaf_text(tree, leaf, max_terms=self.max_terms, digits=self.digits),
            outputs=tuple(outputs[0].tolist()),
            prediction=tree.prediction_for(outputs[0]),
            max_terms=self.max_terms,
            scores=self._scores(tree, leaf, columns) if says_equations(tree) else (),
        )

    def _scores(self, tree: ObliqueTree, leaf: int, columns: np.ndarray) -> tuple[LeafScore, ...]:
        """Describe the scores of a linear leaf."""
        equations = leaf_equations(tree, leaf, max_terms=self.max_terms, digits=self.digits)
        scores = []
        for equation, view in zip(equations, leaf_scores(tree, leaf), strict=False):
            contributions = view.weights * columns
            score = math.fsum([view.value, *contributions.tolist()])
            terms = self._terms(tree, contributions)
            scores.append(LeafScore(equation.line(), score, view.value, terms))
        return tuple(scores)

    def _decision(
        self, tree: ObliqueTree, split: int, below: int, columns: np.ndarray, deviation: float
    ) -> Decision:
        """Describe one decision; ``below`` is the node that the row goes to."""
        view = tree.split(split)
        right = view.right if view.right >= 0 else tree.n_splits + ~view.right
        holds = below == right
        contributions = tree.weights[split] * columns
        score = math.fsum([view.bias, *contributions.tolist()])
        return Decision(
            split=split,
            condition=view.describe(max_terms=self.max_terms, digits=self.digits),
            holds=holds,
            score=score,
            bias=view.bias,
            terms=self._terms(tree, contributions),
            standard_deviation=deviation,
            margin=_in_deviations(score if holds else -score, deviation),
        )

    def _terms(self, tree: ObliqueTree, contributions: np.ndarray) -> tuple[TermAtRow, ...]:
        """List the nonzero contributions, the largest first; a feature has at most one."""
        terms = []
        for j in np.argsort(-np.abs(contributions), kind="stable").tolist():
            if contributions[j] != 0:
                feature = tree.columns[j].feature
                value = float(self.row[0, feature])
                terms.append(
                    TermAtRow(
                        feature=tree.feature_names[feature],
                        value=value_of(tree.schema, feature, value),
                        text=value_text(tree.schema, feature, value),
                        contribution=float(contributions[j]),
                    )
                )
        return tuple(terms)


def _columns(tree: ObliqueTree, matrix: np.ndarray) -> np.ndarray:
    """Return the encoded columns of rows that were read, (n, c) float64."""
    columns: np.ndarray = tree.schema.encoder.encode(matrix) * tree.schema.column_scale
    return columns


def _deviations(tree: ObliqueTree, splits: list[int], data: np.ndarray | None) -> list[float]:
    """Return the standard deviations of the scores of several splits."""
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
