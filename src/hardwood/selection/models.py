"""Who takes part in a comparison: models by name, and estimators of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.base import clone

from hardwood.selection import peers

Kind = Literal["constant", "linear", "axis-aligned tree", "oblique tree", "ensemble", "other"]
Make = Callable[["Terms"], Any]

BUDGETED_TRIALS = 6  # candidates of a tree that chooses for itself, where there is no time limit
_LIBRARIES = {"XGBoost": "xgboost", "LightGBM": "lightgbm"}


@dataclass(frozen=True)
class Terms:
    """What all models of a comparison have in common.

    Attributes
    ----------
    has_classes
        Whether classes are predicted, or numbers.
    seed, n_jobs
        Of the fits.
    scoring
        What is judged by: a scorer's name or a function.
    seconds
        What one fit of a tree that chooses for itself may take; None: as long as its candidates do.
    """

    has_classes: bool
    seed: int
    n_jobs: int
    scoring: Any = None
    seconds: float | None = None


@dataclass(frozen=True)
class Contestant:
    """A model that takes part.

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


def chosen(models: Any, *, has_classes: bool) -> tuple[list[Contestant], dict[str, str]]:
    """Return who takes part, and who does not for want of a library, with the reason.

    Parameters
    ----------
    models
        As of `hardwood.compare`.
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
    names = [contestant.name for contestant in found]
    if not names:
        raise ValueError("models: there is none to compare.")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"models: {twice[0]!r} occurs twice; name them in a dict.")
    for name in names:
        if name in _LIBRARIES and found[names.index(name)] is KNOWN[name] and not _has(name):
            raise ValueError(f"models: {name} is not installed here.")
    return found, {}


def _with_libraries(names: list[str]) -> tuple[list[Contestant], dict[str, str]]:
    absent = {name: "not installed" for name in names if not _has(name)}
    return [KNOWN[name] for name in names if name not in absent], absent


def _has(name: str) -> bool:
    return name not in _LIBRARIES or peers.is_there(_LIBRARIES[name])


def _listed(entry: Any) -> Contestant:
    if not isinstance(entry, str):
        return _given(type(entry).__name__, entry)
    if entry not in KNOWN:
        raise ValueError(f"models: {entry!r} is not known; known are {list(KNOWN)}.")
    return KNOWN[entry]


def _given(name: Any, model: Any) -> Contestant:
    if not isinstance(name, str) or not name:
        raise TypeError(f"models: names are text, found {name!r:.80}.")
    if isinstance(model, str):
        known = _listed(model)
        return Contestant(name, known.kind, known.make, known.is_budgeted)
    if isinstance(model, type) or not all(
        hasattr(model, n) for n in ("fit", "predict", "get_params")
    ):
        raise TypeError(
            f"models: {name!r} must be the name of a known model or an estimator with fit and "
            f"predict, got {model!r:.80}."
        )
    return Contestant(name, _kind_of(model), lambda terms: clone(model))


def _kind_of(model: Any) -> Kind:
    """Tell our single trees from others': they are what a comparison is about."""
    kinds = [kind for kind in type(model).__mro__ if kind.__module__.startswith("hardwood.")]
    is_ensemble = any("Forest" in kind.__name__ or "TEL" in kind.__name__ for kind in kinds)
    return "oblique tree" if kinds and not is_ensemble else "other"


def _peer(make: Callable[..., Any]) -> Make:
    return lambda terms: make(terms.has_classes, terms.seed, terms.n_jobs, terms.scoring)


def _tree(leaves: Literal["constant", "linear"]) -> Make:
    def make(terms: Terms) -> Any:
        from hardwood.estimators.tree import TreeClassifier, TreeRegressor

        return (TreeClassifier if terms.has_classes else TreeRegressor)(
            leaves=leaves,
            time_limit=terms.seconds,
            max_trials=BUDGETED_TRIALS if terms.seconds is None else None,
            scoring=terms.scoring,
            random_state=terms.seed,
            n_jobs=terms.n_jobs,
        )

    return make


def _dgt(terms: Terms) -> Any:
    from hardwood.estimators.dgt import DGTClassifier, DGTRegressor

    kind = DGTClassifier if terms.has_classes else DGTRegressor
    return kind(random_state=terms.seed, n_jobs=terms.n_jobs)


def _tao(terms: Terms) -> Any:
    from hardwood.estimators.tao import TAOClassifier, TAORegressor

    kind = TAOClassifier if terms.has_classes else TAORegressor
    return kind(random_state=terms.seed, n_jobs=terms.n_jobs)


KNOWN = {
    contestant.name: contestant
    for contestant in (
        Contestant("constant", "constant", _peer(peers.constant)),
        Contestant("linear", "linear", _peer(peers.linear)),
        Contestant("CART", "axis-aligned tree", _peer(peers.cart)),
        Contestant("oblique tree", "oblique tree", _tree("constant"), is_budgeted=True),
        Contestant(
            "oblique tree, linear leaves", "oblique tree", _tree("linear"), is_budgeted=True
        ),
        Contestant("DGT", "oblique tree", _dgt),
        Contestant("TAO", "oblique tree", _tao),
        Contestant("random forest", "ensemble", _peer(peers.random_forest)),
        Contestant("gradient boosting", "ensemble", _peer(peers.boosting)),
        Contestant("XGBoost", "ensemble", _peer(peers.xgboost)),
        Contestant("LightGBM", "ensemble", _peer(peers.lightgbm)),
    )
}
_DEFAULT = (
    "constant",
    "linear",
    "CART",
    "oblique tree",
    "random forest",
    "gradient boosting",
    "XGBoost",
    "LightGBM",
)
