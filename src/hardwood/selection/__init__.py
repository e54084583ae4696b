"""Search for good parameters (`hardwood.tune`), and models side by side (`hardwood.compare`)."""

from __future__ import annotations

from hardwood.selection.compare import compare
from hardwood.selection.comparison import Comparison, Interval, ModelResult
from hardwood.selection.mapping_space import Range, When
from hardwood.selection.points import grid
from hardwood.selection.result import FinishedTrial, TuningResult
from hardwood.selection.spaces import SPACES, space_of
from hardwood.selection.tune import tune

__all__ = [
    "SPACES",
    "Comparison",
    "FinishedTrial",
    "Interval",
    "ModelResult",
    "Range",
    "TuningResult",
    "When",
    "compare",
    "grid",
    "space_of",
    "tune",
]
