"""What a linear model and CART reach on rows, in about the time that a fit took.

They answer whether a new model is worth it. A linear model is logistic or ridge regression; CART is
one axis-aligned tree of tuned depth. Both get the columns that our trees get: see
`hardwood.selection.other_libraries`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from hardwood.clock import Clock
from hardwood.progress import Progress
from hardwood.selection import other_libraries
from hardwood.selection.models import Settings
from hardwood.selection.rows import LabeledRows
from hardwood.selection.size import bare
from hardwood.table import Table
from hardwood.text.numbers import plural

# Parts of the rows that a model learns from first, to tell how long all rows would take.
_PROBES = (1 / 64, 1 / 16, 1 / 4)
_LEAST_PROBE_ROWS = 50
_FEW_ENTRIES = 20_000  # rows times columns that need no probe: what every fit costs would mislead
_LINEAR_SHARE = 0.5  # of the time


@dataclass(frozen=True)
class UsualModel:
    """One of the usual models.

    Attributes
    ----------
    name
        What it is.
    outputs
        Its probabilities (n, classes) or predictions (n,) on the asked rows; None if it was not
        learned.
    reason
        Why it was not learned.
    """

    name: str
    outputs: np.ndarray | None = None
    reason: str = ""


def usual_models(
    train: LabeledRows,
    X: Any,
    settings: Settings,
    *,
    seconds: float,
    progress: Progress | None = None,
) -> list[UsualModel]:
    """Learn the usual models from rows, and predict others.

    Parameters
    ----------
    train
        The rows to learn from.
    X
        The rows to predict.
    settings
        The task, the seed and the number of threads.
    seconds
        The time for all of them. A model that would take longer is left out; how long it would
        take is estimated from parts of the rows.
    progress
        Where to say what is learned.
    """
    linear = "logistic regression" if settings.has_classes else "ridge regression"
    if np.ndim(train.y) > 1:
        return [UsualModel(name, reason="there are several targets") for name in (linear, "CART")]
    trial = _Trial(train, X, settings, Clock(seconds), progress or Progress())
    with threadpool_limits(settings.n_jobs):
        return [
            trial.measured(linear, other_libraries.linear, _LINEAR_SHARE * seconds),
            trial.measured("CART", other_libraries.cart, seconds),
        ]


@dataclass(frozen=True)
class _Trial:
    """What all of the models have in common."""

    train: LabeledRows
    X: Any
    settings: Settings
    clock: Clock
    progress: Progress

    def measured(self, name: str, make: Callable[[Settings], Any], until: float) -> UsualModel:
        """Learn a model, unless that takes too long."""
        self.progress.update(name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                late = self._lateness(make, until)
                if late:
                    return UsualModel(name, reason=late)
                model = self.train.teach(make(self.settings))
                predict = model.predict_proba if self.settings.has_classes else model.predict
                outputs = predict(self.X)
            except Exception as error:  # of another library: its words are the reason
                return UsualModel(name, reason=str(error).split("\n")[0] or type(error).__name__)
        if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
            name += ", not converged"
        return UsualModel(name + _size_words(model), outputs)

    def _lateness(self, make: Callable[[Settings], Any], until: float) -> str:
        """Learn from more and more rows; say how long all would take if that is too long."""
        n_rows = len(self.train)
        is_small = n_rows * Table.of(self.train.X).n_features <= _FEW_ENTRIES
        for share in () if is_small else _PROBES:
            if int(share * n_rows) < _LEAST_PROBE_ROWS:
                continue
            begun = self.clock.spent
            self._part(share).teach(make(self.settings))
            self.progress.update()
            expected = (self.clock.spent - begun) / share
            if self.clock.spent + expected > until:
                return f"it would take about {expected:.2g} s, longer than the fit leaves for it"
        return "" if self.clock.spent <= until else "the fit leaves no time for it"

    def _part(self, share: float) -> LabeledRows:
        """Return a random part of the rows, with a row of every class."""
        n_rows = int(share * len(self.train))
        chosen = np.random.default_rng(self.settings.seed).permutation(len(self.train))[:n_rows]
        if self.settings.has_classes:
            first = np.unique(np.asarray(self.train.y), return_index=True)[1]
            chosen = np.union1d(chosen, first)
        return self.train.take(chosen)


def _size_words(model: Any) -> str:
    """Return depth and leaves of CART."""
    tree = bare(model)
    if not hasattr(tree, "get_n_leaves"):
        return ""
    return f", depth {tree.get_depth()}, {plural(tree.get_n_leaves(), 'leaf', 'leaves')}"
