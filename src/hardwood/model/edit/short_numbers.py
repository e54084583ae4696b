r"""Round the numbers of a tree to what its rows support, so that the printed tree is the model.

A learned coefficient has sixteen digits, of which the rows determine two or three. `short_numbers`
rounds

1. the weights and the threshold of each split, to the shortest numbers that send every given row to
   the same side (`hardwood.model.edit.rounding`);
2. the values of all leaves, to one precision (`hardwood.model.edit.short_leaves`). It is the
   coarsest of 1, 0.1, 0.01, ... for which the mean loss of the given rows changes by at most 2 % of
   its standard error, and at most one row in a thousand is predicted another class. The loss if the
   predictions before were the truth must not grow by more, either: the other change may be small
   by chance;
3. the probability above which the second of two classes is predicted, or the weights of several
   classes, to the shortest numbers with which every given row is predicted the same class.

The rounded numbers are decimal in the units of the text, where dates count in days and so on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hardwood.model.edit.criterion import PROBABILITY_EPSILON, criterion_for
from hardwood.model.edit.each_split import Changed, RowsAtSplit, change_each_split, share_elsewhere
from hardwood.model.edit.rounding import short_number, short_split
from hardwood.model.edit.separation import CAUTIONS, Sides, all_terms
from hardwood.model.edit.short_leaves import LinearScores, rounded_constants
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.outputs import class_positions
from hardwood.model.routed_rows import RoutedRows
from hardwood.table.statistics import column_statistics
from hardwood.text.terms import exact_sum

MOST_LEAVES = 2000  # of a tree that is read; of a larger one only constants are rounded
MOST_FEATURES = 40  # of a split that is read; longer ones keep their numbers, as they take long
_PRECISIONS = range(8)  # negative powers of ten
_LOSS_SHARE = 0.02  # of the standard error of the mean loss, by which rounding may change it
_MOST_CHANGED = 0.001  # of the rows, whose predicted class rounding may change
_CONSTANT = 1e-12  # relative deviation of a target that is constant but for rounding errors
_LARGEST_EXPONENT = 300  # of a unit
_MOST_WEIGHT_DIGITS = 9  # of a decision weight


def short_numbers(
    tree: ObliqueTree, X: Any, truth: np.ndarray, sample_weight: Any = None
) -> ObliqueTree:
    """Round the thresholds, coefficients and values of a tree.

    Parameters
    ----------
    tree
        The tree.
    X
        A table, as for ``predict``; preferably training rows.
    truth
        The targets of its rows, as in `hardwood.model.edit.criterion`.
    sample_weight
        (n,) row weights; None for equal weights. Rows of weight 0 are ignored.

    Returns
    -------
    tree
        Every given row reaches the same leaf. If no precision is good enough, leaves are as before.
    """
    if tree.n_leaves <= MOST_LEAVES:
        tree = _with_short_splits(tree, X, sample_weight)
    return _with_short_decisions(_with_short_leaves(tree, X, truth, sample_weight), X)


# Splits


def _with_short_splits(tree: ObliqueTree, X: Any, sample_weight: Any) -> ObliqueTree:
    rows = RoutedRows.of(tree, X, sample_weight)
    for caution in CAUTIONS:
        shorter = change_each_split(rows, X, partial(_shorter, tree, caution=caution))
        if share_elsewhere(rows, X, shorter) == 0:
            return shorter
    return tree


def _shorter(tree: ObliqueTree, at: RowsAtSplit, caution: float) -> Changed:
    weights, bias = tree.weights[at.split], float(tree.bias[at.split])
    unchanged = weights, bias, np.zeros(len(at), dtype=bool)
    if len(np.unique(tree.schema.column_feature[weights != 0])) > MOST_FEATURES:
        return unchanged
    terms = all_terms(at, weights * tree.schema.column_scale)
    sides = Sides(at.weight, at.goes_right, caution)
    short = short_split(tree, terms, sides, most_moved=0.0, mean=terms.mean + bias)
    return unchanged if short is None else (short.weights, short.bias, short.moved)


# Leaves


def _with_short_leaves(
    tree: ObliqueTree, X: Any, truth: np.ndarray, sample_weight: Any
) -> ObliqueTree:
    if tree.has_linear_leaves and tree.n_leaves > MOST_LEAVES:
        return tree
    rows = RoutedRows.of(tree, X, sample_weight)
    support = _Support.of(tree, rows, X, truth)
    linear = LinearScores.of(tree, rows, X) if tree.has_linear_leaves else None
    for exponent in _PRECISIONS:
        precision = support.unit * float(f"1e-{exponent}")
        rounded = linear.rounded(precision) if linear else rounded_constants(tree, precision)
        if rounded is not None and support.allows(rounded.outputs(X)[rows.row]):
            return rounded
    return tree


@dataclass(frozen=True, eq=False)
class _Support:
    """What rows say about the predictions of a tree.

    Attributes
    ----------
    tree, outputs, truth
        The tree, its outputs for rows (n, k), and their targets.
    share
        (n,) row weights that sum to 1.
    unit
        (k,) units of the scores of leaves: a power of ten near the standard deviation of a target;
        1 for other scores and probabilities.
    """

    tree: ObliqueTree
    outputs: np.ndarray
    truth: np.ndarray
    share: np.ndarray
    unit: np.ndarray

    @property
    def n_rows(self) -> float:
        """Number of rows of equal weight whose mean would be as accurate."""
        return 1 / float(self.share @ self.share)

    @classmethod
    def of(cls, tree: ObliqueTree, rows: RoutedRows, X: Any, truth: np.ndarray) -> _Support:
        share, truth = rows.weight / rows.weight.sum(), truth[rows.row]
        unit = np.ones(tree.n_outputs)
        if tree.task == "regression" and tree.link == "identity":
            found, size = column_statistics(truth, share), np.abs(truth).max(axis=0)
            is_constant = found.is_constant | (found.deviation <= _CONSTANT * size)
            unit = _powers_of_ten(np.where(is_constant, size, found.deviation))
        return cls(tree, rows.outputs(X), truth, share, unit)

    def allows(self, outputs: np.ndarray) -> bool:
        """Whether other outputs predict these rows as well."""
        name = "squared_error" if self.tree.task == "regression" else "log_loss"
        loss = criterion_for(self.tree, name).losses
        old, new, truth = self.outputs, outputs, self.truth
        if self.tree.task == "regression":  # squares of the largest numbers exceed float64
            exponent = math.frexp(max(float(np.abs(x).max()) for x in (old, truth)))[1]
            old, new, truth = (np.ldexp(x, -exponent) for x in (old, new, truth))
        before = loss(old, truth)
        change = float(self.share @ (loss(new, truth) - before))
        expected = float(self.share @ self._divergence(old, new))
        mean = float(self.share @ before)
        error = math.sqrt(float(self.share**2 @ (before - mean) ** 2))
        error = max(error, mean / self.n_rows)  # as of one more row, where all losses are equal
        if not max(abs(change), expected) <= _LOSS_SHARE * error:
            return False
        if self.tree.task == "regression":
            return True
        is_other = self.tree.predictions_for(old) != self.tree.predictions_for(new)
        return float(self.share @ is_other.reshape(len(new), -1).any(axis=1)) <= _MOST_CHANGED

    def _divergence(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Return how much larger the expected loss of each row is if the old outputs are true.

        That is the squared difference, or the Kullback-Leibler divergence.
        """
        if self.tree.task == "regression":
            squared: np.ndarray = ((new - old) ** 2).mean(axis=1)
            return squared
        if self.tree.task == "classification":
            return _relative_entropy(old, new).sum(axis=1)
        return (_relative_entropy(old, new) + _relative_entropy(1 - old, 1 - new)).mean(axis=1)


