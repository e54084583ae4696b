r"""Alternating optimisation of trees (TAO): every split is solved for, given all others.

Carreira-Perpinan, Tavallali. Alternating Optimization of Decision Trees, with Application to
Learning Sparse Oblique Trees. NeurIPS 2018. [TAO18]
Zharmagambetov, Carreira-Perpinan. Smaller, More Accurate Regression Forests Using Tree Alternating
Optimization. ICML 2020. [TAO20]

Given the rest of the tree, all that a split decides is which of two leaves a row comes to. Rows for
which both have the same loss do not care; the others are a two-class problem, each row weighted by
the difference. It is solved by logistic regression with an L1 penalty, and the best threshold along
the direction found is taken exactly. Splits of one depth share no row and are solved side by side;
a sweep goes through all depths and fits the leaves.

What is minimised over trees of one shape is

.. math:: E = \frac1W \sum_n w_n L(y_n, T(x_n)) + \alpha \cdot \#\{w_{ij} \neq 0\}
    + \frac1W \sum_\ell \big(\rho\, L(\bar y, \theta_\ell) + \lambda \|A_\ell\|^2 / 2 \big)

=============  ==========================  ======================================================
symbol         here
=============  ==========================  ======================================================
L              ``problem.loss``            0/1 loss (`Misclassification`) or any of the engine's
alpha          ``weight_price``            of a weight that is not zero
rho            ``leaf_rows``               rows of the mean target that a leaf has besides its own
lambda         ``leaf_l2``                 of the weights of linear leaves
C              1 / ``l1``                  of the logistic regressions; no part of E
=============  ==========================  ======================================================

A split or leaf is replaced only where E falls, so E never rises, from node to node and from sweep
to sweep.

The sweep is native (``native/learn/tao/sweep.hpp``, ``logistic.hpp``, ``step.hpp``), its twin is
``tests/reference/tao.py``; leaves are fitted in ``learn/leaves.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from hardwood.learn.leaves import (
    LeafRows,
    Prior,
    class_counts,
    constant_leaves,
    mean_target,
    rows_by_leaf,
)
from hardwood.learn.linear_leaves import LinearLeaves, linear_leaves
from hardwood.learn.losses import (
    CrossEntropy,
    Custom,
    Hinge,
    Misclassification,
    SquaredCodes,
)
from hardwood.learn.non_greedy import StartTree, left_to_right
from hardwood.learn.task import Problem, engine_matrix
from hardwood.learn.training import Callback, Epoch, one_of
from hardwood.learn.units import leaves_in_raw_units, splits_in_raw_units, start_parameters
from hardwood.model import ObliqueTree

Leaves = Literal["constant", "linear"]
Order = Literal["deepest_first", "root_first"]
_Ending = Literal["whole", "out of time", "interrupted"]
Start: TypeAlias = Callable[[Problem], ObliqueTree]
"""Grows a start tree from the training rows of a problem, and from no others."""

# What "auto" tries of l1 and l2: from hardly any penalty to a strong one of either kind. Where one
# of the two is given, the different values of the other are tried.
PENALTIES = (
    (0.03, 0.1),
    (0.1, 1.0),
    (0.3, 10.0),
    (0.3, 100.0),
    (1.0, 0.0),
    (3.0, 0.0),
    (10.0, 0.0),
)

_PATIENCE = 3  # levels of a start that may be cut off without a better validation loss


@dataclass(frozen=True)
class Alternation:
    """The hyper-parameters.

    Parameters
    ----------
    l1, l2
        Penalties on the weights of a split, their size and half their square, in the logistic
        regression that finds it: in standard units, against a loss that is summed over rows, so
        that nodes with fewer rows are penalised more. "auto": chosen from `PENALTIES`.
    max_sweeps
        Sweeps over all splits and leaves; fewer where none lowers the objective any more.
    leaves
        "constant" or "linear".
    max_features_per_split
        Features that a split may weigh; None for all. A start is cut to its largest weights.
    weight_price, leaf_rows, leaf_l2
        Parts of the objective E: see the module. A price lets every node choose among several
        penalties, so that it can be met.
    order
        Which depths come first in a sweep.
    max_passes, tolerance
        Of each logistic regression: passes over its rows, and the part of its objective that a
        step must gain.
    early_stopping
        Whether the best sweep on the validation part is kept, where there is one.
    """

    l1: float | Literal["auto"] = "auto"
    l2: float | Literal["auto"] = "auto"
    max_sweeps: int = 20
    leaves: Leaves = "constant"
    max_features_per_split: int | None = None
    weight_price: float = 0.0
    leaf_rows: float = 1.0
    leaf_l2: float = 1.0
    order: Order = "deepest_first"
    max_passes: int = 50
    tolerance: float = 1e-4
    early_stopping: bool = True

    def __post_init__(self) -> None:
        one_of("leaves", self.leaves, get_args(Leaves))
        one_of("order", self.order, get_args(Order))

    @property
    def is_searched(self) -> bool:
        """Whether a penalty is chosen on the validation part."""
        return self.l1 == "auto" or self.l2 == "auto"

    def penalties(self) -> list[tuple[float, float]]:
        """Return the pairs (l1, l2) to be tried, each once."""
        pairs = [
            (l1 if self.l1 == "auto" else self.l1, l2 if self.l2 == "auto" else self.l2)
            for l1, l2 in PENALTIES
        ]
        return list(dict.fromkeys(pairs))

    def engine_options(self, total_weight: float) -> dict[str, object]:
        """All options of a sweep, as the engine takes them."""
        return {
            "l1": [self.l1] if self.weight_price == 0 else [4**s * self.l1 for s in (3, 2, 1, 0)],
            "l2": self.l2,
            "weight_price": self.weight_price * total_weight,
            "max_passes": self.max_passes,
            "tolerance": self.tolerance,
            "max_features": self.max_features_per_split or 0,
            "from_the_root": self.order == "root_first",
        }


@dataclass(frozen=True)
class Alternated:
    """What alternation made of a tree.

    Attributes
    ----------
    tree
        In raw units, with every branch of the start: `learn.assemble` drops those without rows.
    objective
        E of the start, with its leaves fitted, and after each sweep; never rises.
    validation
        The loss on the validation part, likewise; NaN without one.
    history
        One record per sweep.
    best_restart, best_epoch
        The run and the sweep that were kept; -1 for the start.
    interrupted
        Whether the user stopped it.
    problem, l1, l2, depth
        What it was learned from, with which penalties, and how deep the start was.
    trials
        Of a search, each pair of penalties that was tried, with the depth of the start and the
        validation loss.
    """

    tree: ObliqueTree
    objective: tuple[float, ...]
    validation: tuple[float, ...]
    history: tuple[Epoch, ...]
    best_restart: int
    best_epoch: int
    interrupted: bool
    problem: Problem
    l1: float
    l2: float
    depth: int
    trials: tuple[tuple[float, float, int, float], ...] = ()


def learn(
    problem: Problem,
    config: Alternation,
    start: Start,
    *,
    whole: Problem | None = None,
    cuts_start: bool = False,
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
) -> Alternated:
    """Alternate from a tree that another learner grew; choose the penalties that are "auto".

    Parameters
    ----------
    problem, config, n_jobs, callbacks
        As of `alternate`. Runs are numbered as they come: those of a search, then the run on
        `whole`.
    start
        Grows the tree to start from.
    whole
        The same problem without a validation part. Penalties that are searched for are found on
        `problem`, and with them as many sweeps as were best there are taken over `whole`.
    cuts_start
        Whether a search also tries the start without its deepest splits, level by level, until
        that has not helped three times in a row: with the penalties that were the best before.

    Raises
    ------
    KeyboardInterrupt
        Where the user interrupts the growing of the start, before anything was learned.
    """
    tree = start(problem)

    def run(one: Problem, first: ObliqueTree, own: Alternation, number: int = 0) -> Alternated:
        return alternate(one, first, own, n_jobs=n_jobs, callbacks=callbacks, run=number)

    if not config.is_searched:
        return run(problem, tree, config)
    best = _searched(problem, tree, config, cuts_start, run)
    if whole is None or best.interrupted:
        return best
    n_sweeps = best.best_epoch + 1
    own = replace(config, l1=best.l1, l2=best.l2, max_sweeps=n_sweeps, early_stopping=False)
    try:
        first = start(whole)
        if best.depth < tree.depth:
            first = cut(first, best.depth)
        again = run(whole, first, own, len(best.trials))
    except KeyboardInterrupt:
        return replace(best, interrupted=True)
    # Of the two, only the search's tree has learned to the end where the user stopped the other.
    kept = best if again.interrupted else again
    return replace(kept, trials=best.trials, interrupted=again.interrupted)


def _searched(
    problem: Problem,
    tree: ObliqueTree,
    config: Alternation,
    cuts_start: bool,
    run: Callable[[Problem, ObliqueTree, Alternation, int], Alternated],
) -> Alternated:
    """Return the best run on the validation part, over penalties and then over depths."""
    found: list[Alternated] = []

    def tried(first: ObliqueTree, l1: float, l2: float) -> Alternated:
        own = replace(config, l1=l1, l2=l2, early_stopping=True)
        found.append(run(problem, first, own, len(found)))
        return found[-1]

    for l1, l2 in config.penalties():
        if tried(tree, l1, l2).interrupted:
            break
    best = min(found, key=_criterion)
    depth = tree.depth
    while cuts_start and depth > max(1, best.depth - _PATIENCE) and not found[-1].interrupted:
        depth -= 1
        best = min(best, tried(cut(tree, depth), best.l1, best.l2), key=_criterion)
    trials = tuple((one.l1, one.l2, one.depth, _criterion(one)) for one in found)
    return replace(best, trials=trials, interrupted=found[-1].interrupted)


def _criterion(one: Alternated) -> float:
    return min(one.validation)


def cut(tree: ObliqueTree, depth: int) -> ObliqueTree:
    """Return a tree without its splits from some depth on; a leaf in their place is one of theirs.

    What is left is to have its leaves fitted.
    """
    level = np.zeros(len(tree.children), dtype=np.int64)
    for i, pair in enumerate(tree.children.tolist()):  # splits come before their children
        for child in pair:
            if child >= 0:
                level[child] = level[i] + 1
    kept = np.flatnonzero(level < depth)
    number = {int(old): new for new, old in enumerate(kept)}
    children = np.empty((len(kept), 2), dtype=np.int32)
    leaves: list[int] = []
    for new, old in enumerate(kept):
        for side in (0, 1):
            child = int(tree.children[old, side])
            if child in number:
                children[new, side] = number[child]
                continue
            while child >= 0:
                child = int(tree.children[child, 0])
            leaves.append(-1 - child)
            children[new, side] = -len(leaves)
    return tree.replace(
        weights=tree.weights[kept],
        bias=tree.bias[kept],
        children=children,
        values=tree.values[leaves],
        leaf_weights=None if tree.leaf_weights is None else tree.leaf_weights[leaves],
        counts=None,
    )


def alternate(
    problem: Problem,
    start: ObliqueTree,
    config: Alternation,
    *,
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
    run: int = 0,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> Alternated:
    """Improve a tree by sweeps over its splits and leaves.

    Parameters
    ----------
    problem
        Rows, target, weights, loss and validation part. With a validation part and
        ``config.early_stopping``, the tree of the best sweep on it is kept, else that of the last.
    start
        Any tree with the problem's columns and outputs.
    config
        The hyper-parameters; `l1` and `l2` numbers.
    n_jobs
        Threads; the result does not depend on their number.
    callbacks
        Called after every sweep; a true answer ends the run.
    run
        The number of the run that callbacks are told (`Epoch.restart`).
    seconds_left
        Asked before every sweep, which ends where it is when so much time has passed, and the run
        with it. Splits that are improved by then stay so.

    Raises
    ------
    ValueError
        Where the start does not fit the problem, or the loss is a function.
    """
    if config.l1 == "auto" or config.l2 == "auto":
        raise ValueError(
            f"alternate takes a number for l1 and l2, found l1={config.l1!r} and l2={config.l2!r}; "
            "learn chooses those that are 'auto'."
        )
    work = _Work(problem, config, start, n_jobs)
    best = state = work.start
    objective, validation = [work.objective(state)], [work.validation_loss(state)]
    history: list[Epoch] = []
    best_epoch, interrupted = -1, False
    try:
        for sweep in range(config.max_sweeps):
            state, n_changed, ending = work.swept(state, seconds_left())
            if interrupted := ending == "interrupted":
                break
            objective.append(work.objective(state))
            validation.append(work.validation_loss(state))
            if not (config.early_stopping and len(problem.valid)) or (
                validation[-1] <= min(validation)
            ):
                best, best_epoch = state, sweep
            epoch = Epoch(run, sweep, config.max_sweeps, objective[-1], validation[-1], math.nan)
            history.append(epoch)
            asked_to_stop = [bool(callback(epoch)) for callback in callbacks]
            if any(asked_to_stop) or n_changed == 0 or ending == "out of time":
                break
    except KeyboardInterrupt:
        interrupted = True
    return Alternated(
        tree=work.tree_of(best),
        objective=tuple(objective),
        validation=tuple(validation),
        history=tuple(history),
        best_restart=run,
        best_epoch=best_epoch,
        interrupted=interrupted,
        problem=problem,
        l1=config.l1,
        l2=config.l2,
        depth=start.depth,
    )


@dataclass(frozen=True)
class _State:
    """A tree in standard units: (m, c), (m,), (L, k) and (L, k, c) or None, float32."""

    weights: np.ndarray
    bias: np.ndarray
    scores: np.ndarray
    leaf_weights: np.ndarray | None = None


class _Part:
    """Some rows of a problem, encoded: the training part, or the validation part."""

    def __init__(self, problem: Problem, rows: np.ndarray, n_jobs: int) -> None:
        from hardwood import _native

        matrix = engine_matrix(problem.matrix)
        self.table = _native.TaoTable(problem.schema.encoder, matrix, rows, n_jobs)
        self.target = problem.y[rows]
        self.weight = problem.weight[rows]
        self.total = float(self.weight.sum(dtype=np.float64))
        self._loss, self._n_jobs = problem.loss, n_jobs

    def leaves(self, children: np.ndarray, state: _State) -> np.ndarray:
        """Return the leaf of each row."""
        leaf: np.ndarray = self.table.leaves(children, state.weights, state.bias, self._n_jobs)
        return leaf

    def at_leaves(self, leaf: np.ndarray, n_leaves: int) -> LeafRows:
        """Return the rows, as leaves are fitted to them."""
        return LeafRows(
            leaf, n_leaves, self.target.astype(np.float64), self.weight.astype(np.float64)
        )

    def scores(self, state: _State, leaf: np.ndarray) -> np.ndarray:
        """Return what such leaves score each row, (n, k) float32."""
        scores: np.ndarray = state.scores[leaf]
        if state.leaf_weights is None:
            return scores
        for one, at in enumerate(rows_by_leaf(leaf, len(state.scores))):
            if len(at):
                scores[at] += self.table.columns(at) @ state.leaf_weights[one].T
        return scores

    def loss(self, state: _State, leaf: np.ndarray) -> float:
        """Return the weighted mean loss of the rows at such leaves."""
        from hardwood import _native

        scores = self.scores(state, leaf)
        if isinstance(self._loss, Misclassification):
            is_wrong = scores.argmax(axis=1) != self.target[:, 0]
            return float(self.weight[is_wrong].sum(dtype=np.float64)) / self.total
        mean, _ = _native.loss(
            self._loss.name, scores, self.target, self.weight, self._loss.parameter
        )
        return float(mean) * len(leaf) / self.total


class _Work:
    """What all sweeps of one run have in common."""

    def __init__(
        self, problem: Problem, config: Alternation, tree: ObliqueTree, n_jobs: int
    ) -> None:
        if isinstance(problem.loss, Custom):
            raise ValueError(
                "Alternation evaluates its loss for single rows, so loss must be a name or a loss "
                "object, not a function. DGTClassifier and DGTRegressor take functions."
            )
        if isinstance(problem.loss, Hinge | SquaredCodes):
            raise ValueError(
                f"Alternation takes loss='misclassification' or 'log_loss' for classes, found "
                f"{problem.loss.name!r}. ReinforcedTreeClassifier and DGTClassifier take it."
            )
        if isinstance(problem.loss, Misclassification) and config.leaves == "linear":
            raise ValueError("Linear leaves need a loss with a slope, found misclassification.")
        self._problem, self._config, self._tree, self._n_jobs = problem, config, tree, n_jobs
        self._train = _Part(problem, problem.train, n_jobs)
        self._valid = _Part(problem, problem.valid, n_jobs) if len(problem.valid) else None
        everywhere = self._train.at_leaves(np.zeros(len(problem.train), dtype=np.int64), 1)
        self._prior = Prior(
            config.leaf_rows, mean_target(problem.loss, everywhere, problem.n_outputs)
        )
        self._children, start = _start_state(tree, problem, config)
        self.start = self._fitted(start)

    def swept(self, state: _State, seconds: float) -> tuple[_State, int, _Ending]:
        """Improve all splits, then all leaves; how many splits changed, and how the sweep ended."""
        problem, loss = self._problem, self._problem.loss
        answer = self._train.table.sweep(
            self._children,
            state.weights,
            state.bias,
            state.scores,
            None if state.leaf_weights is None else _flat(state.leaf_weights),
            _class_losses(problem, state),
            self._train.target,
            self._train.weight,
            loss=loss.name if not isinstance(loss, Misclassification) else "cross_entropy",
            loss_parameter=loss.parameter,
            options=self._config.engine_options(self._train.total),
            feature_of_column=problem.schema.column_feature.tolist(),
            n_threads=self._n_jobs,
            seconds=seconds,
        )
        moved = replace(state, weights=answer["weights"], bias=answer["bias"])
        ending: _Ending = "whole" if answer["is_whole"] else "out of time"
        if answer["interrupted"]:
            ending = "interrupted"
        return self._fitted(moved), answer["n_changed"], ending

    def objective(self, state: _State) -> float:
        """E, the module's definition."""
        leaf = self._train.leaves(self._children, state)
        prior = _prior_loss(self._problem, self._prior, state)
        price = self._config.weight_price * np.count_nonzero(state.weights)
        if state.leaf_weights is not None:
            squares = float((state.leaf_weights.astype(np.float64) ** 2).sum())
            prior += 0.5 * self._config.leaf_l2 * squares
        return self._train.loss(state, leaf) + price + prior / self._train.total

    def validation_loss(self, state: _State) -> float:
        """Return the loss on the validation part, NaN without one."""
        if self._valid is None:
            return math.nan
        return self._valid.loss(state, self._valid.leaves(self._children, state))

    def tree_of(self, state: _State) -> ObliqueTree:
        """Make a tree in raw units."""
        problem = self._problem
        weights, bias = splits_in_raw_units(state.weights, state.bias, problem)
        values, leaf_weights, link = self._values(state), None, "identity"
        if state.leaf_weights is not None:
            raw = leaves_in_raw_units(state.scores, state.leaf_weights, problem)
            values, leaf_weights = problem.linear_leaves(*raw)
            link = problem.loss.link_name
        return ObliqueTree(
            weights,
            bias,
            self._children,
            values,
            schema=problem.schema,
            task=self._tree.task,
            classes=self._tree.classes,
            target_names=self._tree.target_names,
            leaf_weights=leaf_weights,
            link=link,  # type: ignore[arg-type]  # one of its names
        )

    def _values(self, state: _State) -> np.ndarray:
        """Return what constant leaves predict, (L, k).

        With the 0/1 loss, leaves below a split whose rows are all of one class become equal: the
        split decides nothing, and goes when the tree is simplified.
        """
        values = self._problem.leaf_values(state.scores)
        if not isinstance(self._problem.loss, Misclassification):
            return values
        rows = self._train.at_leaves(self._train.leaves(self._children, state), len(values))
        counts = class_counts(rows, values.shape[1])
        for leaves in _pure_branches(self._children, counts > 0):
            total = counts[leaves].sum(axis=0) + self._prior.n_rows * self._prior.target
            values[leaves] = total / total.sum()
        return values

    def _fitted(self, state: _State) -> _State:
        leaf = self._train.leaves(self._children, state)
        rows = self._train.at_leaves(leaf, len(state.scores))
        if state.leaf_weights is None:
            scores = constant_leaves(self._problem.loss, rows, state.scores, self._prior)
            return replace(state, scores=np.ascontiguousarray(scores, dtype=np.float32))
        old = LinearLeaves(state.scores.astype(np.float64), state.leaf_weights.astype(np.float64))
        columns = self._train.table.columns
        new = linear_leaves(
            self._problem.loss, rows, columns, old, self._prior, self._config.leaf_l2
        )
        scores, A = (np.ascontiguousarray(a, dtype=np.float32) for a in (new.scores, new.weights))
        return replace(state, scores=scores, leaf_weights=A)


