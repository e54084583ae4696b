"""Between the layer and the model: `TreeEnsembleLayer` to `TreeEnsemble` and back.

NumPy and the model are imported here, where they are needed, so that the layer itself works with
torch alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from hardwood.nn.model_parts import (
    as_array,
    check_finite,
    check_numbers,
    task_and_labels,
    wrong_number_of_classes,
)

if TYPE_CHECKING:
    import numpy as np

    from hardwood.model import TreeEnsemble
    from hardwood.model.structure import TaskKind
    from hardwood.nn.tel import TreeEnsembleLayer
    from hardwood.table import Schema

    Layer = TypeVar("Layer", bound=TreeEnsembleLayer)


@torch.no_grad()
def to_ensemble(
    layer: TreeEnsembleLayer,
    *,
    feature_names: Iterable[str] | None,
    classes: Iterable[Any] | None,
    target_names: Iterable[str] | str | None,
    schema: Schema | None,
    task: TaskKind | None,
    record: Mapping[str, Any] | None,
) -> TreeEnsemble:
    """Return the ensemble that `layer` evaluates; see `TreeEnsembleLayer.to_ensemble`."""
    from hardwood.model import TreeEnsemble

    task, labels = task_and_labels(task, classes)
    mean, scale, shift = _normalisation(layer)
    weight = as_array(layer.weight)  # (T, m, d)
    bias = weight @ shift if layer.bias is None else as_array(layer.bias) + weight @ shift
    weight = weight * scale
    if schema is None:
        schema = _schema(layer, mean, scale, feature_names)
    elif feature_names is not None:
        raise ValueError("give feature_names or a schema, which has names of its own, not both")
    check_numbers(schema, "schema")
    return TreeEnsemble(
        weight,
        bias + weight @ (schema.column_center - mean),
        as_array(_leaf_scores(layer, labels)),
        gamma=layer.gamma,
        activation=layer.activation,
        schema=schema,
        task=task,
        classes=labels,
        target_names=target_names,
        record={"learner": type(layer).__name__} if record is None else record,
    )


def _normalisation(layer: TreeEnsembleLayer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, scale and shift such that splits see (x - mean) scale + shift, (d,) each."""
    import numpy as np

    norm, d = layer.batch_norm, layer.in_features
    if norm is None:
        return np.zeros(d), np.ones(d), np.zeros(d)
    if norm.running_mean is None:
        raise ValueError(
            "the layer's batch normalisation keeps no running statistics, so that what it does to "
            "a row is not known. Leave track_running_stats as it is"
        )
    scale = 1.0 / np.sqrt(as_array(norm.running_var) + norm.eps)
    if norm.weight is not None:
        scale = scale * as_array(norm.weight)
    shift = np.zeros(d) if norm.bias is None else as_array(norm.bias)
    return as_array(norm.running_mean), scale, shift


def _schema(
    layer: TreeEnsembleLayer,
    mean: np.ndarray,
    scale: np.ndarray,
    feature_names: Iterable[str] | None,
) -> Schema:
    """Return the schema of numbers; with what the batch normalisation knows about them."""
    import numpy as np

    from hardwood.table import Feature, Schema

    names = None if feature_names is None else list(feature_names)
    plain = Schema.numeric(layer.in_features, names)
    if layer.batch_norm is None:
        return plain
    spread = np.sqrt(as_array(layer.batch_norm.running_var) + layer.batch_norm.eps)
    features = [
        Feature(
            feature.name,
            "numeric",
            center=float(center),
            scale=float(2.0 ** np.round(np.log2(deviation))),
            spread=(float(deviation),),
        )
        for feature, center, deviation in zip(plain.features, mean, spread, strict=True)
    ]
    return Schema(tuple(features), plain.named)


def _leaf_scores(layer: TreeEnsembleLayer, classes: list[Any] | None) -> Tensor:
    """Return scores of all classes; those of a single output are of the second of two."""
    leaves = layer.leaves.double()  # (T, L, k)
    if classes is None or layer.out_features == len(classes):
        return leaves
    if layer.out_features == 1 and len(classes) == 2:
        return torch.cat([torch.zeros_like(leaves), leaves], dim=2)
    raise wrong_number_of_classes(len(classes), layer.out_features)


def from_ensemble(
    make: type[Layer],
    ensemble: TreeEnsemble,
    *,
    batch_norm: bool,
    device: Any,
    dtype: torch.dtype | None,
) -> Layer:
    """Make a layer that evaluates `ensemble`; see `TreeEnsembleLayer.from_ensemble`."""
    from hardwood.model import TreeEnsemble

    if not isinstance(ensemble, TreeEnsemble):
        raise TypeError(
            f"from_ensemble takes a TreeEnsemble, found a {type(ensemble).__name__}. An estimator "
            "has its ensemble as estimator.ensemble_; a single hard tree goes into "
            "DenseGradientTree.from_tree"
        )
    check_numbers(ensemble.schema, "ensemble")
    layer = make(
        ensemble.n_features,
        ensemble.n_outputs,
        ensemble.n_trees,
        ensemble.depth,
        ensemble.gamma,
        activation=ensemble.activation,
        batch_norm=batch_norm,
        device=device,
        dtype=dtype,
    )
    weights, center = ensemble.weights, ensemble.schema.column_center
    if layer.batch_norm is None:
        parts = {"weight": weights, "bias": ensemble.bias - weights @ center}
    else:
        variance, eps = ensemble.schema.column_spread**2, layer.batch_norm.eps
        parts = {"weight": weights * (variance + eps) ** 0.5, "bias": ensemble.bias}
        parts |= {"batch_norm.running_mean": center, "batch_norm.running_var": variance}
    state = {
        name: torch.tensor(part) for name, part in (parts | {"leaves": ensemble.values}).items()
    }
    layer.load_state_dict(layer.state_dict() | state)
    check_finite(layer, "ensemble")
    return layer
