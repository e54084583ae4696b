r"""Greedy trees: each node gets the split that helps its own rows most, and is never revisited.

Breiman, Friedman, Olshen, Stone. Classification and Regression Trees. 1984. [CART84]
Murthy, Kasif, Salzberg. A System for Induction of Oblique Decision Trees. JAIR 1994. [OC1]
Norouzi, Collins, Fleet, Kohli. CO2 Forest. arXiv:1506.06155, 2015. [CO2]

They are the baselines of the papers, and starts for other learners. There are four searches for a
split that reduces the impurity of a node (entropy, Gini, variance):

==========  ======================================================================================
``splitter``
==========  ======================================================================================
"axis"      all thresholds on all columns, exactly; missing values go to the better side
"random"    ``n_candidates`` random directions, each with its best threshold
"oc1"       coordinate descent on a hyperplane from ``n_split_restarts`` starts, the first of which
            is the best axis-aligned split; never worse than that
"co2"       gradient descent on a bound of the loss of one split and two leaves (the bound of
            ``learn/non_greedy.py``), from the best axis-aligned split; never worse than that
==========  ======================================================================================

The search is native (``native/learn/greedy/``); its NumPy reference is
``tests/reference/greedy.py``.
The learner keeps all training rows encoded, as ranks (two bytes per value) and, for oblique splits,
also as numbers (four bytes).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.task import Task
from hardwood.learn.units import splits_in_raw_units
from hardwood.model import ObliqueTree
from hardwood.model.structure import TaskKind
from hardwood.parameters import choice_field, integer_field, real_field
from hardwood.table.dense_size import check_dense_size

Splitter = Literal["axis", "random", "oc1", "co2"]
Criterion = Literal["entropy", "gini", "variance"]

# CO2 tries these in turn, until a split beats the axis-aligned one. A larger norm learns faster; a
# smaller one finds splits with small contributions of many columns.
CO2_NORMS = (10.0, 0.1)

SPLITTERS: tuple[str, ...] = get_args(Splitter)

# The first of each kind of task is the default.
CRITERIA: dict[TaskKind, tuple[Criterion, ...]] = {
    "classification": ("entropy", "gini"),
    "multilabel": ("entropy", "gini"),
    "regression": ("variance",),
}

# The engine counts depth in 32 bits; no tree is as deep.
_NO_LIMIT = 2**31 - 1
_MANY = 2**20 - 1


@dataclass(frozen=True)
class Greedy(Learner):
    """Greedy trees.

    Parameters
    ----------
    splitter
        How to search for splits: "axis", "random", "oc1" or "co2".
    criterion
        Impurity to reduce: "entropy" (in bits) or "gini" for classes and labels, "variance" for
        regression. None: entropy, or variance.
    max_depth
        Largest number of splits on a path from the root to a leaf; None: until leaves are pure.
    min_samples_split, min_samples_leaf
        Smallest number of rows in a node to be split, and on each side of a split, counted by
        weight. 2 and 1 set no limit.
    min_weight_fraction_leaf
        Smallest fraction of the total weight on each side; weights include those of classes.
    min_impurity_decrease
        A split must reduce the mean impurity of all rows by at least this much; for regression,
        relative to the variance of the target.
    n_candidates
        "random": number of directions tried at each node.
    n_split_restarts, n_jumps, n_coordinates, max_sweeps
        "oc1": number of starts at a node; of random directions tried when no coordinate helps; of
        coordinates tried in a sweep, drawn from those that vary at the node; and of sweeps from
        each start. Together they limit the time for a node.
    nu, learning_rate, momentum, batch_size, max_epochs
        "co2": largest squared norm of a split's weights and bias, in standard units ("auto": the
        values of `CO2_NORMS` in turn, until a split beats the best axis-aligned one); largest step
        size of a cosine schedule; momentum; rows per step; and largest number of epochs over the
        rows of a node (at most 10,000 steps). The defaults were chosen on validation rows of
        letter, pendigits and satimage.

    Raises
    ------
    ValueError
        For values that are unknown or out of range.
    """

    takes_start: ClassVar[bool] = False

    splitter: Splitter = choice_field("axis", SPLITTERS)
    criterion: Criterion | None = choice_field(None, get_args(Criterion), or_none=True)
    max_depth: int | None = integer_field(6, 1, or_none=True)
    min_samples_split: float = real_field(2, 2)
    min_samples_leaf: float = real_field(1, 1)
    min_weight_fraction_leaf: float = real_field(0.0, 0, 0.5, open_high=False)
    min_impurity_decrease: float = real_field(0.0, 0)
    n_candidates: int = integer_field(64, 1, _MANY)
    n_split_restarts: int = integer_field(5, 1, _MANY)
    n_jumps: int = integer_field(5, 0, _MANY)
    n_coordinates: int = integer_field(50, 1, _MANY)
    max_sweeps: int = integer_field(10, 1, _MANY)
    nu: float | Literal["auto"] = real_field("auto", 1e-6, 1e6, open_low=True, or_auto=True)
    learning_rate: float = real_field(0.3, 0, open_low=True)
    momentum: float = real_field(0.9, 0, 1)
    batch_size: int = integer_field(128, 1, _MANY)
    max_epochs: int = integer_field(100, 1, _MANY)

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Grow a tree from the training rows of a task; validation rows are not used.

        Raises
        ------
        ValueError
            For a start, for a criterion of another kind of task, and for a standardized target
            beyond the range of float32.
        """
        grown = self._grow(task, run, task.weight_of(task.train))
        return Learned(_tree(task, grown), history=None, interrupted=grown["interrupted"])

    def start_tree(self, task: Task, run: Run) -> ObliqueTree:
        """Grow the tree that a learner starts from.

        Raises
        ------
        KeyboardInterrupt
            If the user interrupts it: a learner cannot start from half a tree.
        """
        grown = self._grow(task, run, task.weight[task.train].astype(np.float64))
        if grown["interrupted"]:
            raise KeyboardInterrupt(
                "interrupted while the start tree was grown; nothing was learned"
            )
        return _tree(task, grown)

    def interrupted_message(self, learned: Learned) -> str:
        return (
            "Growing was interrupted; the tree so far is kept, with leaves at nodes that were not "
            "yet split."
        )

    def _grow(self, task: Task, run: Run, count: np.ndarray) -> dict[str, Any]:
        """Return splits in standard units, and the leaf of each training row.

        `count` (r,) is the count of each row for `min_samples_split` and `min_samples_leaf`.
        """
        from hardwood import _native

        check_dense_size(
            len(task.train),
            task.schema.n_columns,
            bytes_per_value=6,  # the value and its rank
            learner="The greedy learner",
        )
        count_of_row = np.zeros(len(task.y))
        count_of_row[task.train] = count
        answer: dict[str, Any] = _native.fit_greedy(
            task.schema.encoder,
            task.matrix,
            task.y,
            task.weight,
            count_of_row,
            task.train,
            n_outputs=task.n_targets,
            seed=run.seed,
            n_threads=run.n_jobs,
            options=self.engine_options(task.kind),
        )
        return answer

    def engine_options(self, kind: TaskKind) -> dict[str, object]:
        """Return all options for a kind of task, for the engine.

        Raises
        ------
        ValueError
            For a criterion of another kind of task.
        """
        criteria = CRITERIA[kind]
        criterion = criteria[0] if self.criterion is None else self.criterion
        if criterion not in criteria:
            raise ValueError(
                f"criterion={criterion!r} is not for {kind}: expected "
                f"{' or '.join(map(repr, criteria))}."
            )
        target = {"classification": "classes", "multilabel": "labels", "regression": "numbers"}
        return {
            **asdict(self),
            "nu": list(CO2_NORMS) if self.nu == "auto" else [self.nu],
            "criterion": criterion,
            "target": target[kind],
            "max_depth": _NO_LIMIT if self.max_depth is None else self.max_depth,
        }


