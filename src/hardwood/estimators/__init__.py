"""scikit-learn's contract over the learners: one file per system, and what they share."""

from __future__ import annotations

from hardwood.estimators.dgt import DGTClassifier, DGTRegressor

__all__ = ["DGTClassifier", "DGTRegressor"]
