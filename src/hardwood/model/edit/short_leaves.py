r"""Round the values and coefficients of leaves to a given precision.

A coefficient is rounded to the power of ten at which one standard deviation of its column, among
the rows at the leaf, changes the score by at most the precision. The levels of one feature are
rounded alike, so that those with nearly equal coefficients get equal ones. Then the constant is
chosen again, so that the mean score of the leaf's rows stays, and is rounded itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.routed_rows import RoutedRows
from hardwood.model.views import terms_of
from hardwood.text.terms import exact_sum, measure_of

_LARGEST_EXPONENT = 300
_POWERS = np.array([float(f"1e{i}") for i in range(_LARGEST_EXPONENT + 1)])
_LEAST_PROBABILITY = 1e-6  # that a positive probability is rounded to


# Constant leaves


def rounded_constants(tree: ObliqueTree, precision: np.ndarray) -> ObliqueTree | None:
    """Round the values of constant leaves; None if the most probable class would not stay so.

    Parameters
    ----------
    tree
        A tree with constant leaves.
    precision
        (k,) of each output. A probability near 0 or 1 keeps one digit of its distance, and stays
        between them.
    """
    values = tree.values
    if tree.task == "regression":
        return tree.replace(values=_decimals(values, _exponents(precision)))
    distance = values if tree.task == "classification" else np.minimum(values, 1 - values)
    is_open = (values > 0) & (values < 1)
    distance = np.where(is_open, np.maximum(distance, _LEAST_PROBABILITY), 1.0)
    exponents = np.minimum(_exponents(precision), _exponents(distance))
    inside = np.clip(values, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    rounded = _decimals(np.where(is_open, inside, values), exponents)
    if tree.task == "classification":
        leaf, largest = np.arange(len(values)), values.argmax(axis=1)
        rounded[leaf, largest] = 0.0
        rounded[leaf, largest] = _decimals(1 - rounded.sum(axis=1), exponents.min(axis=1))
        if (rounded.argmax(axis=1) != largest).any():
            return None
    return tree.replace(values=rounded)


# Linear leaves


@dataclass(frozen=True, eq=False)
class LinearScores:
    """The scores of linear leaves in the units of their text: constant + weights . columns.

    Attributes
    ----------
    tree
        The tree. Of two classes, only the score of the second relative to the first is rounded.
    used
        (u,) the columns with a weight.
    unit, center
        (u,) the unit of each column in the text, and its center in the text.
    constant, weights
        (L, k) and (L, k, u).
    mean, deviation
        (L, u) of the columns over the rows at each leaf.
    """

    tree: ObliqueTree
    used: np.ndarray
    unit: np.ndarray
    center: np.ndarray
    constant: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, tree: ObliqueTree, rows: RoutedRows, X: Any) -> LinearScores:
        """Measure the columns of a table at the leaves that its rows reach."""
        assert tree.leaf_weights is not None
        schema, A, values = tree.schema, tree.leaf_weights, tree.values
        if tree.classes is not None and len(tree.classes) == 2:
            A, values = A[:, 1:] - A[:, :1], values[:, 1:] - values[:, :1]
        used = np.flatnonzero(A.any(axis=(0, 1)))
        is_used = np.isin(np.arange(schema.n_columns), used)
        terms = {term.column: term for term in terms_of(tree, is_used.astype(np.float64))}
        measures = [measure_of(schema, terms[j], digits=1) for j in used.tolist()]
        unit = np.array([measure.unit for measure in measures])
        center = (schema.column_center[used] - [measure.zero for measure in measures]) / unit
        weights = A[:, :, used] * unit
        mean, deviation = _moments(tree, rows, X, used)
        return cls(
            tree,
            used,
            unit,
            center,
            values - weights @ center,
            weights,
            center + mean / unit,
            deviation / unit,
        )

    def rounded(self, precision: np.ndarray) -> ObliqueTree:
        """Return the tree with scores of this precision, (k,)."""
        precision = precision[-self.constant.shape[1] :]
        steps = precision[:, None] / self.deviation[:, None, :]  # (L, k, u)
        weights = _decimals(self.weights, _exponents(steps))
        means = self.constant + np.einsum("lku,lu->lk", self.weights, self.mean)
        constant = means - np.einsum("lku,lu->lk", weights, self.mean)
        constant = _decimals(constant, _exponents(precision))
        values = np.array(
            [
                [exact_sum([b, *(w * self.center).tolist()]) for b, w in zip(*of_leaf, strict=True)]
                for of_leaf in zip(constant, weights, strict=True)
            ]
        )
        return self._tree(values, weights / self.unit)

    def _tree(self, values: np.ndarray, weights: np.ndarray) -> ObliqueTree:
        assert self.tree.leaf_weights is not None
        A, b = np.zeros_like(self.tree.leaf_weights), np.zeros_like(self.tree.values)
        k = values.shape[1]
        A[:, -k:, self.used], b[:, -k:] = weights, values
        return self.tree.replace(leaf_weights=A, values=b)


def _moments(
    tree: ObliqueTree, rows: RoutedRows, X: Any, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means, less the centers, and the deviations of columns at the leaves, (L, u).

    Where a column is constant at a leaf, its deviation in training is taken. The indicators of one
    feature share the largest of their deviations.
    """
    schema = tree.schema
    table = schema.read(X, who="ObliqueTree")
    mean = np.zeros((tree.n_leaves, used.size))
    deviation = np.zeros_like(mean)
    for leaf in range(tree.n_leaves):
        here = rows.at(tree.n_splits + leaf)
        if here.stop > here.start:
            columns = schema.encoder.encode(table[rows.row[here]])[:, used].astype(np.float64)
            share = rows.weight[here] / rows.weight[here].sum()
            mean[leaf] = share @ columns
            deviation[leaf] = np.sqrt(share @ (columns - mean[leaf]) ** 2)
    scale, spread = schema.column_scale[used], schema.column_spread[used]
    deviation = np.where(deviation > 0, deviation * scale, spread)
    feature = schema.column_feature[used]
    for i in np.unique(feature[schema.n_levels[feature] > 0]).tolist():
        levels = feature == i
        deviation[:, levels] = deviation[:, levels].max(axis=1, keepdims=True)
    return mean * scale, np.where(deviation > 0, deviation, 1.0)


# Decimal numbers


def _exponents(sizes: np.ndarray) -> np.ndarray:
    """Return the exponents of the largest powers of ten that are not above sizes."""
    exponents = np.floor(np.log10(sizes))
    return np.clip(exponents, -_LARGEST_EXPONENT, _LARGEST_EXPONENT).astype(np.int64)


def _decimals(numbers: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Round numbers to multiples of powers of ten.

    The quotient of a whole number and a power of ten is the float64 nearest to the decimal number,
    so that its text has no further digits.
    """
    power = _POWERS[np.abs(exponents)]
    with np.errstate(over="ignore"):
        small = np.rint(numbers * power) / power
        large = np.rint(numbers / power) * power
    rounded: np.ndarray = np.where(exponents < 0, small, large)
    return np.where(np.isfinite(rounded), rounded, numbers) + 0.0  # without -0.0
