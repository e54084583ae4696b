"""One unit of the comparison: a model is fitted on a split of a table, scored, and measured.

Scores are AUC for two classes, accuracy for more, R2 for numbers. If a table has a single split,
the scores on `N_TEST_PARTS` parts of its test rows say how certain the score is.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks.quality.default_tree_models import MODELS, SMALL, SMALL_TERMS, Given, Model
from benchmarks.quality.default_tree_tables import Parts, Source, parts
from benchmarks.record import Result
from hardwood import ObliqueTree, clock
from hardwood.model.base import model_of

N_TEST_PARTS = 10
_LEAST_PROBABILITY = 1e-6
_QUICK_ROWS = 300


@dataclass(frozen=True)
class Unit:
    """A model, a table and a split.

    Parameters
    ----------
    source, split, model
        What is fitted; the model by name.
    n_threads
        Of every library. With one, hardwood's time limits count processor time, so that a busy
        machine does not shorten a search.
    is_quick
        Few rows, and short fits.
    """

    source: Source
    split: int
    model: str
    n_threads: int = 1
    is_quick: bool = False

    @property
    def key(self) -> tuple[str, int, str]:
        return self.source.name, self.split, self.model

    @property
    def facts(self) -> Result:
        """What identifies its result in a record."""
        return {
            "table": self.source.name,
            "kind": self.source.kind,
            "split": self.split,
            "model": self.model,
            "n_threads": self.n_threads,
        }


def measured(unit: Unit) -> Result:
    """Return the scores, the sizes and the time of a unit."""
    if unit.n_threads == 1:
        clock.time = SimpleNamespace(monotonic=time.process_time)
    warnings.simplefilter("ignore")  # of the peers: unknown levels, convergence, deprecations
    rows = parts(unit.source, unit.split)
    rows = _few(rows) if unit.is_quick else rows
    model = MODELS[unit.model]
    labels, codes = np.unique(rows.y, return_inverse=True) if rows.has_classes else (None, rows.y)
    n_classes = 0 if labels is None else len(labels)
    given = Given(rows.X, n_classes, unit.n_threads, unit.split, unit.is_quick)
    y = rows.y if model.takes_labels else codes
    wall, processor = time.perf_counter(), time.process_time()
    fitted = model.make(given).fit(rows.X, y)
    result: Result = {
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
        "measure": _measure(labels),
        "n_splits": rows.n_splits,
        "train_rows": len(rows.X),
        "test_rows": len(rows.X_test),
        "columns": rows.X.shape[1],
        "classes": n_classes,
    }
    return result | _scores(model, fitted, rows, labels) | _sizes(fitted, rows, labels)


def _few(rows: Parts) -> Parts:
    """Return the first rows, which are in random order where the split is drawn."""
    n = _QUICK_ROWS
    return Parts(
        rows.X[:n], rows.y[:n], rows.X_test[:n], rows.y_test[:n], rows.has_classes, rows.n_splits
    )


# --- scores ------------------------------------------------------------------------------------


def _measure(labels: np.ndarray | None) -> str:
    if labels is None:
        return "R2"
    return "AUC" if len(labels) == 2 else "accuracy"


def _scores(model: Model, fitted: Any, rows: Parts, labels: np.ndarray | None) -> Result:
    outputs = _outputs(model, fitted, rows.X_test, labels)
    y = rows.y_test if labels is None else np.searchsorted(labels, rows.y_test)
    found: Result = {"score": score(y, outputs), **_other_scores(y, outputs)}
    if rows.n_splits == 1:
        order = np.random.default_rng(0).permutation(len(y))
        test_parts = np.array_split(order, N_TEST_PARTS)
        found["part_scores"] = [score(y[part], outputs[part]) for part in test_parts]
    return found


def _outputs(model: Model, fitted: Any, X: Any, labels: np.ndarray | None) -> np.ndarray:
    """Return numbers (n,), or probabilities (n, k) of all classes in the order of the labels."""
    if labels is None:
        return np.asarray(fitted.predict(X), dtype=np.float64).ravel()
    return in_order(
        fitted.predict_proba(X),
        fitted.classes_,
        labels if model.takes_labels else np.arange(len(labels)),
    )


def in_order(probabilities: Any, classes: Any, labels: np.ndarray) -> np.ndarray:
    """Return probabilities with a column per label; a label that a model does not know has 0."""
    ordered = np.zeros((len(probabilities), len(labels)))
    ordered[:, np.searchsorted(labels, classes)] = probabilities
    return ordered


def score(y: np.ndarray, outputs: np.ndarray) -> float:
    """Return AUC for two classes, accuracy for more, R2 for numbers."""
    if outputs.ndim == 1:
        return float(r2_score(y, outputs))
    if outputs.shape[1] == 2:
        return float(roc_auc_score(y, outputs[:, 1]))
    return float(np.mean(outputs.argmax(axis=1) == y))


def _other_scores(y: np.ndarray, outputs: np.ndarray) -> Result:
    if outputs.ndim == 1:
        return {"rmse": float(np.sqrt(np.mean((y - outputs) ** 2)))}
    kept = np.clip(outputs, _LEAST_PROBABILITY, None)
    kept /= kept.sum(axis=1, keepdims=True)
    return {
        "accuracy": float(np.mean(outputs.argmax(axis=1) == y)),
        "log_loss": float(-np.mean(np.log(kept[np.arange(len(y)), y]))),
    }


# --- sizes -------------------------------------------------------------------------------------


def _sizes(fitted: Any, rows: Parts, labels: np.ndarray | None) -> Result:
    """Return the size of a model, as far as it can be read."""
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    last = getattr(last, "best_estimator_", last)
    if hasattr(last, "coef_"):
        n_numbers = np.count_nonzero(last.coef_) + np.size(last.intercept_)
        return {"leaves": 1, "terms": rows.X.shape[1], "numbers": int(n_numbers)}
    if hasattr(last, "get_n_leaves"):
        n_leaves = int(last.get_n_leaves())
        n_values = 1 if labels is None else len(labels) - 1
        return {"leaves": n_leaves, "terms": 1, "numbers": 2 * (n_leaves - 1) + n_leaves * n_values}
    if not type(last).__module__.startswith("hardwood"):
        return {}
    tree = model_of(fitted)
    found: Result = {"leaves": tree.n_leaves, "text_lines": len(tree.to_text().splitlines())}
    if isinstance(tree, ObliqueTree):
        found |= shape_of(tree)
    if hasattr(fitted, "frontier_"):
        found |= {f"at_{n}": _within(fitted, n, rows, labels) for n in SMALL}
    return found


def shape_of(tree: ObliqueTree) -> Result:
    """Return the most features in a split or a leaf, and how many numbers a reader must read.

    A split on one feature has a threshold or a set of levels, and counts as two numbers. Another
    one has a weight per column, and a threshold. A leaf has its weights, and a constant per output;
    of k class probabilities, k - 1 are enough.
    """
    leaves = (
        np.zeros((0, tree.schema.n_columns)) if tree.leaf_weights is None else tree.leaf_weights
    )
    per_leaf = leaves.reshape(-1, tree.n_outputs, tree.schema.n_columns)
    split_terms = [_n_features(tree, weights) for weights in tree.weights]
    leaf_terms = [_n_features(tree, np.abs(weights).sum(axis=0)) for weights in per_leaf]
    split_numbers = [
        2 if terms <= 1 else np.count_nonzero(weights) + 1
        for terms, weights in zip(split_terms, tree.weights, strict=True)
    ]
    n_constants = tree.n_outputs - (tree.task == "classification")
    n_numbers = sum(split_numbers) + np.count_nonzero(leaves) + tree.n_leaves * n_constants
    return {"terms": max([*split_terms, *leaf_terms, 0]), "numbers": int(n_numbers)}


def _n_features(tree: ObliqueTree, weights: np.ndarray) -> int:
    return len(np.unique(tree.schema.column_feature[np.flatnonzero(weights)]))


def _within(fitted: Any, n_leaves: int, rows: Parts, labels: np.ndarray | None) -> Result | None:
    """Return the score of the best tree with few leaves and terms; None if there is none."""
    try:
        tree = fitted.at(max_leaves=n_leaves, max_terms=SMALL_TERMS)
    except ValueError:  # the frontier has no tree as small
        return None
    y = rows.y_test if labels is None else np.searchsorted(labels, rows.y_test)
    outputs = tree.predict(rows.X_test) if labels is None else tree.predict_proba(rows.X_test)
    found: Result = {"score": score(y, outputs), "leaves": tree.n_leaves, **shape_of(tree)}
    return found
