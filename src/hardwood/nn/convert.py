"""Conversions between layers and models: every `to_...` and `from_...` of the layers.

NumPy and the models are imported here, where they are needed, so that the layers themselves work
with torch alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from hardwood.text.numbers import plural

if TYPE_CHECKING:
    import numpy as np

    from hardwood.model import ObliqueTree, PolicyTree, TreeEnsemble
    from hardwood.model.structure import TaskKind
    from hardwood.nn.dgt import DenseGradientTree
    from hardwood.nn.reinforced import ReinforcedTree
    from hardwood.nn.semantic import SemanticTree
    from hardwood.nn.splits import PerfectSplits
    from hardwood.nn.tel import TreeEnsembleLayer
    from hardwood.table import Schema

_Layer = TypeVar("_Layer", bound=nn.Module)

_LEAST_START_PROBABILITY = 1e-6  # of a leaf in a start, as in `hardwood.learn.losses`


# --- DenseGradientTree and ObliqueTree --------------------------------------------------------


@torch.no_grad()
def to_tree(
    layer: DenseGradientTree,
    *,
    feature_names: Iterable[str] | None = None,
    classes: Iterable[Any] | None = None,
    target_names: Iterable[str] | str | None = None,
    schema: Schema | None = None,
    task: TaskKind | None = None,
    record: Mapping[str, Any] | None = None,
) -> ObliqueTree:
    """Return the tree as a model, to read, draw, save and predict without torch.

    Overparameterized weights are multiplied out first, so the tree is the one that the layer
    evaluates. Needs a whole installation of hardwood.

    Parameters
    ----------
    feature_names
        Names of the inputs; by default x0, x1, ...
    classes
        Labels of a classification tree, one for each output; or two labels where there is one
        output, the score of the second. Leaves then hold probabilities: the softmax (for one
        output the logistic function) of their scores. Without labels it is a regression tree
        that predicts what the layer returns.
    target_names
        What is predicted.
    schema
        Instead of names: the schema of numbers that the tree came from (see `from_tree`).
    task
        ``"multilabel"`` where each output is the score of one yes/no label: leaves then hold
        their logistic functions. Otherwise it follows from `classes`.
    record
        Notes to keep with the tree.
    """
    from hardwood.model import ObliqueTree

    head = _head(layer, task, classes, target_names, record)
    columns = _columns(layer.in_features, feature_names, schema)
    weights, bias = _splits(layer, schema)
    values = _array(_answers(layer, head["task"], head["classes"]))
    return ObliqueTree.of(weights, bias=bias, values=values, schema=columns, **head)


def _splits(layer: PerfectSplits, schema: Schema | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (m, d) and bias (m,) of a model's splits."""
    weight = _array(layer.weight)
    bias = weight[:, 0] * 0.0 if layer.bias is None else _array(layer.bias)
    if schema is not None:
        bias = bias + weight @ schema.column_center
    return weight, bias


def _answers(layer: DenseGradientTree, task: TaskKind, classes: list[Any] | None) -> Tensor:
    """Return the predictions of the leaves, (L, k)."""
    if task == "multilabel":
        return torch.sigmoid(layer.leaves.double())
    scores = _scores(layer, classes)
    if classes is None:
        return scores
    if len(classes) > layer.out_features:
        return torch.cat([torch.sigmoid(-scores[:, 1:]), torch.sigmoid(scores[:, 1:])], dim=1)
    return torch.softmax(scores, dim=1)


