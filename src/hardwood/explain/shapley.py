r"""Interventional Shapley values of hard oblique trees and forests.

For a row x and a background of rows z, the value of a set S of features is the mean prediction for
rows that have the features in S from x and the others from the background,

.. math:: v(S) = \frac{1}{B} \sum_{z} f(x_S, z_{\bar S}),

and the Shapley value of feature j is its mean contribution over all orders of the p features,

.. math:: \phi_j = \sum_{S \not\ni j} \frac{|S|!\,(p - |S| - 1)!}{p!} (v(S \cup j) - v(S)).

The players are the features of the table; a categorical feature with all its levels is one player.
Predictions for mixed rows are the model's own, bit for bit (docs/guide/explaining.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.errors import TableError
from hardwood.explain.shapley_values import ShapleyValues
from hardwood.explain.values import dense_matrix
from hardwood.model import ObliqueForest, ObliqueTree, engine
from hardwood.model.base import model_of
from hardwood.model.structure import Link
from hardwood.parameters import integer, is_auto, n_threads, switch
from hardwood.table.statistics import mean_of_rows
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood._native import ForestRouter

    Packed = tuple[ForestRouter, int, Link]

MAX_BACKGROUND = 100
_MOST_ORDERS = 2**24
N_WALKS = 200  # smallest number of orders per row, over all background rows
_CASES = {"auto": 2048, True: 2**32, False: 0}  # per background row, to enumerate


def shapley(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    n_permutations: int | Literal["auto"] = "auto",
    exact: bool | Literal["auto"] = "auto",
    output: Any = None,
    max_background: int | None = MAX_BACKGROUND,
    random_state: int | np.random.Generator = 0,
    n_jobs: int | None = 1,
) -> ShapleyValues:
    """Divide each prediction, minus the mean prediction for a background, among the features.

    Parameters
    ----------
    model
        An `ObliqueTree`, an `ObliqueForest`, or a fitted estimator.
    X
        The rows to explain: a table, as for ``predict``.
    background
        The rows to compare with: a table. None uses X.
    n_permutations
        Number of random feature orders per background row, at least 2, where values are sampled;
        each order is walked forward and backward. ``"auto"`` uses at least 2, and at least 200
        orders per row of X.
    exact
        ``"auto"`` computes exact values for rows that need at most 2,048 cases per background row
        and samples for all others. True allows up to 2**32 cases, which may take hours. False
        samples.
    output
        Explain one output only: a class, the name of a target, or a position; None for all.
    max_background
        Largest number of background rows; a larger background is sampled without replacement. None
        uses all rows.
    random_state
        Seed of the background sample and the orders. The values of a row do not depend on the
        other rows of X.
    n_jobs
        Number of threads, over the rows of X; -1 uses all processors. The result does not depend on
        it.

    Returns
    -------
    explanation
        Has `values` (n, p, k), their `standard_errors`, the mean prediction `base` and more. The
        values of a row and the base add up to the model's prediction, whether exact or sampled.

    Raises
    ------
    TableError
        If a table does not fit the model.
    ValueError
        If an argument is out of range, exact values take too long, or a value exceeds float64.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> from hardwood.explain import shapley
    >>> tree = ObliqueTree.of([[1.0, -1.0]], thresholds=[0.0], values=[0.0, 1.0])  # a >= b
    >>> explanation = shapley(tree, [[2.0, 1.0]], [[0.0, 3.0]])
    >>> explanation.values[0, :, 0].tolist()
    [0.5, 0.5]
    """
    found = model_of(model).hard("an explanation")
    who = type(found).__name__
    chosen = _output_number(found, output)
    cases = _CASES[switch("exact", exact)]
    rng = np.random.default_rng(random_state)
    seed = int(
        rng.integers(2**63)
    )  # drawn before the sample, so that the orders are the same for any background
    rows = dense_matrix(found.schema, X, who)
    others = _background(found, rows, background, max_background, rng)
    orders = _n_orders(n_permutations, len(others))
    packed = _packed(found)
    predictions = _predictions(found, packed, rows, n_jobs)
    base = mean_of_rows(_predictions(found, packed, others, n_jobs))
    values, variances, is_exact = _solve(
        packed,
        *_of_one_dtype(rows, others),
        output=chosen,
        n_orders=orders,
        most_cases=cases,
        seed=seed,
        n_threads=n_threads(n_jobs),
    )
    _check(values, is_exact, exact)
    kept = slice(None) if chosen < 0 else slice(chosen, chosen + 1)
    return ShapleyValues(
        values=values,
        base=base[kept],
        outputs=predictions[:, kept],
        standard_errors=None if is_exact.all() else np.sqrt(variances),
        is_exact=is_exact,
        feature_names=found.feature_names,
        output_names=found.output_labels[kept],
        data=rows,
        schema=found.schema,
        task=found.task,
        n_background=len(others),
        n_permutations=orders,
    )


def _packed(model: ObliqueTree | ObliqueForest) -> Packed:
    """Return the engine's form, the power of two it is scaled down by, and the link of sums."""
    from hardwood._native import ForestRouter

    if isinstance(model, ObliqueForest):
        return (*model._packed, model.link)
    leaves = model._leaf_models if model.has_linear_leaves else model.values
    return ForestRouter([model._router], [leaves], "none"), 0, "identity"


