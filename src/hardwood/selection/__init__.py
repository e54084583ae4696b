"""Search for good parameters (`hardwood.tune`), and models side by side (`hardwood.compare`)."""

from __future__ import annotations

from hardwood.tuning.comparison import Comparison, Entrant
from hardwood.tuning.paired import Interval
from hardwood.tuning.result import FinishedTrial, TuningResult
from hardwood.tuning.search import tune
from hardwood.tuning.side_by_side import compare
from hardwood.tuning.spaces import SPACES, Range, When, grid, space_of

__all__ = [
    "SPACES",
    "Comparison",
    "Entrant",
    "FinishedTrial",
    "Interval",
    "Range",
    "TuningResult",
    "When",
    "compare",
    "grid",
    "space_of",
    "tune",
]
