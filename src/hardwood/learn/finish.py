"""Final steps of every learner: count rows, simplify the model, and write its record."""

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
MAX_POINTS_OF_MEMBER = 50  # of the curve of each tree in a forest
_DIGITS = 4
_PLACE = {"restart", "epoch", "max_epochs"}  # fields of an epoch that are not measurements
_CHUNK_ROWS = 2**16


def finished(
    learned: Learned,
    task: Task,
    parameters: Mapping[str, Any],
    n_jobs: int = 1,
    *,
    max_points: int = MAX_POINTS,
) -> Any:
    """Return the final model.

    Parameters
    ----------
    learned, task
        The result of the learner, and its task.
    parameters
        Name and parameters of the learner, for the record.
    n_jobs
        Number of threads.
    max_points
        Largest number of epochs in the learning curve of the record.

    Returns
    -------
    model
        The model with its record and its counts: sums of the weights of the rows, in the user's
        units, including validation rows. A tree is simplified, except as `keeps_unreached` says.
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
        counted = model.replace(counts=tree_counts(model, task, n_jobs))
        return counted if learned.keeps_unreached else counted.simplify()
    if isinstance(model, TreeEnsemble):
        return model.replace(counts=_ensemble_counts(model, task))
    if isinstance(model, PolicyTree):
        return model.replace(counts=_policy_counts(model, task, n_jobs))
    return model


def _record(
    learned: Learned, task: Task, parameters: Mapping[str, Any], max_points: int
) -> dict[str, Any]:
    """Return the record of a model, which depends neither on `n_jobs` nor on the order of rows."""
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


def tree_counts(tree: ObliqueTree, task: Task, n_jobs: int) -> np.ndarray:
    """Count the rows at the nodes of a hard tree, splits first."""
    leaf = routed_leaves(tree, task.matrix, None, n_jobs)
    return sums_of(tree.children, _weight_by_leaf(leaf, task, tree.n_leaves))


def _ensemble_counts(ensemble: TreeEnsemble, task: Task) -> np.ndarray:
    """Count the rows at the nodes of soft trees."""
    router = engine.packed_ensemble(ensemble)
    reached = np.zeros(ensemble.values.shape[:2])
    for rows, weight in _chunks(task):
        reached += router.leaf_weights(task.matrix[rows], weight)
    children = heap_children(ensemble.values.shape[1] - 1)
    return np.array([sums_of(children, of_tree) for of_tree in reached])


def _policy_counts(policy: PolicyTree, task: Task, n_jobs: int) -> np.ndarray:
    """Count the rows at the nodes of a policy tree, by the greedy path, (N,)."""
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
    """Return the leaf of encoded rows, (n,) int32; of all rows for None."""
    asked = matrix if rows is None else matrix[rows]
    return engine.packed_splits(tree).apply(asked, n_jobs)


def outputs_of(tree: ObliqueTree, matrix: Matrix, rows: np.ndarray, n_jobs: int) -> np.ndarray:
    """Predict encoded rows, (n, k): values or probabilities."""
    if tree.leaf_weights is None:
        values: np.ndarray = tree.values[routed_leaves(tree, matrix, rows, n_jobs)]
        return values
    return engine.packed_splits(tree).answer(engine.packed_leaves(tree), matrix[rows], n_jobs)


def _chunks(task: Task) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows and their weights in chunks, because callers copy them."""
    for first in range(0, len(task.rows), _CHUNK_ROWS):
        part = slice(first, first + _CHUNK_ROWS)
        yield task.rows.index[part], task.rows.weight[part]


def _weight_by_leaf(leaf: np.ndarray, task: Task, n_leaves: int) -> np.ndarray:
    """Return the total weight of the rows at each leaf."""
    reached = np.zeros(n_leaves)
    for rows, weight in _chunks(task):
        reached += np.bincount(leaf[rows], weight, minlength=n_leaves)
    return reached


def learning_curve(
    epochs: Sequence[Epoch], *, best: int | None = None, max_points: int = MAX_POINTS
) -> dict[str, list[Any]]:
    """Return the learning curves of one run.

    Parameters
    ----------
    epochs
        The epochs of the run, in order.
    best
        Index of the best epoch in ``epochs``; it is always included.
    max_points
        Largest number of points. The first and last are kept, and the others thinned evenly.

    Returns
    -------
    curves
        ``epoch``, counted from 1, and a list of the same length for each measurement, with None for
        values that are not finite. Measurements without values are left out. Empty for a run
        without epochs.
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
