r"""Greedy trees: every node is split by what helps its own rows most, and never looked at again.

Breiman, Friedman, Olshen, Stone. Classification and Regression Trees. 1984. [CART84]
Murthy, Kasif, Salzberg. A System for Induction of Oblique Decision Trees. JAIR 1994. [OC1]
Norouzi, Collins, Fleet, Kohli. CO2 Forest. arXiv:1506.06155, 2015. [CO2]

They are the baselines of the papers, and the trees that other learners start from. Four ways to
look for a split that lowers the impurity of a node (entropy, Gini, variance):

==========  ======================================================================================
``split``
==========  ======================================================================================
"axis"      all thresholds on all columns, exactly; missing entries go to the better side
"random"    ``n_candidates`` random directions, each with its best threshold
"oc1"       coordinate descent on a hyperplane from ``n_restarts`` starts, the first of which is the
            best axis split; never worse than that
"co2"       gradient descent on a bound of the loss of one split and two leaves (the bound of
            ``learn/non_greedy.py``), from the best axis split; never worse than that
==========  ======================================================================================

The search is native (``native/learn/greedy/``), its twin is ``tests/reference/greedy.py``.
What the learner holds is every training row encoded, as ranks (two bytes an entry) and for oblique
splits as numbers (four more).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from hardwood.learn.losses import (
    CrossEntropy,
    Custom,
    Hinge,
    LabelwiseLogistic,
    Logistic,
    SquaredCodes,
)
from hardwood.learn.task import Problem, engine_matrix
from hardwood.learn.training import one_of
from hardwood.learn.units import splits_in_raw_units
from hardwood.model import ObliqueTree
from hardwood.model.structure import TaskKind

SplitSearch = Literal["axis", "random", "oc1", "co2"]
Criterion = Literal["entropy", "gini", "variance"]

# What CO2 tries in turn, until a split beats the axis one: a larger norm learns faster, a smaller
# one finds splits to which many columns give a little each.
CO2_NORMS = (10.0, 0.1)

SPLITS: tuple[str, ...] = get_args(SplitSearch)

# The engine counts depth in 32 bits; no tree is as deep.
_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Greedy:
    """How a greedy tree grows.

    Parameters
    ----------
    split
        How splits are searched: "axis", "random", "oc1" or "co2".
    criterion
        What a split is to lower: "entropy" (in bits) or "gini" for classes and labels, "variance"
        for numbers. None: entropy, or variance.
    max_depth
        Splits on the way from the root to a leaf; None: until leaves are pure.
    min_samples_split, min_samples_leaf
        Rows that a node needs to be split, and each of its sides to be one, counted by their
        weights. 2 and 1 set no limit.
    min_weight_fraction_leaf
        Part of the weight of all rows that each side needs; here weights include those of classes.
    min_impurity_decrease
        A split must lower the mean impurity of all rows by this much. For numbers in units of the
        target's variance.
    n_candidates
        "random": directions tried at a node.
    n_restarts, n_jumps, n_coordinates, max_passes
        "oc1": starts at a node; random directions tried where no coordinate helps any more;
        coordinates tried in a pass, drawn from those that vary at the node; passes from a start.
        Together they bound the time that a node takes.
    nu, learning_rate, momentum, batch_size, max_epochs
        "co2": the largest squared norm of a split's weights and bias, in standard units, or "auto":
        those of `CO2_NORMS` in turn, until a split beats the best one on a single column; the step
        size, which falls along a cosine; of the steps; rows per step; passes over the rows of a
        node, fewer at large ones, for 10,000 steps in all. Chosen on validation parts of letter,
        pendigits and satimage.

    Raises
    ------
    ValueError
        For what is unknown or out of range.
    """

    split: SplitSearch = "axis"
    criterion: Criterion | None = None
    max_depth: int | None = 6
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    n_candidates: int = 64
    n_restarts: int = 5
    n_jumps: int = 5
    n_coordinates: int = 50
    max_passes: int = 10
    nu: float | Literal["auto"] = "auto"
    learning_rate: float = 0.3
    momentum: float = 0.9
    batch_size: int = 128
    max_epochs: int = 100

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        if self.criterion is not None:
            one_of("criterion", self.criterion, get_args(Criterion))
        if self.max_depth is not None and not 1 <= self.max_depth <= _NO_LIMIT:
            raise ValueError(f"max_depth must be an integer >= 1 or None, found {self.max_depth!r}")
        for name in ("n_candidates", "n_restarts", "n_coordinates", "max_passes", "max_epochs"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value < 2**20:
                raise ValueError(
                    f"{name} must be an integer from 1 to {2**20 - 1}, found {value!r}"
                )
        if not isinstance(self.n_jumps, int) or not 0 <= self.n_jumps < 2**31:
            raise ValueError(f"n_jumps must be an integer >= 0, found {self.n_jumps!r}")

    def engine_options(self, task: TaskKind) -> dict[str, object]:
        """All options as the engine takes them, for a task.

        Raises
        ------
        ValueError
            For a criterion of another task.
        """
        criteria = ("variance",) if task == "regression" else ("entropy", "gini")
        criterion = criteria[0] if self.criterion is None else self.criterion
        if criterion not in criteria:
            raise ValueError(
                f"criterion={criterion!r} is not one for {task}: expected "
                f"{' or '.join(map(repr, criteria))}."
            )
        target = {"classification": "classes", "multilabel": "labels", "regression": "numbers"}
        return {
            **asdict(self),
            "nu": list(CO2_NORMS) if self.nu == "auto" else [self.nu],
            "criterion": criterion,
            "target": target[task],
            "max_depth": _NO_LIMIT if self.max_depth is None else self.max_depth,
        }


@dataclass(frozen=True)
class GrownTree:
    """What the engine grew, in standard units.

    Attributes
    ----------
    weights, bias, children
        (m, c) and (m,) float32, of encoded columns; (m, 2) int32 as `ObliqueTree` has them.
    leaf
        (r,) int32, the leaf of each training row of the problem, in their order.
    values
        (L, k) float64, shares of classes or labels, or mean targets in the problem's units.
    interrupted
        Whether it was stopped by the user; nodes that were still to be split are leaves.
    """

    weights: np.ndarray
    bias: np.ndarray
    children: np.ndarray
    leaf: np.ndarray
    values: np.ndarray
    interrupted: bool

    def means(self, target: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return weighted means (L, k) over the rows at each leaf, of (r, k) and (r,)."""
        return _means(self.leaf, len(self.children) + 1, target, weight)


