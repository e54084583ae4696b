"""Tables as people have them, and models of every kind that are learned from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import time
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    DGTForestRegressor,
    DGTRegressor,
    GreedyTreeClassifier,
    GreedyTreeRegressor,
    LatentTreeClustering,
    LatentTreeRegressor,
    ReinforcedTreeClassifier,
    TELClassifier,
    TELRegressor,
    TreeClassifier,
    TreeRegressor,
    learn_from_rewards,
)
from hardwood.model.base import Model, model_of

N_ROWS = 60
QUOTED = 'the "best" of\'s'
MARKUP = "</script><b onclick='x'>&amp; bold</b>"
BROKEN = "first line\nsecond line\ttab"


@dataclass(frozen=True, eq=False)
class Messy:
    """A table, with classes and numbers to predict from it.

    Attributes
    ----------
    X
        The table.
    classes
        (n,) labels, or (n, k) of 0 and 1.
    numbers
        (n,) or (n, k).
    """

    X: pd.DataFrame
    classes: Any
    numbers: Any


def _of(columns: dict[str, Any], signal: np.ndarray, names: tuple[str, ...] = ("a", "b")) -> Messy:
    """Return a table whose classes and numbers follow from a signal."""
    order = np.argsort(np.argsort(signal, kind="stable"), kind="stable")
    places = (order * len(names)) // len(signal)
    return Messy(pd.DataFrame(columns), np.array(names, dtype=object)[places], signal)


def _gaps(rng: np.random.Generator, values: np.ndarray, share: float = 0.25) -> np.ndarray:
    """Replace some values by None."""
    gappy = np.asarray(values).astype(object)
    gappy[rng.random(len(gappy)) < share] = None
    return gappy


def _missing(rng: np.random.Generator) -> Messy:
    x = rng.normal(40, 5, size=(N_ROWS, 3))
    x[rng.random(x.shape) < 0.3] = np.nan
    signal = np.nan_to_num(x[:, 0], nan=60.0) + 0.5 * np.nan_to_num(x[:, 1], nan=20.0)
    return _of({"age": x[:, 0], "size": x[:, 1], "always here": rng.normal(size=N_ROWS)}, signal)


def _levels(rng: np.random.Generator) -> Messy:
    color = rng.choice(["red", "green", "blue", "missing", "a, b"], N_ROWS)
    grade = rng.choice([1, 2, 5], N_ROWS)
    signal = (color == "red") * 3.0 + grade + (color == "missing")
    columns = {
        "color": _gaps(rng, color),
        "grade": pd.Categorical(grade),
        "sure": rng.random(N_ROWS) < 0.5,
    }
    return _of(columns, signal + 0.01 * rng.normal(size=N_ROWS))


def _dates(rng: np.random.Generator) -> Messy:
    days = rng.integers(0, 900, N_ROWS)
    joined = pd.Series(pd.Timestamp("2019-01-22") + pd.to_timedelta(days, unit="D"))
    delay = pd.Series(pd.to_timedelta(rng.integers(1, 5000, N_ROWS), unit="s"))
    joined[rng.random(N_ROWS) < 0.2] = pd.NaT
    delay[rng.random(N_ROWS) < 0.2] = pd.NaT
    woken = [time(int(hour), 30) for hour in rng.integers(0, 24, N_ROWS)]
    signal = days + delay.dt.total_seconds().fillna(9000).to_numpy() / 10
    return _of({"joined": joined, "delay": delay, "woken at": woken}, signal)


def _units(rng: np.random.Generator) -> Messy:
    width = rng.integers(10, 20, N_ROWS)
    weight = rng.normal(3, 1, N_ROWS)
    columns = {
        "width": [f"{w} cm" for w in width],
        "weight": _gaps(rng, np.array([f"{w:.0f}kg" for w in weight])),
        "price": [f"$ {int(p)},000.50" for p in rng.integers(1, 4, N_ROWS)],
    }
    return _of(columns, width + weight)


def _constant(rng: np.random.Generator) -> Messy:
    x = rng.normal(size=N_ROWS)
    columns = {
        "same number": np.full(N_ROWS, 7.0),
        "same text": ["x"] * N_ROWS,
        "same or missing": _gaps(rng, np.full(N_ROWS, 3.5)),
        "varied": x,
    }
    return _of(columns, x)


def _one_column(rng: np.random.Generator) -> Messy:
    x = rng.integers(0, 30, N_ROWS)
    return _of({"x": x}, np.abs(x - 15) + 0.001 * x)


def _wide(rng: np.random.Generator) -> Messy:
    x = rng.normal(size=(N_ROWS, 200))
    signal = x[:, :5].sum(axis=1)
    return _of({f"column {j}": x[:, j] for j in range(200)}, signal)


def _hostile(rng: np.random.Generator) -> Messy:
    x = rng.normal(size=N_ROWS)
    x[::7] = np.nan
    kinds = rng.choice([QUOTED, MARKUP, BROKEN], N_ROWS)
    columns = {QUOTED: x, MARKUP: kinds, BROKEN: rng.normal(size=N_ROWS), " ": x**2}
    signal = np.nan_to_num(x) + 2 * (kinds == MARKUP)
    return _of(columns, signal, (MARKUP, BROKEN, QUOTED))


def _rare(rng: np.random.Generator) -> Messy:
    x = rng.normal(size=(N_ROWS, 2))
    table = _of({"u": x[:, 0], "v": x[:, 1]}, np.exp(3 * x[:, 0]))
    classes = table.classes.copy()
    classes[np.argmax(x[:, 0])] = "seen once"
    classes[np.argsort(x[:, 1])[:2]] = "seen twice"
    return Messy(table.X, classes, table.numbers)


def _one_leaf(rng: np.random.Generator) -> Messy:
    columns = {"u": np.full(N_ROWS, 2.0), "v": ["only"] * N_ROWS}
    return _of(columns, rng.normal(size=N_ROWS))


def _several_targets(rng: np.random.Generator) -> Messy:
    x = rng.normal(size=(N_ROWS, 3))
    signals = np.stack([x[:, 0], x[:, 1] - x[:, 0], x[:, 2] ** 2], axis=1)
    frame = pd.DataFrame(x, columns=["u", "v", "w"])
    labels = pd.DataFrame((signals > signals.mean(axis=0)).astype(int), columns=["p", "q", "r"])
    return Messy(frame, labels, pd.DataFrame(signals, columns=["up", "down", MARKUP]))


def _mixed(rng: np.random.Generator) -> Messy:
    parts = [make(rng).X for make in (_missing, _levels, _dates, _units, _hostile)]
    signal = parts[0]["age"].fillna(50).to_numpy() + 5 * parts[1]["sure"].to_numpy()
    columns = pd.concat([part.reset_index(drop=True) for part in parts], axis=1)
    return _of(dict(columns), signal + rng.normal(size=N_ROWS), ("no", "perhaps", "yes"))


TABLES: dict[str, Callable[[np.random.Generator], Messy]] = {
    "missing numbers": _missing,
    "levels": _levels,
    "dates": _dates,
    "numbers with units": _units,
    "constant columns": _constant,
    "one column": _one_column,
    "wide": _wide,
    "hostile names": _hostile,
    "rare classes": _rare,
    "one leaf": _one_leaf,
    "several targets": _several_targets,
    "mixed": _mixed,
}


@cache
def table(name: str) -> Messy:
    """Return one of the tables; the same in every run."""
    return TABLES[name](np.random.default_rng(len(name)))


# Models

_EPOCHS: dict[str, Any] = {"max_epochs": 3, "max_depth": 2, "random_state": 0}
_SEARCH: dict[str, Any] = {
    "time_limit": None,
    "max_trials": 2,
    "max_depth": 3,
    "teacher": None,
    "random_state": 0,
}
_THREE_BRANCHES = [-1, 0, 0, 0, 1, 1, 1]


def _rewarded(messy: Messy) -> Any:
    """Learn actions from the reward of guessing the (first) class."""
    right = np.asarray(messy.classes).reshape(N_ROWS, -1)[:, 0]
    return learn_from_rewards(
        messy.X,
        lambda rows, actions: (actions == right[rows]).astype(float),
        actions=np.unique(right).tolist(),
        **_EPOCHS,
    ).policy_


KINDS: dict[str, Callable[[Messy], Any]] = {
    "axis-aligned": lambda t: GreedyTreeClassifier(max_depth=4).fit(t.X, t.classes),
    "axis-aligned numbers": lambda t: GreedyTreeRegressor(max_depth=4).fit(t.X, t.numbers),
    "oblique": lambda t: DGTClassifier(**_EPOCHS).fit(t.X, t.classes),
    "search": lambda t: TreeClassifier(**_SEARCH).fit(t.X, t.classes),
    "search numbers": lambda t: TreeRegressor(**_SEARCH).fit(t.X, t.numbers),
    "linear": lambda t: DGTClassifier(**_EPOCHS, leaves="linear").fit(t.X, t.classes),
    "linear numbers": lambda t: DGTRegressor(**_EPOCHS, leaves="linear").fit(t.X, t.numbers),
    "forest": lambda t: DGTForestClassifier(**_EPOCHS, n_estimators=3, combine="vote").fit(
        t.X, t.classes
    ),
    "forest numbers": lambda t: DGTForestRegressor(**_EPOCHS, n_estimators=3).fit(t.X, t.numbers),
    "soft": lambda t: TELClassifier(**_EPOCHS, n_estimators=2).fit(t.X, t.classes),
    "soft numbers": lambda t: TELRegressor(**_EPOCHS, n_estimators=2).fit(t.X, t.numbers),
    "hardened": lambda t: fitted("soft", t).harden(),
    "policy": lambda t: ReinforcedTreeClassifier(**_EPOCHS).fit(t.X, t.classes).policy_,
    "three branches": lambda t: ReinforcedTreeClassifier(**_EPOCHS, parents=_THREE_BRANCHES).fit(
        t.X, t.classes
    ),
    "rewards": _rewarded,
    "latent": lambda t: LatentTreeRegressor(**_EPOCHS).fit(t.X, t.numbers),
    "clusters": lambda t: LatentTreeClustering(**_EPOCHS).fit(t.X),
}
NEED_TORCH = ("latent", "clusters")


@cache
def fitted(kind: str, messy: Messy) -> Model:
    """Return a model of a kind, learned from a table."""
    return model_of(KINDS[kind](messy))


def truth(model: Model, messy: Messy) -> Any:
    """Return what a model should have predicted for its table."""
    n_outputs = 1 if model.classes is not None else model.n_outputs
    given = np.asarray(messy.numbers if model.task == "regression" else messy.classes)
    columns = given.reshape(N_ROWS, -1)
    if columns.shape[1] == n_outputs:
        return given
    if model.classes is not None:  # of several labels the first, which is to be guessed
        return columns[:, 0]
    return np.arange(N_ROWS)[:, None] + model.outputs(messy.X)  # the targets of clusters
