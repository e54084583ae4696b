r"""Tree alternating optimization (TAO): each split is optimized while all others stay fixed.

Carreira-Perpinan, Tavallali. Alternating Optimization of Decision Trees, with Application to
Learning Sparse Oblique Trees. NeurIPS 2018. [TAO18]
Zharmagambetov, Carreira-Perpinan. Smaller, More Accurate Regression Forests Using Tree Alternating
Optimization. ICML 2020. [TAO20]

With the rest of the tree fixed, a split only decides which of two leaves each row reaches. Rows
with the same loss in both leaves do not matter. The others form a two-class problem, in which each
row is weighted by the difference of its losses. It is solved by logistic regression with an L1
penalty, followed by an exact search for the best threshold along that direction. Splits of one
depth share no rows and are optimized in parallel. A sweep visits all depths and then fits the
leaves.

The objective, over trees of one shape, is

.. math:: E = \frac1W \sum_n w_n L(y_n, T(x_n)) + \alpha \cdot \#\{w_{ij} \neq 0\}
    + \frac1W \sum_\ell \big(\rho\, L(\bar y, \theta_\ell) + \lambda \|A_\ell\|^2 / 2 \big)

=============  ==========================  ======================================================
symbol         here
=============  ==========================  ======================================================
L              ``task.loss``               0/1 loss (`Misclassification`) or a loss of the engine
alpha          ``l0``                      price of a nonzero weight
rho            ``leaf_prior``              pseudo-count of rows with the mean target in each leaf
lambda         ``leaf_l2``                 penalty on the slopes of linear leaves
C              1 / ``l1``                  of the logistic regressions; not part of E
=============  ==========================  ======================================================

A split or leaf is replaced only if E decreases, so E never increases.

The sweep is native (``native/learn/tao/sweep.hpp``, ``logistic.hpp``, ``step.hpp``); its NumPy
reference is ``tests/reference/tao.py``. Leaves are fitted in ``learn/leaves/constant.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.leaves.constant import (
    LeafRows,
    Prior,
    class_counts,
    constant_leaves,
    mean_target,
    rows_by_leaf,
)
from hardwood.learn.leaves.linear import LinearLeaves, linear_leaves
from hardwood.learn.losses import (
    LEAF_LOSSES,
    NO_LINK,
    CrossEntropy,
    Custom,
    Hinge,
    Loss,
    Misclassification,
    SquaredCodes,
)
from hardwood.learn.start import StartTree, left_to_right, required_start
from hardwood.learn.task import Task
from hardwood.learn.training import Epoch
from hardwood.learn.units import linear_leaves_of, splits_in_raw_units, start_parameters
from hardwood.model import ObliqueTree
from hardwood.model.structure import TaskKind
from hardwood.parameters import choice_field, integer_field, is_auto, real_field, switch_field
from hardwood.table.dense_size import check_dense_size

Leaves = Literal["constant", "linear"]
Order = Literal["deepest_first", "root_first"]
_Ending = Literal["whole", "out of time", "interrupted"]

# The pairs of l1 and l2 that "auto" tries, from weak to strong penalties of either kind. If one of
# the two is given, the values of the other are tried.
PENALTIES = (
    (0.03, 0.1),
    (0.1, 1.0),
    (0.3, 10.0),
    (0.3, 100.0),
    (1.0, 0.0),
    (3.0, 0.0),
    (10.0, 0.0),
)

_MAX_DEPTH = 32
_PATIENCE = 3  # levels to remove from a start without a better validation loss


@dataclass(frozen=True)
class TAO(Learner):
    """Tree alternating optimization; `TAOClassifier` describes most parameters.

    Parameters
    ----------
    cuts_start
        Whether a search also tries the start without its deepest splits; "auto": if the start is a
        learner.
    l0
        Price of a nonzero weight in the objective E (see the module). With a positive price, each
        node chooses among several L1 penalties.
    order
        The order of depths in a sweep.
    logistic_passes, logistic_tolerance
        Largest number of passes over the rows of each logistic regression, and the relative
        decrease of its objective below which it stops.
    """

    losses: ClassVar[frozenset[str]] = LEAF_LOSSES | {Misclassification.name}
    run_name: ClassVar[str] = "run"
    searched: ClassVar[tuple[str, ...]] = ("l1", "l2")

    max_depth: int = integer_field(8, 1, _MAX_DEPTH)
    l1: float | Literal["auto"] = real_field("auto", 0, or_auto=True)
    l2: float | Literal["auto"] = real_field("auto", 0, or_auto=True)
    leaves: Leaves = choice_field("constant", get_args(Leaves))
    leaf_l2: float = real_field(1.0, 0)
    leaf_prior: float = real_field(1.0, 0)
    max_sweeps: int = integer_field(20, 0)
    max_features_per_split: int | None = integer_field(None, 1, or_none=True)
    early_stopping: bool | str = switch_field()
    cuts_start: bool | str = switch_field()
    l0: float = real_field(0.0, 0)
    order: Order = choice_field("deepest_first", get_args(Order))
    logistic_passes: int = integer_field(50, 1)
    logistic_tolerance: float = real_field(1e-4, 0)

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Improve a tree by sweeps over its splits and leaves; choose penalties that are "auto".

        With validation rows, the tree of the best sweep is kept, else that of the last. "auto"
        penalties are chosen on validation rows; the final fit on all rows takes the best number of
        sweeps. The search may also remove the deepest splits of the start, level by level, until
        that has not helped three times in a row. Runs are numbered in order (`Epoch.restart`):
        those of the search, then the run on all rows. When the time is up, the current sweep stops
        and ends the run.
        """
        tree = required_start(start, task, run, self.max_depth)
        if not self.is_searched:
            return self._alternate(task, tree, run, 0).learned
        cuts_start = isinstance(start, Learner) if is_auto(self.cuts_start) else self.cuts_start
        trials = self._search(task, tree, run, cuts_start=bool(cuts_start))
        best = min(trials, key=_validation_loss)
        kept, interrupted = best, trials[-1].learned.interrupted
        if not interrupted:
            again = self._on_all_rows(task.whole(), start, tree, best, run, len(trials))
            interrupted = again is None or again.learned.interrupted
            # If the user interrupted it, only the tree of the search is complete.
            kept = best if interrupted or again is None else again
        penalties = {"l1": best.learner.l1, "l2": best.learner.l2}
        return replace(
            kept.learned,
            interrupted=interrupted,
            resolved=penalties,
            facts={
                **kept.learned.facts,
                "trials": [
                    (trial.learner.l1, trial.learner.l2, trial.depth, _validation_loss(trial))
                    for trial in trials
                ],
            },
        )

    def find_loss(self, spec: Any, kind: TaskKind, n_classes: int | None) -> Loss:
        if kind != "regression" and isinstance(spec, str) and spec == "auto":
            needs_slope = kind == "multilabel" or self.leaves == "linear"
            spec = "log_loss" if needs_slope else "misclassification"
        loss = super().find_loss(spec, kind, n_classes)
        if self.leaves == "linear" and isinstance(loss, Misclassification):
            raise ValueError(
                "leaves='linear' learns probabilities that depend on the columns, but "
                "loss='misclassification' looks at the largest one only. Give loss='log_loss'."
            )
        return loss

    def default_loss_name(self, kind: TaskKind) -> str:
        return "squared_error" if kind == "regression" else "auto"

    @property
    def penalties(self) -> list[tuple[float | str, float | str]]:
        """The distinct pairs (l1, l2) to try."""
        pairs: list[tuple[float | str, float | str]] = [
            (l1 if is_auto(self.l1) else self.l1, l2 if is_auto(self.l2) else self.l2)
            for l1, l2 in PENALTIES
        ]
        return list(dict.fromkeys(pairs))

    def _search(self, task: Task, tree: ObliqueTree, run: Run, *, cuts_start: bool) -> list[_Trial]:
        """Try penalties, then smaller depths with the best penalties."""
        trials: list[_Trial] = []

        def tried(first: ObliqueTree, l1: Any, l2: Any) -> _Trial:
            learner = replace(self, l1=l1, l2=l2, early_stopping=True)
            trials.append(learner._alternate(task, first, run, len(trials)))
            return trials[-1]

        for l1, l2 in self.penalties:
            if tried(tree, l1, l2).learned.interrupted:
                return trials
        best = min(trials, key=_validation_loss)
        depth = tree.depth
        while cuts_start and depth > max(1, best.depth - _PATIENCE):
            depth -= 1
            trial = tried(cut(tree, depth), best.learner.l1, best.learner.l2)
            best = min(best, trial, key=_validation_loss)
            if trial.learned.interrupted:
                break
        return trials

    def _on_all_rows(
        self, whole: Task, start: Start, tree: ObliqueTree, best: _Trial, run: Run, number: int
    ) -> _Trial | None:
        """Fit all rows with the settings of the best trial; None if the start is interrupted."""
        n_sweeps = best.learned.best_epoch + 1
        learner = replace(best.learner, max_sweeps=n_sweeps, early_stopping=False)
        try:
            first = required_start(start, whole, run, self.max_depth)
            if best.depth < tree.depth:
                first = cut(first, best.depth)
            return learner._alternate(whole, first, run, number)
        except KeyboardInterrupt:
            return None

    def _alternate(self, task: Task, tree: ObliqueTree, run: Run, number: int) -> _Trial:
        """Sweep over a tree with given penalties; callbacks get `number` as that of the run."""
        work = _Work(task, self, tree, run.n_jobs)
        best = state = work.start
        objective, validation = [work.objective(state)], [work.validation_loss(state)]
        history: list[Epoch] = []
        best_epoch, interrupted = -1, False
        keeps_best = self.keeps_best(task)
        try:
            for sweep in range(self.max_sweeps):
                state, n_changed, ending = work.swept(state, run.clock.left)
                if interrupted := ending == "interrupted":
                    break
                objective.append(work.objective(state))
                validation.append(work.validation_loss(state))
                if not keeps_best or validation[-1] <= min(validation):
                    best, best_epoch = state, sweep
                epoch = Epoch(
                    number, sweep, self.max_sweeps, objective[-1], validation[-1], math.nan
                )
                history.append(epoch)
                if run.notify(epoch) or n_changed == 0 or ending == "out of time":
                    break
        except KeyboardInterrupt:
            interrupted = True
        learned = Learned(
            work.tree_of(best),
            tuple(history),
            best_run=number,
            best_epoch=best_epoch,
            interrupted=interrupted,
            facts={"l1": self.l1, "l2": self.l2, "trials": [], "objective": objective},
            task=task,
        )
        return _Trial(self, learned, tree.depth, min(validation))

    def engine_options(self, total_weight: float) -> dict[str, object]:
        """Return all options of a sweep, for the engine."""
        assert not isinstance(self.l1, str)
        return {
            "l1": [self.l1] if self.l0 == 0 else [4**s * self.l1 for s in (3, 2, 1, 0)],
            "l2": self.l2,
            "l0": self.l0 * total_weight,
            "logistic_passes": self.logistic_passes,
            "logistic_tolerance": self.logistic_tolerance,
            "max_features": self.max_features_per_split or 0,
            "from_the_root": self.order == "root_first",
        }


