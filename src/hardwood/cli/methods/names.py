"""The methods that `fit` and `tune` can use, and their estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from hardwood.cli.errors import CommandError

if TYPE_CHECKING:
    from hardwood.learn.learner import Learner

TunedMethodName = Literal[
    "dgt",
    "dgt-forest",
    "semantic",
    "tao",
    "tel",
    "greedy",
    "non-greedy",
    "reinforced",
    "latent",
]
"""What `--method` of `tune` takes: those that have a search space."""

MethodName = Literal["tree", TunedMethodName]
"""What `--method` of `fit` takes."""

METHODS: dict[MethodName, str] = {
    "tree": "Tree",
    "dgt": "DGT",
    "dgt-forest": "DGTForest",
    "semantic": "SemanticTree",
    "tao": "TAO",
    "tel": "TEL",
    "greedy": "GreedyTree",
    "non-greedy": "NonGreedyTree",
    "reinforced": "ReinforcedTree",
    "latent": "LatentTree",
}
"""The estimators of every method, without the ending Classifier or Regressor of their names."""


def estimators_of(method: MethodName) -> tuple[Any, Any]:
    """Return the classifier and the regressor of a method."""
    import hardwood

    stem = METHODS[method]
    return getattr(hardwood, f"{stem}Classifier"), getattr(hardwood, f"{stem}Regressor")


def declarations_of(method: MethodName) -> Sequence[Any]:
    """Return the dataclasses that declare the parameters of a method.

    Those of the default method load without scikit-learn, so that `--help` is fast.
    """
    if method == "tree":
        from hardwood.search.best_tree import TreeClassifierParameters, TreeParameters

        return (TreeClassifierParameters, TreeParameters)
    return estimators_of(method)


def learners_of(method: MethodName) -> Sequence[type[Learner]]:
    """Return the learners whose fields are the parameters of a method."""
    if method == "tree":
        from hardwood.search.best_tree import BestTree

        return (BestTree,)
    from hardwood.learn.registry import LEARNERS

    if method == "dgt-forest":
        from hardwood.learn.bagging import Bagging

        return (LEARNERS["dgt"], Bagging)
    return (LEARNERS[method.replace("-", "_")],)


def make_estimator(method: MethodName, task: str, options: Mapping[str, Any]) -> Any:
    """Make the estimator of a method for a task; it has all these options, or CommandError."""
    classifier, regressor = estimators_of(method)
    kind, other = (classifier, regressor) if task == "classification" else (regressor, classifier)
    known = {each.name for each in fields(kind)}
    for name in options:
        if name not in known:
            raise CommandError(
                f"--{name.replace('_', '-')} is an option of {other.__name__}, and this is {task}."
            )
    return kind(**options)
