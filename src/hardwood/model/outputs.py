"""From outputs, what a leaf says in numbers, to answers, what ``predict`` returns.

Outputs are (n, k) float64: probabilities of the classes, probabilities of yes for each label, or
regression values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.model.structure import Label, TaskKind

YES = 0.5  # the least probability of a label that is predicted


def answers(outputs: np.ndarray, task: TaskKind, classes: Sequence[Label] | None) -> np.ndarray:
    """Decide from outputs (n, k).

    Returns
    -------
    answers
        (n,) the most probable classes, the first where several are; (n, k) int64, 1 for labels with
        a probability of at least a half; or the values, (n,) where there is one output.
    """
    if classes is not None:
        labels: np.ndarray = label_array(classes)[outputs.argmax(axis=1)]
        return labels
    if task == "multilabel":
        return (outputs >= YES).astype(np.int64)
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def answer_of_one(outputs: np.ndarray, task: TaskKind, classes: Sequence[Label] | None) -> Any:
    """Decide from the outputs of one row, (k,): a label, a float, or a read-only array (k,)."""
    if classes is not None:
        return classes[int(outputs.argmax())]
    if task == "multilabel":
        outputs = (outputs >= YES).astype(np.int64)
    elif outputs.size == 1:
        return outputs.item()
    outputs.flags.writeable = False
    return outputs


def label_array(classes: Sequence[Label]) -> np.ndarray:
    """Labels as an array that keeps their types; mixed types, as an array of objects."""
    if len({type(label) for label in classes}) == 1:
        return np.asarray(classes)
    labels = np.empty(len(classes), dtype=object)
    labels[:] = classes
    return labels