@dataclass(frozen=True)
class _Trial:
    """One run: its learner, its result, the depth of its start, and its validation loss.

    `validation_loss` is the smallest of all sweeps, NaN without validation rows.
    """

    learner: TAO
    learned: Learned
    depth: int
    validation_loss: float


def _validation_loss(trial: _Trial) -> float:
    return trial.validation_loss


def cut(tree: ObliqueTree, depth: int) -> ObliqueTree:
    """Return a tree without the splits below some depth.

    Each removed subtree becomes its leftmost leaf; the leaves have to be fitted afterwards.
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


@dataclass(frozen=True)
class _State:
    """A tree in standard units: (m, c), (m,), (L, k) and (L, k, c) or None, float32."""

    weights: np.ndarray
    bias: np.ndarray
    scores: np.ndarray
    leaf_weights: np.ndarray | None = None


class _Part:
    """The encoded training rows or validation rows of a task."""

    def __init__(self, task: Task, rows: np.ndarray, n_jobs: int) -> None:
        from hardwood import _native

        check_dense_size(
            len(rows), task.schema.n_columns, bytes_per_value=4, learner="Alternating optimization"
        )
        self.table = _native.TaoTable(task.schema.encoder, task.matrix, rows, n_jobs)
        self.target = task.y[rows]
        self.weight = task.weight[rows]
        self.total = float(self.weight.sum(dtype=np.float64))
        self._loss, self._n_jobs = task.loss, n_jobs

    def leaves(self, children: np.ndarray, state: _State) -> np.ndarray:
        """Return the leaf of each row."""
        leaf: np.ndarray = self.table.leaves(children, state.weights, state.bias, self._n_jobs)
        return leaf

    def at_leaves(self, leaf: np.ndarray, n_leaves: int) -> LeafRows:
        """Return the rows in the form for fitting leaves."""
        return LeafRows(
            leaf, n_leaves, self.target.astype(np.float64), self.weight.astype(np.float64)
        )

    def scores(self, state: _State, leaf: np.ndarray) -> np.ndarray:
        """Return the scores of rows at their leaves, (n, k) float32."""
        scores: np.ndarray = state.scores[leaf]
        if state.leaf_weights is None:
            return scores
        for one, at in enumerate(rows_by_leaf(leaf, len(state.scores))):
            if len(at):
                scores[at] += self.table.columns(at) @ state.leaf_weights[one].T
        return scores

    def loss(self, state: _State, leaf: np.ndarray) -> float:
        """Return the weighted mean loss of the rows at their leaves."""
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
    """State that all sweeps of one run share."""

    def __init__(self, task: Task, config: TAO, tree: ObliqueTree, n_jobs: int) -> None:
        if isinstance(task.loss, Custom):
            raise ValueError(
                "TAO evaluates its loss for single rows, so loss must be a name or a loss object, "
                "not a function. DGTClassifier and DGTRegressor take functions."
            )
        if isinstance(task.loss, Hinge | SquaredCodes):
            raise ValueError(
                f"TAO takes loss='misclassification' or 'log_loss' for classes, found "
                f"{task.loss.name!r}. ReinforcedTreeClassifier and DGTClassifier take it."
            )
        if isinstance(task.loss, Misclassification) and config.leaves == "linear":
            raise ValueError("Linear leaves need a loss with a gradient, found misclassification.")
        self._task, self._config, self._n_jobs = task, config, n_jobs
        self._train = _Part(task, task.train, n_jobs)
        self._valid = _Part(task, task.valid, n_jobs) if len(task.valid) else None
        everywhere = self._train.at_leaves(np.zeros(len(task.train), dtype=np.int64), 1)
        self._prior = Prior(config.leaf_prior, mean_target(task.loss, everywhere, task.n_outputs))
        self._children, start = _start_state(tree, task, config)
        self.start = self._fitted(start)

    def swept(self, state: _State, seconds: float) -> tuple[_State, int, _Ending]:
        """Improve all splits, then all leaves; also return the number of changed splits."""
        task, loss = self._task, self._task.loss
        answer = self._train.table.sweep(
            self._children,
            state.weights,
            state.bias,
            state.scores,
            None if state.leaf_weights is None else _flat(state.leaf_weights),
            _class_losses(task, state),
            self._train.target,
            self._train.weight,
            loss=loss.name if not isinstance(loss, Misclassification) else "cross_entropy",
            loss_parameter=loss.parameter,
            options=self._config.engine_options(self._train.total),
            feature_of_column=task.schema.column_feature.tolist(),
            n_threads=self._n_jobs,
            seconds=seconds,
        )
        moved = replace(state, weights=answer["weights"], bias=answer["bias"])
        ending: _Ending = "whole" if answer["is_whole"] else "out of time"
        if answer["interrupted"]:
            ending = "interrupted"
        return self._fitted(moved), answer["n_changed"], ending

    def objective(self, state: _State) -> float:
        """Return the objective E (see the module)."""
        leaf = self._train.leaves(self._children, state)
        prior = _prior_loss(self._task, self._prior, state)
        price = self._config.l0 * np.count_nonzero(state.weights)
        if state.leaf_weights is not None:
            squares = float((state.leaf_weights.astype(np.float64) ** 2).sum())
            prior += 0.5 * self._config.leaf_l2 * squares
        return self._train.loss(state, leaf) + price + prior / self._train.total

    def validation_loss(self, state: _State) -> float:
        """Return the loss on the validation rows; NaN without them."""
        if self._valid is None:
            return math.nan
        return self._valid.loss(state, self._valid.leaves(self._children, state))

    def tree_of(self, state: _State) -> ObliqueTree:
        """Return the tree in raw units."""
        task = self._task
        weights, bias = splits_in_raw_units(state.weights, state.bias, task)
        values, leaf_weights, link = self._values(state), None, NO_LINK
        if state.leaf_weights is not None:
            values, leaf_weights = linear_leaves_of(state.scores, state.leaf_weights, task)
            link = task.loss.link_name
        return ObliqueTree(
            weights,
            bias,
            self._children,
            values,
            schema=task.schema,
            task=task.kind,
            classes=task.labels,
            target_names=task.target_names,
            leaf_weights=leaf_weights,
            link=link,
        )

    def _values(self, state: _State) -> np.ndarray:
        """Return the predictions of constant leaves, (L, k).

        With the 0/1 loss, leaves below a split with rows of a single class are made equal, so that
        simplifying the tree removes the split.
        """
        values = self._task.leaf_values(state.scores)
        if not isinstance(self._task.loss, Misclassification):
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
            scores = constant_leaves(self._task.loss, rows, state.scores, self._prior)
            return replace(state, scores=np.ascontiguousarray(scores, dtype=np.float32))
        old = LinearLeaves(state.scores.astype(np.float64), state.leaf_weights.astype(np.float64))
        columns = self._train.table.columns
        new = linear_leaves(self._task.loss, rows, columns, old, self._prior, self._config.leaf_l2)
        scores, A = (np.ascontiguousarray(a, dtype=np.float32) for a in (new.scores, new.weights))
        return replace(state, scores=scores, leaf_weights=A)


def _start_state(tree: ObliqueTree, task: Task, config: TAO) -> tuple[np.ndarray, _State]:
    """Return a tree's topology, with leaves numbered from left to right, and its parameters."""
    weights, bias, scores, A = start_parameters(tree, task)
    if config.max_features_per_split is not None:
        features = task.schema.column_feature
        weights = _largest_features(weights, features, config.max_features_per_split)
    L, k = scores.shape
    if A is None:
        A = np.zeros((L, k, weights.shape[1]), dtype=np.float32)
    leaves = np.hstack([scores, A.reshape(L, -1)])  # everything to reorder
    ordered = left_to_right(StartTree(weights, bias, tree.children, leaves))
    scores = np.ascontiguousarray(ordered.scores[:, :k])
    if config.leaves == "constant":
        return ordered.children, _State(ordered.weights, ordered.bias, scores)
    A = np.ascontiguousarray(ordered.scores[:, k:]).reshape(A.shape)
    return ordered.children, _State(ordered.weights, ordered.bias, scores, A)


