"""Shapley values by their definition: all sets of features, and the model asked about every row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from math import factorial

import numpy as np


def shapley(
    f: Callable[[np.ndarray], np.ndarray], X: np.ndarray, background: np.ndarray
) -> np.ndarray:
    r"""Shapley values of f for each row against a background.

    .. math:: v(S) = \frac{1}{B} \sum_z f(x_S, z_{\bar S}), \qquad
              \phi_j = \sum_{S \not\ni j} \frac{|S|!\,(p - |S| - 1)!}{p!} (v(S \cup j) - v(S))

    Parameters
    ----------
    f
        From rows (n, p) to answers (n, k).
    X, background
        (n, p) and (B, p).

    Returns
    -------
    values
        (n, p, k). Takes time for n 2^p B rows.
    """
    p = X.shape[1]
    values = []
    for x in X:
        worth = {S: f(mixed(x, background, S)).mean(axis=0) for S in all_sets(range(p))}
        phi = np.zeros((p, f(background).shape[1]))
        for j in range(p):
            for S in all_sets(i for i in range(p) if i != j):
                share = factorial(len(S)) * factorial(p - len(S) - 1) / factorial(p)
                phi[j] += share * (worth[tuple(sorted((*S, j)))] - worth[S])
        values.append(phi)
    return np.array(values)


def mixed(x: np.ndarray, background: np.ndarray, S: tuple[int, ...]) -> np.ndarray:
    """Rows of the background with the features in S from x."""
    rows = background.copy()
    rows[:, list(S)] = x[list(S)]
    return rows


def all_sets(players: Iterable[int]) -> list[tuple[int, ...]]:
    """All subsets of some features, each in increasing order."""
    members = list(players)
    return [S for size in range(len(members) + 1) for S in combinations(members, size)]
