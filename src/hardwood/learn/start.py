"""What `init` means, for every learner that can start from a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardwood.learn.greedy import SPLITS, start_tree
from hardwood.learn.task import Problem
from hardwood.model import ObliqueTree
from hardwood.model.base import Model
from hardwood.model.structure import TaskKind

if TYPE_CHECKING:
    from hardwood.estimators.exercise import Exercise


def start_of(
    init: Any,
    exercise: Exercise,
    problem: Problem,
    max_depth: int,
    *,
    n_jobs: int,
    seed: int,
    name: str = "init",
) -> ObliqueTree | None:
    """Return the tree to start from.

    Parameters
    ----------
    init
        None, a tree, a fitted estimator that has one, or how to grow one greedily.
    exercise, problem
        What is to be learned. A tree that is grown sees the training rows of the problem only.
    max_depth
        Of a tree that is grown.
    n_jobs, seed
        For growing it.
    name
        Of the argument that the tree came by.

    Raises
    ------
    TypeError
        For anything else; it says what to do with other trees, forests and unfitted estimators.
    ValueError
        For a tree for another task or other classes.
    """
    if isinstance(init, str) and init in SPLITS:
        labels = exercise.labels
        return start_tree(
            problem,
            init,  # type: ignore[arg-type]  # one of SPLITS
            max_depth=max_depth,
            classes=labels,
            n_jobs=n_jobs,
            seed=seed,
        )
    tree = getattr(init, "tree_", init)
    if isinstance(tree, Model):
        tree = tree.hard("init")
    if tree is None:
        return None
    if not isinstance(tree, ObliqueTree):
        raise TypeError(
            "init must be None, an ObliqueTree, a fitted estimator with one, or one of "
            f"{list(SPLITS)}, got {init!r:.200}.{_advice(init)}"
        )
    found = (tree.task, tree.classes)
    if found != (exercise.task, exercise.labels):
        raise ValueError(
            f"{name} is a tree for {_words(*found)}, but the target has "
            f"{_words(exercise.task, exercise.labels)}."
        )
    return tree


def _advice(init: Any) -> str:
    if hasattr(init, "tree_"):
        return " A tree of scikit-learn is turned into one by hardwood.from_sklearn(init)."
    if hasattr(init, "estimators_"):
        return " A learner starts from one tree: give it one of init.estimators_."
    is_estimator = hasattr(init, "fit") and not isinstance(init, type)
    if is_estimator and not any(name.endswith("_") for name in vars(init)):
        return (
            " It is not fitted; a clone, as cross-validation makes them, never is. Call its fit, "
            "and give its tree_."
        )
    return ""


def _words(task: TaskKind, labels: tuple[Any, ...] | None) -> str:
    if labels is None:
        return "several labels" if task == "multilabel" else "numbers"
    shown = ", ".join(map(repr, labels[:10]))
    return f"the classes {shown}{', ...' if len(labels) > 10 else ''}"