def _start_state(
    tree: ObliqueTree, problem: Problem, config: Alternation
) -> tuple[np.ndarray, _State]:
    """Return a tree's topology, with leaves numbered from left to right, and its parameters."""
    weights, bias, scores, A = start_parameters(tree, problem)
    if config.max_features_per_split is not None:
        features = problem.schema.column_feature
        weights = _largest_features(weights, features, config.max_features_per_split)
    L, k = scores.shape
    if A is None:
        A = np.zeros((L, k, weights.shape[1]), dtype=np.float32)
    leaves = np.hstack([scores, A.reshape(L, -1)])  # what is to be put in another order
    ordered = left_to_right(StartTree(weights, bias, tree.children, leaves))
    scores = np.ascontiguousarray(ordered.scores[:, :k])
    if config.leaves == "constant":
        return ordered.children, _State(ordered.weights, ordered.bias, scores)
    A = np.ascontiguousarray(ordered.scores[:, k:]).reshape(A.shape)
    return ordered.children, _State(ordered.weights, ordered.bias, scores, A)


def _largest_features(weights: np.ndarray, features: np.ndarray, most: int) -> np.ndarray:
    """Return weights (m, c) of the features with the largest ones, at most so many a split."""
    size = np.zeros((len(weights), int(features.max()) + 1))
    np.maximum.at(size.T, features, np.abs(weights).T)
    rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1)
    return np.where(rank[:, features] < most, weights, np.float32(0))


