"""Models as text: nested ifs, one line per split and leaf; several trees one after the other.

A split with two branches is a condition. A split with more lists the scores of its branches
relative to the first, whose score is 0, because only differences matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from hardwood.model import LatentTreeModel, ObliqueForest, ObliqueTree, PolicyTree, TreeEnsemble
from hardwood.parameters import integer
from hardwood.text.condition import Phrase, phrase
from hardwood.text.formula import Formula, formula
from hardwood.text.leaf import (
    MAX_OUTPUTS,
    decision_words,
    function_notes,
    leaf_class,
    leaf_equations,
    leaf_labels,
    leaf_values,
    linear_leaf_lines,
    outputs_left_out,
    says_equations,
)
from hardwood.text.numbers import Digits, format_digits, format_quantity, plural
from hardwood.text.terms import MAX_TERMS, check_options, name_text

if TYPE_CHECKING:
    from hardwood.model.views import Branch, PolicySplit, Split
    from hardwood.table import Schema

Tree: TypeAlias = ObliqueTree | PolicyTree
Trees: TypeAlias = ObliqueForest | TreeEnsemble

MAX_LINES = 1_000
MAX_LEVELS = 30
MAX_SCORECARD_LINES = 60  # of a tree whose leaves are written as scorecards
_INDENT = "|   "
_COMBINATIONS = {"mean": "mean", "vote": "votes", "sum": "sum"}
_ACTIVATIONS = {
    "smooth_step": "smooth step",
    "smooth_step_5": "smooth step of degree 5",
    "logistic": "logistic function",
}
_MANY_BRANCHES = (
    "A row takes the branch with the largest score; the softmax of the scores gives "
    "their probabilities."
)
_PARTS_NOT_SHOWN = (
    "What is not shown: to_text(node=N), or hardwood describe --node N, begins at node N;\n"
    "max_depth=None, or --depth N, shows more levels."
)
_TWO_BRANCHES = (
    "Where a condition reads w.x >= t, its 'if' has the probability 1 / (1 + exp(t - w.x)). A\n"
    "condition on a single number is divided by its weight; multiply by it first."
)


def tree_text(
    tree: Tree | LatentTreeModel,
    *,
    max_depth: int | Literal["auto"] | None = "auto",
    max_terms: int | None = MAX_TERMS,
    digits: Digits = "auto",
    node: int = 0,
) -> str:
    """Write a tree of any kind; arguments as in :meth:`hardwood.ObliqueTree.to_text`."""
    check_options(max_terms, digits)
    writer: _Writer
    if isinstance(tree, LatentTreeModel):
        writer = _LatentWriter(tree, max_terms, digits)
    else:
        writer = _TreeWriter(tree, max_terms, digits)
    root = writer.start(node)
    if max_depth == "auto":
        max_depth = _levels_that_fit(writer, root)
    is_cut = False
    lines = [summary(tree), *([f"From node {node}:"] if node else []), ""]
    todo: list[tuple[int, int, str]] = [(root, 0, "")]
    while todo:  # no recursion: a tree may be deeper than Python's stack
        node, depth, words = todo.pop()
        if words:
            here = [words]
        elif writer.is_leaf(node):
            here = writer.leaf(node)
        elif max_depth is not None and depth >= max_depth:
            here, is_cut = [writer.cut(node)], True
        else:
            here = []
            for child, head in reversed(writer.branches(node)):
                todo += [(child, depth + 1, ""), (child, depth, head)]
        lines += [_indent(depth) + line for line in here]
    notes = [*writer.notes(), *([_PARTS_NOT_SHOWN] if is_cut else [])]
    return "\n".join(lines + (["", *notes] if notes else [])) + "\n"


def _levels_that_fit(writer: _Writer, root: int) -> int:
    """Return how many levels below a node are shown: as many as fit into the largest text."""
    level, n_lines = [root], 0
    for depth in range(MAX_LEVELS):
        n_lines += 2 * len(level)  # each node has a line, and one before it
        splits = [node for node in level if not writer.is_leaf(node)]
        if not splits:
            return depth
        level = [child for node in splits for child in writer.children(node)]
        if n_lines + 2 * len(level) > MAX_LINES:
            return depth
    return MAX_LEVELS


def _indent(depth: int) -> str:
    """Return what precedes a line; its length is limited, or deep trees would have long texts."""
    if depth <= MAX_LEVELS:
        return _INDENT * depth
    return f"{_INDENT * MAX_LEVELS}(level {depth}) "


def trees_text(model: Trees, *, max_trees: int | None = 3, **options: Any) -> str:
    """Write a forest or a soft ensemble: a summary, then the first trees.

    Arguments as in :meth:`hardwood.ObliqueForest.to_text`. The trees of a soft ensemble are written
    as hard trees.
    """
    n, head = model.n_trees, summary(model) + "\n"
    if isinstance(model, TreeEnsemble):
        head += _softness_meaning(model, options.get("digits", "auto")) + "\n"
    parts = [head]
    n_shown = n if max_trees is None else min(max(max_trees, 0), n)
    for i in range(n_shown):
        parts.append(f"Tree {i + 1} of {n}. {tree_text(model.hard_tree(i), **options)}")
    if n_shown < n:
        parts.append(f"... {plural(n - n_shown, 'more tree')} not shown\n")
    return "\n".join(parts)


# Summaries


def summary(model: Tree | Trees | LatentTreeModel) -> str:
    """Return task and size of a model on one line; the nodes of several trees are added up."""
    if isinstance(model, LatentTreeModel):
        return _latent_summary(model)
    words = f"{_prediction(model)}, {model.shape_words}"
    if isinstance(model, ObliqueTree):
        decision = decision_words(model)
        return f"Oblique tree: {words}" + (f"; predicts {decision}" if decision else "")
    if isinstance(model, PolicyTree):
        return f"Policy tree: {words}"
    how = _COMBINATIONS[model.combine] if isinstance(model, ObliqueForest) else "sum"
    if model.link != "identity":
        how = f"{model.link} of the {how}"
    if isinstance(model, ObliqueForest):
        return f"Oblique forest: {how} of {plural(model.n_trees, 'tree')}, {words}"
    softness = f"{_ACTIVATIONS[model.activation]}, gamma {format_digits(model.gamma, None)}"
    return f"Tree ensemble: {how} of {plural(model.n_trees, 'soft tree')}, {words}, {softness}"


def _prediction(model: Tree | Trees) -> str:
    names = model.target_names or ()
    target = f" of {', '.join(map(name_text, names[:MAX_OUTPUTS]))}" if names else ""
    target += ", ..." if len(names) > MAX_OUTPUTS else ""
    if model.classes is not None:
        return f"classification{target}, {plural(len(model.classes), 'class', 'classes')}"
    if model.task == "multilabel":
        return f"multilabel classification{target}, {plural(model.n_outputs, 'label')}"
    outputs = f", {model.n_outputs} outputs" if model.n_outputs > 1 else ""
    return f"regression{target}{outputs}"


def _latent_summary(model: LatentTreeModel) -> str:
    head = "linear" if not model.widths else f"layers of {', '.join(map(str, model.widths))}"
    seen = "shares and row" if model.skip_connection else "shares"
    return (
        f"Latent tree: {model.task}, depth {model.depth}, active nodes: {model.n_nodes}, "
        f"splits: {model.n_splits}, features: {model.n_features}, predictor of {seen}: {head}"
    )


def _softness_meaning(ensemble: TreeEnsemble, digits: Digits) -> str:
    """Explain what a condition means in a soft tree."""
    if ensemble.activation == "logistic":
        unit = format_digits(ensemble.gamma, digits)
        return (
            "Every row takes both branches at every split: where a condition reads w.x >= t, the\n"
            f"share 1 / (1 + exp((t - w.x) / {unit})) takes the branch of its 'if'."
        )
    half = format_digits(ensemble.gamma / 2, digits)
    return (
        f"Where a condition reads w.x >= t, a row with w.x within {half} of t takes both\n"
        "branches, in shares. A condition on a single number is divided by its weight, as is that\n"
        "distance."
    )


def split_line(split: PolicySplit, *, max_terms: int | None, digits: Digits) -> str:
    """Write a split on one line: the condition of the second of two branches, or all scores."""
    branches = split.branches
    if len(branches) == 1:
        return "always"
    if len(branches) == 2:
        return phrase(branches[1], max_terms=max_terms, digits=digits).line()
    scores = (branch.describe(max_terms=max_terms, digits=digits) for branch in branches)
    return f"largest score of: {' | '.join(scores)}"


# Nodes of trees


class Nodes:
    """The nodes of a tree, for text and plot.

    Those of an oblique tree are numbered as in its ``children``: leaf l is ``-1 - l``.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.root = -1 if isinstance(tree, ObliqueTree) and not tree.n_splits else 0

    def leaf(self, node: int) -> int | None:
        """Return the leaf number of a node; None for a split."""
        if isinstance(self.tree, ObliqueTree):
            return ~node if node < 0 else None
        return None if self.tree.n_children[node] else int(self.tree.leaf_numbers[node])

    def children(self, node: int) -> list[int]:
        """List the children of a split; of two, the one for "no" first."""
        tree = self.tree
        if isinstance(tree, ObliqueTree):
            return list(tree.children[node].tolist())
        return list(tree.children(node))

    def branches(self, split: int) -> tuple[Split, ...] | tuple[Branch, ...]:
        """Return the scores of the branches of a split; of two, only the second."""
        tree = self.tree
        return (
            (tree.split(split),) * 2
            if isinstance(tree, ObliqueTree)
            else tree.split(split).branches
        )

    def count(self, node: int) -> float | None:
        """Return the number of training samples that reached a node; None if unknown."""
        if self.tree.counts is None:
            return None
        is_leaf = isinstance(self.tree, ObliqueTree) and node < 0
        return float(self.tree.counts[self.tree.n_splits + ~node if is_leaf else node])

    def sizes_below(self, node: int) -> tuple[str, str]:
        """Write the numbers of splits and leaves in the subtree at a split, which is included."""
        n_splits, n_leaves, todo = 0, 0, [node]
        while todo:
            node = todo.pop()
            if self.leaf(node) is None:
                n_splits += 1
                todo += self.children(node)
            else:
                n_leaves += 1
        return plural(n_splits, "split"), plural(n_leaves, "leaf", "leaves")


