"""The tables of a header, read back from its text and interpreted: a check without a compiler.

The float32 header multiplies and adds with one rounding; here NumPy's float64 rounds twice, so that
rows within rounding of a split may differ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hardwood.export.c.header_parts import LINKS
from hardwood.export.c.text import read_tables
from hardwood.export.plan import LANES, Plan, voted
from hardwood.export.probes import Probes
from hardwood.export.verify import Predictions, positions_of
from hardwood.model.engine import linked

Tables = dict[str, np.ndarray]
Score = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of rows, at their nodes


def tables_of(prefix: str, text: str) -> Tables:
    """Read the tables of a header, by their names without the prefix."""
    return {name.removeprefix(f"{prefix}_"): table for name, table in read_tables(text).items()}


def interpreted_predictions(probes: Probes, prefix: str, text: str) -> Predictions:
    """Interpret the tables of a float32 header on the probes."""
    plan, tables = probes.plan, tables_of(prefix, text)
    values, on = plan.encoding.encode(probes.matrix)
    n = plan.encoding.n_values
    weights = term_weights(tables, n, np.float32)
    indicators = indicator_weights(tables, plan.encoding.n_indicators, np.float32)

    def score(rows: np.ndarray, node: np.ndarray) -> np.ndarray:
        sums = np.zeros((len(rows), LANES), np.float32)
        sums[:, 0] = tables["bias"][node]
        for j in range(n):
            product = weights[node, j].astype(np.float64) * values[rows, j]
            with np.errstate(over="ignore"):  # to infinity, as in C
                sums[:, j % LANES] = (product + sums[:, j % LANES]).astype(np.float32)
        for half in (8, 4, 2, 1):
            sums = sums[:, :half] + sums[:, half : 2 * half]
        total = np.zeros(len(rows), np.float32)
        for q in range(indicators.shape[1]):
            total += np.where(on[rows, q], indicators[node, q], np.float32(0))
        return sums[:, 0] + total

    leaves = walked(tables, len(values), score)
    outputs = _outputs(plan, tables, leaves, values, on)
    return Predictions(outputs, positions_of(plan, outputs), leaves - tables["first_leaf"])


def walked(tables: Tables, n_rows: int, score: Score) -> np.ndarray:
    """Return the leaves (n, T) of rows, numbered over all trees."""
    leaves = np.empty((n_rows, len(tables["root"])), np.int64)
    for t, root in enumerate(tables["root"].tolist()):
        node = np.full(n_rows, root, np.int64)
        while (node >= 0).any():
            rows = np.flatnonzero(node >= 0)
            right = score(rows, node[rows]) >= 0
            node[rows] = tables["children"].reshape(-1, 2)[node[rows], right.astype(int)]
        leaves[:, t] = -1 - node
    return leaves


def term_weights(tables: Tables, n_values: int, kind: type) -> np.ndarray:
    """Return the weights of splits (M, n), from all of them or from the nonzero ones."""
    if "weights" in tables:
        return tables["weights"].reshape(-1, n_values)
    n_splits = len(tables.get("bias", ()))
    weights: np.ndarray = np.zeros((n_splits, n_values), kind)
    if "term_begin" in tables:
        begin = tables["term_begin"].astype(np.int64)
        split = np.repeat(np.arange(n_splits), begin[1:] - begin[:-1])
        weights[split, tables["term_column"]] = tables["term_weight"]
    return weights


def indicator_weights(tables: Tables, n_indicators: int, kind: type) -> np.ndarray:
    """Return the indicators' contributions to the scores of splits, (M, q)."""
    if "indicators" in tables:
        return tables["indicators"].reshape(-1, n_indicators)
    return np.zeros((len(tables.get("bias", ())), n_indicators), kind)


def _outputs(
    plan: Plan, tables: Tables, leaves: np.ndarray, values: np.ndarray, on: np.ndarray
) -> np.ndarray:
    """Return the outputs (n, k) of rows at their leaves (n, T)."""
    k = plan.model.n_outputs
    total = np.zeros((len(leaves), k))
    for t, tree in enumerate(plan.trees):
        leaf = leaves[:, t]
        output = tables["leaf_values"].reshape(-1, k)[leaf]
        first = int(tables["linear_first"][t]) if "linear_first" in tables else -1
        if first >= 0:
            place = leaf - tables["first_leaf"][t] + first
            for name, entries in (("leaf_weights", values), ("leaf_indicators", on)):
                if name in tables:
                    weights = tables[name].reshape(-1, k, entries.shape[1])[place]
                    output = output + np.einsum("rk,rok->ro", entries, weights)
            output = linked(output, LINKS[int(tables["leaf_link"][t])], 1)  # type: ignore[arg-type]
            output = voted(output, tree.vote)
        total += output
    return plan.combined(total)
