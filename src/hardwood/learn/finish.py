"""What every learner ends with: rows are counted, the model is simplified, a record is written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from hardwood.learn.learner import Learned
from hardwood.learn.task import Task
from hardwood.learn.training import Epoch
from hardwood.model import ObliqueForest, ObliqueTree, PolicyTree, TreeEnsemble, engine
from hardwood.model.kinds.tree import heap_children
from hardwood.model.paths import sums_of
from hardwood.table.canonical_rows import Matrix

MAX_POINTS = 200  # of a model's curve
MAX_POINTS_OF_MEMBER = 50  # of each tree's curve in a forest, however many trees it has
_DIGITS = 4
_PLACE = {"restart", "epoch", "max_epochs"}  # fields of an epoch that say where, not how good
_CHUNK_ROWS = 2**16


def finished(
    learned: Learned,
    task: Task,
    parameters: Mapping[str, Any],
    n_jobs: int = 1,
    *,
    max_points: int = MAX_POINTS,
) -> Any:
    """Return the model that a user gets.

    Parameters
    ----------
    learned, task
        What was learned, from what.
    parameters
        By which learner, with which parameters, for the record.
    n_jobs
        Threads.
    max_points
        How many epochs the learning curve in the record may show.

    Returns
    -------
    model
        With its record, and with counts: sums of the rows' own weights, in the user's units,
        validation rows included. A tree loses what no row reaches, unless that is to stay.
    """
    if isinstance(learned.model, ObliqueForest):
        kept = learned.model.trees[: len(learned.model.trees) - len(learned.members)]
        new = [
            finished(member, task, parameters, n_jobs, max_points=MAX_POINTS_OF_MEMBER)
            for member in learned.members
        ]
        return ObliqueForest([*kept, *new], combine=learned.model.combine, record=parameters)
    record = _record(learned, task, parameters, max_points)
    model = learned.model.replace(record=record)
    if isinstance(model, ObliqueTree):
        counted = model.replace(counts=_tree_counts(model, task, n_jobs))
        return counted if learned.keeps_unreached else counted.simplify()
    if isinstance(model, TreeEnsemble):
        return model.replace(counts=_ensemble_counts(model, task))
    if isinstance(model, PolicyTree):
        return model.replace(counts=_policy_counts(model, task, n_jobs))
    return model


def _record(
    learned: Learned, task: Task, parameters: Mapping[str, Any], max_points: int
) -> dict[str, Any]:
    """How a model came about: the same for every way of giving the same rows and any n_jobs."""
    own = learned.task or task
    record = {**parameters, "distinct_rows": len(task.rows), **learned.record}
    if learned.resolved:
        record["resolved"] = dict(learned.resolved)
    if learned.history is None:
        return record
    record["validation_rows"] = len(own.valid)
    record["passes"] = learned.n_epochs
    record["best_pass"] = learned.best_epoch + 1
    best = learned.best
    for name in ("train_loss", "validation_loss"):
        if best and math.isfinite(getattr(best, name)):
            record[name] = getattr(best, name)
    kept_run = [epoch for epoch in learned.history if epoch.restart == learned.best_run]
    curves = learning_curve(
        kept_run, best=kept_run.index(best) if best else None, max_points=max_points
    )
    if curves:
        record["curves"] = curves
    return record


def _tree_counts(tree: ObliqueTree, task: Task, n_jobs: int) -> np.ndarray:
    """Count what arrives at the nodes of a hard tree, splits first."""
    leaf = routed_leaves(tree, task.matrix, None, n_jobs)
    return sums_of(tree.children, _weight_by_leaf(leaf, task, tree.n_leaves))


def _ensemble_counts(ensemble: TreeEnsemble, task: Task) -> np.ndarray:
    """Count what arrives at the nodes of soft trees."""
    router = engine.packed_ensemble(ensemble)
    reached = np.zeros(ensemble.values.shape[:2])
    for rows, weight in _chunks(task):
        reached += router.leaf_weights(task.matrix[rows], weight)
    children = heap_children(ensemble.values.shape[1] - 1)
    return np.array([sums_of(children, of_tree) for of_tree in reached])


def _policy_counts(policy: PolicyTree, task: Task, n_jobs: int) -> np.ndarray:
    """Count what arrives at the nodes of a policy tree by the greedy path, (N,)."""
    router = engine.packed_policy(policy)
    leaf = router.apply(task.matrix, most_probable=False, n_threads=n_jobs)
    counts = np.zeros(policy.n_nodes)
    counts[policy.leaf_nodes] = _weight_by_leaf(leaf, task, policy.n_leaves)
    for node in range(policy.n_nodes - 1, 0, -1):  # parents come before their children
        counts[policy.parents[node]] += counts[node]
    return counts


def routed_leaves(
    tree: ObliqueTree, matrix: Matrix, rows: np.ndarray | None, n_jobs: int
) -> np.ndarray:
    """Return the leaf, (n,) int32, of rows that were read already; of all for None."""
    asked = matrix if rows is None else matrix[rows]
    return engine.packed_splits(tree).apply(asked, n_jobs)


def outputs_of(tree: ObliqueTree, matrix: Matrix, rows: np.ndarray, n_jobs: int) -> np.ndarray:
    """Predict rows that were read already, (n, k): values or probabilities."""
    if tree.leaf_weights is None:
        values: np.ndarray = tree.values[routed_leaves(tree, matrix, rows, n_jobs)]
        return values
    return engine.packed_splits(tree).answer(engine.packed_leaves(tree), matrix[rows], n_jobs)


def _chunks(task: Task) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows and their weights, some at a time: who takes them copies what they are."""
    for first in range(0, len(task.rows), _CHUNK_ROWS):
        part = slice(first, first + _CHUNK_ROWS)
        yield task.rows.index[part], task.rows.weight[part]


def _weight_by_leaf(leaf: np.ndarray, task: Task, n_leaves: int) -> np.ndarray:
    """Total weight of the rows at each leaf."""
    reached = np.zeros(n_leaves)
    for rows, weight in _chunks(task):
        reached += np.bincount(leaf[rows], weight, minlength=n_leaves)
    return reached


def learning_curve(
    epochs: Sequence[Epoch], *, best: int | None = None, max_points: int = MAX_POINTS
) -> dict[str, list[Any]]:
    """Return the curves of one run.

    Parameters
    ----------
    epochs
        Of the run, in order.
    best
        Place in ``epochs`` of the one that was kept; its point is never left out.
    max_points
        The first and the last point are kept, those between thinned evenly.

    Returns
    -------
    curves
        ``epoch``, counted from 1, and for everything that the epochs measure a list of the same
        length, with None where it is not a finite number. What is measured nowhere is left out.
        Empty for a run without epochs.
    """
    if not epochs:
        return {}
    n = len(epochs)
    kept = np.linspace(0, n - 1, min(n, max_points)).round().astype(np.int64)
    if best is not None:
        kept = np.append(kept, best)
    points = [epochs[i] for i in np.unique(kept).tolist()]
    curves: dict[str, list[Any]] = {"epoch": [point.epoch + 1 for point in points]}
    for field in fields(Epoch):
        if field.name in _PLACE:
            continue
        values = [_rounded(getattr(point, field.name)) for point in points]
        if any(value is not None for value in values):
            curves[field.name] = values
    return curves


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")