# Writers for each kind of tree


class _Writer(ABC):
    """Writes the nodes of one tree, and collects what the notes below it must explain."""

    def __init__(self, max_terms: int | None, digits: Digits) -> None:
        self.max_terms, self.digits = max_terms, digits

    @abstractmethod
    def start(self, node: int) -> int:
        """Return the node to begin with; check that there is such a split."""

    @abstractmethod
    def is_leaf(self, node: int) -> bool:
        """Whether a node is a leaf."""

    @abstractmethod
    def children(self, node: int) -> list[int]:
        """List the children of a split."""

    @abstractmethod
    def leaf(self, node: int) -> list[str]:
        """Write a leaf."""

    @abstractmethod
    def cut(self, node: int) -> str:
        """Write what is below a split that is not shown."""

    @abstractmethod
    def branches(self, node: int) -> list[tuple[int, str]]:
        """List the children of a split in the order of the text, each with the line before it."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Write the notes below the tree."""


class _TreeWriter(_Writer):
    """Writes an oblique tree or a policy tree."""

    def __init__(self, tree: Tree, max_terms: int | None, digits: Digits) -> None:
        super().__init__(max_terms, digits)
        self.tree, self.nodes = tree, Nodes(tree)
        self.used: set[int] = set()  # numeric features with a weight
        self.n_left_out = 0
        self.n_branches: set[int] = set()

    def start(self, node: int) -> int:
        n = self.tree.n_splits if isinstance(self.tree, ObliqueTree) else self.tree.n_nodes
        number = integer("node", node, 0, max(n - 1, 0))
        return self.nodes.root if number == 0 else number

    def is_leaf(self, node: int) -> bool:
        return self.nodes.leaf(node) is not None

    def children(self, node: int) -> list[int]:
        return self.nodes.children(node)

    def leaf(self, node: int) -> list[str]:
        tree, leaf, count = self.tree, self.nodes.leaf(node), self.nodes.count(node)
        assert leaf is not None
        if isinstance(tree, PolicyTree) or not says_equations(tree):
            return [_prediction_text(tree, leaf, count, self.digits)]
        assert tree.leaf_weights is not None
        self._use(tree.leaf_weights[leaf].any(axis=0))
        lines = linear_leaf_lines(tree, leaf, digits=self.digits, is_compact=self._is_compact)
        return _noted(lines, count)

    @cached_property
    def _is_compact(self) -> bool:
        """Whether scorecards would make the text long."""
        tree = self.tree
        if isinstance(tree, PolicyTree) or tree.leaf_weights is None:
            return False
        n_terms = int(np.count_nonzero(tree.leaf_weights.any(axis=1)))
        # A split has "if" and "else", a leaf its first line, its constant and a bracket.
        return n_terms + 2 * tree.n_splits + 3 * tree.n_leaves > MAX_SCORECARD_LINES

    def cut(self, node: int) -> str:
        return "... {} and {} not shown, at node {}".format(*self.nodes.sizes_below(node), node)

    def branches(self, node: int) -> list[tuple[int, str]]:
        children, branches = self.nodes.children(node), self.nodes.branches(node)
        options: dict[str, Any] = {"max_terms": self.max_terms, "digits": self.digits}
        self.n_branches.add(len(branches))
        if len(branches) == 1:
            return [(children[0], "always:")]
        if len(branches) == 2:
            condition = self._line(branches[1], phrase(branches[1], **options))
            return [(children[1], f"if {condition}:"), (children[0], "else:")]
        schema = self.tree.schema
        scores = [self._line(w, formula(schema, w.terms, w.bias, **options)) for w in branches]
        return [
            (child, f"branch {i} of {len(branches)}, score {score}:")
            for i, (child, score) in enumerate(zip(children, scores, strict=True), start=1)
        ]

    def _line(self, view: Split | Branch, words: Phrase | Formula) -> str:
        self._use(view.weights)
        self.n_left_out += words.n_left_out
        return words.line()

    def _use(self, weights: np.ndarray) -> None:
        """Collect the numeric features with a weight."""
        columns = (self.tree.columns[j] for j in np.flatnonzero(weights).tolist())
        self.used.update(column.feature for column in columns if column.kind == "number")

    def notes(self) -> list[str]:
        tree, notes = self.tree, []
        if isinstance(tree, ObliqueTree):
            notes += function_notes(tree)
        else:
            notes += [_MANY_BRANCHES] * (max(self.n_branches, default=0) > 2)
            notes += [_TWO_BRANCHES] * (2 in self.n_branches)
        if self.n_left_out:
            notes.append(
                "Terms left out count at the mean of their column (numbers) or as absent "
                "(categories, missing)."
                if tree.schema.column_center.any()
                else "Terms left out count as zero."
            )
        gappy = [i for i in sorted(self.used) if tree.schema.features[i].has_missing]
        if gappy:
            means = ", ".join(_average(tree.schema, i, self.digits) for i in gappy)
            notes.append(f"A missing number counts as its mean: {means}.")
        return notes


