"""The check of an export: it must predict what the library predicts, or it is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.errors import ExportError
from hardwood.export.conditions import rounding_bound
from hardwood.export.plan import Plan, PlannedTree
from hardwood.export.probes import Probes
from hardwood.text.numbers import plural

SAME_VALUES = 1e-13  # effect of the order of float64 additions, relative to the terms
FLOAT_VALUES = 2.0**-23  # the same where the library has rounded a number to float32
_LITTLE = 1e-12  # relative to an output


@dataclass(frozen=True)
class Check:
    """How an export was checked, and the result.

    Parameters
    ----------
    target
        Format of the export: ``"c"``, ``"sql"``, ...
    method
        How the export was run.
    n_rows
        Number of rows compared.
    are_given
        Whether the first rows were given by the user; otherwise all were simulated.
    n_on_edge
        Rows within rounding of a split that the export sends to the other side.
    largest_difference
        Largest difference of an output on the other rows; relative for outputs beyond 1.
    n_leaves_reached, n_leaves
        Number of leaves that some row reached, and of all leaves.
    agreement
        For an export that rounds on purpose (integers, few digits): the share of typical rows with
        the model's prediction, within a hundredth of the range for regression. None for others.
    same_leaf
        For such an export, the share of typical rows that reach the same leaf, in every tree of a
        forest.
    n_bytes
        Size of the tables of a C header.
    """

    target: str
    method: str
    n_rows: int
    are_given: bool
    n_on_edge: int
    largest_difference: float
    n_leaves_reached: int
    n_leaves: int
    agreement: float | None = None
    same_leaf: float | None = None
    n_bytes: int | None = None

    @classmethod
    def of(cls, probes: Probes, differences: np.ndarray, **found: Any) -> Check:
        """Return the check of an export whose outputs differ from the library's by this much."""
        return cls(
            n_rows=probes.n_rows,
            are_given=probes.are_given,
            largest_difference=float(differences.max(initial=0.0)),
            n_leaves_reached=probes.n_leaves_reached,
            n_leaves=probes.plan.model.n_leaves,
            **found,
        )

    def __str__(self) -> str:
        whose = "given and simulated" if self.are_given else "simulated from the schema"
        lines = [
            f"Checked {self.target}: {self.method}, on {plural(self.n_rows, 'row')} "
            f"({whose}) that reach "
            f"{self.n_leaves_reached} of {plural(self.n_leaves, 'leaf', 'leaves')}."
        ]
        if self.agreement is None:
            edge = f", except {self.n_on_edge} within rounding of a split" * bool(self.n_on_edge)
            lines.append(
                f"Equal to the library on all of them{edge}; outputs differ by at most "
                f"{self.largest_difference:.2g}."
            )
        else:
            lines.append(
                f"Rounded on purpose: {self.agreement:.2%} of "
                f"{'the given' if self.are_given else 'typical'} rows get the model's prediction, "
                f"{self.same_leaf:.2%} reach the same leaf; outputs differ by at most "
                f"{self.largest_difference:.2g}."
            )
        if self.n_bytes is not None:
            lines.append(f"The tables have {plural(self.n_bytes, 'byte')}.")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of an export for the probes.

    Parameters
    ----------
    outputs
        (n, k) probabilities or values.
    positions
        (n,) position of the predicted class, or (n, k) labels, 0 or 1; None for regression.
    leaves
        (n, T) leaves, if the export returns them.
    """

    outputs: np.ndarray
    positions: np.ndarray | None = None
    leaves: np.ndarray | None = None


def verified(
    probes: Probes,
    found: Predictions,
    *,
    target: str,
    method: str,
    precision: float = SAME_VALUES,
    edges_may_differ: bool = True,
    n_bytes: int | None = None,
) -> Check:
    """Compare the predictions of an export with the library's.

    Parameters
    ----------
    probes
        The rows.
    found
        The predictions of the export.
    target, method, n_bytes
        Same as in `Check`.
    precision
        Tolerance for the scores of linear leaves, relative to the sum of |terms|.
    edges_may_differ
        Whether rows within rounding of a split may take the other side.

    Raises
    ------
    ExportError
        If a prediction differs.
    """
    expected = probes.outputs
    allowed = _allowed(probes, precision)
    with np.errstate(invalid="ignore"):
        difference = np.abs(found.outputs - expected)
        difference[(found.outputs == expected)] = 0.0
        equal = (difference <= allowed).all(axis=1)
    if found.leaves is not None:
        equal &= (found.leaves == probes.leaves).all(axis=1)
    equal &= _same_prediction(probes.plan, found, expected, allowed)
    unequal = np.flatnonzero(~equal)
    on_edge = np.zeros(len(unequal), bool)
    if edges_may_differ and len(unequal):
        on_edge = is_on_edge(probes, unequal)
    if not on_edge.all():
        raise _refusal(probes, found, int(unequal[~on_edge][0]), target, method, (~on_edge).sum())
    return Check.of(
        probes,
        _relative(difference, expected)[equal],
        n_on_edge=len(unequal),
        target=target,
        method=method,
        n_bytes=n_bytes,
    )


def measured(
    probes: Probes, found: Predictions, *, target: str, method: str, n_bytes: int | None = None
) -> Check:
    """Measure how often an export that rounds on purpose agrees with the library on typical rows.

    Regression predictions agree if they differ by at most a hundredth of the range of the model's.
    """
    assert found.leaves is not None
    typical = slice(probes.n_typical)
    expected = probes.outputs[typical]
    difference = np.abs(found.outputs[typical] - expected)
    right = positions_of(probes.plan, expected)
    if right is None or found.positions is None:
        with np.errstate(over="ignore"):
            same = difference <= 0.01 * np.ptp(expected, axis=0)
    else:
        same = (found.positions[typical] == right).reshape(len(expected), -1)
    return Check.of(
        probes,
        _relative(difference, expected),
        n_on_edge=0,
        agreement=float(same.all(axis=1).mean()),
        same_leaf=float((found.leaves == probes.leaves)[typical].all(axis=1).mean()),
        target=target,
        method=method,
        n_bytes=n_bytes,
    )


def positions_of(plan: Plan, outputs: np.ndarray) -> np.ndarray | None:
    """Return predictions: (n,) class positions, (n, k) labels 0 or 1, None for regression."""
    if plan.model.classes is not None:
        return plan.model.class_positions(outputs)
    return (outputs >= 0.5).astype(np.int64) if plan.model.task == "multilabel" else None


def is_on_edge(probes: Probes, rows: np.ndarray) -> np.ndarray:
    """Whether the path of a row has a split whose score is within rounding of zero, in any tree."""
    plan = probes.plan
    values, on = plan.encoding.encode(probes.matrix[rows])
    bound = rounding_bound(plan.encoding)
    on_edge = np.zeros(len(rows), bool)
    for tree in plan.trees:
        score, size = _scores(tree, values.astype(np.float64), on.astype(np.float64))
        close = np.abs(score) <= bound * size  # (r, m)
        on_edge |= _meets(tree, score >= 0, close)
    return on_edge


def _scores(tree: PlannedTree, values: np.ndarray, on: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of all splits (r, m) in float64, and the sums of |terms|."""
    weights, indicators = tree.weights.T.astype(float), tree.indicators.T.astype(float)
    score = values @ weights + on @ indicators + tree.bias
    size = np.abs(values) @ np.abs(weights) + on @ np.abs(indicators) + np.abs(tree.bias)
    return score, size