def _predictions(
    model: ObliqueTree | ObliqueForest, packed: Packed, matrix: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """Return probabilities or values of rows that were read, (n, k)."""
    if model.schema.is_numeric:  # reading them again changes nothing, and checks for infinity
        return model.outputs(matrix, n_jobs=n_jobs)
    router, exponent, link = packed
    predictions = router.answer(matrix, n_threads(n_jobs))
    return engine.linked(np.ldexp(predictions, exponent), link, n_jobs)


def _solve(
    packed: Packed, rows: np.ndarray, others: np.ndarray, **options: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values (n, p, k), their variances, and whether each row is exact, (n,)."""
    from hardwood import _native

    router, exponent, link = packed
    values, variances, is_exact = _native.shapley(router, link, rows, others, **options)
    return np.ldexp(values, exponent), np.ldexp(variances, 2 * exponent), is_exact


def _background(
    model: ObliqueTree | ObliqueForest,
    rows: np.ndarray,
    background: Any,
    most: int | None,
    rng: np.random.Generator,
) -> np.ndarray:
    if most is not None:
        integer("max_background", most, 1)
    if background is None:
        if len(rows) < 2:
            raise TableError(
                "one row cannot be its own background: pass a background, such as the training "
                "table"
            )
        others = rows
    else:
        others = dense_matrix(model.schema, background, type(model).__name__)
    if len(others) == 0:
        raise TableError("the background has no rows; it needs at least one")
    if most is None or len(others) <= most:
        return others
    return others[np.sort(rng.choice(len(others), most, replace=False))]


def _of_one_dtype(rows: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both with the dtype that can hold either."""
    dtype = np.result_type(rows, others)
    return rows.astype(dtype, copy=False), others.astype(dtype, copy=False)


def _output_number(model: ObliqueTree | ObliqueForest, output: Any) -> int:
    """Return the position of an output; -1 for all."""
    if output is None:
        return -1
    names: tuple[Any, ...] = model.classes or model.target_names or ()
    for i, name in enumerate(names):
        if type(name) is type(output) and name == output:
            return i
    is_position = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if is_position and 0 <= output < model.n_outputs:
        return int(output)
    known = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ValueError(
        f"output must be one of {known or 'the outputs'}, a position from 0 to "
        f"{model.n_outputs - 1}, or None for all; found {output!r:.80}"
    )


def _n_orders(n_permutations: Any, n_background: int) -> int:
    """Return the number of orders per background row: at least 2, for a standard error."""
    if is_auto(n_permutations):
        return max(2, math.ceil(N_WALKS / n_background))
    return integer("n_permutations", n_permutations, 2, _MOST_ORDERS)


def _check(values: np.ndarray, is_exact: np.ndarray, exact: bool | str) -> None:
    if exact is True and not is_exact.all():
        raise ValueError(
            f"exact values would take too long for {np.count_nonzero(~is_exact)} of "
            f"{plural(len(is_exact), 'row')}, because their splits weigh too many features. Sample "
            "(exact=False or 'auto'), or shorten the splits with tree.sparsify"
        )
    if not np.isfinite(values).all():
        row, feature, _ = np.argwhere(~np.isfinite(values))[0].tolist()
        raise ValueError(
            f"the predictions for row {row} exceed float64 (feature {feature}). Explain a model of "
            "smaller numbers, such as their logarithm"
        )