class _LatentWriter(_Writer):
    """Writes a latent tree: its splits, and the activity of its nodes."""

    def __init__(self, model: LatentTreeModel, max_terms: int | None, digits: Digits) -> None:
        super().__init__(max_terms, digits)
        self.model = model
        self.activity = dict(zip(model.nodes.tolist(), model.activity.tolist(), strict=True))
        self.place = {t: i for i, t in enumerate(model.splits.tolist())}

    def start(self, node: int) -> int:
        if node != 0 and node not in self.place:
            raise ValueError(
                f"node must be the number of a split, one of {sorted(self.place)!r:.80}, got "
                f"{node!r:.80}."
            )
        return node

    def is_leaf(self, node: int) -> bool:
        return node not in self.place

    def children(self, node: int) -> list[int]:
        return [2 * node + 1, 2 * node + 2]

    def leaf(self, node: int) -> list[str]:
        if node not in self.activity:
            return [f"stays at node {(node - 1) // 2}"]
        return [f"node {node}, activity {format_digits(self.activity[node], self.digits)}"]

    def cut(self, node: int) -> str:
        return f"{self.leaf(node)[0]}, and more below"

    def branches(self, node: int) -> list[tuple[int, str]]:
        split = self.model.split(self.place[node])
        condition = phrase(split, max_terms=self.max_terms, digits=self.digits).line()
        return [(2 * node + 2, f"{self.leaf(node)[0]}: if {condition}:"), (2 * node + 1, "else:")]

    def notes(self) -> list[str]:
        score = "score" if self.model.activation == "linear" else "ELU of the score"
        return [
            f"A row whose {score} is within 1/2 of a threshold takes both branches, in shares.",
            "Its share of a node is at most the node's activity. The predictor uses all shares.",
        ]


