"""Engines of small bandits, and rounds to try them on."""

from __future__ import annotations

import numpy as np

from hardwood import _native
from hardwood.bandit.parameters import BanditParameters

N_COLUMNS, K, HEIGHT = 5, 3, 3


def environment(n: int, seed: int = 0, missing: float = 0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal([0, 3, -1, 0, 10], [1, 2, 0.1, 5, 1], size=(n, N_COLUMNS))
    rewards = np.stack([X[:, 0], X[:, 1] - 3, -X[:, 0]], axis=1) > 0
    X[rng.random(X.shape) < missing] = np.nan
    masks = rng.random((n, K)) < 0.8
    masks[np.arange(n), rng.integers(0, K, n)] = True
    return X.astype(np.float32), rewards.astype(np.float64), masks


def engine_of(options: dict, seed: int = 7):
    return _native.BanditEngine(N_COLUMNS, K, HEIGHT, options, seed)


def options_of(method: str, **changes) -> dict:
    return BanditParameters(method=method).for_engine(N_COLUMNS, K) | changes
