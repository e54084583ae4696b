"""From outputs, the numbers that a model computes, to the predictions that ``predict`` returns.

Outputs are (n, k) float64: class probabilities, label probabilities, or regression values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.errors import TableError, warn_about_table
from hardwood.model.structure import Label, TaskKind
from hardwood.text.numbers import plural

YES = 0.5  # the smallest probability of a predicted label


def class_positions(
    probabilities: np.ndarray, decision_weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the position of the class that is predicted, (n,), for probabilities (n, k).

    It is the class with the largest probability, or with ``decision_weights`` (k,) the largest
    product of probability and weight; the first one on ties. One row (k,) has one position.
    """
    if decision_weights is not None:
        probabilities = probabilities * decision_weights
    positions: np.ndarray = probabilities.argmax(axis=-1)
    return positions


def predictions(
    outputs: np.ndarray,
    task: TaskKind,
    classes: Sequence[Label] | None,
    decision_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return predictions for outputs (n, k).

    Returns
    -------
    predictions
        (n,) the classes that `class_positions` chooses; (n, k) int64, 1 for labels with a
        probability of at least 0.5; or the values, (n,) for a single output.
    """
    if classes is not None:
        labels: np.ndarray = label_array(classes)[class_positions(outputs, decision_weights)]
        return labels
    if task == "multilabel":
        return (outputs >= YES).astype(np.int64)
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def prediction_of_one(
    outputs: np.ndarray,
    task: TaskKind,
    classes: Sequence[Label] | None,
    decision_weights: np.ndarray | None = None,
) -> Any:
    """Return the prediction for one row, from (k,): a label, a float, or a read-only array (k,)."""
    if classes is not None:
        return classes[int(class_positions(outputs, decision_weights))]
    if task == "multilabel":
        outputs = (outputs >= YES).astype(np.int64)
    elif outputs.size == 1:
        return outputs.item()
    outputs.flags.writeable = False
    return outputs


def warn_if_infinite(outputs: np.ndarray) -> None:
    """Warn of predictions (n, k) beyond float64, which linear leaves have for rows far out.

    Warns
    -----
    TableWarning
        With the number of such rows.
    """
    if not np.isfinite(outputs).all():
        warn_about_table(_of_infinite(outputs))


def check_finite(outputs: np.ndarray) -> None:
    """Check that predictions (n, k) are numbers that can be compared, drawn and explained.

    Raises
    ------
    TableError
        If some are beyond float64.
    """
    if not np.isfinite(outputs).all():
        raise TableError(f"{_of_infinite(outputs)}. Leave such rows out.")


def _of_infinite(outputs: np.ndarray) -> str:
    is_infinite = ~np.isfinite(outputs).all(axis=1)
    first = int(np.argmax(is_infinite))
    value = outputs[first][~np.isfinite(outputs[first])][0]
    many = plural(int(is_infinite.sum()), "prediction is", "predictions are")
    return (
        f"{many} beyond float64, such as {value} for row {first} of {len(outputs)}, "
        "because the scores of the model are too large so far from the rows that it learned from"
    )


def label_array(classes: Sequence[Label]) -> np.ndarray:
    """Return labels as an array of their type, or as an array of objects if types are mixed."""
    if len({type(label) for label in classes}) == 1:
        return np.asarray(classes)
    labels = np.empty(len(classes), dtype=object)
    labels[:] = classes
    return labels
