"""How good answers are: one number that trees are chosen by, larger is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.model.structure import TaskKind

Scorer = Callable[..., float]


@dataclass(frozen=True)
class Judge:
    """What trees are judged by.

    Attributes
    ----------
    task
        What they are for.
    classes
        Their labels, sorted; None for numbers and for several labels.
    name
        Of the score, in words.
    scorer
        As scikit-learn has them; None for the task's own: the weighted share of rows, or of
        labels, that are right, or the share of variance explained, a mean over the targets.
    """

    task: TaskKind
    classes: np.ndarray | None
    name: str
    scorer: Scorer | None = None

    @classmethod
    def of(cls, task: TaskKind, classes: np.ndarray | None, scoring: Any = None) -> Judge:
        """Return the judge that `scoring` names: None, a scorer of scikit-learn, or a function.

        Raises
        ------
        ValueError, TypeError
            For a name that scikit-learn does not know, and for anything else.
        """
        own = {"classification": "accuracy", "multilabel": "labels right", "regression": "R2"}
        if scoring is None:
            return cls(task, classes, own[task])
        return cls(task, classes, *scorer_of(scoring))

    def score(
        self, outputs: np.ndarray, truth: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Judge answers.

        Parameters
        ----------
        outputs
            (n, k) probabilities of classes or labels, or numbers.
        truth
            (n, t) class indices, zeros and ones, or numbers in the same units.
        weight
            (n,) of each row; None for rows that count the same.
        """
        if self.scorer is not None:
            return self._scored(outputs, truth, weight)
        if self.task == "regression":
            return _explained(outputs, truth, weight)
        if self.task == "classification":
            is_right = outputs.argmax(axis=1) == truth[:, 0]
        else:
            is_right = ((outputs >= 0.5) == (truth == 1)).mean(axis=1)
        return float(np.average(is_right, weights=weight))

    def _scored(self, outputs: np.ndarray, truth: np.ndarray, weight: np.ndarray | None) -> float:
        from hardwood.search.known_predictions import KnownClasses, KnownNumbers

        assert self.scorer is not None
        kind = KnownNumbers if self.task == "regression" else KnownClasses
        answering = kind(outputs, self.classes)
        if self.task == "classification":
            assert self.classes is not None
            truth = self.classes[truth[:, 0].astype(np.int64)]
        elif self.task == "regression" and truth.shape[1] == 1:
            truth = truth[:, 0]
        options = {} if weight is None else {"sample_weight": weight}
        try:
            score = float(self.scorer(answering, np.zeros((len(outputs), 1)), truth, **options))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"scoring={self.name!r} cannot judge trees for this target: {error}. Of more than "
                "two classes, 'roc_auc_ovr' and 'neg_log_loss' are among those that can."
            ) from error
        if not np.isfinite(score):
            raise ValueError(
                f"scoring={self.name!r} gave {score} on the rows that trees are judged by. Choose "
                "another score, or a larger validation_fraction."
            )
        return score


def scorer_of(scoring: Any) -> tuple[str, Scorer]:
    """Return the name of a score and what gives it: a scorer of scikit-learn, or a function.

    Raises
    ------
    ValueError, TypeError
        For a name that scikit-learn does not know, and for anything else.
    """
    from sklearn.metrics import get_scorer, get_scorer_names

    if callable(scoring):
        return getattr(scoring, "__name__", None) or str(scoring), scoring
    if not isinstance(scoring, str):
        raise TypeError(
            "scoring must be None, the name of a scorer or a function (estimator, X, y) -> float, "
            f"got {scoring!r}."
        )
    if scoring not in get_scorer_names():
        raise ValueError(
            f"scoring={scoring!r} is no scorer of scikit-learn. Some that are: 'accuracy', "
            "'balanced_accuracy', 'neg_log_loss', 'roc_auc', 'r2', 'neg_root_mean_squared_error', "
            "'neg_mean_absolute_error'."
        )
    return scoring, get_scorer(scoring)


def _explained(outputs: np.ndarray, truth: np.ndarray, weight: np.ndarray | None) -> float:
    """Share of variance explained; where there is none, minus the mean squared error."""
    deviation = truth - np.average(truth, axis=0, weights=weight)
    # Very large and very small numbers have no squares; a power of two takes nothing from them.
    power = -np.frexp(np.abs(deviation).max(axis=0))[1]
    error = np.average(np.ldexp(outputs - truth, power) ** 2, axis=0, weights=weight)
    variance = np.average(np.ldexp(deviation, power) ** 2, axis=0, weights=weight)
    has_variance = variance > 0
    explained = np.where(has_variance, 1 - error / np.where(has_variance, variance, 1.0), -error)
    return float(explained.mean())
