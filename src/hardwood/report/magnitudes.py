"""Units in which numbers of any size can be squared."""

from __future__ import annotations

import math

import numpy as np


def unit_of(*numbers: np.ndarray) -> float:
    """Return the power of two that the largest finite number lies above, or 1 where all are 0.

    Dividing by it rounds nothing but what is negligible beside the largest, which becomes 1 to 2.
    """
    sizes = [np.abs(some[np.isfinite(some)]).max(initial=0.0) for some in numbers]
    largest = float(max(sizes))
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
