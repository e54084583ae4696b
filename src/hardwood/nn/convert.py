"""Between the layer and the model: `DenseGradientTree` to `ObliqueTree` and back.

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

    from hardwood.model import ObliqueTree
    from hardwood.model.structure import TaskKind
    from hardwood.nn.dgt import DenseGradientTree
    from hardwood.table import Schema

    Layer = TypeVar("Layer", bound=DenseGradientTree)

_LEAST_START_PROBABILITY = 1e-6  # of a leaf to learn on from, as in `hardwood.learn.losses`


@torch.no_grad()
def to_tree(
    layer: DenseGradientTree,
    *,
    feature_names: Iterable[str] | None,
    classes: Iterable[Any] | None,
    target_names: Iterable[str] | str | None,
    schema: Schema | None,
    task: TaskKind | None,
    record: Mapping[str, Any] | None,
) -> ObliqueTree:
    """Return the tree that `layer` evaluates; see `DenseGradientTree.to_tree`."""
    from hardwood.model import ObliqueTree

    task, labels = task_and_labels(task, classes)
    weight = as_array(layer.weight)  # (m, d)
    bias = weight[:, 0] * 0.0 if layer.bias is None else as_array(layer.bias)
    if schema is not None:
        check_numbers(schema, "schema")
        bias = bias + weight @ schema.column_center
    return ObliqueTree.of(
        weight,
        bias=bias,
        values=as_array(_leaf_values(layer, task, labels)),
        feature_names=feature_names,
        schema=schema,
        task=task,
        classes=labels,
        target_names=target_names,
        record={"learner": type(layer).__name__} if record is None else record,
    )


def _leaf_values(layer: DenseGradientTree, task: TaskKind, classes: list[Any] | None) -> Tensor:
    """Return what the tree answers at each leaf, (L, k)."""
    scores = layer.leaves.double()
    if task == "multilabel":
        return torch.sigmoid(scores)
    if classes is None:
        return scores
    if layer.out_features == 1 and len(classes) == 2:
        return torch.cat([torch.sigmoid(-scores), torch.sigmoid(scores)], dim=1)
    if layer.out_features != len(classes):
        raise wrong_number_of_classes(len(classes), layer.out_features)
    return torch.softmax(scores, dim=1)


def from_tree(
    make: type[Layer],
    tree: ObliqueTree,
    *,
    depth: int | None,
    device: Any,
    dtype: torch.dtype | None,
) -> Layer:
    """Make a layer that evaluates `tree`; see `DenseGradientTree.from_tree`."""
    from hardwood.model import ObliqueTree

    if not isinstance(tree, ObliqueTree):
        raise TypeError(
            f"from_tree takes an ObliqueTree, found a {type(tree).__name__}. An estimator has its "
            "tree as estimator.tree_, a forest its trees as forest.trees"
        )
    check_numbers(tree.schema, "tree")
    if tree.has_linear_leaves:
        raise ValueError(
            "a torch layer has constant leaves, but the tree's are linear in its columns. Learn it "
            "with leaves='constant'"
        )
    perfect = tree.to_perfect(max(tree.depth, 1) if depth is None else depth)
    layer = make(tree.n_features, tree.n_outputs, perfect.depth, device=device, dtype=dtype)
    parts = {
        "weight_1": perfect.weights,
        "bias": -perfect.thresholds,  # b - w center
        "leaves": _scores(perfect),
    }
    layer.load_state_dict({name: torch.tensor(part) for name, part in parts.items()})
    check_finite(layer, "tree")
    return layer


def _scores(tree: ObliqueTree) -> np.ndarray:
    """Return scores whose softmax (of labels: logistic function) is the tree's answer, (L, k)."""
    import numpy as np

    if tree.task == "regression":
        return tree.values
    if tree.task == "multilabel":
        p = np.clip(tree.values, _LEAST_START_PROBABILITY, 1.0 - _LEAST_START_PROBABILITY)
        return np.log(p / (1.0 - p))
    return np.log(np.maximum(tree.values, _LEAST_START_PROBABILITY))
