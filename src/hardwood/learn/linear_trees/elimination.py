"""Backward elimination: which features a linear model of few terms keeps.

Around its minimum P the objective is a parabola with the Hessian H. Without the coefficients J it
is lowest where the others move by -V_{.J} V_{JJ}^{-1} p_J with V = H^{-1}, and rises by
1/2 p_J' V_{JJ}^{-1} p_J. Features are taken out by this price, the cheapest first, and V and P
follow, so that no row is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

_PART_AT_ONCE = 3  # a third of the features, before prices are computed again


def sparse_starts(
    P: np.ndarray, hessians: np.ndarray, feature: np.ndarray, sizes: Collection[int]
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield for each size, largest first: the size, the columns that stay and their coefficients.

    Parameters
    ----------
    P
        (k, c + 1) coefficients at the minimum, the intercept last.
    hessians
        (k, c + 1, c + 1), or (1, c + 1, c + 1) for one that all outputs share.
    feature
        (c,) the feature of each column.
    sizes
        Numbers of features.
    """
    V = np.linalg.inv(hessians)
    columns, own = np.arange(len(feature)), feature  # that are left, and the feature of each
    for size in sorted(set(sizes), reverse=True):
        while (n_kept := len(np.unique(own))) > size:
            n = max(1, min(n_kept - size, n_kept // _PART_AT_ONCE))
            kept, prices = _prices(P, V, own)
            is_leaving = np.isin(own, kept[np.argsort(prices, kind="stable")[:n]])
            P, V = _without(P, V, np.append(is_leaving, False))
            columns, own = columns[~is_leaving], own[~is_leaving]
        yield size, columns, P


def _prices(P: np.ndarray, V: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the features, in the order of their columns, and the price of each."""
    kept, first, n_columns = np.unique(own, return_index=True, return_counts=True)
    variance = np.diagonal(V, axis1=1, axis2=2)[:, first]
    prices = 0.5 * (P[:, first] ** 2 / variance).sum(axis=0)  # of features with one column
    for i in np.flatnonzero(n_columns > 1):
        prices[i] = _price(P, V, np.flatnonzero(own == kept[i]))
    order = np.argsort(first, kind="stable")
    return kept[order], prices[order]


def _price(P: np.ndarray, V: np.ndarray, own: np.ndarray) -> float:
    p = P[:, own]  # (k, j)
    inner = np.linalg.inv(V[:, own[:, None], own])  # (k or 1, j, j)
    return 0.5 * float(
        np.einsum("ki,kij,kj->", p, np.broadcast_to(inner, (len(p), *inner.shape[1:])), p)
    )


def _without(P: np.ndarray, V: np.ndarray, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P and V of the columns that stay."""
    J, stay = np.flatnonzero(leaves), np.flatnonzero(~leaves)
    pull = V[:, stay[:, None], J] @ np.linalg.inv(V[:, J[:, None], J])  # (k or 1, s, j)
    V = V[:, stay[:, None], stay] - pull @ V[:, J[:, None], stay]
    return P[:, stay] - (pull @ P[:, J, None])[:, :, 0], V