# Leaves


def leaf_text(
    tree: ObliqueTree, leaf: int, *, max_terms: int | None = MAX_TERMS, digits: Digits = "auto"
) -> str:
    """Write the prediction of a leaf on one line, with its probability and number of samples."""
    count = Nodes(tree).count(~leaf)
    if not says_equations(tree):
        return _prediction_text(tree, leaf, count, digits)
    equations = leaf_equations(tree, leaf, max_terms=max_terms, digits=digits)
    lines = _noted([equation.line() for equation in equations], count)
    left_out = outputs_left_out(tree)
    return "; ".join([*lines, left_out] if left_out else lines)


def _prediction_text(tree: Tree, leaf: int, count: float | None, digits: Digits) -> str:
    """Write the prediction of a constant leaf, with its probability and number of samples."""
    notes = []
    if tree.classes is not None:
        prediction, probability = leaf_class(tree, leaf, digits=digits)
        notes.append(probability)
    elif tree.task == "multilabel":
        prediction = "labels: " + ", ".join(leaf_labels(tree, leaf, digits=digits))
    else:
        prediction = ", ".join(leaf_values(tree, leaf, digits=digits))
    notes += _count_notes(count)
    return f"{prediction} ({', '.join(notes)})" if notes else prediction


def _noted(lines: list[str], count: float | None) -> list[str]:
    """Add the number of samples to the first line of a linear leaf."""
    return [lines[0] + "".join(f" ({note})" for note in _count_notes(count)), *lines[1:]]


def _count_notes(count: float | None) -> list[str]:
    return [] if count is None else [f"n = {count_text(count)}"]


def count_text(count: float) -> str:
    """Write a (weighted) count: integers in full, others with a few digits."""
    return str(int(count)) if count < 1e15 and count == int(count) else format_digits(count, 4)


def _average(schema: Schema, i: int, digits: Digits) -> str:
    feature = schema.features[i]
    spread = float(schema.column_spread[schema.first_column[i]])
    text = format_quantity(feature.center, feature.origin, digits, spread=spread)
    return f"{name_text(feature.name)} as {text}"
