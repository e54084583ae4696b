"""The tree in words: nested ifs, one line per split and leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardwood.show.condition import label_text, name_text, phrase
from hardwood.show.numbers import number, quantity

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree
    from hardwood.table import Schema

_INDENT = "|   "
_MAX_CENTERS = 8
_MAX_OUTPUTS = 4


def tree_text(
    tree: ObliqueTree,
    *,
    max_depth: int | None = None,
    max_terms: int | None = 4,
    digits: int | None = 3,
) -> str:
    """Write a tree in words; arguments as in :meth:`hardwood.ObliqueTree.to_text`."""
    lines = [summary(tree), ""]
    used: set[int] = set()
    n_left_out = 0
    todo: list[tuple[int, int, str]] = [(0 if tree.n_splits else -1, 0, "")]
    while todo:  # a stack, not recursion: a tree may be deeper than Python's stack
        node, depth, words = todo.pop()
        indent = _INDENT * depth
        if words:
            lines.append(indent + words)
        elif node < 0:
            lines.append(indent + leaf_text(tree, ~node, digits=digits))
        elif max_depth is not None and depth >= max_depth:
            lines.append(indent + cut_text(tree, node))
        else:
            split = tree.split(node)
            words_of = phrase(split, max_terms=max_terms, digits=digits)
            used.update(term.feature for term in split.terms if term.kind == "number")
            n_left_out += words_of.n_left_out
            lines.append(f"{indent}if {words_of.line()}:")
            todo += [(split.left, depth + 1, ""), (0, depth, "else:"), (split.right, depth + 1, "")]
    notes = _notes(tree, used, n_left_out, digits)
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"


def summary(tree: ObliqueTree) -> str:
    """One line: what the tree predicts and how large it is."""
    target = "" if tree.target_names is None else _target(tree.target_names)
    if tree.classes is None:
        what = f"regression{target}"
        if tree.n_outputs > 1:
            what += f", {tree.n_outputs} outputs"
    else:
        what = f"classification{target}, {_plural(len(tree.classes), 'class', 'classes')}"
    sizes = (
        _plural(tree.n_features, "feature"),
        f"depth {tree.depth}",
        _plural(tree.n_splits, "split"),
        _plural(tree.n_leaves, "leaf", "leaves"),
    )
    return f"Oblique tree: {what}, {', '.join(sizes)}"


def _target(names: tuple[str, ...]) -> str:
    shown = ", ".join(name_text(name) for name in names[:_MAX_OUTPUTS])
    return f" of {shown}" + (", ..." if len(names) > _MAX_OUTPUTS else "")


def leaf_text(tree: ObliqueTree, leaf: int, *, digits: int | None = 3) -> str:
    """One line: what a leaf answers, how sure it is, and how many samples it saw."""
    notes = []
    if tree.classes is None:
        answer = ", ".join(leaf_values(tree, leaf, digits=digits))
    else:
        answer, probability = leaf_class(tree, leaf, digits=digits)
        notes.append(probability)
    if tree.counts is not None:
        notes.append(f"n = {count_text(float(tree.counts[tree.n_splits + leaf]))}")
    return f"{answer} ({', '.join(notes)})" if notes else answer


def leaf_class(tree: ObliqueTree, leaf: int, *, digits: int | None) -> tuple[str, str]:
    """Most probable class of a leaf, such as ``species = Adelie``, and its probability."""
    assert tree.classes is not None
    best = int(tree.values[leaf].argmax())
    # Never the bare label: a leaf that says "no" at the end of a branch that says "yes" misleads.
    what = "class" if tree.target_names is None else f"{name_text(tree.target_names[0])} ="
    probability = number(float(tree.values[leaf, best]), digits)
    return f"{what} {label_text(tree.classes[best])}", f"p = {probability}"


def leaf_values(tree: ObliqueTree, leaf: int, *, digits: int | None) -> list[str]:
    """Regression outputs of a leaf, with names where known; fine enough to tell leaves apart."""
    with np.errstate(over="ignore", invalid="ignore"):
        spreads = tree.values.std(axis=0).tolist()
    texts = [
        number(value, digits, spread=spread if spread > 0 else np.inf)
        for value, spread in zip(tree.values[leaf].tolist(), spreads, strict=True)
    ]
    if tree.target_names is not None:
        names = (name_text(name) for name in tree.target_names)
        texts = [f"{name} = {text}" for name, text in zip(names, texts, strict=True)]
    if len(texts) > _MAX_OUTPUTS:
        texts = [*texts[:_MAX_OUTPUTS], f"(+ {len(texts) - _MAX_OUTPUTS} more outputs left out)"]
    return texts


def cut_text(tree: ObliqueTree, node: int) -> str:
    """Say what lies below a split that is not shown."""
    n_splits = subtree_splits(tree, node)
    return (
        f"... {_plural(n_splits, 'split')} and {_plural(n_splits + 1, 'leaf', 'leaves')} not shown"
    )


def subtree_splits(tree: ObliqueTree, node: int) -> int:
    """Count the splits of the subtree at split ``node``, itself included."""
    n_splits, todo = 0, [node]
    while todo:
        n_splits += 1
        todo.extend(child for child in tree.children[todo.pop()].tolist() if child >= 0)
    return n_splits


def count_text(count: float) -> str:
    """Write a (weighted) count: whole numbers in full, others with a few digits."""
    return str(int(count)) if count < 1e15 and count == int(count) else number(count, 4)


def _notes(tree: ObliqueTree, used: set[int], n_left_out: int, digits: int | None) -> list[str]:
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
    text = quantity(feature.center, feature.origin, digits, spread=spread)
    return f"{name_text(feature.name)} as {text}"


def _plural(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