def from_tree(
    make: type[DenseGradientTree],
    tree: ObliqueTree,
    *,
    max_depth: int | None = None,
    device: Any = None,
    dtype: torch.dtype | None = None,
) -> DenseGradientTree:
    """Make a layer from a tree, to continue learning.

    Parameters
    ----------
    tree
        A tree of numbers, without categories, missing entries or linear leaves. Its centers
        move into the bias; its scales are part of its weights already. Scores of a
        classification tree are the logarithms of its probabilities, of yes/no labels their
        log-odds; probabilities within 1e-6 of 0 (for labels, of 1 too) count as 1e-6 away.
    max_depth
        Of the layer, at least the tree's own, which is the default. A leaf above that becomes
        splits over copies of it.
    device, dtype
        Of the parameters.

    Returns
    -------
    layer
        ``layer(x)`` is what the tree predicts for the rows of ``x`` in raw units, or its
        scores; ``layer.to_tree(schema=tree.schema, ...)`` is the reverse. A layer has no weights
        of classes; where the tree has them, give the new tree
        ``.replace(decision_weights=tree.decision_weights)``.
    """
    from hardwood.model import ObliqueTree

    _check_model(
        tree,
        ObliqueTree,
        "tree",
        "An estimator has its tree as estimator.tree_, a forest its trees as forest.trees",
    )
    if tree.has_linear_leaves:
        raise ValueError(
            "a torch layer has constant leaves, but the tree's are linear in its columns. Learn it "
            "with leaves='constant'"
        )
    perfect = tree.to_perfect(max(tree.depth, 1) if max_depth is None else max_depth)
    layer = make(tree.n_features, tree.n_outputs, perfect.depth, device=device, dtype=dtype)
    parts = {
        "weight_1": perfect.weights,
        "bias": -perfect.thresholds,  # b - w center
        "leaves": _scores_of_values(perfect),
    }
    return _filled(layer, parts, "tree")


def _scores_of_values(tree: ObliqueTree) -> np.ndarray:
    """Return scores (L, k) whose softmax (logistic function for labels) is the prediction."""
    import numpy as np

    if tree.task == "regression":
        return tree.values
    if tree.task == "multilabel":
        p = np.clip(tree.values, _LEAST_START_PROBABILITY, 1.0 - _LEAST_START_PROBABILITY)
        return np.log(p / (1.0 - p))
    return np.log(np.maximum(tree.values, _LEAST_START_PROBABILITY))


# --- SemanticTree and ObliqueTree --------------------------------------------------------------


@torch.no_grad()
def to_class_tree(
    layer: SemanticTree,
    *,
    feature_names: Iterable[str] | None = None,
    classes: Iterable[Any] | None = None,
    target_names: Iterable[str] | str | None = None,
    schema: Schema | None = None,
    record: Mapping[str, Any] | None = None,
) -> ObliqueTree:
    """Return the tree as a model, to read, draw, save and predict without torch.

    A leaf is certain of its class: the layer has no probabilities of leaves. Needs a whole
    installation of hardwood.

    Parameters
    ----------
    feature_names
        Names of the inputs; by default x0, x1, ...
    classes
        Labels of the classes; by default 0, 1, ...
    target_names
        What is predicted.
    schema
        Instead of names: the schema of numbers that the tree came from (see `from_tree`).
    record
        Notes to keep with the tree.
    """
    import numpy as np

    from hardwood.model import ObliqueTree

    labels = range(layer.out_features) if classes is None else classes
    head = _head(layer, None, labels, target_names, record)
    if len(head["classes"]) != layer.out_features:
        raise ValueError(
            f"expected {plural(layer.out_features, 'class', 'classes')}, one for each output of "
            f"the layer, got {len(head['classes'])}"
        )
    columns = _columns(layer.in_features, feature_names, schema)
    weights, bias = _splits(layer, schema)
    values = np.eye(layer.out_features)[layer.classes.cpu().numpy()]
    return ObliqueTree.of(weights, bias=bias, values=values, schema=columns, **head)


