"""What fitting a DGT tree and fitting a DGT forest share.

From parameters to a configuration, and from what was learned to a tree.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.estimators import parameters
from hardwood.estimators.exercise import Exercise, max_epochs, record_of
from hardwood.learn.curves import MAX_POINTS, MAX_POINTS_OF_MEMBER
from hardwood.learn.dgt import DGT, Grown, Relaxation
from hardwood.learn.finish import assemble
from hardwood.learn.task import Problem
from hardwood.learn.training import Training
from hardwood.learn.units import leaves_in_raw_units, splits_in_raw_units
from hardwood.model import ObliqueTree
from hardwood.model.kinds.tree import heap_children

_MAX_DEPTH = 16
_MAX_LAYERS = 16
_MAX_HIDDEN = 2**16


def config_of(estimator: Any, stops_early: bool, restarts: int) -> DGT:
    """Check the parameters of the learner."""
    momentum = None
    if estimator.momentum is not None:
        momentum = parameters.real("momentum", estimator.momentum, 0.0, 1.0)
    return DGT(
        max_depth=parameters.integer("max_depth", estimator.max_depth, 1, _MAX_DEPTH),
        layers=_layers(estimator.layers),
        leaves=parameters.choice("leaves", estimator.leaves, ("constant", "linear")),
        learning_rate=parameters.real(
            "learning_rate", estimator.learning_rate, 0.0, math.inf, open_low=True
        ),
        batch_size=parameters.integer("batch_size", estimator.batch_size, 1),
        max_epochs=max_epochs(estimator.max_epochs),
        momentum=momentum,
        l1=parameters.real("l1", estimator.l1, 0.0, math.inf),
        l2=parameters.real("l2", estimator.l2, 0.0, math.inf),
        restarts=restarts,
        early_stopping=stops_early,
        relaxation=_relaxation(estimator.relaxation),
        training=parameters.training_options(estimator.training, Training()),
    )


def _layers(value: Any) -> int | tuple[int, ...]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(
            parameters.integer("a hidden size of layers", size, 1, _MAX_HIDDEN) for size in value
        )
    if isinstance(value, numbers.Integral):
        return parameters.integer("layers", value, 1, _MAX_LAYERS)
    raise ValueError(
        f"layers must be an integer from 1 to {_MAX_LAYERS} or a sequence of hidden sizes, got "
        f"{value!r}."
    )


def _relaxation(value: Any) -> Relaxation:
    if value is None:
        return Relaxation()
    if not isinstance(value, Relaxation):
        raise TypeError(f"relaxation must be None or a hardwood.Relaxation, got {value!r}.")
    return value


def tree_of(
    estimator: Any, exercise: Exercise, problem: Problem, config: DGT, grown: Grown, n_jobs: int
) -> ObliqueTree:
    """Make the tree of what was learned: in raw units, counted and simplified."""
    is_sparse = config.l1 > 0 and not config.hidden_sizes
    weights, bias = splits_in_raw_units(grown.weights, grown.bias, problem, is_sparse=is_sparse)
    leaf_weights, link = None, "identity"
    if grown.leaf_weights is None:
        values = problem.leaf_values(grown.scores)
    else:
        values, leaf_weights = problem.linear_leaves(
            *leaves_in_raw_units(grown.scores, grown.leaf_weights, problem)
        )
        link = problem.loss.link_name
    return assemble(
        exercise.data,
        weights,
        bias,
        heap_children(len(weights)),
        values,
        task=exercise.task,
        classes=exercise.labels,
        target_names=exercise.target_names,
        record=_record_of(estimator, exercise, problem, grown),
        leaf_weights=leaf_weights,
        link=link,
        n_jobs=n_jobs,
    )


def _record_of(
    estimator: Any, exercise: Exercise, problem: Problem, grown: Grown
) -> dict[str, Any]:
    is_member = hasattr(estimator, "n_estimators")
    record = record_of(
        estimator,
        exercise,
        problem,
        grown,
        max_points=MAX_POINTS_OF_MEMBER if is_member else MAX_POINTS,
    )
    if grown.hardening_loss is not None:
        record["hardening_loss"] = grown.hardening_loss
    return record
