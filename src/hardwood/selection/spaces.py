"""What is searched: for every estimator the values that its paper tried, as data.

A space is a mapping. Its keys are names of parameters, or tuples of names that are chosen together;
its values are lists of what to try, a `Range`, or `When`, which depends on an earlier choice. Where
that is not enough, a space is a function of an Optuna trial that returns parameters.
"""

from __future__ import annotations

import difflib
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hardwood.learn.tao import PENALTIES as TAO_PENALTIES

_MAX_GRID = 100_000
_MAX_POINTS = 10_000


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included: whole ones where both are.

    Parameters
    ----------
    low, high
        The ends.
    log
        Whether to draw on a logarithmic scale; `low` must then be positive.
    step
        Distance of neighbouring values; None for every number between.
    or_zero
        Whether to draw zero instead, with even chances: for penalties, which may do nothing.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    or_zero: bool = False

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(f"A Range goes from a lower to a higher number, found {self!r}.")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError(
                f"A logarithmic Range is of positive numbers and has no step, found {self!r}."
            )
        if self.step is not None and not self.step > 0:
            raise ValueError(f"The step of a Range is positive, found {self!r}.")

    @property
    def is_whole(self) -> bool:
        """Whether only integers are meant."""
        given = (self.low, self.high, 1 if self.step is None else self.step)
        return all(isinstance(number, int) for number in given)


@dataclass(frozen=True)
class When:
    """Values that depend on a parameter which was chosen before, or is held.

    Parameters
    ----------
    parameter
        Its name.
    equals
        What it is compared with.
    then, otherwise
        The values where it is equal, and where it is not: lists or a `Range`.
    """

    parameter: str
    equals: Any
    then: Any
    otherwise: Any


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
    "entropy": (0.0, 0.3, 0.6, 1.0),
    "l2": (0.0, 1e-5, 1e-4),
}

