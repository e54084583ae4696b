"""Reports on a model: description, evaluation, analysis, speed, and learning curves.

Each function takes a tree, a forest, a soft ensemble or a fitted estimator and returns a report
that prints as text, renders as HTML in a notebook, and converts to JSON and data frames.
"""

from __future__ import annotations

from hardwood.report.analysis import Analysis, analyze
from hardwood.report.benchmark import Benchmark, benchmark
from hardwood.report.curves import LearningCurves, learning_curves
from hardwood.report.description import Description, describe
from hardwood.report.evaluation import Evaluation, evaluate
from hardwood.report.purity import dendrogram_purity, sampled_dendrogram_purity
from hardwood.text.report import Report, page

__all__ = [
    "Analysis",
    "Benchmark",
    "Description",
    "Evaluation",
    "LearningCurves",
    "Report",
    "analyze",
    "benchmark",
    "dendrogram_purity",
    "describe",
    "evaluate",
    "learning_curves",
    "page",
    "sampled_dendrogram_purity",
]
