"""Search for good parameters of an estimator: `hardwood.tune`, and what a space is made of."""

from __future__ import annotations

from hardwood.tuning.result import FinishedTrial, TuningResult
from hardwood.tuning.search import tune
from hardwood.tuning.spaces import SPACES, Range, When, grid, space_of

__all__ = [
    "SPACES",
    "FinishedTrial",
    "Range",
    "TuningResult",
    "When",
    "grid",
    "space_of",
    "tune",
]
