"""The option `--metric`: which test score comes first, and what a search compares trees by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from hardwood.cli.errors import CommandError
from hardwood.report.metrics import MAX_AUC_CLASSES

if TYPE_CHECKING:
    from hardwood.cli.read import Target

MetricName = Literal[
    "accuracy",
    "balanced_accuracy",
    "log_loss",
    "brier_score",
    "auc",
    "average_precision",
    "rmse",
    "mae",
    "r2",
]
"""What `--metric` takes."""


@dataclass(frozen=True)
class MainMetric:
    """The test score that comes first.

    Attributes
    ----------
    name
        What reports call it.
    scorer
        The scorer of scikit-learn for it; None if there is none.
    is_like_the_loss
        Whether the loss that a search compares trees by measures the same.
    """

    name: str
    scorer: str | None = None
    is_like_the_loss: bool = False

    @property
    def guides_search(self) -> bool:
        """Whether a search for the best tree by this metric needs its scorer."""
        return self.scorer is not None and not self.is_like_the_loss


_OF_CLASSES: dict[MetricName, MainMetric] = {
    "accuracy": MainMetric("accuracy", "accuracy"),
    "balanced_accuracy": MainMetric("balanced accuracy", "balanced_accuracy"),
    "log_loss": MainMetric("log loss", "neg_log_loss", is_like_the_loss=True),
    "brier_score": MainMetric("Brier score"),
    "auc": MainMetric("AUC (mean over classes)", "roc_auc_ovr"),
}
_OF_TWO_CLASSES = _OF_CLASSES | {
    "brier_score": MainMetric("Brier score", "neg_brier_score"),
    "auc": MainMetric("AUC", "roc_auc"),
    "average_precision": MainMetric("average precision", "average_precision"),
}
_OF_LABELS: dict[MetricName, MainMetric] = {
    "accuracy": MainMetric("subset accuracy", "accuracy"),
    "log_loss": MainMetric("log loss"),
    "brier_score": MainMetric("Brier score"),
}
_OF_NUMBERS: dict[MetricName, MainMetric] = {
    "rmse": MainMetric("RMSE", "neg_root_mean_squared_error", is_like_the_loss=True),
    "mae": MainMetric("MAE", "neg_mean_absolute_error"),
    "r2": MainMetric("R2", "r2", is_like_the_loss=True),
}


def metric_of(name: MetricName, target: Target) -> MainMetric:
    """Return what `--metric` names for a target, or CommandError if it is for another kind."""
    if target.task == "regression":
        known, what = _OF_NUMBERS, "numbers"
    elif len(target.names) > 1:
        known, what = _OF_LABELS, "several labels"
    elif (n_classes := len(np.unique(target.values))) == 2:
        known, what = _OF_TWO_CLASSES, "two classes"
    else:
        known, what = _OF_CLASSES, f"{n_classes} classes"
        if n_classes > MAX_AUC_CLASSES:
            known = {each: known[each] for each in known if each != "auc"}
    if name not in known:
        names = ", ".join(each for each in get_args(MetricName) if each in known)
        raise CommandError(
            f"--metric {name} does not measure '{target.name}', which has {what}; use {names}."
        )
    return known[name]
