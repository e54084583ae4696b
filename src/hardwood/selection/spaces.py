"""Search spaces: for every estimator, the values that its paper tried.

A space is a mapping. Its keys are names of parameters, or tuples of names that are chosen together;
its values are lists of what to try, a `Range`, or `When`, which depends on an earlier choice. Where
that is not enough, a space is a function of an Optuna trial that returns parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from hardwood.learn.tao import PENALTIES as TAO_PENALTIES
from hardwood.selection.mapping_space import (
    MappingSpace,
    Range,
    Suggest,
    When,
    check_entries,
    check_known,
    names_of,
)

# [DGT22] Table 11, and C.3.1 for the heights and the forests. lambda_1 or lambda_2, never both.
_HEIGHTS = (2, 4, 6, 8, 10)
_STRENGTHS = (5e-5, 1e-5, 5e-6, 1e-6)
_NO_PENALTY = ((0.0, 0.0),)
_PENALTIES = _NO_PENALTY + tuple(
    pair for strength in _STRENGTHS for pair in ((strength, 0.0), (0.0, strength))
)
_DGT = {
    "max_depth": _HEIGHTS,
    "layers": (1, 3),
    ("l1", "l2"): When("layers", 1, then=_NO_PENALTY, otherwise=_PENALTIES),
}
_DGT_FOREST = _DGT | {
    ("l1", "l2"): _PENALTIES,
    "momentum": (0.0, 0.2, 0.3, 0.4, 0.6),
    "sample_fraction": When("bootstrap", False, then=(1.0,), otherwise=(0.7, 0.85, 0.9, 1.0)),
}

# [TEL20] Appendix D.1, experiment of Sec. 4.2.
_TEL = {
    "learning_rate": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5),
    "batch_size": (32, 64, 128, 256, 512),
    "max_epochs": Range(5, 100),
    "gamma": Range(1e-4, 1.0, log=True),
    "max_depth": Range(2, 8),
    "n_estimators": Range(1, 100),
    "l2": Range(1e-8, 1e2, log=True, or_zero=True),
}

# [NonGreedy15] Sec. 7: depths of Fig. 2, nu; the learning rates are ours.
_NON_GREEDY = {
    "max_depth": (6, 8, 10, 12, 14, 16, 18),
    "nu": (0.1, 1.0, 4.0, 10.0, 43.0, 100.0),
    "learning_rate": (0.03, 0.1, 0.3),
}

# Sec. 7 of [NonGreedy15] tunes greedy trees by their depth, 6 to 18 in steps of 2.
_GREEDY = {
    "max_depth": (2, 4, 6, 8, 10, 12, 14, 16, 18),
    "min_samples_leaf": (1, 2, 5, 10, 20, 50),
}

# [Reinforced16] Sec. 3 tunes learning rate, batches and passes, and shows depths of 5, 8 and 10;
# the values are ours. Passes are left to early stopping.
_REINFORCED = {
    "max_depth": (3, 5, 8, 10),
    "learning_rate": (0.01, 0.03, 0.1),
    "batch_size": (32, 128, 512),
    "entropy_bonus": (0.0, 0.3, 0.6, 1.0),
    "l2": (0.0, 1e-5, 1e-4),
}

# Heights, layers and penalties as in [DGT22], which [DTSemNet24] compares with; the noise is ours.
_SEMANTIC = {
    "max_depth": _HEIGHTS,
    "layers": (1, (64,)),
    "noise": (0.0, 0.1, 0.2),
    ("l1", "l2"): When("layers", 1, then=_NO_PENALTY, otherwise=_PENALTIES),
}

# [LT21] Sec. 4 searches depth, lambda, splits and predictor; the ranges are ours.
_LATENT = {
    "max_depth": Range(2, 8),
    "pruning": Range(1e-2, 1e3, log=True, or_zero=True),
    "activation": ("linear", "elu"),
    "skip_connection": (True, False),
    "weight_decay": Range(1e-2, 1.0, log=True, or_zero=True),
    "learning_rate": Range(1e-3, 3e-2, log=True),
    "batch_size": (128, 256, 512),
}

# [TAO18] Sec. 4 tunes the penalty, for several depths and starts; the values are ours.
_TAO = {
    "max_depth": (2, 4, 6, 8, 10, 12),
    "init": ("axis", "random"),
    ("l1", "l2"): TAO_PENALTIES,
}

_OF_BOTH_TASKS: dict[str, Mapping[Any, Any]] = {
    "DGT": _DGT | {"momentum": (0.0, 0.3)},
    "DGTForest": _DGT_FOREST,
    "GreedyTree": _GREEDY,
    "LatentTree": _LATENT,
    "TEL": _TEL,
    "NonGreedyTree": _NON_GREEDY,
    "ReinforcedTree": _REINFORCED,
    "SemanticTree": _SEMANTIC,
    "TAO": _TAO,
}
SPACES: dict[str, Mapping[Any, Any]] = {
    f"{name}{task}": space
    for name, space in _OF_BOTH_TASKS.items()
    for task in ("Classifier", "Regressor")
}
SPACES["DGTClassifier"] = _DGT | {"momentum": (0.0, 0.3, 0.8)}
SPACES["GreedyTreeClassifier"] = _GREEDY | {"criterion": ("entropy", "gini")}
"""The spaces by the name of the estimator's class."""


