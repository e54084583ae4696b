"""The tree in words: nested ifs, one line per split and leaf."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hardwood.text.condition import phrase
from hardwood.text.leaf import (
    MAX_OUTPUTS,
    Equation,
    function_notes,
    leaf_class,
    leaf_equations,
    leaf_labels,
    leaf_values,
    outputs_left_out,
    says_equations,
)
from hardwood.text.numbers import format_digits, format_quantity, plural
from hardwood.text.terms import name_text

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree, PolicyTree
    from hardwood.table import Schema

INDENT = "|   "
_MAX_CENTERS = 8


def tree_text(
    tree: ObliqueTree,
    *,
    max_depth: int | None = None,
    max_terms: int | None = 4,
    digits: int | None = 3,
) -> str:
    """Write a tree in words; arguments as in :meth:`hardwood.ObliqueTree.to_text`."""
    writer = Writer(tree, max_terms, digits)
    lines = [summary(tree), ""]
    todo: list[tuple[int, int, str]] = [(0 if tree.n_splits else -1, 0, "")]
    while todo:  # a stack, not recursion: a tree may be deeper than Python's stack
        node, depth, words = todo.pop()
        if words:
            here = [words]
        elif node < 0:
            here = writer.leaf(~node)
        elif max_depth is not None and depth >= max_depth:
            here = [cut_text(tree, node)]
        else:
            here = [f"if {writer.condition(node)}:"]
            left, right = tree.children[node].tolist()
            todo += [(left, depth + 1, ""), (0, depth, "else:"), (right, depth + 1, "")]
        lines += [INDENT * depth + line for line in here]
    notes = writer.notes()
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"


@dataclass
class Writer:
    """Words for nodes, and what the notes below the tree must speak of."""

    tree: ObliqueTree | PolicyTree
    max_terms: int | None
    digits: int | None
    used: set[int] = field(default_factory=set)  # features whose numbers are weighed
    n_left_out: int = 0

    def condition(self, i: int) -> str:
        split = self.tree.split(i)
        words = phrase(split, max_terms=self.max_terms, digits=self.digits)
        self.use(split.weights)
        self.n_left_out += words.n_left_out
        return words.line()

    def leaf(self, i: int) -> list[str]:
        if not says_equations(self.tree):
            return [leaf_text(self.tree, i, digits=self.digits)]
        assert self.tree.leaf_weights is not None
        equations = leaf_equations(self.tree, i, max_terms=self.max_terms, digits=self.digits)
        self.use(self.tree.leaf_weights[i].any(axis=0))
        self.n_left_out += sum(equation.formula.n_left_out for equation in equations)
        return equation_lines(self.tree, i, equations)

    def notes(self) -> list[str]:
        """Write what stands below the tree."""
        notes = function_notes(self.tree)
        return notes + _notes(self.tree, self.used, self.n_left_out, self.digits)

    def use(self, weights: np.ndarray) -> None:
        """Note whose numbers are weighed."""
        columns = (self.tree.columns[j] for j in np.flatnonzero(weights).tolist())
        self.used.update(column.feature for column in columns if column.kind == "number")


def summary(tree: ObliqueTree | PolicyTree) -> str:
    """One line: what the tree predicts and how large it is."""
    target = "" if tree.target_names is None else _target(tree.target_names)
    if tree.classes is not None:
        what = f"classification{target}, {plural(len(tree.classes), 'class', 'classes')}"
    elif tree.task == "multilabel":
        what = f"multilabel classification{target}, {plural(tree.n_outputs, 'label')}"
    else:
        what = f"regression{target}"
        if tree.n_outputs > 1:
            what += f", {tree.n_outputs} outputs"
    kind = "linear " if tree.has_linear_leaves else ""
    sizes = (
        plural(tree.n_features, "feature"),
        f"depth {tree.depth}",
        plural(tree.n_splits, "split"),
        plural(tree.n_leaves, f"{kind}leaf", f"{kind}leaves"),
    )
    return f"Oblique tree: {what}, {', '.join(sizes)}"


def _target(names: tuple[str, ...]) -> str:
    shown = ", ".join(name_text(name) for name in names[:MAX_OUTPUTS])
    return f" of {shown}" + (", ..." if len(names) > MAX_OUTPUTS else "")


def leaf_text(tree: ObliqueTree, leaf: int, *, digits: int | None = 3) -> str:
    """Write what a constant leaf answers, how sure it is, and how many samples it saw."""
    return answer_text(tree, leaf, _leaf_count(tree, leaf), digits=digits)


def answer_text(
    tree: ObliqueTree | PolicyTree, leaf: int, count: float | None, *, digits: int | None
) -> str:
    """Write what a constant leaf that saw so many samples answers, and how sure it is."""
    notes = []
    if tree.classes is not None:
        answer, probability = leaf_class(tree, leaf, digits=digits)
        notes.append(probability)
    elif tree.task == "multilabel":
        answer = "labels: " + ", ".join(leaf_labels(tree, leaf, digits=digits))
    else:
        answer = ", ".join(leaf_values(tree, leaf, digits=digits))
    notes += _count_notes(count)
    return f"{answer} ({', '.join(notes)})" if notes else answer


def equation_lines(tree: ObliqueTree, leaf: int, equations: list[Equation]) -> list[str]:
    """Write the equations of a linear leaf below each other, and how many samples it saw."""
    lines = [equation.line() for equation in equations]
    notes = _count_notes(_leaf_count(tree, leaf))
    if notes:
        lines[0] += f" ({', '.join(notes)})"
    left_out = outputs_left_out(tree)
    return [*lines, left_out] if left_out else lines


def _count_notes(count: float | None) -> list[str]:
    return [] if count is None else [f"n = {count_text(count)}"]


def _leaf_count(tree: ObliqueTree, leaf: int) -> float | None:
    return None if tree.counts is None else float(tree.counts[tree.n_splits + leaf])


def cut_text(tree: ObliqueTree, node: int) -> str:
    """Say what lies below a split that is not shown."""
    n_splits = subtree_splits(tree, node)
    return f"... {plural(n_splits, 'split')} and {plural(n_splits + 1, 'leaf', 'leaves')} not shown"


def subtree_splits(tree: ObliqueTree, node: int) -> int:
    """Count the splits of the subtree at split ``node``, itself included."""
    n_splits, todo = 0, [node]
    while todo:
        n_splits += 1
        todo.extend(child for child in tree.children[todo.pop()].tolist() if child >= 0)
    return n_splits


def count_text(count: float) -> str:
    """Write a (weighted) count: whole numbers in full, others with a few digits."""
    return str(int(count)) if count < 1e15 and count == int(count) else format_digits(count, 4)


def _notes(
    tree: ObliqueTree | PolicyTree, used: set[int], n_left_out: int, digits: int | None
) -> list[str]:
    notes = []
    if n_left_out:
        notes.append(
            "Terms left out are taken at their average (numbers) or as absent (levels, missing)."
            if tree.schema.column_center.any()
            else "Terms left out are taken as zero."
        )
    gappy = [i for i in sorted(used) if tree.schema.features[i].has_missing]
    if gappy:
        shown = ", ".join(_average(tree.schema, i, digits) for i in gappy[:_MAX_CENTERS])
        more = f" (+ {len(gappy) - _MAX_CENTERS} more)" if len(gappy) > _MAX_CENTERS else ""
        notes.append(f"A missing number is taken at its average: {shown}{more}.")
    return notes


def _average(schema: Schema, i: int, digits: int | None) -> str:
    feature = schema.features[i]
    spread = float(schema.column_spread[schema.first_column[i]])
    text = format_quantity(feature.center, feature.origin, digits, spread=spread)
    return f"{name_text(feature.name)} as {text}"