def _largest_features(weights: np.ndarray, features: np.ndarray, most: int) -> np.ndarray:
    """Return weights (m, c) with only the features of the largest weights in each split."""
    size = np.zeros((len(weights), int(features.max()) + 1))
    np.maximum.at(size.T, features, np.abs(weights).T)
    rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1)
    return np.where(rank[:, features] < most, weights, np.float32(0))


def _pure_branches(children: np.ndarray, has_class: np.ndarray) -> list[list[int]]:
    """Return the leaves below each of the highest splits that only rows of one class reach.

    `has_class` (L, k) says which classes reach a leaf.
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


def _class_losses(task: Task, state: _State) -> np.ndarray | None:
    """Return the loss of each constant leaf for each class, (L, k); None for other tasks."""
    if state.leaf_weights is not None or not isinstance(task.loss, CrossEntropy):
        return None
    return np.ascontiguousarray(_losses_by_class(task, state), dtype=np.float32)


def _losses_by_class(task: Task, state: _State) -> np.ndarray:
    """Return the loss of each leaf, at the mean of all columns, for each class, (L, k)."""
    scores = state.scores.astype(np.float64)
    if isinstance(task.loss, Misclassification):
        return 1.0 - np.eye(scores.shape[1])[scores.argmax(axis=1)]
    below_top = scores - scores.max(axis=1, keepdims=True)
    return np.log(np.exp(below_top).sum(axis=1, keepdims=True)) - below_top


def _prior_loss(task: Task, prior: Prior, state: _State) -> float:
    """Return the loss of the pseudo-rows, summed over leaves."""
    from hardwood import _native

    if prior.n_rows == 0:
        return 0.0
    if isinstance(task.loss, CrossEntropy):
        return prior.n_rows * float((_losses_by_class(task, state) @ prior.target).sum())
    target = np.tile(prior.target.astype(np.float32), (len(state.scores), 1))
    weight = np.full(len(state.scores), prior.n_rows, dtype=np.float32)
    mean, _ = _native.loss(task.loss.name, state.scores, target, weight, task.loss.parameter)
    return float(mean) * len(state.scores)