def _relative_entropy(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    entropy: np.ndarray = p * np.log(
        np.maximum(p, PROBABILITY_EPSILON) / np.maximum(q, PROBABILITY_EPSILON)
    )
    return entropy


def _powers_of_ten(sizes: np.ndarray) -> np.ndarray:
    """Return the smallest powers of ten that are not below sizes; 1 for 0.

    None is so small, or so large, that it has no digits or is infinite.
    """
    exponents = np.ceil(np.log10(np.where(sizes > 0, sizes, 1.0))).astype(int)
    exponents = exponents.clip(-_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    return np.array([float(f"1e{exponent}") for exponent in exponents.tolist()])


# Decisions


def _with_short_decisions(tree: ObliqueTree, X: Any) -> ObliqueTree:
    weights = tree.decision_weights
    if weights is None:
        return tree
    outputs = tree.outputs(X)
    decided = tree.class_positions(outputs)
    for short in _short_decision_weights(weights, outputs, decided):
        if np.array_equal(class_positions(outputs, short), decided):
            return tree.replace(decision_weights=short)
    return tree


def _short_decision_weights(
    weights: np.ndarray, outputs: np.ndarray, decided: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield weights with more and more digits; for two classes, that of the shortest threshold."""
    if len(weights) == 2:
        threshold = float(weights[0] / weights.sum())
        below = float(outputs[decided == 0, 1].max(initial=0.0))
        above = float(outputs[decided == 1, 1].min(initial=1.0))
        found = short_number(below, above, threshold)
        if found is not None:
            yield np.array([found, exact_sum([1.0, -found])])
        return
    for digits in range(1, _MOST_WEIGHT_DIGITS + 1):
        yield np.array([float(f"{weight:.{digits - 1}e}") for weight in weights.tolist()])
