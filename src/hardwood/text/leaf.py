"""Leaves as readable text: their prediction and its probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hardwood.text.formula import Formula, formula
from hardwood.text.numbers import Digits, format_digits, plural
from hardwood.text.scorecard import grouped_entries, sum_lines, table_lines
from hardwood.text.terms import label_text, name_text

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree, PolicyTree
    from hardwood.model.views import LinearLeaf

    Tree: TypeAlias = ObliqueTree | PolicyTree

MAX_OUTPUTS = 4
_TERMS_ON_LINE = 4
_COMPACT_WIDTH = 100  # of the lines of a compact leaf
YES = 0.5  # the smallest probability of a predicted label


# Constant leaves


def leaf_class(tree: Tree, leaf: int, *, digits: Digits) -> tuple[str, str]:
    """Return the predicted class, such as ``species = Adelie``, and its probability."""
    assert tree.classes is not None
    best = int(tree.class_positions(tree.values[leaf]))
    probability = 1.0 if tree.has_linear_leaves else float(tree.values[leaf, best])
    return _class_text(tree, best), f"p = {format_digits(probability, digits)}"


def _class_text(tree: Tree, i: int) -> str:
    assert tree.classes is not None
    # Not the bare label: a leaf "no" at the end of a branch "yes" would mislead.
    what = "class" if tree.target_names is None else f"{name_text(tree.target_names[0])} ="
    return f"{what} {label_text(tree.classes[i])}"


def leaf_labels(tree: Tree, leaf: int, *, digits: Digits) -> list[str]:
    """Return the predicted labels with their probabilities; if none, the most probable one."""
    shares = tree.values[leaf]
    yes = np.flatnonzero(shares >= YES).tolist()
    texts = [_label_share(tree, i, float(shares[i]), digits) for i in yes[:MAX_OUTPUTS]]
    if not yes:
        nearest = int(shares.argmax())
        texts = ["none", f"nearest {_label_share(tree, nearest, float(shares[nearest]), digits)}"]
    if len(yes) > MAX_OUTPUTS:
        texts.append(f"(+ {plural(len(yes) - MAX_OUTPUTS, 'more label')} left out)")
    return texts


def _label_share(tree: Tree, i: int, share: float, digits: Digits) -> str:
    name = str(i) if tree.target_names is None else name_text(tree.target_names[i])
    return f"{name} (p = {format_digits(share, digits)})"


def leaf_values(tree: Tree, leaf: int, *, digits: Digits) -> list[str]:
    """Return the outputs of a leaf, with names if known and enough digits to distinguish leaves."""
    with np.errstate(over="ignore", invalid="ignore"):
        spreads = tree.values.std(axis=0).tolist()
    texts = [
        format_digits(value, digits, spread=spread if spread > 0 else np.inf)
        for value, spread in zip(tree.values[leaf].tolist(), spreads, strict=True)
    ]
    if tree.target_names is not None:
        names = (name_text(name) for name in tree.target_names)
        texts = [f"{name} = {text}" for name, text in zip(names, texts, strict=True)]
    if len(texts) > MAX_OUTPUTS:
        texts = [
            *texts[:MAX_OUTPUTS],
            f"(+ {plural(len(texts) - MAX_OUTPUTS, 'more output')} left out)",
        ]
    return texts


# Linear leaves


@dataclass(frozen=True)
class Equation:
    """The equation of one output of a linear leaf: ``price = exp(2 + 0.3*rooms)``."""

    left_side: str
    function: str
    formula: Formula

    def parts(self) -> list[str]:
        """List the parts between which a line may be broken."""
        words = self.formula.parts()
        if self.function:
            words[0] = f"{self.function}({words[0]}"
            words[-1] += ")"
        return [f"{self.left_side} =", *words] if self.left_side else words

    def line(self) -> str:
        """Return the equation as one line."""
        return " ".join(self.parts())

    def lines(self) -> list[str]:
        """Return the equation with one term per line, and the effects of numbers."""
        head, end = f"{self.left_side or 'value'} =", ""
        if self.function:
            head, end = f"{head} {self.function}(", ")"
        return sum_lines(head, self.formula.constant, self.formula.terms, end)


def says_equations(tree: Tree) -> bool:
    """Whether leaves are shown as equations; with a single class there is nothing to compute."""
    return tree.has_linear_leaves and (tree.classes is None or len(tree.classes) > 1)


def leaf_equations(
    tree: ObliqueTree,
    leaf: int,
    *,
    max_terms: int | None = None,
    max_outputs: int | None = MAX_OUTPUTS,
    digits: Digits,
) -> list[Equation]:
    """Return the equations of a linear leaf, for the first few outputs; None for all of them.

    With two classes there is one equation, for the probability of the second: the softmax of two
    scores is the logistic function of their difference.
    """
    function = tree.link if tree.link in ("exp", "logistic") else ""
    views, left_sides = leaf_scores(tree, leaf), _left_sides(tree)
    if len(views) < tree.n_outputs:
        function, left_sides = "logistic", [f"p({_class_text(tree, 1)})"]
    return [
        Equation(
            left_side,
            function,
            formula(tree.schema, view.terms, view.value, max_terms=max_terms, digits=digits),
        )
        for left_side, view in zip(left_sides, views[:max_outputs], strict=False)
    ]


def linear_leaf_lines(
    tree: ObliqueTree, leaf: int, *, digits: Digits, is_compact: bool = False
) -> list[str]:
    """Write a linear leaf with all its terms: short equations as lines, others as a scorecard.

    A compact leaf has no scorecard: its equation goes on in the next line.
    """
    equations = leaf_equations(tree, leaf, max_outputs=None, digits=digits)
    lines = [equation.line() for equation in equations]
    if max(len(equation.formula.terms) for equation in equations) <= _TERMS_ON_LINE:
        return lines
    if len(equations) == 1:
        return _wrapped(equations[0].parts()) if is_compact else equations[0].lines()
    views = leaf_scores(tree, leaf)
    groups = grouped_entries(tree.schema, [view.terms for view in views], digits)
    entries = [entry for group in groups for entry in group]
    head = {"classification": "score of", "multilabel": "logistic of"}.get(tree.task, "target")
    head = "exp of" if tree.link == "exp" else head
    names = [name or "value" for name in _output_names(tree)]
    return table_lines(head, names, [view.value for view in views], entries, digits)


def _wrapped(parts: Sequence[str]) -> list[str]:
    """Join parts into lines; those after the first are indented."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) <= _COMPACT_WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return lines