def from_class_tree(
    make: type[SemanticTree],
    tree: ObliqueTree,
    *,
    max_depth: int | None = None,
    device: Any = None,
    dtype: torch.dtype | None = None,
) -> SemanticTree:
    """Make a layer from a classification tree, to continue learning.

    Parameters
    ----------
    tree
        A tree of numbers, without categories, missing entries or linear leaves. A leaf of the
        layer has its likeliest class, and each class needs a leaf.
    max_depth
        Of the layer, at least the tree's own, which is the default.
    device, dtype
        Of the parameters.
    """
    import numpy as np

    from hardwood.model import ObliqueTree

    _check_model(tree, ObliqueTree, "tree", "An estimator has its tree as estimator.tree_")
    if tree.task != "classification" or tree.has_linear_leaves:
        raise ValueError("a SemanticTree has leaves of one class; the tree's are of another kind")
    perfect = tree.to_perfect(max(tree.depth, 1) if max_depth is None else max_depth)
    likeliest = perfect.values.argmax(axis=1)
    absent = set(range(tree.n_outputs)) - set(likeliest.tolist())
    if absent:
        raise ValueError(f"no leaf of the tree prefers the class number {min(absent)}")
    layer = make(tree.n_features, tree.n_outputs, perfect.depth, device=device, dtype=dtype)
    parts = {
        "weight_1": perfect.weights,
        "bias": -perfect.thresholds,  # b - w center
        "classes": likeliest.astype(np.int64),
    }
    return _filled(layer, parts, "tree")


# --- TreeEnsembleLayer and TreeEnsemble -------------------------------------------------------


@torch.no_grad()
def to_ensemble(
    layer: TreeEnsembleLayer,
    *,
    feature_names: Iterable[str] | None = None,
    classes: Iterable[Any] | None = None,
    target_names: Iterable[str] | str | None = None,
    schema: Schema | None = None,
    task: TaskKind | None = None,
    record: Mapping[str, Any] | None = None,
) -> TreeEnsemble:
    """Return the trees as a model, to read, harden, save and predict without torch.

    The batch normalization, with its running statistics, becomes part of the splits: the model
    answers what the layer does in evaluation mode. Needs a whole installation of hardwood.

    Parameters
    ----------
    feature_names
        Names of the inputs; by default x0, x1, ...
    classes
        Labels, one for each output, whose probabilities are the softmax of the scores; or two
        labels where there is one output, the score of the second. Without labels it is a
        regression that predicts what the layer returns.
    target_names
        What is predicted.
    schema
        Instead of names: the schema of numbers that the ensemble came from (see
        `from_ensemble`).
    task
        ``"multilabel"`` where each output is the score of one yes/no label. Otherwise it
        follows from `classes`.
    record
        Notes to keep with the ensemble.
    """
    from hardwood.model import TreeEnsemble

    head = _head(layer, task, classes, target_names, record)
    columns = _columns(layer.in_features, feature_names, schema)
    if schema is None and layer.batch_norm is not None:
        columns = _with_statistics(columns, layer.batch_norm)
    mean, scale, shift = _normalization(layer)
    weight = _array(layer.weight)  # (T, m, d)
    bias = weight @ shift if layer.bias is None else _array(layer.bias) + weight @ shift
    weight = weight * scale
    return TreeEnsemble(
        weight,
        bias + weight @ (columns.column_center - mean),
        _array(_scores(layer, head["classes"])),
        gamma=layer.gamma,
        activation=layer.activation,
        schema=columns,
        **head,
    )


