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
    P, V = P.copy(), np.linalg.inv(hessians)
    kept = list(dict.fromkeys(feature.tolist()))
    columns = {j: np.flatnonzero(feature == j) for j in kept}
    for size in sorted(set(sizes), reverse=True):
        while len(kept) > size:
            prices = [_price(P, V, columns[j]) for j in kept]
            n = max(1, min(len(kept) - size, len(kept) // _PART_AT_ONCE))
            leaving = {kept[i] for i in np.argsort(prices, kind="stable")[:n]}
            for j in sorted(leaving):
                P, V = _without(P, V, columns[j])
            kept = [j for j in kept if j not in leaving]
        here = np.flatnonzero(np.isin(feature, kept))
        yield size, here, P[:, np.append(here, len(feature))]


def _price(P: np.ndarray, V: np.ndarray, own: np.ndarray) -> float:
    p = P[:, own]  # (k, j)
    inner = np.linalg.inv(V[:, own[:, None], own])  # (k or 1, j, j)
    return 0.5 * float(
        np.einsum("ki,kij,kj->", p, np.broadcast_to(inner, (len(p), *inner.shape[1:])), p)
    )


def _without(P: np.ndarray, V: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inner = np.linalg.inv(V[:, own[:, None], own])
    pull = V[:, :, own] @ inner  # (k or 1, c + 1, j)
    P = P - np.einsum("kcj,kj->kc", np.broadcast_to(pull, (len(P), *pull.shape[1:])), P[:, own])
    V = V - pull @ V[:, own, :]
    P[:, own] = 0.0
    # What has left takes no part any more; ones on its diagonal keep inverses finite.
    V[:, own, :] = V[:, :, own] = 0.0
    V[:, own, own] = 1.0
    return P, V