def leaf_scores(tree: ObliqueTree, leaf: int) -> list[LinearLeaf]:
    """Return the score of each output; of two classes, the second relative to the first."""
    views = [tree.linear_leaf(leaf, output) for output in range(tree.n_outputs)]
    is_pair = tree.classes is not None and len(views) == 2
    return [replace(views[1], less=0)] if is_pair else views


def _left_sides(tree: ObliqueTree) -> list[str]:
    frame = {"classification": "score of {}", "multilabel": "p({})"}.get(tree.task, "{}")
    return [frame.format(name) for name in _output_names(tree)]


def _output_names(tree: ObliqueTree) -> list[str]:
    """Return the names of classes, labels or targets; empty for a single target without a name."""
    if tree.classes is not None:
        return [label_text(label) for label in tree.classes]
    if tree.target_names is not None:
        return [name_text(name) for name in tree.target_names]
    if tree.task == "multilabel":
        return [f"label {i}" for i in range(tree.n_outputs)]
    return [""] if tree.n_outputs == 1 else [f"output {i}" for i in range(tree.n_outputs)]


def outputs_left_out(tree: Tree) -> str:
    """Return how many equations of a leaf are not shown; empty if all are shown."""
    n = tree.n_outputs - MAX_OUTPUTS
    if n <= 0:
        return ""
    what = {"classification": "classes", "multilabel": "labels"}.get(tree.task, "outputs")
    return f"(+ {n} more {what} left out)"


def decision_words(tree: Tree) -> str:
    """Say how decision weights choose the class, as in ``yes where p(yes) > 0.19``.

    Empty for a tree without them, which predicts the most probable class.
    """
    weights = tree.decision_weights
    if weights is None:
        return ""
    assert tree.classes is not None
    labels = [label_text(label) for label in tree.classes]
    if len(labels) == 2:
        with np.errstate(over="ignore"):
            threshold = float(1 / (1 + weights[1] / weights[0]))
        return f"{labels[1]} where p({labels[1]}) > {format_digits(threshold, 'auto')}"
    shown = zip(labels[:MAX_OUTPUTS], weights.tolist(), strict=False)
    pairs = [f"{label} {format_digits(weight, 'auto')}" for label, weight in shown]
    if len(labels) > MAX_OUTPUTS:
        pairs.append(f"{len(labels) - MAX_OUTPUTS} more")
    return f"the class with the largest p * weight (weights: {', '.join(pairs)})"


def function_notes(tree: Tree) -> list[str]:
    """Explain how the equations of a tree's leaves lead to its predictions."""
    if not says_equations(tree):
        return []
    if tree.classes is not None and len(tree.classes) > 2:
        if tree.decision_weights is not None:
            return ["The softmax of the scores gives the probabilities p."]
        return [
            "The class with the largest score is predicted; "
            "the softmax of the scores gives the probabilities."
        ]
    if tree.task == "regression":
        return []
    return ["logistic(s) is 1 / (1 + exp(-s))."]
