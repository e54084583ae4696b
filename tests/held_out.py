"""Which rows a fit with early stopping holds out."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood.learn.learner import drawn_seed
from hardwood.learn.task import Task


def held_out_rows(model: Any, X: Any, y: Any) -> np.ndarray:
    """Numbers of the validation rows of an estimator whose random_state is 0."""
    learner = model._learner()
    classifies = hasattr(model, "predict_proba")
    task = Task.read(X, y, classifies=classifies, loss=learner.default_loss)
    return task.divided(model.validation_fraction, drawn_seed(0)).valid