# [LT21] Sec. 4 searches depth, lambda, splits and predictor; the ranges are ours.
_LATENT = {
    "max_depth": Range(2, 8),
    "pruning": Range(1e-2, 1e3, log=True, or_zero=True),
    "split": ("linear", "elu"),
    "skip": (True, False),
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

SPACES: dict[str, Mapping[Any, Any]] = {
    "DGTClassifier": _DGT | {"momentum": (0.0, 0.3, 0.8)},
    "DGTRegressor": _DGT | {"momentum": (0.0, 0.3)},
    "DGTForestClassifier": _DGT_FOREST,
    "DGTForestRegressor": _DGT_FOREST,
    "GreedyTreeClassifier": _GREEDY | {"criterion": ("entropy", "gini")},
    "GreedyTreeRegressor": _GREEDY,
    "LatentTreeClassifier": _LATENT,
    "LatentTreeRegressor": _LATENT,
    "TELClassifier": _TEL,
    "TELRegressor": _TEL,
    "NonGreedyTreeClassifier": _NON_GREEDY,
    "NonGreedyTreeRegressor": _NON_GREEDY,
    "ReinforcedTreeClassifier": _REINFORCED,
    "ReinforcedTreeRegressor": _REINFORCED,
    "TAOClassifier": _TAO,
    "TAORegressor": _TAO,
}
"""The spaces by the name of the estimator's class."""

Suggest = Callable[[Any], dict[str, Any]]
"""From an Optuna trial to parameters of an estimator."""


@dataclass(frozen=True)
class MappingSpace:
    """A space given as a mapping; calling it with a trial chooses parameters.

    Parameters
    ----------
    entries
        The mapping.
    held
        Parameters of the estimator, for what `When` asks of those that are not searched.
    """

    entries: Mapping[Any, Any]
    held: Mapping[str, Any]

    def __call__(self, trial: Any) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        for key, values in self.entries.items():
            names = _names(key)
            label = ", ".join(names)
            if isinstance(values, When):
                label, values = self._branch(label, values, chosen)
            choice = _choose(trial, label, values, names)
            chosen.update(zip(names, choice if isinstance(key, tuple) else (choice,), strict=True))
        return chosen

    def _branch(self, label: str, when: When, chosen: Mapping[str, Any]) -> tuple[str, Any]:
        known = chosen.get(when.parameter, self.held.get(when.parameter))
        if known == when.equals:
            # Optuna wants the values of one name to be the same in every trial.
            return f"{label} ({when.parameter}={when.equals!r})", when.then
        return label, when.otherwise


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
        _check_entries(space, held, type(estimator).__name__)
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
        _check_known(name, known, type(estimator).__name__)
    return dict(chosen)


def as_text(value: Any) -> str:
    """Return a value in words without anything that changes from run to run."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_text, value))}]"
    text = getattr(value, "__qualname__", None) or repr(value)
    return type(value).__name__ if " at 0x" in text else text


def described(suggest: Suggest) -> str:
    """Return a space as text, the same for the same space."""
    if not isinstance(suggest, MappingSpace):
        return f"function {getattr(suggest, '__qualname__', type(suggest).__name__)}"
    return repr({_names(key): as_text(values) for key, values in suggest.entries.items()})


def grid(suggest: Suggest) -> list[dict[str, Any]]:
    """Enumerate a space: the answers to its `suggest_...` calls by name, on every path through it.

    Raises
    ------
    ValueError
        Where a parameter has no finite number of values, or there are more than 100,000 points.
    """
    points = []
    for point in _paths(suggest):
        points.append(point)
        if len(points) > _MAX_GRID:
            raise ValueError(
                f"The grid has more than {_MAX_GRID:,} points. Give fewer values, or "
                "sampler='random'."
            )
    return points


def finite_points(suggest: Suggest) -> list[dict[str, Any]]:
    """Enumerate a mapping of at most 10,000 points; an empty list for all other spaces."""
    if not isinstance(suggest, MappingSpace) or not all(
        _is_finite(values) for values in suggest.entries.values()
    ):
        return []
    points = list(itertools.islice(_paths(suggest), _MAX_POINTS + 1))
    return points if len(points) <= _MAX_POINTS else []


def _is_finite(values: Any) -> bool:
    if isinstance(values, When):
        return _is_finite(values.then) and _is_finite(values.otherwise)
    return not isinstance(values, Range) or values.is_whole or values.step is not None


class _Path:
    """A trial that answers by a list of positions, and continues with first values at its end."""

    def __init__(self, positions: list[list[int]]) -> None:
        self.positions = positions
        self.params: dict[str, Any] = {}

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Return the choice at the position of this call."""
        if name in self.params:  # asked again: the same answer, as in Optuna
            return self.params[name]
        depth = len(self.params)
        if depth == len(self.positions):
            self.positions.append([0, len(choices)])
        self.params[name] = choices[self.positions[depth][0]]
        return self.params[name]

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Choose among the integers; `log` changes their chances only."""
        return self.suggest_categorical(name, range(low, high + 1, step))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Choose among numbers at a distance of `step`."""
        if step is None:
            raise ValueError(
                f"A grid needs a finite number of values, but '{name}' is any number from {low:g} "
                f"to {high:g}. Give a list of values or a step, or sampler='random'."
            )
        n = math.floor((high - low) / step + 1e-9) + 1
        return self.suggest_categorical(name, [min(low + i * step, high) for i in range(n)])


def _paths(suggest: Suggest) -> Iterator[dict[str, Any]]:
    positions: list[list[int]] = []  # per call: which value, of how many
    while True:
        path = _Path(positions)
        suggest(path)
        yield path.params
        while positions and positions[-1][0] == positions[-1][1] - 1:
            positions.pop()
        if not positions:
            return
        positions[-1][0] += 1


def _names(key: Any) -> tuple[str, ...]:
    return key if isinstance(key, tuple) else (key,)


def _built_in(estimator: Any, held: Mapping[str, Any], fixed: tuple[str, ...]) -> Mapping[Any, Any]:
    name = type(estimator).__name__
    for parameter in fixed:
        _check_known(parameter, held, name)
    found = [SPACES[kind.__name__] for kind in type(estimator).__mro__ if kind.__name__ in SPACES]
    if not found:
        raise ValueError(
            f"There is no built-in space for {name}, only for {', '.join(SPACES)}. Give space: a "
            "dict from parameters to values, or a function of a trial."
        )
    defaults = {n: p.default for n, p in inspect.signature(type(estimator)).parameters.items()}
    chosen = set(fixed) | {n for n, value in held.items() if not _is_same(value, defaults.get(n))}
    left = {key: v for key, v in found[0].items() if not chosen.intersection(_names(key))}
    if not left:
        raise ValueError(
            f"All parameters of the space of {name} are held: "
            f"{', '.join(n for key in found[0] for n in _names(key))}. Leave one at its default."
        )
    return left


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _check_entries(space: Mapping[Any, Any], held: Mapping[str, Any], estimator: str) -> None:
    if not space:
        raise ValueError("The space is empty: there is nothing to choose.")
    seen: list[str] = []
    for key, values in space.items():
        for name in _names(key):
            _check_known(name, held, estimator)
            if name in seen:
                raise ValueError(f"'{name}' is in the space more than once.")
        if isinstance(values, When):
            _check_known(values.parameter, held, estimator)
            later = {n for other in space for n in _names(other)} - set(seen)
            if values.parameter in later:
                raise ValueError(
                    f"The values of {key!r} depend on '{values.parameter}', which must come before "
                    "it in the space."
                )
        for branch in (values.then, values.otherwise) if isinstance(values, When) else (values,):
            _check_values(key, branch)
        seen.extend(_names(key))


def _check_known(name: Any, known: Mapping[str, Any], estimator: str) -> None:
    if name in known:
        return
    close = difflib.get_close_matches(str(name), list(known), n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    raise ValueError(f"{estimator} has no parameter {name!r}.{hint}")


def _check_values(key: Any, values: Any) -> None:
    if isinstance(values, Range):
        if isinstance(key, tuple):
            raise ValueError(f"{key!r} are chosen together, from a list of tuples; found {values}.")
        return
    if isinstance(values, str) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise ValueError(
            f"The values of {key!r} must be a list, a Range or a When, found {values!r}."
        )
    if len(values) == 0:
        raise ValueError(f"The list of values of {key!r} is empty.")
    if isinstance(key, tuple) and any(
        not isinstance(each, tuple | list) or len(each) != len(key) for each in values
    ):
        raise ValueError(
            f"{key!r} are chosen together: each value must be a tuple of {len(key)}, found "
            f"{values!r}."
        )
    words = _words(list(values), _names(key))
    repeated = [word for i, word in enumerate(words) if word in words[:i]]
    if repeated:
        raise ValueError(f"The values of {key!r} hold {repeated[0]!r} more than once.")


def _choose(trial: Any, label: str, values: Any, names: tuple[str, ...]) -> Any:
    if isinstance(values, Range):
        return _choose_number(trial, label, values)
    values = [value.item() if hasattr(value, "item") else value for value in values]
    if len(values) == 1:
        return values[0]
    # Optuna stores plain values only: others are chosen by a word for each.
    words = _words(values, names)
    return values[words.index(trial.suggest_categorical(label, words))]


def _choose_number(trial: Any, label: str, values: Range) -> float:
    if values.or_zero and trial.suggest_categorical(f"{label} is zero", [True, False]):
        return 0.0
    if values.is_whole:
        step = 1 if values.step is None else values.step
        return trial.suggest_int(label, values.low, values.high, step=step, log=values.log)
    return trial.suggest_float(label, values.low, values.high, step=values.step, log=values.log)


def _words(values: list[Any], names: tuple[str, ...]) -> list[Any]:
    """Return each value itself where it is plain, else a text for it, the same in every process."""
    if len(names) > 1:
        return [
            ", ".join(f"{n}={part!r}" for n, part in zip(names, value, strict=True))
            for value in values
        ]
    return [
        value if value is None or isinstance(value, bool | int | float | str) else as_text(value)
        for value in values
    ]
