"""What is reported on: a model, or a fitted estimator that holds one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.text.numbers import plural

# Where fitted estimators keep their model.
_ATTRIBUTES = ("tree_", "forest_", "ensemble_", "model_")
_NEEDED = ("schema", "task", "predict", "record")

Model = Any
"""An ObliqueTree, ObliqueForest, TreeEnsemble or PolicyTree: has a schema, a task, answers."""


def model_of(thing: Any) -> Model:
    """Return the model: the thing itself, or what a fitted estimator has learned.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If it is an estimator that was not fitted.
    """
    for name in _ATTRIBUTES:
        if hasattr(thing, name):
            return getattr(thing, name)
    if not isinstance(thing, type) and all(hasattr(thing, name) for name in _NEEDED):
        return thing
    if hasattr(thing, "fit") and not isinstance(thing, type):
        raise ValueError(
            f"this {type(thing).__name__} has not learned a tree yet. Call fit(X, y) first; of a "
            "pipeline give the last step"
        )
    is_class = isinstance(thing, type)
    found = f"the class {thing.__name__}" if is_class else f"a {type(thing).__name__}"
    raise TypeError(
        f"expected a tree, a forest or a fitted estimator of hardwood, found {found}. A file is "
        "opened with hardwood.load"
    )


def is_forest(model: Model) -> bool:
    """Whether a model is made of hard trees that answer together, even of one."""
    return hasattr(model, "trees")


def is_soft(model: Model) -> bool:
    """Whether a row of the model may reach several leaves of a tree."""
    return hasattr(model, "hard_tree")


def is_policy(model: Model) -> bool:
    """Whether a model is a policy tree, whose nodes have any number of children."""
    return hasattr(model, "parents")


def trees_of(model: Model) -> tuple[Any, ...]:
    """Return the oblique trees of a model.

    Those of a forest, the tree itself, the one that a policy tree with two ways is, the hard tree
    of a latent tree's splits, whose leaves have no answers; none of a soft ensemble and of other
    policy trees.
    """
    if is_forest(model):
        return tuple(model.trees)
    if is_policy(model):
        return (model.to_oblique(),) if model.is_binary else ()
    if hasattr(model, "routes"):
        return (model.routes(),)
    return () if is_soft(model) else (model,)


def size_words(model: Model) -> str:
    """Sizes of a tree, or of all trees of a forest together, in a phrase."""
    kind = "linear " if model.has_linear_leaves else ""
    splits = plural(model.n_splits, "split")
    leaves = plural(model.n_leaves, f"{kind}leaf", f"{kind}leaves")
    features = plural(model.n_features, "feature")
    if is_forest(model) or is_soft(model):
        return f"depth up to {model.depth}, {splits} and {leaves} in all, {features}"
    return f"depth {model.depth}, {splits}, {leaves}, {features}"


def output_names(model: Model) -> tuple[str, ...]:
    """Names of what a model predicts, one per output; their numbers where it knows no names."""
    return model.target_names or tuple(str(i) for i in range(model.n_outputs))


def output_labels(model: Model) -> tuple[str, ...]:
    """Names of the columns of the outputs: classes, labels, or numbers to be predicted."""
    return tuple(map(str, model.classes)) if model.classes else output_names(model)


def outputs_of(model: Model, X: Any, n_jobs: int | None = 1) -> np.ndarray:
    """Probabilities or values of each row, (n, k) float64."""
    asked = model.predict if model.task == "regression" else model.predict_proba
    answers: np.ndarray = np.asarray(asked(X, n_jobs=n_jobs), dtype=np.float64)
    return answers.reshape(len(answers), -1)


def target_words(model: Model) -> str:
    """Say what is predicted: ``classification of species``."""
    names: Sequence[str] = model.target_names or ()
    if not names:
        return str(model.task)
    more = ", ..." if len(names) > 4 else ""
    return f"{model.task} of {', '.join(names[:4])}{more}"