def _meets(tree: PlannedTree, right: np.ndarray, close: np.ndarray) -> np.ndarray:
    """Whether the paths of rows include a close split, (r,)."""
    rows = np.arange(len(right))
    node = np.full(len(right), tree.root)
    met = np.zeros(len(right), bool)
    while (node >= 0).any():
        inner = node >= 0
        met[inner] |= close[rows[inner], node[inner]]
        node[inner] = tree.children[node[inner], right[rows[inner], node[inner]].astype(int)]
    return met


def _allowed(probes: Probes, precision: float) -> np.ndarray:
    """(n, k) tolerance of each output."""
    expected = np.abs(probes.outputs)
    allowed: np.ndarray = _LITTLE * np.maximum(expected, 1.0)
    plan = probes.plan
    if not plan.model.has_linear_leaves:
        return allowed
    values, on = plan.encoding.encode(probes.matrix)
    size = np.zeros((probes.n_rows, 1))
    for t, tree in enumerate(plan.trees):
        if tree.leaf_weights is not None and tree.leaf_indicators is not None:
            for leaf in np.unique(probes.leaves[:, t]):
                rows = probes.leaves[:, t] == leaf
                terms = np.abs(tree.values[leaf]) + np.abs(values[rows]) @ np.abs(
                    tree.leaf_weights[leaf].T
                )
                terms = terms + on[rows] @ np.abs(tree.leaf_indicators[leaf].T)
                size[rows] += terms.max(axis=1, keepdims=True)
    exponential = plan.link == "exp" or any(tree.link == "exp" for tree in plan.trees)
    # A score that differs by d changes an exponential by about d times itself, others by at most d.
    return allowed + precision * size * (np.maximum(expected, 1.0) if exponential else 1.0)


def _relative(difference: np.ndarray, expected: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        relative = difference / np.maximum(np.abs(expected), 1.0)
    return np.where(difference == 0, 0.0, relative)


def _same_prediction(
    plan: Plan, found: Predictions, expected: np.ndarray, allowed: np.ndarray
) -> np.ndarray:
    """Whether predictions are the library's; where outputs nearly tie, either is right."""
    right = positions_of(plan, expected)
    if right is None or found.positions is None:
        return np.ones(len(expected), bool)
    same = found.positions == right
    if plan.model.classes is None:
        return (same | (np.abs(expected - 0.5) <= allowed)).all(axis=1)
    rows = np.arange(len(expected))
    in_range = (found.positions >= 0) & (found.positions < plan.model.n_outputs)
    identical = (found.outputs == expected).all(axis=1)
    if plan.decision_weights is not None:
        expected, allowed = (each * plan.decision_weights for each in (expected, allowed))
    chosen = expected[rows, np.where(in_range, found.positions, 0)]
    ties = in_range & (chosen >= expected.max(axis=1) - 2 * allowed.max(axis=1))
    return same | (ties & ~identical)


def _refusal(
    probes: Probes, found: Predictions, row: int, target: str, method: str, n_rows: int
) -> ExportError:
    entries = {
        name: column[row]
        for name, column in zip(probes.plan.schema.names, probes.raw_columns, strict=True)
    }
    return ExportError(
        f"the export to {target} was not written: {method}, it differs from the model on {n_rows} "
        f"of {plural(probes.n_rows, 'row')}. The first: {entries!r:.300}, for which the "
        "model predicts "
        f"{probes.outputs[row].tolist()!r:.120} and the export {found.outputs[row].tolist()!r:.120}"
        ". Please report this, with the model; until then, another format may work."
    )
