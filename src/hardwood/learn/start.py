"""The start of a learner: a tree, or another learner that is fitted first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardwood.learn.greedy import Greedy
from hardwood.learn.learner import Learner, Run, Start
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.model.base import Model
from hardwood.model.structure import TaskKind

_PRIOR_ROWS = 5.0  # with the mean target, added to each leaf of a start


def start_tree(start: Start, task: Task, run: Run) -> ObliqueTree | None:
    """Return the tree to start from. A learner is fitted on the training rows only.

    Raises
    ------
    TypeError
        For a model that is not one hard tree.
    ValueError
        For a tree for another kind of task or other classes.
    KeyboardInterrupt
        If the user interrupts a learner: an unfinished start is not used.
    """
    if isinstance(start, Learner):
        return _learned(start, task, run)
    if start is None:
        return None
    tree = start.hard("init") if isinstance(start, Model) else start
    if not isinstance(tree, ObliqueTree):
        raise TypeError(f"init must be None, a hard tree or a learner, got {start!r:.200}.")
    check_same_task(tree, task)
    return tree


def required_start(start: Start, task: Task, run: Run, max_depth: int) -> ObliqueTree:
    """Return the tree to start from, for learners that need one.

    Raises
    ------
    ValueError
        If there is no start, or it is deeper than `max_depth`.
    """
    tree = start_tree(start, task, run)
    if tree is None:
        raise ValueError("init must be the name of a greedy split, a tree or a learner, got None.")
    if tree.depth > max_depth:
        raise ValueError(f"The start tree has depth {tree.depth}, more than max_depth={max_depth}.")
    return tree


def check_same_task(tree: ObliqueTree, task: Task, name: str = "init") -> None:
    """Raise ValueError unless a tree is for the same kind of task, with the same classes."""
    found = (tree.task, tree.classes)
    if found != (task.kind, task.labels):
        raise ValueError(
            f"{name} is a tree for {_words(*found)}, but the target has "
            f"{_words(task.kind, task.labels)}."
        )


def _learned(start: Learner, task: Task, run: Run) -> ObliqueTree:
    alone = replace(run, callbacks=())
    if isinstance(start, Greedy):
        return start.start_tree(task, alone)
    learned = start.fit(task, alone)
    if learned.interrupted:
        raise KeyboardInterrupt("interrupted while the start tree was learned")
    tree = learned.model.hard("init")
    if not isinstance(tree, ObliqueTree):
        raise TypeError(f"a start must be a learner of one hard tree, got {start!r:.200}.")
    return tree


def _words(kind: TaskKind, labels: tuple[Any, ...] | None) -> str:
    if labels is None:
        return "several labels" if kind == "multilabel" else "numbers"
    shown = ", ".join(map(repr, labels[:10]))
    return f"the classes {shown}{', ...' if len(labels) > 10 else ''}"


@dataclass(frozen=True)
class StartTree:
    """A tree to start from, in standard units.

    Attributes
    ----------
    weights, bias, scores
        (m, c), (m,) and (m + 1, k).
    children
        (m, 2) int32: the index of a split, or -1 - j for leaf j.
    """

    weights: np.ndarray
    bias: np.ndarray
    children: np.ndarray
    scores: np.ndarray


def cautious_scores(task: Task, values: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    """Return scores of leaves, smoothed by a few additional rows with the mean target.

    A leaf with few rows is overconfident: its large loss for wrong rows would dominate the bound of
    all other rows.
    """
    n = np.bincount(leaf, task.weight[task.train], minlength=len(values))[:, None]
    mean = n[:, 0] @ values / n.sum()
    return task.loss.scores((n * values + _PRIOR_ROWS * mean) / (n + _PRIOR_ROWS))


def left_to_right(tree: StartTree) -> StartTree:
    """Return the tree with its leaves numbered from left to right, for the engine."""
    children = np.array(tree.children, dtype=np.int32).reshape(-1, 2)
    order: list[int] = []  # old numbers of the leaves, from left to right
    stack = [(0, 0)] if len(children) else []
    places: list[tuple[int, int]] = []
    while stack:
        split, side = stack.pop()
        if side == 0:
            stack.append((split, 1))
        child = int(children[split, side])
        if child >= 0:
            stack.append((child, 0))
        else:
            order.append(-1 - child)
            places.append((split, side))
    for number, (split, side) in enumerate(places):
        children[split, side] = -1 - number
    scores = tree.scores if not order else tree.scores[order]
    weights, bias, scores = (
        np.ascontiguousarray(part, dtype=np.float32) for part in (tree.weights, tree.bias, scores)
    )
    return StartTree(weights, bias, children, scores)