def one_hot(index: np.ndarray, n_classes: int) -> np.ndarray:
    """Encode class indices (r,) as one-hot rows, (r, n_classes)."""
    rows: np.ndarray = np.eye(n_classes)[index.astype(np.int64)]
    return rows


def _leaf_values(task: Task, leaf: np.ndarray, n_leaves: int) -> np.ndarray:
    """Return the values of a greedy tree's leaves, (L, k): weighted means of the target.

    They are in the user's units and computed in float64, from the target as it was given.

    Parameters
    ----------
    leaf
        The leaf of each training row.
    """
    target, weight = task.target[task.train], task.row_weight[task.train]
    if task.kind == "classification":
        target = one_hot(target[:, 0], task.n_targets)
    total = np.bincount(leaf, weight, minlength=n_leaves)
    if not (total > 0).all():  # weights underflowed: the rows count equally
        weight = np.where(total[leaf] > 0, weight, 1.0)
        total = np.bincount(leaf, weight, minlength=n_leaves)
    exponent = np.frexp(np.abs(target).max(axis=0))[1]  # of each target, so that no sum overflows
    columns = np.ldexp(target, -exponent).T
    sums = [np.bincount(leaf, weight * column, minlength=n_leaves) for column in columns]
    values: np.ndarray = np.ldexp(np.stack(sums, axis=1) / total[:, None], exponent)
    return values


def _tree(task: Task, grown: dict[str, Any]) -> ObliqueTree:
    values = _leaf_values(task, grown["leaf"], len(grown["children"]) + 1)
    weights, bias = splits_in_raw_units(grown["weights"], grown["bias"], task)
    return ObliqueTree(
        weights,
        bias,
        grown["children"],
        values,
        schema=task.schema,
        task=task.kind,
        classes=task.labels,
        target_names=task.target_names,
    )