def learn(
    problem: Problem,
    config: Greedy,
    *,
    count: np.ndarray | None = None,
    n_jobs: int = 1,
    seed: int = 0,
) -> GrownTree:
    """Grow a tree from the training rows of a problem; its validation rows are not looked at.

    Parameters
    ----------
    problem
        Rows, target and weights; of the loss, only whether it is one of classes or labels.
    config
        How to grow it.
    count
        (n,) float64, what each row counts for `min_samples_split` and `min_samples_leaf`; None for
        its weight.
    n_jobs
        Threads; they share columns, candidates and nodes. The tree does not depend on their number.
    seed
        Of random directions and coordinates.

    Raises
    ------
    ValueError
        Where a target is out of the range of float32, in units of the targets' weighted spread.
    """
    from hardwood import _native

    _check_range(problem)
    task = _task_of(problem)
    n_outputs = _n_values(problem)
    answer: dict[str, Any] = _native.fit_greedy(
        problem.schema.encoder,
        engine_matrix(problem.matrix),
        problem.y,
        problem.weight,
        np.asarray(problem.weight if count is None else count, dtype=np.float64),
        problem.train,
        n_outputs=n_outputs,
        seed=seed,
        n_threads=n_jobs,
        options=config.engine_options(task),
    )
    target = problem.y[problem.train].astype(np.float64)
    if task == "classification":
        target = one_hot(target[:, 0], n_outputs)
    weight = problem.weight[problem.train].astype(np.float64)
    values = _means(answer["leaf"], len(answer["children"]) + 1, target, weight)
    return GrownTree(**answer, values=values)


def _check_range(problem: Problem) -> None:
    is_finite = np.isfinite(problem.y[problem.train]).all(axis=1)
    if not is_finite.all():
        row = int(problem.train[np.argmin(is_finite)])
        raise ValueError(
            "sample_weight has too large a range: next to the rows with the largest weights, the "
            f"target of row {row} is further away than float32 can hold. Raise the small weights, "
            "or set them to 0."
        )


def one_hot(index: np.ndarray, n_classes: int) -> np.ndarray:
    """Turn class indices (r,) into rows of zeros and a one, (r, n_classes)."""
    rows: np.ndarray = np.eye(n_classes)[index.astype(np.int64)]
    return rows


def _means(leaf: np.ndarray, n_leaves: int, target: np.ndarray, weight: np.ndarray) -> np.ndarray:
    total = np.bincount(leaf, weight, minlength=n_leaves)
    if not (total > 0).all():  # weights below the range of float32 count nothing: rows then do
        weight = np.where(total[leaf] > 0, weight, 1.0)
        total = np.bincount(leaf, weight, minlength=n_leaves)
    sums = [np.bincount(leaf, weight * column, minlength=n_leaves) for column in target.T]
    return np.stack(sums, axis=1) / total[:, None]


def start_tree(
    problem: Problem,
    split: SplitSearch,
    *,
    max_depth: int,
    classes: tuple[Any, ...] | None = None,
    n_jobs: int = 1,
    seed: int = 0,
) -> ObliqueTree:
    """Grow the tree that a learner starts from, of the training rows of its problem.

    Parameters
    ----------
    problem
        What will be learned; any loss.
    split
        How splits are searched.
    max_depth
        Of the tree.
    classes
        The labels of a classification.
    n_jobs, seed
        As of `learn`.

    Returns
    -------
    tree
        In raw units, not simplified; `units.start_parameters` gives its parameters in those of the
        problem.

    Raises
    ------
    KeyboardInterrupt
        Where the user stopped it: half a start is nothing to learn on from.
    """
    grown = learn(problem, Greedy(split, max_depth=max_depth), n_jobs=n_jobs, seed=seed)
    if grown.interrupted:
        raise KeyboardInterrupt("interrupted while the start tree was grown; nothing was learned")
    weights, bias = splits_in_raw_units(grown.weights, grown.bias, problem)
    task = _task_of(problem)
    values = grown.values
    if task == "regression":
        values = values * problem.target_scale + problem.target_center
    return ObliqueTree(
        weights,
        bias,
        grown.children,
        values,
        schema=problem.schema,
        task=task,
        classes=classes,
    )


def _task_of(problem: Problem) -> TaskKind:
    loss = problem.loss
    if isinstance(loss, Custom):
        task: Any = loss.task
        return task
    if isinstance(loss, Logistic | CrossEntropy | Hinge | SquaredCodes):
        return "classification"
    return "multilabel" if isinstance(loss, LabelwiseLogistic) else "regression"


def _n_values(problem: Problem) -> int:
    """How many numbers a leaf predicts: two classes are learned as one score."""
    return int(problem.loss.link(np.zeros((1, problem.n_outputs))).shape[1])
