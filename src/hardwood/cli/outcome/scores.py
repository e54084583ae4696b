"""Scores on the test rows: of a new model, of a constant prediction, and of the usual models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.cli.evaluate import score_model
from hardwood.cli.read import label_positions
from hardwood.progress import Progress, watched_stream
from hardwood.report.metrics import (
    classification_scores,
    label_scores,
    regression_scores,
    scores_json,
    several_regression_scores,
)
from hardwood.report.resampling import Score
from hardwood.text.numbers import format_interval, format_number

if TYPE_CHECKING:
    from hardwood.cli.fit import Dataset
    from hardwood.model.base import Model
    from hardwood.selection.models import Settings


def test_scores(model: Model, data: Dataset, rng: np.random.Generator) -> list[Score]:
    """Score the model on the test rows."""
    if data.test.size == 0:
        return []
    truth, weight, names = data.test_values, data.weights[data.test], data.target.names
    return score_model(model, data.test_features, truth, weight, rng, names).scores


def constant_scores(model: Model, data: Dataset, rng: np.random.Generator) -> list[Score]:
    """Score the best constant prediction: the shares of the classes, or the means."""
    if data.test.size == 0:
        return []
    past, weight = data.target.values[data.train], data.weights[data.train]
    if model.classes is None:
        # The mean of zeros and ones is the share of ones, which is the best constant probability.
        constant = np.average(past, axis=0, weights=weight)
    else:
        positions = label_positions(past, model.classes)
        constant = np.bincount(positions, weight, minlength=len(model.classes)) / weight.sum()
    shape = (data.test.size, *np.shape(constant))
    return scores_of(np.broadcast_to(constant, shape), model, data, rng)


def scores_of(
    outputs: np.ndarray, model: Model, data: Dataset, rng: np.random.Generator
) -> list[Score]:
    """Score outputs for the test rows: probabilities in the order of the model's, or numbers."""
    truth, weight, names = data.test_values, data.weights[data.test], data.target.names
    if model.classes is not None:
        return classification_scores(label_positions(truth, model.classes), outputs, weight, rng)
    if model.task == "multilabel":
        return label_scores(truth, outputs, names, weight, rng)
    if truth.ndim == 1:
        return regression_scores(truth, outputs, weight, rng)
    return several_regression_scores(truth, outputs, names, weight, rng)


@dataclass(frozen=True)
class OtherModel:
    """One of the usual models, and its scores on the test rows.

    Attributes
    ----------
    name
        What it is.
    scores
        Its scores; empty if it was not measured.
    reason
        Why it was not measured.
    """

    name: str
    scores: list[Score]
    reason: str = ""

    def line(self, metric: str) -> str:
        """Say in a line how good it is by a metric."""
        return f"{self.name}: {score_words(self.scores, metric) or f'not measured: {self.reason}'}"

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "name": self.name,
            "test": scores_json(self.scores),
            "not_measured": self.reason or None,
        }


def score_words(scores: list[Score], metric: str) -> str:
    """Say what a score is; "" if there is none of this name."""
    found = next((score for score in scores if score.name == metric), None)
    if found is None:
        return ""
    interval = format_interval(found.low, found.high)
    return f"{metric} {format_number(found.value)}, 95 % interval {interval}"


def other_models(
    model: Model, data: Dataset, rng: np.random.Generator, settings: Settings, seconds: float
) -> list[OtherModel]:
    """Learn the usual models from the training rows, and score them on the test rows.

    ``rng`` draws resamples for intervals; ``seconds`` is what all of them may take.
    """
    from hardwood.selection.rows import LabeledRows
    from hardwood.selection.usual_models import usual_models

    X, y, weight = data.training
    rows = LabeledRows(X, y, weight if np.ptp(weight) else None)
    with Progress("Comparing", stream=watched_stream()) as progress:
        found = usual_models(rows, data.test_features, settings, seconds=seconds, progress=progress)
    return [
        OtherModel(
            each.name,
            [] if each.outputs is None else scores_of(each.outputs, model, data, rng),
            each.reason,
        )
        for each in found
    ]
