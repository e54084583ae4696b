r"""NumPy reference of the split search of linear trees: one candidate and one threshold at a time.

A side with gradient g and curvature H over its rows gains :math:`\frac12 g'(H + diag(l2))^{-1} g`
by one Newton step of its model; a split gains what both sides gain, less what the node gains
unsplit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Node:
    """Rows of a node: columns (n, q), slopes and curvatures (n, k), counts (n,), penalties (q,)."""

    columns: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    count: np.ndarray
    l2: np.ndarray
    min_count: float

    def gain(self, rows: np.ndarray) -> float:
        """What one Newton step lowers the loss of some rows by, over all outputs."""
        z, total = self.columns[rows], 0.0
        for o in range(self.slope.shape[1]):
            g = z.T @ self.slope[rows, o]
            H = (z * self.curvature[rows, o, None]).T @ z + np.diag(self.l2)
            total += 0.5 * float(g @ np.linalg.solve(H, g))
        return total

    def split_gain(self, right: np.ndarray) -> float:
        """Gain of a split; 0 where a side has too few rows."""
        if min(self.count[right].sum(), self.count[~right].sum()) < self.min_count:
            return 0.0
        everything = np.ones(len(right), dtype=bool)
        return self.gain(right) + self.gain(~right) - self.gain(everything)


def best_split(
    node: Node, bins: np.ndarray, n_bins: int, has_missing: bool
) -> tuple[float, int, bool]:
    """Return (gain, first bin on the right, whether missing entries go right) of one candidate."""
    n_present = n_bins - has_missing
    is_missing = bins >= n_present
    best = (0.0, -1, False)
    for missing_right in (False, True) if is_missing.any() else (False,):
        for first in range(1, n_present):
            if not (bins == first - 1).any():
                continue
            right = np.where(is_missing, missing_right, bins >= first)
            gain = node.split_gain(right)
            if gain > best[0]:
                best = (gain, first, missing_right)
    return best
