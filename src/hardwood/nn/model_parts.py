"""What layers and models have to agree on, where one becomes the other.

The model is imported by whoever needs it, so that the layers themselves work with torch alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    import numpy as np

    from hardwood.model.structure import TaskKind
    from hardwood.table import Schema


def task_and_labels(
    task: TaskKind | None, classes: Iterable[Any] | None
) -> tuple[TaskKind, list[Any] | None]:
    """Return what a layer is for, and its labels where it tells classes apart."""
    labels = None if classes is None else list(classes)
    if task is None:
        task = "regression" if labels is None else "classification"
    if task not in ("regression", "classification", "multilabel"):
        raise ValueError(
            f"task must be 'regression', 'classification' or 'multilabel', got {task!r}"
        )
    if (task == "classification") != (labels is not None):
        raise ValueError("task='classification' and classes go together: give both or neither")
    return task, labels


def wrong_number_of_classes(n_classes: int, out_features: int) -> ValueError:
    """Say that labels do not fit the outputs of a layer."""
    return ValueError(
        f"{n_classes} classes were given for a layer with {out_features} outputs; "
        "expected one for each output, or two for a single output"
    )


def check_finite(layer: nn.Module, who: str) -> None:
    """Refuse a layer that was made of a model with numbers beyond its precision."""
    for name, parameter in layer.named_parameters():
        if not parameter.isfinite().all():
            raise ValueError(
                f"the {who}'s {name} are too large for {parameter.dtype}. Use dtype=torch.float64, "
                f"or learn the {who} from columns in other units"
            )


def check_numbers(schema: Schema, who: str) -> None:
    """Refuse columns that a layer has no input for."""
    for feature in schema.features:
        if feature.kind != "numeric" or feature.has_missing:
            what = "categorical" if feature.kind != "numeric" else "allowed to be missing"
            raise ValueError(
                f"a torch layer takes numbers only, but the {who}'s column {feature.name!r} is "
                f"{what}. Learn from numeric columns without missing entries"
            )


def as_array(tensor: Tensor) -> np.ndarray:
    """Return a float64 NumPy array; float32 numbers stay what they are."""
    return tensor.detach().to("cpu", torch.float64).numpy()
