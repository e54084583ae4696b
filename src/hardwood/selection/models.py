"""The models of a comparison: known models by name, and the user's estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.base import clone

import hardwood
from hardwood.selection import other_libraries

Kind = Literal["constant", "linear", "axis-aligned tree", "oblique tree", "ensemble", "other"]
Make = Callable[["Settings"], Any]

BUDGETED_TRIALS = 6  # candidates of a tree that chooses for itself, where there is no time limit
_LIBRARIES = {"XGBoost": "xgboost", "LightGBM": "lightgbm"}


@dataclass(frozen=True)
class Settings:
    """Settings of all models of a comparison.

    Attributes
    ----------
    has_classes
        Whether classes are predicted, or numbers.
    seed, n_jobs
        Of the fits.
    scoring
        The score: a scorer's name or a function.
    seconds
        What one fit of a tree that chooses for itself may take; None: as long as its candidates do.
    """

    has_classes: bool
    seed: int
    n_jobs: int
    scoring: Any = None
    seconds: float | None = None


@dataclass(frozen=True)
class ModelSpec:
    """A model to compare.

    Attributes
    ----------
    name, kind
        What it is called, and what it is.
    make
        A new estimator for one fit.
    is_budgeted
        Whether it takes the time it is given.
    """

    name: str
    kind: Kind
    make: Make
    is_budgeted: bool = False


def chosen(models: Any, *, has_classes: bool) -> tuple[list[ModelSpec], dict[str, str]]:
    """Return the models to compare, and those left out because a library is missing.

    Parameters
    ----------
    models
        Same as in `hardwood.compare`.
    has_classes
        Whether classes are predicted.

    Raises
    ------
    ValueError, TypeError
        For unknown names, names that occur twice, and what is no estimator.
    """
    if models is None:
        return _with_libraries(
            [*_DEFAULT, *([] if has_classes else ["oblique tree, linear leaves"])]
        )
    if isinstance(models, Mapping):
        found = [_given(name, model) for name, model in models.items()]
    elif isinstance(models, Sequence) and not isinstance(models, str):
        found = [_listed(entry) for entry in models]
    else:
        raise TypeError(
            "models must be None, a list of names and estimators, or a dict from names to "
            f"estimators, got {models!r:.80}."
        )
    names = [spec.name for spec in found]
    if not names:
        raise ValueError("models: there is none to compare.")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"models: {twice[0]!r} occurs twice; name them in a dict.")
    for name in names:
        if name in _LIBRARIES and found[names.index(name)] is KNOWN[name] and not _has(name):
            raise ValueError(f"models: {name} is not installed here.")
    return found, {}


def _with_libraries(names: list[str]) -> tuple[list[ModelSpec], dict[str, str]]:
    absent = {name: "not installed" for name in names if not _has(name)}
    return [KNOWN[name] for name in names if name not in absent], absent


def _has(name: str) -> bool:
    return name not in _LIBRARIES or other_libraries.is_there(_LIBRARIES[name])


def _listed(entry: Any) -> ModelSpec:
    if not isinstance(entry, str):
        return _given(type(entry).__name__, entry)
    if entry not in KNOWN:
        raise ValueError(f"models: {entry!r} is not known; known are {list(KNOWN)}.")
    return KNOWN[entry]


def _given(name: Any, model: Any) -> ModelSpec:
    if not isinstance(name, str) or not name:
        raise TypeError(f"models: names are text, found {name!r:.80}.")
    if isinstance(model, str):
        known = _listed(model)
        return ModelSpec(name, known.kind, known.make, known.is_budgeted)
    if isinstance(model, type) or not all(
        hasattr(model, n) for n in ("fit", "predict", "get_params")
    ):
        raise TypeError(
            f"models: {name!r} must be the name of a known model or an estimator with fit and "
            f"predict, got {model!r:.80}."
        )
    return ModelSpec(name, _kind_of(model), lambda settings: clone(model))


def _kind_of(model: Any) -> Kind:
    """Whether a model is one of our single trees, the subject of a comparison."""
    kinds = [kind for kind in type(model).__mro__ if kind.__module__.startswith("hardwood.")]
    is_ensemble = any("Forest" in kind.__name__ or "TEL" in kind.__name__ for kind in kinds)
    return "oblique tree" if kinds and not is_ensemble else "other"


def _tree(leaves: str) -> Make:
    def make(settings: Settings) -> Any:
        return _ours("Tree", settings)(
            leaves=leaves,
            time_limit=settings.seconds,
            max_trials=BUDGETED_TRIALS if settings.seconds is None else None,
            scoring=settings.scoring,
            random_state=settings.seed,
            n_jobs=settings.n_jobs,
        )

    return make


def _learner(name: str) -> Make:
    return lambda settings: _ours(name, settings)(
        random_state=settings.seed, n_jobs=settings.n_jobs
    )


def _ours(name: str, settings: Settings) -> Any:
    return getattr(hardwood, name + ("Classifier" if settings.has_classes else "Regressor"))


KNOWN = {
    spec.name: spec
    for spec in (
        ModelSpec("constant", "constant", other_libraries.constant),
        ModelSpec("linear", "linear", other_libraries.linear),
        ModelSpec("CART", "axis-aligned tree", other_libraries.cart),
        ModelSpec("oblique tree", "oblique tree", _tree("constant"), is_budgeted=True),
        ModelSpec("oblique tree, linear leaves", "oblique tree", _tree("linear"), True),
        ModelSpec("DGT", "oblique tree", _learner("DGT")),
        ModelSpec("TAO", "oblique tree", _learner("TAO")),
        ModelSpec("random forest", "ensemble", other_libraries.random_forest),
        ModelSpec("gradient boosting", "ensemble", other_libraries.boosting),
        ModelSpec("XGBoost", "ensemble", other_libraries.xgboost),
        ModelSpec("LightGBM", "ensemble", other_libraries.lightgbm),
    )
}
_DEFAULT = [name for name in KNOWN if name not in ("DGT", "TAO", "oblique tree, linear leaves")]
