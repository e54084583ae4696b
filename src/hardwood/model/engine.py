"""The interface to the engine: packing a model's arrays, and passing tables to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableError
from hardwood.model.structure import Link
from hardwood.parameters import n_threads
from hardwood.table import Schema

if TYPE_CHECKING:
    from hardwood._native import LeafModels, PolicyRouter, Router, SoftRouter
    from hardwood.model.kinds.policy_tree import PolicyTree
    from hardwood.model.kinds.soft_ensemble import TreeEnsemble
    from hardwood.model.kinds.tree import ObliqueTree


def packed_splits(tree: ObliqueTree) -> Router:
    """Pack the splits of a tree for routing."""
    from hardwood._native import Router

    weights, bias, _ = scaled_splits(tree)
    return Router(tree.schema.encoder, weights, bias, tree.children, tree.n_leaves)


def scaled_splits(tree: ObliqueTree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights (m, c) and biases (m,) for the engine, and the power of two of each split.

    The engine computes in float32. Multiplying a split by a positive number does not change it, and
    a power of two is exact: even a weight of 1e300 then fits into float32.
    """
    exponents = _exponents(tree.weights, tree.schema.column_scale, tree.bias)
    weights = np.ldexp(tree.weights, -exponents[:, None])
    return weights, np.ldexp(tree.bias, -exponents), exponents


def packed_leaves(tree: ObliqueTree) -> LeafModels:
    """Pack the linear leaves of a tree."""
    from hardwood._native import LeafModels

    assert tree.leaf_weights is not None
    return LeafModels(tree.schema.encoder, tree.values, tree.leaf_weights, tree.link)


def packed_ensemble(ensemble: TreeEnsemble) -> SoftRouter:
    """Pack soft trees. The engine divides their splits by gamma."""
    from hardwood._native import SoftRouter

    return SoftRouter(
        ensemble.schema.encoder,
        ensemble.weights,
        ensemble.bias,
        ensemble.values,
        ensemble.gamma,
        ensemble.activation,
    )


def packed_policy(tree: PolicyTree) -> PolicyRouter:
    """Pack a policy tree: each node relative to its first sibling, except first siblings."""
    from hardwood._native import PolicyRouter

    siblings = tree._siblings
    others = siblings[tree._first_sibling[siblings] != siblings]  # in the order of parents
    weights, bias = tree.relative_weights[others], tree.relative_bias[others]
    # Like `scaled_splits`, with one power of two for all branches of a split.
    exponents = np.full(tree.n_nodes, -9999, dtype=np.int64)
    of_rows = _exponents(weights, tree.schema.column_scale, bias)
    is_zero = ~weights.any(axis=1) & (bias == 0)
    parents = tree.parents[others]
    np.maximum.at(exponents, parents, np.where(is_zero, -9999, of_rows))
    exponents[exponents == -9999] = 0
    return PolicyRouter(
        tree.schema.encoder,
        np.ldexp(weights, -exponents[parents, None]),
        np.ldexp(bias, -exponents[parents]),
        siblings,
        tree.n_children,
        exponents.astype(np.int32),
    )


def run(
    schema: Schema,
    X: Any,
    function: Callable[[Any, int], np.ndarray],
    *,
    n_jobs: int | None,
    who: str,
) -> np.ndarray:
    """Read a table and pass it to the engine.

    Parameters
    ----------
    schema
        Reads ``X``.
    X
        Any table.
    function
        A function of ``(table, n_threads)``, such as those of the engine, for arrays and CSR.
    n_jobs
        Number of threads, as in scikit-learn.
    who
        The name in error messages about the table.

    Raises
    ------
    TableError
        If the table does not match the schema, or holds infinity; the message names the column.
    """
    table = schema.read(X, who=who)
    threads = 1 if n_jobs == 1 else n_threads(n_jobs)
    try:
        return function(table, threads)
    except ValueError as error:
        raise _infinity_error(schema, table) or error from None


def linked(scores: np.ndarray, link: Link, n_jobs: int | None) -> np.ndarray:
    """Turn scores (n, k) float64 into outputs, in place."""
    if link != "identity":
        from hardwood._native import apply_link

        apply_link(scores, link, n_threads(n_jobs))
    return scores


def one_row_outputs(
    score_row: Callable[[Any, np.ndarray], None], n_outputs: int, link: Link
) -> Callable[[Any], np.ndarray]:
    """Return a function that maps a row to its outputs, (k,).

    Parameters
    ----------
    score_row
        The engine's function of a row and an array (k,) for its scores.
    """
    if link == "identity":

        def output_of(x: Any) -> np.ndarray:
            outputs = np.empty(n_outputs)
            score_row(x, outputs)
            return outputs

        return output_of
    from hardwood._native import apply_link

    def linked_output_of(x: Any) -> np.ndarray:
        outputs = np.empty((1, n_outputs))
        score_row(x, outputs[0])
        apply_link(outputs, link, 1)
        return outputs[0]

    return linked_output_of


def not_for_the_engine(x: Any) -> Any:
    """Refuse a row, for models with categories, whose levels have to be looked up."""
    raise TypeError("such rows are read as a table")


def _exponents(weights: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return a power of two above the largest standardized weight or bias of each split, (m,)."""
    # For zero, frexp returns the exponent 0, which would be too high for splits with tiny weights.
    terms = np.where(weights == 0, -9999, np.frexp(weights)[1] + np.frexp(scale)[1])
    of_bias = np.where(bias == 0, -9999, np.frexp(bias)[1])
    exponents: np.ndarray = np.maximum(terms.max(axis=1, initial=-9999), of_bias)
    return np.where((weights == 0).all(axis=1) & (bias == 0), 0, exponents)


def _infinity_error(schema: Schema, table: Any) -> TableError | None:
    """Name the column and row of the first infinity, if there is one."""
    dense = isinstance(table, np.ndarray)
    entries = table if dense else table.data
    where = np.argwhere(np.isinf(entries))
    if where.size == 0:
        return None
    if dense:
        row, column = where[0].tolist()
    else:
        row = int(np.searchsorted(table.indptr, where[0, 0], side="right")) - 1
        column = int(table.indices[where[0, 0]])
    return TableError(
        f"column {schema.names[column]!r} holds infinity "
        f"({entries[tuple(where[0])]} at row {row}). Expected finite numbers; NaN marks a "
        "missing entry. Replace or clip such values."
    )
