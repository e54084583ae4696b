"""Small learners and rounds to try them on."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood.bandit import DGTBandit, DGTBanditRegressor, file


def contexts(rng: np.random.Generator, n: int = 40, p: int = 3) -> np.ndarray:
    """Contexts whose columns have offsets and scales of their own."""
    return rng.normal(size=(n, p)) * [1.0, 30.0, 0.01][:p] + [0.0, 1000.0, -5.0][:p]


def labels(X: np.ndarray) -> np.ndarray:
    """The action with reward 1: which of three parts of the first column a row is in."""
    return np.digitize(X[:, 0], [-0.4, 0.4])


def small_bandit(**given: Any) -> DGTBandit:
    """A learner of three actions with small batches."""
    quick = {} if given.get("method") == "paper" else {"batch_size": 8}
    chosen = {"max_depth": 3, "random_state": 0, **quick, **given}
    return DGTBandit(chosen.pop("n_actions", 3), **chosen)


def small_network(**given: Any) -> DGTBandit:
    """A learner with a small network."""
    return small_bandit(**{"method": "network", "hidden_size": 6, **given})


def small_regressor(**given: Any) -> DGTBanditRegressor:
    return DGTBanditRegressor(**{"max_depth": 3, "random_state": 0, **given})


def all_of(learner: Any) -> bytes:
    """The complete state of a learner, which must not change if nothing is learned."""
    return file.dumps(learner)
