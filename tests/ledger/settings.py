"""The parameters of the fits in the ledger, besides the defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import hardwood
from hardwood.learn import Huber, Quantile, Relaxation, Training
from ledger import tables

Settings = Mapping[str, Any]
Variants = Mapping[str, Callable[[], Settings]]


def softmax_loss(scores: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log loss of classes as a custom loss: losses and gradient of a batch."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = shifted / shifted.sum(axis=1, keepdims=True)
    rows, right = np.arange(len(scores)), classes[:, 0].astype(int)
    gradient = shares.copy()
    gradient[rows, right] -= 1.0
    return -np.log(shares[rows, right]), gradient


def cubic_loss(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """A custom regression loss that the package does not have."""
    return np.sign(scores - targets) * (scores - targets) ** 2


def stop_after(n_epochs: int) -> Callable[[Any], bool]:
    """Return a callback that stops a fit after this many epochs."""
    return lambda epoch: epoch.epoch + 1 >= n_epochs


def start_of(task: str) -> Any:
    """Return a small tree to start from, for the first table of a task."""
    if task == "classes":
        table = tables.classes("iris")
        return hardwood.GreedyTreeClassifier(max_depth=2).fit(table.X, table.y)
    table = tables.numbers("diabetes")
    return hardwood.GreedyTreeRegressor(max_depth=2).fit(table.X, table.y)


def fixed(**settings: Any) -> Callable[[], Settings]:
    """Return a variant that does not depend on another fit."""
    return lambda: settings


# Settings that make fits fast; time limits would not be reproducible.
ALWAYS: Mapping[str, Settings] = {
    "DGTForestClassifier": {"n_estimators": 4},
    "DGTForestRegressor": {"n_estimators": 4},
    "LatentTreeClassifier": {"max_depth": 3, "max_epochs": 25},
    "LatentTreeRegressor": {"max_depth": 3, "max_epochs": 25},
    "LatentTreeClustering": {"max_depth": 3, "max_epochs": 10},
    "TreeClassifier": {"time_limit": None, "max_trials": 8},
    "TreeRegressor": {"time_limit": None, "max_trials": 8},
}

_STOPPING: Variants = {
    "stops early": fixed(early_stopping=True, validation_fraction=0.3, max_epochs=60),
    "does not stop early": fixed(early_stopping=False, max_epochs=15),
    "two callbacks": lambda: {"callbacks": [lambda epoch: None, stop_after(4)], "max_epochs": 12},
    "verbose": fixed(verbose=1, max_epochs=5),
    "small batches": fixed(batch_size=16, learning_rate=0.003, max_epochs=10),
    "two threads": fixed(n_jobs=2, max_epochs=20),
}
_PENALTIES: Variants = {"penalties": fixed(l1=1e-3, l2=1e-3, max_epochs=20)}
_STARTS: Variants = {
    "init axis": fixed(init="axis", max_epochs=15),
    "init random": fixed(init="random", max_epochs=15),
    "init oc1": fixed(init="oc1", max_epochs=15),
    "init co2": fixed(init="co2", max_epochs=15),
}
_TRAINING: Variants = {
    "adam": fixed(training=Training("adam", "one_cycle", clip_norm=None), max_epochs=15),
    "sgd": fixed(training=Training("sgd", "constant"), max_epochs=15, learning_rate=0.1),
    "rmsprop": fixed(training=Training(decay=0.9, patience=0.1, epsilon=1e-4), max_epochs=15),
}
_LAYERS: Variants = {
    "layers": fixed(layers=3, max_depth=2, max_epochs=8),
    "layers of given sizes": fixed(layers=[8, 4], max_depth=3, max_epochs=8),
    "linear leaves": fixed(leaves="linear", max_depth=3, max_epochs=30),
    "linear leaves, layers": fixed(leaves="linear", layers=2, max_depth=2, l1=1e-4, max_epochs=8),
    "product": fixed(relaxation=Relaxation("product"), max_depth=3, max_epochs=15),
    "scaled": fixed(relaxation=Relaxation(quantizer="scaled"), max_depth=3, max_epochs=15),
    "annealed": fixed(
        relaxation=Relaxation(routing="annealed", sharpness=(1.0, 20.0), annealing="linear"),
        max_depth=3,
        max_epochs=15,
    ),
}
_TREE_MOMENTUM: Variants = {"momentum": fixed(momentum=0.5, max_epochs=15)}
_RESTARTS: Variants = {
    "restarts": fixed(n_restarts=3, max_epochs=15),
    "restarts, two threads": fixed(n_restarts=3, n_jobs=2, max_epochs=15, early_stopping=False),
}
_BALANCED: Variants = {
    "balanced": fixed(class_weight="balanced"),
    "class weights": fixed(class_weight={0: 1.0, 1: 2.5, 2: 0.5}),
}


def _start(task: str, **more: Any) -> Variants:
    return {"init tree": lambda: {"init": start_of(task).tree_, "max_epochs": 15, **more}}


def _fitted_start(task: str) -> Variants:
    return {"init estimator": lambda: {"init": start_of(task)}}


_DGT: Variants = _STOPPING | _PENALTIES | _STARTS | _TRAINING | _LAYERS | _TREE_MOMENTUM
_FOREST: Variants = {
    "out of bag": fixed(oob_score=True, n_estimators=8, max_epochs=15),
    "samples": fixed(sample_fraction=0.6, max_epochs=15),
    "no bootstrap": fixed(bootstrap=False, max_epochs=15),
    "two threads": fixed(n_jobs=2, max_epochs=15),
    "linear leaves": fixed(leaves="linear", max_depth=2, max_epochs=15),
    "penalties": fixed(l1=1e-3, l2=1e-3, max_epochs=15),
    "init axis": fixed(init="axis", max_epochs=10),
    "stops early": fixed(early_stopping=True, validation_fraction=0.3, max_epochs=30),
    "verbose": fixed(verbose=1, max_epochs=5),
    "adam": fixed(training=Training("adam", "constant"), max_epochs=10),
}
_SEMANTIC: Variants = (
    _STOPPING
    | _PENALTIES
    | {
        "noise": fixed(noise=0.2, max_epochs=10),
        "constant leaves": fixed(leaves="constant", max_epochs=10),
        "mixed leaves": fixed(leaves="constant", n_mixed=3, max_epochs=10),
        "linear leaves": fixed(leaves="linear", max_depth=2, max_epochs=10),
        "layers": fixed(layers=[8], max_depth=3, max_epochs=10),
    }
)
_GREEDY: Variants = {
    "random": fixed(splitter="random", n_candidates=16),
    "oc1": fixed(splitter="oc1", n_split_restarts=2, n_jumps=2, n_coordinates=10, max_sweeps=4),
    "co2": fixed(splitter="co2", max_epochs=20, nu=4.0, momentum=0.5, batch_size=32),
    "limits": fixed(min_samples_split=10, min_samples_leaf=4, min_impurity_decrease=0.01),
    "weight limit": fixed(min_weight_fraction_leaf=0.1, max_depth=None),
    "two threads": fixed(splitter="random", n_jobs=2),
}
_LATENT: Variants = _STOPPING | {
    "deep head": fixed(head=[8], dropout=0.1, max_epochs=8),
    "elu": fixed(
        activation="elu", skip_connection=False, pruning=0.1, weight_decay=0.0, max_epochs=8
    ),
}
_NON_GREEDY: Variants = (
    _STOPPING
    | _STARTS
    | {
        "chosen nu": fixed(nu="auto", learning_rate="auto", max_depth=3, max_epochs=8),
        "fast": fixed(inference="fast", solver="sgd", max_epochs=15),
        "exhaustive": fixed(inference="exhaustive", max_depth=3, max_epochs=10),
        "few features": fixed(max_features_per_split=2, l1=1e-3, max_epochs=15),
        "schedule": fixed(training=Training("sgd", "one_cycle", clip_norm=1.0), max_epochs=15),
    }
)
_REINFORCED: Variants = (
    _STOPPING
    | _STARTS
    | _PENALTIES
    | _RESTARTS
    | {
        "sampled": fixed(gradient="sampled", n_trajectories=4, max_depth=3, max_epochs=10),
        "value baseline": fixed(gradient="sampled", baseline="value", max_depth=3, max_epochs=8),
        "no baseline": fixed(gradient="sampled", baseline="none", max_depth=3, max_epochs=8),
        "many branches": fixed(parents=[-1, 0, 0, 0, 1, 1, 1], max_epochs=15),
        "temperature": fixed(temperature=(2.0, 0.5), entropy_bonus=0.0, max_depth=3, max_epochs=15),
        "sgd": fixed(training=Training("sgd", "constant"), max_depth=3, max_epochs=10),
    }
)
_TAO_STARTS: Variants = {
    name: fixed(init=name.removeprefix("init "), max_sweeps=4, l1=0.1, l2=0.1) for name in _STARTS
}
_TAO: Variants = _TAO_STARTS | {
    "penalties": fixed(l1=0.3, l2=1.0, max_sweeps=5),
    "linear leaves": fixed(leaves="linear", leaf_l2=0.5, max_depth=3, l1=0.1, l2=0.1),
    "rows of leaves": fixed(leaf_prior=3.0, max_sweeps=3),
    "few features": fixed(max_features_per_split=2, max_sweeps=4),
    "stops early": fixed(early_stopping=True, validation_fraction=0.3, l1=0.1, l2=0.1),
    "does not stop early": fixed(early_stopping=False, l1=0.1, l2=0.1, max_sweeps=4),
    "two callbacks": lambda: {"callbacks": [lambda epoch: None, stop_after(2)], "l1": 0.1},
    "verbose": fixed(verbose=1, max_sweeps=2),
    "two threads": fixed(n_jobs=2, max_sweeps=4),
}
_TEL: Variants = (
    _STOPPING
    | _RESTARTS
    | {
        "mean of restarts": fixed(n_restarts=2, combine_runs="mean", max_epochs=8),
        "smooth step 5": fixed(activation="smooth_step_5", gamma=0.5, max_epochs=8),
        "logistic": fixed(activation="logistic", batch_norm=False, l2=1e-3, max_epochs=8),
        "adam": fixed(training=Training("adam", "one_cycle"), max_epochs=8),
    }
)
_BEST: Variants = {
    "linear leaves": fixed(leaves="linear", max_depth=4, max_trials=4),
    "few features": fixed(max_features_per_split=2, max_trials=4),
    "no teacher": fixed(teacher=None, max_trials=6),
    "two threads": fixed(n_jobs=2, max_trials=4),
    "more trials": fixed(max_trials=30, max_depth=4),
    "verbose": fixed(verbose=1, max_trials=3),
    "stopped": lambda: {"callbacks": _stop_at_second()},
}


def _stop_at_second() -> Callable[[Any], bool]:
    seen: list[Any] = []
    return lambda trial: seen.append(trial) or len(seen) >= 2


def _losses(*losses: Any, **more: Any) -> Variants:
    return {f"loss {_loss_name(loss)}": fixed(loss=loss, **more) for loss in losses}


def _loss_name(loss: Any) -> str:
    return loss if isinstance(loss, str) else getattr(loss, "__name__", None) or repr(loss)


_NUMBER_LOSSES = ("absolute_error", "huber", "quantile", "poisson", Huber(0.5), Quantile(0.8))

VARIANTS: Mapping[str, Variants] = {
    "DGTClassifier": _DGT
    | _RESTARTS
    | _BALANCED
    | _start("classes")
    | _fitted_start("classes")
    | _losses(softmax_loss, max_epochs=10),
    "DGTRegressor": _DGT
    | _RESTARTS
    | _start("numbers")
    | _losses(*_NUMBER_LOSSES, cubic_loss, max_epochs=15),
    "DGTForestClassifier": _FOREST
    | _BALANCED
    | _losses(softmax_loss, max_epochs=5)
    | {"votes": fixed(combine="vote", max_epochs=15)},
    "DGTForestRegressor": _FOREST | _losses("huber", cubic_loss, max_epochs=8),
    "GreedyTreeClassifier": _GREEDY | _BALANCED | {"gini": fixed(criterion="gini")},
    "GreedyTreeRegressor": _GREEDY,
    "LatentTreeClassifier": _LATENT | _BALANCED | _losses(softmax_loss, max_epochs=5),
    "LatentTreeRegressor": _LATENT | _losses(*_NUMBER_LOSSES[:4], max_epochs=5),
    "NonGreedyTreeClassifier": _NON_GREEDY | _BALANCED | _start("classes"),
    "NonGreedyTreeRegressor": _NON_GREEDY
    | _start("numbers")
    | _losses(*_NUMBER_LOSSES[:3], max_epochs=10),
    "ReinforcedTreeClassifier": _REINFORCED
    | _BALANCED
    | _start("classes")
    | _losses("hinge", "squared_error", max_depth=3, max_epochs=10),
    "ReinforcedTreeRegressor": _REINFORCED
    | _start("numbers")
    | _losses(*_NUMBER_LOSSES[:4], max_depth=3, max_epochs=10),
    "SemanticTreeClassifier": _SEMANTIC | _RESTARTS | _BALANCED | _start("classes"),
    "SemanticTreeRegressor": _SEMANTIC
    | _start("numbers")
    | _losses(*_NUMBER_LOSSES[:3], max_epochs=10),
    "TAOClassifier": _TAO
    | _BALANCED
    | _fitted_start("classes")
    | _losses("log_loss", "misclassification", l1=0.1, l2=0.1, max_sweeps=4),
    "TAORegressor": _TAO
    | _fitted_start("numbers")
    | _losses(*_NUMBER_LOSSES[:4], l1=0.1, l2=0.1, max_sweeps=4),
    "TELClassifier": _TEL | _BALANCED | _losses(softmax_loss, max_epochs=5),
    "TELRegressor": _TEL | _losses(*_NUMBER_LOSSES, cubic_loss, max_epochs=5),
    "TreeClassifier": _BEST
    | _BALANCED
    | {"scored by log loss": fixed(scoring="neg_log_loss", max_trials=4)},
    "TreeRegressor": _BEST | {"scored by MAE": fixed(scoring="neg_mean_absolute_error")},
    "LatentTreeClustering": {
        "all columns": fixed(targets="all", n_clusters=3),
        "two columns": fixed(targets=[0, 2], skip_connection=False, activation="elu"),
        "random start": fixed(split_init="random", early_stopping=False),
    },
}
WARM = ("DGTForestClassifier", "DGTForestRegressor", "NonGreedyTreeClassifier", "TAORegressor")
"""Return estimators that continue to learn when fitted twice."""

QUICK = {
    "layers",
    "linear leaves",
    "annealed",
    "init co2",
    "init tree",
    "restarts",
    "two callbacks",
    "balanced",
    "out of bag",
    "sampled",
    "many branches",
    "deep head",
    "fast",
    "few features",
    "logistic",
    "verbose",
    "loss softmax_loss",
    "loss cubic_loss",
    "loss poisson",
    "stopped",
    "all columns",
    "oc1",
}
"""Return the variants that ``--quick`` includes."""
