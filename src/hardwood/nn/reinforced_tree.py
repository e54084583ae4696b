"""Between the layer and the model: `ReinforcedTree` to `PolicyTree` and back.

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
    from hardwood.model import PolicyTree
    from hardwood.model.structure import TaskKind
    from hardwood.nn.reinforced import ReinforcedTree
    from hardwood.table import Schema

    Layer = TypeVar("Layer", bound=ReinforcedTree)


@torch.no_grad()
def to_policy_tree(
    layer: ReinforcedTree,
    *,
    feature_names: Iterable[str] | None,
    classes: Iterable[Any] | None,
    target_names: Iterable[str] | str | None,
    schema: Schema | None,
    task: TaskKind | None,
    record: Mapping[str, Any] | None,
) -> PolicyTree:
    """Return the tree that `layer` evaluates; see `ReinforcedTree.to_policy_tree`."""
    import numpy as np

    from hardwood.model import PolicyTree
    from hardwood.table import Schema

    if not layer.is_linear:
        raise TypeError(
            "a PolicyTree has linear policies; those of this layer are modules of another kind: "
            "keep its state_dict"
        )
    task, labels = task_and_labels(task, classes)
    if schema is None:
        names = None if feature_names is None else list(feature_names)
        schema = Schema.numeric(layer.in_features, names)
    elif feature_names is not None:
        raise ValueError("give feature_names or a schema, which has names of its own, not both")
    check_numbers(schema, "schema")
    weights = as_array(layer.policy.weight) / layer.temperature  # (N - 1, d)
    bias = as_array(layer.policy.bias) / layer.temperature + weights @ schema.column_center
    return PolicyTree(
        np.array(layer.topology.parents, dtype=np.int32),
        np.concatenate([np.zeros((1, layer.in_features)), weights]),
        np.concatenate([[0.0], bias]),
        as_array(_scores(layer, labels)),
        schema=schema,
        task=task,
        classes=labels,
        target_names=target_names,
        record={"learner": type(layer).__name__} if record is None else record,
    )


def _scores(layer: ReinforcedTree, classes: list[Any] | None) -> Tensor:
    """Return scores of all classes; those of a single output are of the second of two."""
    leaves = layer.leaves.double()  # (L, k)
    if classes is None or layer.out_features == len(classes):
        return leaves
    if layer.out_features == 1 and len(classes) == 2:
        return torch.cat([torch.zeros_like(leaves), leaves], dim=1)
    raise wrong_number_of_classes(len(classes), layer.out_features)


def from_policy_tree(
    make: type[Layer], tree: PolicyTree, *, device: Any, dtype: torch.dtype | None
) -> Layer:
    """Make a layer that evaluates `tree`; see `ReinforcedTree.from_policy_tree`."""
    from hardwood.model import PolicyTree

    if not isinstance(tree, PolicyTree):
        raise TypeError(f"from_policy_tree takes a PolicyTree, found a {type(tree).__name__}")
    check_numbers(tree.schema, "tree")
    if tree.n_splits == 0:
        raise ValueError("the tree is a single leaf: there is nothing to learn about its policy")
    layer = make(
        tree.n_features, tree.n_outputs, parents=tree.parents.tolist(), device=device, dtype=dtype
    )
    parts = {
        "policy.weight": tree.weights[1:],
        "policy.bias": tree.bias[1:] - tree.weights[1:] @ tree.schema.column_center,
        "leaves": tree.scores,
    }
    state = {name: torch.tensor(part) for name, part in parts.items()}
    layer.load_state_dict(layer.state_dict() | state)
    check_finite(layer, "tree")
    return layer
