"""Size and prediction time of fitted models, ours and those of other libraries."""

from __future__ import annotations

import itertools
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hardwood.model import dumps
from hardwood.model.base import MODEL_ATTRIBUTES, Model
from hardwood.selection.other_libraries import EncodedClassifier, EncodedRegressor
from hardwood.table.sample import single_rows
from hardwood.table.subset import n_rows, taken

_MAX_BATCH = 10_000
_N_SINGLE = 64  # distinct single rows, predicted in turn
_SECONDS = 0.03  # of repeated calls, each kind
_SHORTEST_SAMPLE = 0.002  # shorter calls are repeated within a sample
_MIN_SAMPLES = 3


@dataclass(frozen=True)
class Size:
    """Size of a model; None if a library does not reveal it.

    Attributes
    ----------
    nodes
        Splits and leaves of all its trees; 0 of a linear model.
    weights
        Numbers other than zero that a column is multiplied by or compared with: terms of the
        splits and of linear leaves, coefficients.
    n_bytes
        Of the model file of ours, of the pickle of others; None where it cannot be pickled.
    """

    nodes: int | None
    weights: int | None
    n_bytes: int | None


def size_of(estimator: Any) -> Size:
    """Return the size of a fitted estimator."""
    ours = _own_model(estimator)
    if ours is not None:
        return Size(ours.n_splits + ours.n_leaves, ours.n_weights, len(dumps(ours)))
    model = bare(estimator)
    nodes, weights = _size_elsewhere(model)
    return Size(nodes, weights, _pickled_bytes(model))


def bare(estimator: Any) -> Any:
    """Return the fitted model of another library without what encodes its columns."""
    model = estimator.model_ if _is_encoded(estimator) else estimator
    return getattr(model, "best_estimator_", model)  # of CART, whose height is searched


def microseconds(estimator: Any, X: Any) -> tuple[float, float]:
    """Return microseconds per row of a fitted estimator: in a batch, and of one row by itself.

    Of the processor, on one thread; the fastest calls count, since noise only adds. Models of other
    libraries are given columns that are encoded already. One row is asked for in the
    quickest way there is: `predict_one` of our models, else `predict` of a table of one row.
    """
    with threadpool_limits(1):
        return _microseconds(estimator, taken(X, np.arange(min(n_rows(X), _MAX_BATCH))))


def _microseconds(estimator: Any, batch: Any) -> tuple[float, float]:
    ours = _own_model(estimator)
    if ours is not None:
        arrays, dicts = single_rows(ours.schema, batch, _N_SINGLE)
        rows: list[Any] = arrays or dicts
        if ours.schema.is_numeric:  # as the others get numbers, without a frame around them
            batch = ours.schema.read(batch)
        return _per_row(lambda: ours.predict(batch), n_rows(batch)), _turns(ours.predict_one, rows)
    model = bare(estimator)
    if "n_jobs" in getattr(model, "get_params", dict)():
        model = model.set_params(n_jobs=1)
    table = estimator.encode(batch) if _is_encoded(estimator) else batch
    rows = [taken(table, np.array([i])) for i in range(min(n_rows(table), _N_SINGLE))]
    return _per_row(lambda: model.predict(table), n_rows(table)), _turns(model.predict, rows)


def _is_encoded(estimator: Any) -> bool:
    return isinstance(estimator, EncodedClassifier | EncodedRegressor)


def _own_model(estimator: Any) -> Model | None:
    """Return the model of ours that an estimator has learned; None of other libraries'."""
    for name in MODEL_ATTRIBUTES:
        found = getattr(estimator, name, None)
        if isinstance(found, Model):
            return found
    return None


def _per_row(call: Callable[[], Any], n: int) -> float:
    return _turns(lambda _: call(), [None]) / n


def _turns(call: Callable[[Any], Any], rows: list[Any]) -> float:
    """Return microseconds of one call: the best sample of some, after calls that warm up."""
    turn = itertools.cycle(rows)
    repeats = 1
    while (once := _sample(call, turn, repeats)) * repeats < _SHORTEST_SAMPLE:
        repeats *= 4
    times = [once]
    while len(times) < _MIN_SAMPLES or sum(times) * repeats < _SECONDS:
        times.append(_sample(call, turn, repeats))
    return 1e6 * min(times)


def _sample(call: Callable[[Any], Any], rows: Iterator[Any], repeats: int) -> float:
    """Return seconds per call, of the processor: what others do on the machine does not count."""
    start = time.process_time()
    for _ in range(repeats):
        call(next(rows))
    return (time.process_time() - start) / repeats


def _size_elsewhere(model: Any) -> tuple[int | None, int | None]:
    """Return nodes and weights of another library's model, as far as it tells."""
    if hasattr(model, "coef_"):
        return 0, int(np.count_nonzero(model.coef_))
    if hasattr(model, "tree_"):
        return _with_splits(int(model.tree_.node_count), 1)
    if hasattr(model, "estimators_"):
        trees = np.ravel(np.asarray(model.estimators_, dtype=object)).tolist()
        if all(hasattr(tree, "tree_") for tree in trees):
            return _with_splits(sum(int(t.tree_.node_count) for t in trees), len(trees))
    if hasattr(model, "_predictors"):  # of histogram gradient boosting, which has no public word
        trees = [tree for of_round in model._predictors for tree in of_round]
        return _with_splits(sum(len(tree.nodes) for tree in trees), len(trees))
    if hasattr(model, "get_booster"):
        dump = model.get_booster().get_dump()
        return _with_splits(sum(text.count("\n") for text in dump), len(dump))
    if hasattr(model, "booster_"):
        leaves = [tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"]]
        return _with_splits(2 * sum(leaves) - len(leaves), len(leaves))
    return (0, 0) if type(model).__name__.startswith("Dummy") else (None, None)


def _with_splits(nodes: int, n_trees: int) -> tuple[int, int]:
    """Return nodes of binary trees, and their splits: one column each."""
    return nodes, (nodes - n_trees) // 2


def _pickled_bytes(model: Any) -> int | None:
    try:
        return len(pickle.dumps(model, protocol=5))
    except (pickle.PicklingError, AttributeError, TypeError):  # a class or function of a session
        return None
