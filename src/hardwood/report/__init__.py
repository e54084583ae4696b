"""Reports on a model: what it is, how good it is and why, how fast it is, how it was learned.

Each function takes a tree, a forest, a soft ensemble or a fitted estimator and returns a report
that prints as text, renders as HTML in a notebook, and gives JSON and data frames.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hardwood.report.analysis import Analysis, analyze
    from hardwood.report.curves import LearningCurves, learning_curves
    from hardwood.report.description import Description, describe
    from hardwood.report.evaluation import Evaluation, evaluate
    from hardwood.report.speed import Benchmark, benchmark
    from hardwood.text.report import Report, page

# Names are imported when first used: the words of the command line need no model.
_HOME = {
    "Analysis": "hardwood.report.analysis",
    "Benchmark": "hardwood.report.speed",
    "Description": "hardwood.report.description",
    "Evaluation": "hardwood.report.evaluation",
    "LearningCurves": "hardwood.report.curves",
    "Report": "hardwood.text.report",
    "analyze": "hardwood.report.analysis",
    "benchmark": "hardwood.report.speed",
    "describe": "hardwood.report.description",
    "evaluate": "hardwood.report.evaluation",
    "learning_curves": "hardwood.report.curves",
    "page": "hardwood.text.report",
}

__all__ = [
    "Analysis",
    "Benchmark",
    "Description",
    "Evaluation",
    "LearningCurves",
    "Report",
    "analyze",
    "benchmark",
    "describe",
    "evaluate",
    "learning_curves",
    "page",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hardwood.report' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