def space_of(
    estimator: Any, space: Mapping[Any, Any] | Suggest | None, fixed: Iterable[str] = ()
) -> Suggest:
    """Return the space to search, checked.

    Parameters
    ----------
    estimator
        Whose parameters are searched.
    space
        A mapping, a function of a trial, or None for that of `SPACES`. Of the latter, parameters
        that the estimator has at another value than the default are the user's choice and held.
    fixed
        Names of further parameters to hold: those that were chosen and happen to be the default.

    Raises
    ------
    ValueError
        For unknown estimators and parameters, values that cannot be chosen from, and where nothing
        is left to choose.
    """
    held = estimator.get_params()
    fixed = (fixed,) if isinstance(fixed, str) else tuple(fixed)
    if space is None:
        space = _built_in(estimator, held, fixed)
    elif fixed:
        raise ValueError(
            f"fixed={fixed!r} holds parameters of the built-in space; leave them out of the space "
            "that you give instead."
        )
    if isinstance(space, Mapping):
        check_entries(space, held, type(estimator).__name__)
        return MappingSpace(space, held)
    if callable(space):
        return space
    raise TypeError(
        "space must be None, a mapping from parameters to values, or a function of a trial, got "
        f"{space!r}."
    )


def check_parameters(chosen: Any, estimator: Any) -> dict[str, Any]:
    """Return what a function of a trial has chosen, if it is parameters of the estimator."""
    if not isinstance(chosen, Mapping):
        raise TypeError(
            f"A space must return a dict of parameters, got {type(chosen).__name__} from the "
            "function that was given."
        )
    known = estimator.get_params()
    for name in chosen:
        check_known(name, known, type(estimator).__name__)
    return dict(chosen)


def _built_in(estimator: Any, held: Mapping[str, Any], fixed: tuple[str, ...]) -> Mapping[Any, Any]:
    name = type(estimator).__name__
    for parameter in fixed:
        check_known(parameter, held, name)
    found = [SPACES[kind.__name__] for kind in type(estimator).__mro__ if kind.__name__ in SPACES]
    if not found:
        raise ValueError(
            f"There is no built-in space for {name}, only for {', '.join(SPACES)}. Give space: a "
            "dict from parameters to values, or a function of a trial."
        )
    defaults = {n: p.default for n, p in inspect.signature(type(estimator)).parameters.items()}
    chosen = set(fixed) | {n for n, value in held.items() if not _is_same(value, defaults.get(n))}
    left = {key: v for key, v in found[0].items() if not chosen.intersection(names_of(key))}
    if not left:
        raise ValueError(
            f"All parameters of the space of {name} are held: "
            f"{', '.join(n for key in found[0] for n in names_of(key))}. Leave one at its default."
        )
    return left


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