def _normalization(layer: TreeEnsembleLayer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, scale and shift such that splits see (x - mean) scale + shift, (d,) each."""
    import numpy as np

    norm, d = layer.batch_norm, layer.in_features
    if norm is None:
        return np.zeros(d), np.ones(d), np.zeros(d)
    mean, deviation = _statistics(norm)
    scale = 1.0 / deviation
    if norm.weight is not None:
        scale = scale * _array(norm.weight)
    shift = np.zeros(d) if norm.bias is None else _array(norm.bias)
    return mean, scale, shift


def _statistics(norm: nn.BatchNorm1d) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and deviation of each column from a batch normalization."""
    import numpy as np

    if norm.running_mean is None or norm.running_var is None:
        raise ValueError(
            "the layer's batch normalization keeps no running statistics, so that what it does to "
            "a row is not known. Leave track_running_stats as it is"
        )
    return _array(norm.running_mean), np.sqrt(_array(norm.running_var) + norm.eps)


def _with_statistics(schema: Schema, norm: nn.BatchNorm1d) -> Schema:
    """Return a schema of numbers with the statistics of a batch normalization."""
    import numpy as np

    from hardwood.table import Feature, Schema

    features = [
        Feature(
            name,
            "numeric",
            center=float(center),
            scale=float(2.0 ** np.round(np.log2(deviation))),
            spread=(float(deviation),),
        )
        for name, center, deviation in zip(schema.names, *_statistics(norm), strict=True)
    ]
    return Schema(tuple(features), schema.named)


def from_ensemble(
    make: type[TreeEnsembleLayer],
    ensemble: TreeEnsemble,
    *,
    batch_norm: bool = False,
    device: Any = None,
    dtype: torch.dtype | None = None,
) -> TreeEnsembleLayer:
    """Make a layer from an ensemble, to continue learning.

    Parameters
    ----------
    ensemble
        An ensemble of numbers, without categories or missing entries.
    batch_norm
        Whether the layer normalizes its input, by the means and deviations that the ensemble
        knows of its columns; in training by those of the batch, which are others. Without, it
        takes raw units as they are, and columns far from zero ask for float64.
    device, dtype
        Of the parameters.

    Returns
    -------
    layer
        In evaluation mode ``layer(x)`` are the scores that the ensemble has for the rows of
        ``x`` in raw units, before its link; ``layer.to_ensemble(schema=ensemble.schema, ...)``
        leads back.
    """
    from hardwood.model import TreeEnsemble

    _check_model(
        ensemble,
        TreeEnsemble,
        "ensemble",
        "An estimator has its ensemble as estimator.ensemble_; a single hard tree goes into "
        "DenseGradientTree.from_tree",
    )
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
    parts = {"leaves": ensemble.values}
    if layer.batch_norm is None:
        parts |= {"weight": weights, "bias": ensemble.bias - weights @ center}
    else:
        variance, eps = ensemble.schema.column_spread**2, layer.batch_norm.eps
        parts |= {"weight": weights * (variance + eps) ** 0.5, "bias": ensemble.bias}
        parts |= {"batch_norm.running_mean": center, "batch_norm.running_var": variance}
    return _filled(layer, parts, "ensemble")


# --- ReinforcedTree and PolicyTree ------------------------------------------------------------


@torch.no_grad()
def to_policy_tree(
    layer: ReinforcedTree,
    *,
    feature_names: Iterable[str] | None = None,
    classes: Iterable[Any] | None = None,
    target_names: Iterable[str] | str | None = None,
    schema: Schema | None = None,
    task: TaskKind | None = None,
    record: Mapping[str, Any] | None = None,
) -> PolicyTree:
    """Return the tree as a model, to read, save and predict without torch.

    Policies have to be linear. Needs a whole installation of hardwood.

    Parameters
    ----------
    feature_names
        Names of the inputs; by default x0, x1, ...
    classes
        Labels, one for each output, whose probabilities are the softmax of a leaf's scores; or
        two labels where there is one output, the score of the second. Without labels it is a
        regression that predicts what the layer returns.
    target_names
        What is predicted.
    schema
        Instead of names: the schema of numbers that the tree came from (see
        `from_policy_tree`).
    task
        ``"multilabel"`` where each output is the score of one yes/no label. Otherwise it
        follows from `classes`.
    record
        Notes to keep with the tree.
    """
    import numpy as np

    from hardwood.model import PolicyTree

    if layer.in_features is None:
        raise TypeError(
            "a PolicyTree has linear policies; those of this layer are modules of another kind: "
            "keep its state_dict"
        )
    head = _head(layer, task, classes, target_names, record)
    columns = _columns(layer.in_features, feature_names, schema)
    weights = _array(layer.policy.weight) / layer.temperature  # (N - 1, d)
    bias = _array(layer.policy.bias) / layer.temperature + weights @ columns.column_center
    return PolicyTree(
        np.array(layer.topology.parents, dtype=np.int32),
        np.concatenate([np.zeros((1, layer.in_features)), weights]),
        np.concatenate([[0.0], bias]),
        _array(_scores(layer, head["classes"])),
        schema=columns,
        **head,
    )


def from_policy_tree(
    make: type[ReinforcedTree],
    tree: PolicyTree,
    *,
    device: Any = None,
    dtype: torch.dtype | None = None,
) -> ReinforcedTree:
    """Make a layer from a policy tree of numeric columns, in raw units, to continue learning.

    ``layer.to_policy_tree(schema=tree.schema, ...)`` is the reverse.
    """
    from hardwood.model import PolicyTree

    _check_model(tree, PolicyTree, "tree", "Other trees have layers of their own")
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
    return _filled(layer, parts, "tree")


# --- Shared steps ------------------------------------------------------------------------------


def _head(
    layer: nn.Module,
    task: TaskKind | None,
    classes: Iterable[Any] | None,
    target_names: Iterable[str] | str | None,
    record: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the classes, target names and record of a model."""
    labels = None if classes is None else list(classes)
    if task is None:
        task = "regression" if labels is None else "classification"
    if task not in ("regression", "classification", "multilabel"):
        raise ValueError(
            f"task must be 'regression', 'classification' or 'multilabel', got {task!r}"
        )
    if (task == "classification") != (labels is not None):
        raise ValueError("task='classification' and classes go together: give both or neither")
    return {
        "task": task,
        "classes": labels,
        "target_names": target_names,
        "record": {"learner": type(layer).__name__} if record is None else record,
    }


def _columns(n_columns: int, feature_names: Iterable[str] | None, schema: Schema | None) -> Schema:
    """Return the given schema, or one of plain numbers."""
    from hardwood.table import Schema

    names = None if feature_names is None else list(feature_names)
    if schema is None:
        return Schema.numeric(n_columns, names)
    if names is not None:
        raise ValueError("give feature_names or a schema, which has names of its own, not both")
    _check_numbers(schema, "schema")
    return schema


def _scores(
    layer: DenseGradientTree | ReinforcedTree | TreeEnsembleLayer, classes: list[Any] | None
) -> Tensor:
    """Return scores of all classes, (..., k); a single output belongs to the second of two."""
    leaves = layer.leaves.double()
    if classes is None or layer.out_features == len(classes):
        return leaves
    if layer.out_features == 1 and len(classes) == 2:
        return torch.cat([torch.zeros_like(leaves), leaves], dim=-1)
    raise ValueError(
        "expected one class for each output of the layer, or two for a single output; got "
        f"{plural(len(classes), 'class', 'classes')} for {plural(layer.out_features, 'output')}"
    )


def _check_model(model: Any, kind: type[Any], who: str, hint: str) -> None:
    """Refuse other kinds of models, and columns that a layer cannot take."""
    if not isinstance(model, kind):
        raise TypeError(
            f"{who} must be of type {kind.__name__}, got {type(model).__name__}. {hint}"
        )
    _check_numbers(model.schema, who)


def _check_numbers(schema: Schema, who: str) -> None:
    for feature in schema.features:
        if feature.kind != "numeric" or feature.has_missing:
            what = "categorical" if feature.kind != "numeric" else "allowed to be missing"
            raise ValueError(
                f"a torch layer takes numbers only, but the {who}'s column {feature.name!r} is "
                f"{what}. Learn from numeric columns without missing entries"
            )


def _filled(layer: _Layer, parts: dict[str, np.ndarray], who: str) -> _Layer:
    """Set the parameters of a layer, which must fit into its precision."""
    state = {name: torch.tensor(part) for name, part in parts.items()}
    layer.load_state_dict(layer.state_dict() | state)
    for name, parameter in layer.named_parameters():
        if not parameter.isfinite().all():
            raise ValueError(
                f"the {who}'s {name} are too large for {parameter.dtype}. Use "
                f"dtype=torch.float64, or learn the {who} from columns in other units"
            )
    return layer


def _array(tensor: Tensor) -> np.ndarray:
    """Return a float64 NumPy array; conversion from float32 is exact."""
    return tensor.detach().to("cpu", torch.float64).numpy()
