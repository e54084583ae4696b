"""Policy trees in words and as a drawing.

A split of two ways is a condition, as that of an oblique tree. One of more ways lists their scores,
each as far as it is ahead of the first way, whose score is 0: nothing but that decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardwood.show.plot import (
    CUT_FILL,
    SPLIT_FILL,
    Box,
    condition_lines,
    draw_boxes,
    filled,
    leaf_fills,
    leaf_lines,
)
from hardwood.show.text import INDENT, Writer, answer_text, count_text, summary
from hardwood.text.condition import phrase
from hardwood.text.formula import Formula, formula
from hardwood.text.numbers import plural
from hardwood.text.terms import check_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hardwood.model.kinds.policy_tree import PolicyTree
    from hardwood.model.views import PolicySplit, Way

_MANY_WAYS = (
    "Of several ways a row takes the one with the largest score; the softmax of the scores gives "
    "their probabilities."
)
_TWO_WAYS = (
    "Where a condition reads w.x >= t, the probability of its 'if' is 1 / (1 + exp(t - w.x)); a "
    "condition on one\nnumber alone is divided by its weight, and that difference, too."
)


def policy_text(
    tree: PolicyTree,
    *,
    max_depth: int | None = None,
    max_terms: int | None = 4,
    digits: int | None = 3,
) -> str:
    """Write a tree in words; arguments as in :meth:`hardwood.PolicyTree.to_text`."""
    check_options(max_terms, digits)
    writer = _PolicyWriter(tree, max_terms, digits)
    lines = [policy_summary(tree), ""]
    todo: list[tuple[int, int, str]] = [(0, 0, "")]
    while todo:  # a stack, not recursion: a tree may be deeper than Python's stack
        node, depth, words = todo.pop()
        if words:
            here = [words]
        elif not tree.n_children[node]:
            count = None if tree.counts is None else float(tree.counts[node])
            here = [answer_text(tree, int(tree.leaf_numbers[node]), count, digits=digits)]
        elif max_depth is not None and depth >= max_depth:
            here = [cut_text(tree, node)]
        else:
            here = []
            for child, head in reversed(writer.ways(tree.split(node))):
                todo += [(child, depth + 1, ""), (child, depth, head)]
        lines += [INDENT * depth + line for line in here]
    notes = writer.notes()
    return "\n".join(lines + (["", *notes] if notes else [])) + "\n"


class _PolicyWriter(Writer):
    """Words for nodes, and what the notes below the tree must speak of."""

    has_two_ways = False
    has_more_ways = False

    def ways(self, split: PolicySplit) -> list[tuple[int, str]]:
        """List the children of a split as they are written, each with the words before it."""
        ways = split.ways
        if len(ways) == 1:
            return [(ways[0].node, "always:")]
        if len(ways) == 2:
            self.has_two_ways = True
            return [(ways[1].node, f"if {self.phrase(ways[1])}:"), (ways[0].node, "else:")]
        self.has_more_ways = True
        return [
            (way.node, f"way {i} of {len(ways)}, score {self.score(way).line()}:")
            for i, way in enumerate(ways, start=1)
        ]

    def phrase(self, way: Way) -> str:
        """Write when the second of two ways is taken."""
        words = phrase(way, max_terms=self.max_terms, digits=self.digits)
        self.use(way.weights)
        self.n_left_out += words.n_left_out
        return words.line()

    def score(self, way: Way) -> Formula:
        """Write the score of a way."""
        words = formula(
            way.tree.schema, way.terms, way.bias, max_terms=self.max_terms, digits=self.digits
        )
        self.use(way.weights)
        self.n_left_out += words.n_left_out
        return words

    def notes(self) -> list[str]:
        reading = [_MANY_WAYS] * self.has_more_ways + [_TWO_WAYS] * self.has_two_ways
        return reading + super().notes()


def policy_summary(tree: PolicyTree) -> str:
    """One line: what the tree predicts and how large it is."""
    words = summary(tree).removeprefix("Oblique tree: ")
    if not tree.is_binary:
        splits = plural(tree.n_splits, "split")
        words = words.replace(splits, f"{splits} of up to {plural(tree.max_children, 'way')}", 1)
    return f"Policy tree: {words}"


def split_line(split: PolicySplit, *, max_terms: int | None, digits: int | None) -> str:
    """Write a split on one line: when the second of two ways is taken, or the scores of all."""
    ways = split.ways
    if len(ways) == 1:
        return "always"
    if len(ways) == 2:
        return phrase(ways[1], max_terms=max_terms, digits=digits).line()
    scores = (way.describe(max_terms=max_terms, digits=digits) for way in ways)
    return f"largest of: {' | '.join(scores)}"


def cut_text(tree: PolicyTree, node: int) -> str:
    """Say what lies below a split that is not shown."""
    n_splits, n_leaves = subtree_sizes(tree, node)
    return f"... {plural(n_splits, 'split')} and {plural(n_leaves, 'leaf', 'leaves')} not shown"


def subtree_sizes(tree: PolicyTree, node: int) -> tuple[int, int]:
    """Count the splits, itself included, and the leaves of the subtree at a node."""
    n_splits, n_leaves, todo = 0, 0, [node]
    while todo:
        children = tree.children(todo.pop())
        n_splits += bool(children)
        n_leaves += not children
        todo.extend(children)
    return n_splits, n_leaves


# As a drawing


def plot_policy(
    tree: PolicyTree,
    ax: Axes | None = None,
    *,
    max_depth: int | None = 4,
    max_terms: int | None = 4,
    digits: int | None = 3,
    fontsize: float = 9.0,
) -> Axes:
    """Draw a tree; arguments as in :meth:`hardwood.PolicyTree.plot`."""
    check_options(max_terms, digits)

    def make_root() -> Box:
        return _boxes(tree, max_depth, max_terms, digits)

    return draw_boxes(tree, make_root, ax, max_depth=max_depth, fontsize=fontsize)


def _boxes(
    tree: PolicyTree, max_depth: int | None, max_terms: int | None, digits: int | None
) -> Box:
    fills = leaf_fills(tree)
    root = Box([], None, None, 0)
    todo = [(0, 0, "", root)]
    while todo:
        node, depth, edge, parent = todo.pop()
        count = None if tree.counts is None else float(tree.counts[node])
        if not tree.n_children[node]:
            leaf = int(tree.leaf_numbers[node])
            lines = leaf_lines(tree, leaf, count, max_terms, digits)
            box = Box(lines, fills[leaf], count, depth, edge=edge)
        elif max_depth is not None and depth >= max_depth:
            lines = _cut_lines(tree, node, count)
            box = Box(lines, CUT_FILL, count, depth, is_cut=True, edge=edge)
        else:
            split = tree.split(node)
            lines = _split_lines(split, max_terms, digits)
            box = Box(lines, SPLIT_FILL, count, depth, is_centered=False, edge=edge)
            # A stack gives back the last first.
            ways = zip(split.children, _edges(len(split.ways)), strict=True)
            todo += [(child, depth + 1, word, box) for child, word in reversed(list(ways))]
        parent.children.append(box)
    return root.children[0]


def _edges(n: int) -> list[str]:
    """Words on the lines to the children of a split."""
    return {1: ["always"], 2: ["no", "yes"]}.get(n) or [str(i) for i in range(1, n + 1)]


def _split_lines(split: PolicySplit, max_terms: int | None, digits: int | None) -> list[str]:
    """Put the condition of two ways, or the numbered scores of more, into the lines of a box."""
    ways = split.ways
    if len(ways) == 1:
        return ["always"]
    if len(ways) == 2:
        return condition_lines(phrase(ways[1], max_terms=max_terms, digits=digits))
    lines = ["the largest of"]
    for i, way in enumerate(ways, start=1):
        written = formula(way.tree.schema, way.terms, way.bias, max_terms=max_terms, digits=digits)
        lines += filled([f"{i}:", *written.parts()])
    return lines


def _cut_lines(tree: PolicyTree, node: int, count: float | None) -> list[str]:
    n_splits, n_leaves = subtree_sizes(tree, node)
    lines = [f"... {plural(n_splits, 'split')},", plural(n_leaves, "leaf", "leaves")]
    return lines if count is None else [*lines, f"n = {count_text(count)}"]