def _pure_branches(children: np.ndarray, has_class: np.ndarray) -> list[list[int]]:
    """Return the leaves below each of the highest splits to which only rows of one class come.

    `has_class` (L, k) says which classes come to a leaf.
    """
    below: list[list[int]] = [[] for _ in children]
    is_pure = np.zeros(len(children), dtype=bool)
    for i in range(len(children) - 1, -1, -1):  # parents come before their children
        for child in children[i].tolist():
            below[i] += below[child] if child >= 0 else [-1 - child]
        is_pure[i] = has_class[below[i]].any(axis=0).sum() == 1
    inside = np.zeros(len(children), dtype=bool)
    branches = []
    for i, pair in enumerate(children.tolist()):
        if is_pure[i] and not inside[i]:
            branches.append(below[i])
        for child in pair:
            if child >= 0:
                inside[child] = inside[i] or is_pure[i]
    return branches


def _flat(leaf_weights: np.ndarray) -> np.ndarray:
    L, k, c = leaf_weights.shape
    return leaf_weights.reshape(L * k, c)


def _class_losses(problem: Problem, state: _State) -> np.ndarray | None:
    """Return the loss of each constant leaf for each class, (L, k); None where there are none."""
    if state.leaf_weights is not None or not isinstance(problem.loss, CrossEntropy):
        return None
    return np.ascontiguousarray(_losses_by_class(problem, state), dtype=np.float32)


def _losses_by_class(problem: Problem, state: _State) -> np.ndarray:
    """Loss of each leaf, at the mean of all columns, for each class (L, k)."""
    scores = state.scores.astype(np.float64)
    if isinstance(problem.loss, Misclassification):
        return 1.0 - np.eye(scores.shape[1])[scores.argmax(axis=1)]
    below_top = scores - scores.max(axis=1, keepdims=True)
    return np.log(np.exp(below_top).sum(axis=1, keepdims=True)) - below_top


def _prior_loss(problem: Problem, prior: Prior, state: _State) -> float:
    """Return what the rows that leaves have besides their own add, summed over leaves."""
    from hardwood import _native

    if prior.n_rows == 0:
        return 0.0
    if isinstance(problem.loss, CrossEntropy):
        return prior.n_rows * float((_losses_by_class(problem, state) @ prior.target).sum())
    target = np.tile(prior.target.astype(np.float32), (len(state.scores), 1))
    weight = np.full(len(state.scores), prior.n_rows, dtype=np.float32)
    mean, _ = _native.loss(problem.loss.name, state.scores, target, weight, problem.loss.parameter)
    return float(mean) * len(state.scores)
