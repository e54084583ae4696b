"""Hostile calls of every function that the engine exposes, found by introspection.

Each function of ``hardwood._native`` has a valid call here to start from. The fuzzer replaces some
of its arguments, at any depth, by others of about the right kind: arrays of another size, dtype,
layout or content, numbers far out of range, options that are missing or strange, objects that were
never initialized or belong to another table. A call must return or raise one of `REFUSALS`; objects
that were accepted are used afterwards, since nonsense may be noticed only then.

::

    python tests/fuzz/native_calls.py --calls 100000 --seed 1

Under the sanitizers (``make sanitize``) a read out of bounds or a freed array ends the process; the
last call is in the file given by ``--log``.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import gc
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from hardwood import _native
from hardwood.bandit.parameters import BanditParameters, RegressionParameters
from hardwood.learn.greedy import Greedy

REFUSALS = (ValueError, TypeError, OverflowError, MemoryError, BufferError)
"""What a call may raise. A RuntimeError or a KeyError says nothing that a caller could use."""

SECONDS = 0.3
"""After which a call that can be interrupted is."""

Arguments = dict[str, Any]
Random = np.random.Generator


class TimeUpError(Exception):
    """Raised by the alarm in a call that takes long."""


# --- what there is to call ----------------------------------------------------------------------


def entry_points() -> list[str]:
    """All functions, constructors, methods and properties of the engine, by name."""
    names = []
    for name, value in vars(_native).items():
        if isinstance(value, type):
            names += [f"{name}.{member}" for member in vars(value) if _is_entry(value, member)]
        elif callable(value):
            names.append(name)
    return sorted(names)


def _is_entry(owner: type, member: str) -> bool:
    return member == "__init__" or not member.startswith("_")


N, K = 12, 3


class Objects:
    """Valid objects of every class over one table, and others that calls have made.

    A mixed table has a category and missing entries; one of numbers may be sparse.
    """

    def __init__(self, rng: Random, *, mixed: bool) -> None:
        self.rng = rng
        self.mixed = mixed
        self.made: dict[type, list[Any]] = {}
        self.encoder = _native.Encoder(**encoder_arguments(mixed=mixed))
        self.other = _native.Encoder(**encoder_arguments(mixed=not mixed))
        self.columns = self.encoder.n_columns
        self.router = _native.Router(**self.router_arguments())
        self.leaves = _native.LeafModels(**self.leaf_arguments())
        self.forest = _native.ForestRouter(**self.forest_arguments())
        self.soft = _native.SoftRouter(**self.soft_arguments())
        self.policy = _native.PolicyRouter(**self.policy_arguments())
        self.table = _native.TaoTable(**self.table_arguments())
        self.search = getattr(_native, SEARCH)(**search_arguments())

    @property
    def feature_of_column(self) -> list[int]:
        return [0, 0, 1, 1, 1, 1, 2] if self.mixed else [0, 1, 2]

    def bandit(self) -> Any:
        """A new engine that has learned a little."""
        bandit = _native.BanditEngine(**self.bandit_arguments())
        bandit.replay(normal(self.rng, 30, 4, dtype="f4"), normal(self.rng, 30, K), None)
        return bandit

    def regression(self, methods: tuple[str, ...] = RegressionParameters.METHODS) -> Any:
        """Likewise."""
        engine = _native.BanditRegressionEngine(**self.regression_arguments(methods))
        X, y = normal(self.rng, 30, 4, dtype="f4"), normal(self.rng, 30)
        engine.replay(X, y, "squared", 0.0)
        return engine

    def rows(self, n: int = N) -> np.ndarray:
        X = normal(self.rng, n, 3)
        X[:, 1] = self.rng.integers(0, 3, n)
        X[self.rng.random(X.shape) < 0.1] = np.nan
        return X if self.rng.random() < 0.5 else X.astype("f4")

    def sparse_rows(self) -> Any:
        X = normal(self.rng, N, 3)
        X[self.rng.random(X.shape) < 0.5] = 0
        matrix = sparse.csr_matrix(X)
        if self.rng.random() < 0.5:
            matrix.indices = matrix.indices.astype("i8")
        return matrix

    def router_arguments(self) -> Arguments:
        return {
            "encoder": self.encoder,
            "weights": normal(self.rng, 3, self.columns),
            "bias": normal(self.rng, 3),
            "children": np.array([[1, 2], [-1, -2], [-3, -4]], "i4"),
            "n_leaves": 4,
        }

    def leaf_arguments(self) -> Arguments:
        return {
            "encoder": self.encoder,
            "values": normal(self.rng, 4, K),
            "weights": normal(self.rng, 4, K, self.columns),
            "link": "softmax",
        }

    def forest_arguments(self) -> Arguments:
        return {
            "routers": [self.router, self.router],
            "leaves": [self.leaves, normal(self.rng, 4, K)],
            "vote": "none",
            "is_sum": True,
        }

    def soft_arguments(self) -> Arguments:
        return {
            "encoder": self.encoder,
            "weights": normal(self.rng, 2, 3, self.columns),
            "bias": normal(self.rng, 2, 3),
            "values": normal(self.rng, 2, 4, K),
            "gamma": 1.0,
            "activation": "smooth_step",
        }

    def policy_arguments(self) -> Arguments:
        return {
            "encoder": self.encoder,
            "weights": normal(self.rng, 3, self.columns),
            "bias": normal(self.rng, 3),
            "child": np.array([1, 2, 3, 4, 5], "i4"),
            "n_children": np.array([3, 2, 0, 0, 0, 0], "i4"),
            "exponents": np.zeros(6, "i4"),
        }

    def table_arguments(self) -> Arguments:
        rows = np.arange(N, dtype="i8")
        return {"encoder": self.encoder, "X": self.rows(), "rows": rows, "n_threads": 1}

    def bandit_arguments(self) -> Arguments:
        method = str(self.rng.choice(BanditParameters.METHODS))
        options = BanditParameters(method=method).for_engine(4, K)
        return {"n_columns": 4, "n_actions": K, "height": 2, "options": options, "seed": 1}

    def regression_arguments(
        self, methods: tuple[str, ...] = RegressionParameters.METHODS
    ) -> Arguments:
        method = str(self.rng.choice(methods))
        options = RegressionParameters(method=method).for_engine(4)
        return {"n_columns": 4, "height": 2, "options": options, "seed": 1}

    def tree_arguments(self) -> Arguments:
        """Of the sweeps of TAO."""
        constant = bool(self.rng.random() < 0.5)
        return {
            "children": np.array([[1, -3], [-1, -2]], "i4"),
            "weights": normal(self.rng, 2, self.columns, dtype="f4"),
            "bias": normal(self.rng, 2, dtype="f4"),
            "scores": normal(self.rng, 3, K, dtype="f4"),
            "leaf_weights": None if constant else normal(self.rng, 3 * K, self.columns, dtype="f4"),
            "class_losses": normal(self.rng, 3, K, dtype="f4") if constant else None,
            "target": self.rng.integers(0, K, (N, 1)).astype("f4"),
            "weight": np.ones(N, "f4"),
            "loss": "cross_entropy",
            "loss_parameter": 0.0,
        }

    def fit_arguments(self) -> Arguments:
        method = str(self.rng.choice(sorted(OWN_OPTIONS)))
        has_classes = self.rng.random() < 0.5
        own: Arguments = {}
        if method == "non_greedy":
            own = {"feature_of_column": self.feature_of_column}
        if method == "semantic" and has_classes:
            own = {"classes": [leaf % K for leaf in range(4)], "n_mixed": 1}
        y = self.rng.integers(0, K, (N, 1)) if has_classes else normal(self.rng, N, K)
        return {
            "method": method,
            "encoder": self.encoder,
            "matrix": self.rows(),
            "y": y.astype("f4"),
            "weight": np.ones(N, "f4"),
            "train": np.arange(8, dtype="i8"),
            "valid": np.arange(8, N, dtype="i8"),
            "n_outputs": K,
            "loss": "cross_entropy" if has_classes else "squared_error",
            "loss_parameter": 0.0,
            "custom": None,
            "start": None,
            "first_run": 0,
            "n_runs": 1,
            "n_draws": 5 if self.rng.random() < 0.3 else None,
            "keep_all": False,
            "seed": 1,
            "n_threads": 1,
            "callback": None,
            "options": copy.deepcopy(LOOP_OPTIONS | OWN_OPTIONS[method]) | own,
        }

    def greedy_arguments(self) -> Arguments:
        splitter = str(self.rng.choice(["axis", "random", "oc1", "co2"]))
        return {
            "encoder": self.encoder,
            "X": self.rows(),
            "target": self.rng.integers(0, K, (N, 1)).astype("f4"),
            "weight": np.ones(N, "f4"),
            "count": np.ones(N),
            "train_rows": np.arange(N, dtype="i8"),
            "n_outputs": K,
            "seed": 1,
            "n_threads": 1,
            "options": Greedy(max_depth=3, splitter=splitter).engine_options("classification"),
        }


SEARCH = "CounterfactualSearch"


def normal(rng: Random, *shape: int, dtype: str = "f8") -> np.ndarray:
    return rng.normal(size=shape).astype(dtype)


def encoder_arguments(*, mixed: bool = True) -> Arguments:
    """A number with a flag, three levels with a flag, a number; or three numbers."""
    return {
        "kinds": np.array([0, 1, 0] if mixed else [0, 0, 0], "u1"),
        "first_column": np.array([0, 2, 6] if mixed else [0, 1, 2], "i4"),
        "n_levels": np.array([0, 3, 0] if mixed else [0, 0, 0], "i4"),
        "flag_column": np.array([1, 5, -1] if mixed else [-1, -1, -1], "i4"),
        "center": np.array([0.5, 0.0, 0.0]),
        "scale": np.array([1.0, 1.0, 2.0]),
        "n_columns": 7 if mixed else 3,
    }


def search_arguments() -> Arguments:
    """Two numbers and a category."""
    return {
        "kind": np.array([0, 1, 2], "u1"),
        "first_column": np.array([0, 1, 2], "i4"),
        "n_levels": np.array([0, 0, 3], "i4"),
        "cost": np.ones(3),
        "may_become": np.ones(5, "u1"),
        "normals": np.array([[1.0, 1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0, -1.0]]),
        "bias": np.array([-1.0, 0.5]),
        "sizes": np.ones(2),
        "first": np.array([0, 1, 3], "i8"),
        "members": np.array([0, -1, 1], "i4"),
    }


LOOP_OPTIONS: Arguments = {
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.0,
    "decay": 0.99,
    "epsilon": 1e-8,
    "l1": 0.0,
    "l2": 0.0,
    "schedule": "constant",
    "schedule_cycles": 1,
    "noise": 0.0,
    "clip_norm": 1.0,
    "batch_size": 5,
    "max_epochs": 2,
    "patience": 0,
    "hidden": [],
}
OWN_OPTIONS: dict[str, Arguments] = {
    "dgt": {
        "height": 2,
        "linear_leaves": False,
        "path": "sum",
        "quantizer": "sign",
        "routing": "quantized",
        "sharpness": [1.0, 2.0],
        "annealing": "log",
    },
    "semantic": {"height": 2, "linear_leaves": False, "classes": [], "n_mixed": 2},
    "tel": {"n_trees": 2, "depth": 2, "activation": "logistic", "gamma": 1.0, "batch_norm": True},
    "non_greedy": {
        "children": np.array([[1, -3], [-1, -2]], "i4"),
        "nu": [1.0],
        "inference": "exact",
        "stable": True,
        "max_features": 2,
    },
    "reinforced": {
        "parents": np.array([-1, 0, 0, 1, 1, 1], "i4"),
        "n_actions": 0,
        "estimator": "sampled",
        "n_samples": 2,
        "baseline": "value",
        "entropy": 0.1,
        "first_temperature": 1.0,
        "last_temperature": 1.0,
        "annealed_at": 0.5,
        "policy_scale": 1.0,
        "leaf_scale": 0.1,
    },
}
SWEEP_OPTIONS: Arguments = {
    "l1": [1.0, 0.1],
    "l2": 0.1,
    "l0": 0.0,
    "logistic_passes": 10,
    "logistic_tolerance": 1e-4,
    "max_features": 0,
    "from_the_root": False,
}

Seed = Callable[[Objects], tuple[Callable[..., Any], Arguments]]


def of_method(name: str, arguments: Callable[[Objects], Arguments]) -> Seed:
    """A call of a method of the object that `HOLDERS` has for its class."""
    owner, member = name.split(".")
    return lambda o: (getattr(pick(o, owner), member), arguments(o))


def pick(o: Objects, owner: str) -> Any:
    """A valid object of a class, or one that some call has made."""
    made = o.made.get(getattr(_native, owner), [])
    if made and o.rng.random() < 0.4:
        return made[int(o.rng.integers(len(made)))]
    return HOLDERS[owner](o)


HOLDERS: dict[str, Callable[[Objects], Any]] = {
    "Encoder": lambda o: o.encoder,
    "LeafModels": lambda o: o.leaves,
    "Router": lambda o: o.router,
    "ForestRouter": lambda o: o.forest,
    "SoftRouter": lambda o: o.soft,
    "PolicyRouter": lambda o: o.policy,
    "TaoTable": lambda o: o.table,
    SEARCH: lambda o: o.search,
    "BanditEngine": Objects.bandit,
    "BanditRegressionEngine": Objects.regression,
}


def of_class(name: str, arguments: Callable[[Objects], Arguments]) -> Seed:
    return lambda o: (getattr(_native, name), arguments(o))


def of_function(name: str, arguments: Callable[[Objects], Arguments]) -> Seed:
    return lambda o: (getattr(_native, name), arguments(o))


def linear_split_arguments(o: Objects) -> Arguments:
    """Two candidates of three bins, the second with missing values."""
    return {
        "columns": normal(o.rng, N, 2),
        "slope": normal(o.rng, N, K),
        "curvature": np.ones((N, K)),
        "count": np.ones(N),
        "bins": o.rng.integers(0, 3, (2, N)).astype("u2"),
        "n_bins": [3, 3],
        "has_missing": [False, True],
        "l2": np.ones(2),
        "min_count": 1.0,
        "n_threads": 2,
    }


def any_rows(o: Objects) -> Any:
    return o.rows() if o.mixed or o.rng.random() < 0.5 else o.sparse_rows()


def one_row(o: Objects) -> np.ndarray:
    return o.rows(1)[0]


def tel_arrays(o: Objects) -> Arguments:
    dtype = str(o.rng.choice(["f4", "f8"]))
    return {
        "X": normal(o.rng, N, 2, dtype=dtype),
        "W": normal(o.rng, 2, 3, 2, dtype=dtype),
        "b": normal(o.rng, 2, 3, dtype=dtype),
    }


def tel_leaves(o: Objects) -> Arguments:
    arrays = tel_arrays(o)
    return arrays | {"O": normal(o.rng, 2, 4, K, dtype=arrays["X"].dtype.str)}


SOFT: Arguments = {"gamma": 1.0, "activation": "smooth_step", "n_threads": 2}


def tel_slopes(o: Objects) -> Arguments:
    arrays = tel_leaves(o)
    empty = {f"d{name}": np.empty_like(array) for name, array in arrays.items()}
    empty["dX"] = empty["dX"] if o.rng.random() < 0.7 else None
    return arrays | {"slope": normal(o.rng, N, K, dtype=arrays["X"].dtype.str)} | empty | SOFT


def dgt_arrays(o: Objects) -> Arguments:
    return {
        "X": normal(o.rng, N, 2, dtype="f4"),
        "W": normal(o.rng, 3, 2, dtype="f4"),
        "b": normal(o.rng, 3, dtype="f4"),
        "theta": normal(o.rng, 4, K, dtype="f4"),
    }


def dgt_slopes(o: Objects) -> Arguments:
    arrays = dgt_arrays(o)
    empty = {f"d{name}": np.empty_like(array) for name, array in arrays.items()}
    leaf = o.rng.integers(0, 4, N).astype("i4")
    slope = normal(o.rng, N, K, dtype="f4")
    return arrays | {"leaf": leaf, "slope": slope} | empty | {"n_threads": 2}


def latent_arrays(o: Objects) -> Arguments:
    is_q = bool(o.rng.random() < 0.5)
    dtype = str(o.rng.choice(["f4", "f8"]))
    return {"rows": normal(o.rng, N, 7 if is_q else 3, dtype=dtype), "is_q": is_q}


def latent_prune(o: Objects) -> Arguments:
    arrays = latent_arrays(o)
    activity = np.ones(7, arrays["rows"].dtype)
    return arrays | {
        "pruning": 0.5,
        "activity": activity,
        "group": np.zeros(7, "i4"),
        "curvature": np.ones(7),
    }


def latent_traverse(o: Objects) -> Arguments:
    arrays = latent_arrays(o)
    dtype = arrays["rows"].dtype
    return arrays | {"activity": np.ones(7, dtype), "z": np.empty((N, 7), dtype), "n_threads": 2}


def latent_backward(o: Objects) -> Arguments:
    arrays = latent_prune(o)
    del arrays["pruning"]
    rows = arrays["rows"]
    return arrays | {
        "slope_z": normal(o.rng, N, 7, dtype=rows.dtype.str),
        "slope_activity": normal(o.rng, 7, dtype=rows.dtype.str),
        "slope": np.empty_like(rows),
        "n_threads": 1,
    }


def searched_rows(o: Objects) -> Arguments:
    X = normal(o.rng, 2, 3)
    X[:, 2] = o.rng.integers(0, 3, 2)
    return {
        "X": X,
        "low": np.full((2, 3), -9.0),
        "high": np.full((2, 3), 9.0),
        "columns": normal(o.rng, 2, 5),
        "sides": np.zeros((2, 1), "u1"),
        "norm": str(o.rng.choice(["l2", "l1", "l0"])),
        "margin": 1e-6,
        "everywhere": False,
        "most_steps": 100,
        "n_threads": 1,
    }


def context(o: Objects) -> np.ndarray:
    return normal(o.rng, 4, dtype="f4")


def contexts(o: Objects) -> np.ndarray:
    return normal(o.rng, N, 4, dtype="f4")


def mask(o: Objects, *shape: int) -> Any:
    return None if o.rng.random() < 0.5 else np.ones((*shape, K), "u1")


def feedback(o: Objects) -> np.ndarray:
    has_labels = o.rng.random() < 0.5
    return o.rng.integers(0, K, N).astype("i4") if has_labels else normal(o.rng, N, K)


def start_arguments(o: Objects, k: int) -> Arguments:
    return {
        "weights": normal(o.rng, 3, 4),
        "bias": normal(o.rng, 3),
        "values": normal(o.rng, 4, k),
        "center": normal(o.rng, 4),
        "scale": np.ones(4),
        "trust": 10.0,
    }


def one_out(o: Objects, name: str = "x") -> Arguments:
    return {name: one_row(o), "out": np.zeros(K)}


def _method_seeds() -> dict[str, Callable[[Objects], Arguments]]:
    table = {"X": any_rows}
    threaded = {"n_threads": lambda o: int(o.rng.integers(1, 4))}

    def with_parts(**parts: Callable[[Objects], Any]) -> Callable[[Objects], Arguments]:
        return lambda o: {name: make(o) for name, make in parts.items()}

    return {
        "Encoder.encode": with_parts(**table),
        "Router.apply": with_parts(**table, **threaded),
        "Router.apply_one": with_parts(x=one_row),
        "Router.answer": with_parts(leaves=lambda o: o.leaves, **table, **threaded),
        "Router.answer_one": lambda o: {"leaves": o.leaves} | one_out(o),
        "ForestRouter.apply": with_parts(**table, **threaded),
        "ForestRouter.answer": with_parts(**table, **threaded),
        "ForestRouter.answer_one": one_out,
        "SoftRouter.scores": with_parts(**table, **threaded),
        "SoftRouter.scores_one": one_out,
        "SoftRouter.reachable": with_parts(**table, **threaded),
        "SoftRouter.leaf_weights": with_parts(**table, weight=lambda o: np.ones(N)),
        "PolicyRouter.apply": with_parts(
            **table, most_probable=lambda o: bool(o.rng.random() < 0.5), **threaded
        ),
        "PolicyRouter.apply_one": with_parts(x=one_row),
        "PolicyRouter.leaf_probabilities": with_parts(**table, **threaded),
        "TaoTable.columns": with_parts(rows=lambda o: np.arange(5, dtype="i8")),
        "TaoTable.leaves": lambda o: (
            {name: o.tree_arguments()[name] for name in ("children", "weights", "bias")}
            | {"n_threads": 1}
        ),
        "TaoTable.reduced": lambda o: (
            o.tree_arguments() | {"node": 0, "rows_at_node": np.arange(N, dtype="i4")}
        ),
        "TaoTable.sweep": lambda o: (
            o.tree_arguments()
            | {
                "options": copy.deepcopy(SWEEP_OPTIONS),
                "feature_of_column": o.feature_of_column,
                "n_threads": 1,
                "seconds": 5.0,
            }
        ),
        f"{SEARCH}.search": searched_rows,
        "BanditEngine.decide": with_parts(x=context, mask=mask),
        "BanditEngine.learn": with_parts(
            x=context, action=lambda o: 1, reward=lambda o: 0.5, propensity=lambda o: 0.5
        ),
        "BanditEngine.learn_many": with_parts(
            X=contexts,
            actions=lambda o: o.rng.integers(0, K, N).astype("i4"),
            rewards=lambda o: normal(o.rng, N),
            propensities=lambda o: np.full(N, 0.5),
            weights=lambda o: np.ones(N, dtype="f4"),
        ),
        "BanditEngine.replay": with_parts(
            X=contexts, feedback=feedback, masks=lambda o: mask(o, N)
        ),
        "BanditEngine.leaves": with_parts(X=contexts),
        "BanditEngine.leaf_probabilities": with_parts(mask=mask),
        "BanditEngine.values": with_parts(X=contexts),
        "BanditEngine.probabilities": with_parts(X=contexts, masks=lambda o: mask(o, N)),
        "BanditEngine.tree": with_parts(),
        "BanditEngine.report": with_parts(),
        "BanditEngine.start_from": lambda o: start_arguments(o, K),
        "BanditEngine.state": with_parts(),
        "BanditRegressionEngine.count_context": with_parts(x=context),
        "BanditRegressionEngine.predict_one": with_parts(x=context),
        "BanditRegressionEngine.direction": with_parts(),
        "BanditRegressionEngine.predict": with_parts(X=contexts),
        "BanditRegressionEngine.replay": with_parts(
            X=contexts,
            y=lambda o: normal(o.rng, N),
            loss=lambda o: "huber",
            parameter=lambda o: 1.0,
        ),
        "BanditRegressionEngine.tree": with_parts(),
        "BanditRegressionEngine.start_from": lambda o: start_arguments(o, 1),
        "BanditRegressionEngine.state": with_parts(),
    }


def _property(name: str) -> Seed:
    owner, member = name.split(".")
    return lambda o: (lambda: getattr(pick(o, owner), member), {})


def _state(owner: str) -> Seed:
    def seed(o: Objects) -> tuple[Callable[..., Any], Arguments]:
        engine = pick(o, owner)
        return engine.set_state, {"state": engine.state()}

    return seed


SEEDS: dict[str, Seed] = {
    "BanditEngine.set_state": _state("BanditEngine"),
    "BanditRegressionEngine.set_state": _state("BanditRegressionEngine"),
    "BanditRegressionEngine.learn_one": lambda o: (
        o.regression(("one_point", "paper_one_point")).learn_one,
        {"x": context(o), "prediction": 0.1, "direction": 1, "loss": 2.0},
    ),
    "BanditRegressionEngine.learn_two": lambda o: (
        o.regression(("two_point", "paper_two_point")).learn_two,
        {"x": context(o), "prediction": 0.1, "below": 1.0, "above": 2.0},
    ),
    **{name: of_method(name, make) for name, make in _method_seeds().items()},
    **{
        name: _property(name)
        for name in (
            "Encoder.n_columns",
            "BanditEngine.changes",
            "BanditEngine.tree_decides",
            "BanditEngine.n_decided",
            "BanditEngine.n_learned",
            "BanditRegressionEngine.n_learned",
        )
    },
    "Encoder.__init__": of_class(
        "Encoder", lambda o: encoder_arguments(mixed=bool(o.rng.random() < 0.7))
    ),
    "LeafModels.__init__": of_class("LeafModels", Objects.leaf_arguments),
    "Router.__init__": of_class("Router", Objects.router_arguments),
    "ForestRouter.__init__": of_class("ForestRouter", Objects.forest_arguments),
    "SoftRouter.__init__": of_class("SoftRouter", Objects.soft_arguments),
    "PolicyRouter.__init__": of_class("PolicyRouter", Objects.policy_arguments),
    "TaoTable.__init__": of_class("TaoTable", Objects.table_arguments),
    f"{SEARCH}.__init__": of_class(SEARCH, lambda o: search_arguments()),
    "BanditEngine.__init__": of_class("BanditEngine", Objects.bandit_arguments),
    "BanditRegressionEngine.__init__": of_class(
        "BanditRegressionEngine", Objects.regression_arguments
    ),
    "instruction_set": of_function("instruction_set", lambda o: {}),
    "loss": of_function(
        "loss",
        lambda o: {
            "name": "cross_entropy",
            "prediction": normal(o.rng, N, K, dtype="f4"),
            "target": o.rng.integers(0, K, (N, 1)).astype("f4"),
            "weight": np.ones(N, "f4"),
            "parameter": 0.5,
        },
    ),
    "apply_link": of_function(
        "apply_link", lambda o: {"scores": normal(o.rng, N, K), "link": "softmax", "n_threads": 2}
    ),
    "shapley": of_function(
        "shapley",
        lambda o: {
            "forest": o.forest,
            "link": "softmax",
            "X": o.rows(4),
            "background": o.rows(3),
            "output": int(o.rng.integers(-1, K)),
            "n_orders": 2,
            "most_cases": int(o.rng.choice([0, 1000])),
            "seed": 1,
            "n_threads": 2,
        },
    ),
    "fit": of_function("fit", Objects.fit_arguments),
    "fit_greedy": of_function("fit_greedy", Objects.greedy_arguments),
    "linear_splits": of_function("linear_splits", linear_split_arguments),
    "bootstrap_counts": of_function(
        "bootstrap_counts", lambda o: {"n_rows": 9, "n_draws": 9, "seed": 1, "member": 0}
    ),
    "tel_forward": of_function(
        "tel_forward",
        lambda o: (arrays := tel_leaves(o)) | {"out": np.empty((N, K), arrays["X"].dtype)} | SOFT,
    ),
    "tel_backward": of_function("tel_backward", tel_slopes),
    "tel_reachable": of_function(
        "tel_reachable", lambda o: tel_arrays(o) | {"leaves": np.empty((N, 2), "i4")} | SOFT
    ),
    "dgt_layer_forward": of_function(
        "dgt_layer_forward",
        lambda o: (
            dgt_arrays(o)
            | {"prediction": np.empty((N, K), "f4"), "leaf": np.empty(N, "i4"), "n_threads": 1}
        ),
    ),
    "dgt_layer_backward": of_function("dgt_layer_backward", dgt_slopes),
    "latent_prune": of_function("latent_prune", latent_prune),
    "latent_traverse": of_function("latent_traverse", latent_traverse),
    "latent_backward": of_function("latent_backward", latent_backward),
}
"""A valid call of every entry point."""


# --- what is done to arguments ------------------------------------------------------------------

INTEGERS = (0, -1, 1, 2, 3, 5, 12, 1000, 2**24 + 1, 2**31 - 1, 2**31, -(2**31), 2**63 - 1)
FLOATS = (0.0, -0.0, -1.0, 0.5, 2.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 3e38, 1e30)
STRANGERS = (None, "x", "", "\ud800", b"", True, 1.5, np.nan, 10**30, -(2**64), [], {}, (), object)
NAMES = (
    "squared_error",
    "absolute_error",
    "huber",
    "quantile",
    "poisson",
    "logistic",
    "cross_entropy",
    "hinge",
    "squared_codes",
    "custom",
    "identity",
    "exp",
    "softmax",
    "none",
    "class",
    "labels",
    "dgt",
    "semantic",
    "tel",
    "non_greedy",
    "reinforced",
    "smooth_step",
    "smooth_step_5",
    "sgd",
    "adam",
    "rmsprop",
    "l0",
    "l1",
    "l2",
    "exact",
    "sampled",
    "value",
    "leave-one-out",
    "axis",
    "random",
    "oc1",
    "co2",
    "entropy",
    "gini",
    "variance",
    "classes",
    "numbers",
    "product",
    "scaled",
    "annealed",
    "exhaustive",
    "fast",
    "one_cycle",
    "cosine",
    "linear",
    "log",
    "squared",
)
DTYPES = (
    "f4",
    "f8",
    "i4",
    "i8",
    "u1",
    "i1",
    "u4",
    "f2",
    "c16",
    "?",
    "O",
    "U1",
    ">f4",
    ">i4",
    "M8[s]",
)


def changed(value: Any, o: Objects) -> Any:
    """Something else of about this kind."""
    rng = o.rng
    if rng.random() < 0.04:
        return STRANGERS[int(rng.integers(len(STRANGERS)))]
    if isinstance(value, np.ndarray):
        return changed_array(value, rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | np.integer):
        return INTEGERS[int(rng.integers(len(INTEGERS)))]
    if isinstance(value, float):
        return FLOATS[int(rng.integers(len(FLOATS)))]
    if isinstance(value, str):
        return NAMES[int(rng.integers(len(NAMES)))]
    if isinstance(value, dict):
        return changed_dict(value, o)
    if isinstance(value, list | tuple):
        return changed_list(value, o)
    if sparse.issparse(value):
        return changed_csr(value, o)
    if value is None:
        return none_else(rng)
    return other_object(value, o)


def none_else(rng: Random) -> Any:
    """In place of None: arrays, a function."""
    arrays = (np.zeros((3, 7), "f4"), np.zeros((3, K), "f4"), np.ones((N, K), "u1"), np.zeros(3))
    functions = (
        lambda *given: None,
        lambda *given: True,
        lambda *given: (None, np.zeros((1, K), "f4")),
        lambda prediction, target: (None, np.zeros_like(prediction)),
        lambda *given: 1 / 0,
    )
    return (*arrays, *functions, 3, (1, 2, 3))[int(rng.integers(len(arrays) + len(functions) + 2))]


def changed_dict(value: Arguments, o: Objects) -> Arguments:
    if not value:
        return {"color": 1}
    key = sorted(value, key=str)[int(o.rng.integers(len(value)))]
    kind = o.rng.random()
    if kind < 0.1:
        return {name: part for name, part in value.items() if name != key}
    if kind < 0.15:
        return value | {"color": 1}
    if kind < 0.18:
        return {**value, 3: 4}
    return value | {key: changed(value[key], o)}


def changed_list(value: Any, o: Objects) -> Any:
    items = list(value)
    if not items or o.rng.random() < 0.15:
        return [*items, 1.0]
    at = int(o.rng.integers(len(items)))
    if o.rng.random() < 0.3:
        del items[at]
    else:
        items[at] = changed(items[at], o)
    return items


def changed_csr(value: Any, o: Objects) -> Any:
    """As SciPy's matrix, but nobody has checked it."""
    parts = SimpleNamespace(
        data=value.data,
        indices=value.indices,
        indptr=value.indptr,
        shape=value.shape,
        format="csr",
    )
    for _ in range(int(o.rng.integers(1, 3))):
        name = str(o.rng.choice(["data", "indices", "indptr", "shape", "format"]))
        setattr(parts, name, changed(getattr(parts, name), o))
    return parts


def other_object(value: Any, o: Objects) -> Any:
    """An object that was never initialized, is of another class, or of other sizes."""
    kind = o.rng.random()
    owner = type(value)
    if kind < 0.3 and owner.__module__ == _native.__name__:
        return owner.__new__(owner)
    made = o.made.get(owner, [])
    if kind < 0.7 and made:
        return made[int(o.rng.integers(len(made)))]
    return (o.other, o.encoder, o.router, o.leaves, o.forest)[int(o.rng.integers(5))]


def changed_array(value: np.ndarray, rng: Random) -> Any:
    """Another array: one of `_ARRAY_CHANGES`."""
    with np.errstate(all="ignore"):
        return _ARRAY_CHANGES[int(rng.integers(len(_ARRAY_CHANGES)))](value, rng)


def _resized(value: np.ndarray, rng: Random) -> np.ndarray:
    if value.ndim == 0:
        return value
    axis = int(rng.integers(value.ndim))
    n = value.shape[axis]
    sizes = (0, 1, n - 1, n + 1, 2 * n)
    indices = np.arange(max(sizes[int(rng.integers(5))], 0)) % max(n, 1)
    if n == 0:
        shape = list(value.shape)
        shape[axis] = len(indices)
        return np.zeros(shape, value.dtype)
    return np.ascontiguousarray(np.take(value, indices, axis))


def _other_ndim(value: np.ndarray, rng: Random) -> np.ndarray:
    options = (value.ravel(), value[None], value[..., None], np.zeros((), value.dtype))
    return options[int(rng.integers(4))]


def _other_layout(value: np.ndarray, rng: Random) -> np.ndarray:
    kind = int(rng.integers(6))
    if kind == 0:
        return np.asfortranarray(value)
    if kind == 1:
        return np.repeat(value, 2, axis=-1)[..., ::2] if value.ndim else value
    if kind == 2:
        return value[::-1] if value.ndim else value
    if kind == 3:
        return (
            np.broadcast_to(value.ravel()[:1], value.shape) if value.size and value.ndim else value
        )
    if kind == 4:
        locked = value.copy()
        locked.flags.writeable = False
        return locked
    room = np.zeros(value.nbytes + 1, "u1")  # not aligned
    array = np.frombuffer(room.data, value.dtype, value.size, offset=1).reshape(value.shape)
    array[...] = value
    return array


def _other_dtype(value: np.ndarray, rng: Random) -> np.ndarray:
    dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    try:
        return value.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return value


def _hostile_entries(value: np.ndarray, rng: Random) -> np.ndarray:
    spoiled = value.copy()
    if not spoiled.size:
        return spoiled
    words = FLOATS if spoiled.dtype.kind == "f" else INTEGERS
    for _ in range(int(rng.integers(1, 4))):
        word = words[int(rng.integers(len(words)))]
        flat = spoiled.reshape(-1)
        flat[int(rng.integers(flat.size))] = np.array(word).astype(spoiled.dtype)
    return spoiled


def _all_hostile(value: np.ndarray, rng: Random) -> np.ndarray:
    words = FLOATS if value.dtype.kind == "f" else INTEGERS
    word = np.array(words[int(rng.integers(len(words)))]).astype(value.dtype)
    return np.full_like(value, word)


def _shuffled(value: np.ndarray, rng: Random) -> np.ndarray:
    return rng.permutation(value.ravel()).reshape(value.shape)


def _empty(value: np.ndarray, rng: Random) -> np.ndarray:
    return np.zeros((0,) * value.ndim, value.dtype)


def _as_list(value: np.ndarray, rng: Random) -> Any:
    return value.tolist()


_ARRAY_CHANGES = (
    _resized,
    _resized,
    _other_ndim,
    _other_layout,
    _other_dtype,
    _hostile_entries,
    _hostile_entries,
    _hostile_entries,
    _all_hostile,
    _shuffled,
    _empty,
    _as_list,
)


# --- the calls ----------------------------------------------------------------------------------


def described(name: str, arguments: Arguments) -> str:
    """A call in words, as far as they fit."""
    return f"{name}({', '.join(f'{key}={_shown(value)}' for key, value in arguments.items())})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        entries = np.array2string(value.ravel()[:40], separator=",", threshold=40)
        return f"array({value.dtype}, {value.shape}, {' '.join(entries.split())})"
    if isinstance(value, SimpleNamespace):
        return f"csr({', '.join(f'{k}={_shown(v)}' for k, v in vars(value).items())})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_shown(v)}" for k, v in value.items()) + "}"
    return repr(value)[:200]


class Fuzzer:
    """Hostile calls, one after the other, all drawn from one seed."""

    def __init__(self, seed: int, log: Path | None = None, names: list[str] | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.tables = [Objects(self.rng, mixed=mixed) for mixed in (False, True)]
        self.names = names or sorted(SEEDS)
        self.outcomes: Counter[str] = Counter()
        self.log = None if log is None else os.open(log, os.O_CREAT | os.O_WRONLY)

    def run(self, n: int) -> None:
        """Make this many calls; those that use what a call has made count too.

        Raises
        ------
        AssertionError
            At the first call that raised something else than `REFUSALS`.
        """
        first = self.n_calls
        while self.n_calls < first + n:
            self.one(self.names[int(self.rng.integers(len(self.names)))])

    @property
    def n_calls(self) -> int:
        return sum(self.outcomes.values())

    def one(self, name: str) -> None:
        """Call an entry point with some arguments changed."""
        objects = self.tables[int(self.rng.integers(2))]
        function, arguments = SEEDS[name](objects)
        for _ in range(int(self.rng.integers(0, 4)) if arguments else 0):
            key = sorted(arguments)[int(self.rng.integers(len(arguments)))]
            arguments[key] = changed(arguments[key], objects)
        answer = self.call(name, function, arguments)
        if name.endswith("__init__") and type(answer).__module__ == _native.__name__:
            self.use(answer, arguments, objects)

    def use(self, made: Any, arguments: Arguments, objects: Objects) -> None:
        """Spoil the arrays that an object was made of, keep it, and call all its methods."""
        for value in arguments.values():
            if isinstance(value, np.ndarray) and value.flags.writeable and self.rng.random() < 0.5:
                value.view("u1" if value.flags.c_contiguous and value.ndim else value.dtype)[
                    ...
                ] = 0x7F
        arguments.clear()
        gc.collect(0)
        kept = objects.made.setdefault(type(made), [])
        kept.append(made)
        if len(kept) > 8:
            del kept[int(self.rng.integers(8))]
        owner = type(made).__name__
        for name in self.names:
            if name.startswith(f"{owner}.") and not name.endswith("__init__"):
                _, others = SEEDS[name](objects)
                member = name.split(".")[1]
                self.call(name, lambda *, m=member, **given: _got(made, m, given), others)

    def call(self, name: str, function: Callable[..., Any], arguments: Arguments) -> Any:
        """Call and count; the answer, or None where it was refused."""
        if self.log is not None:
            text = described(name, arguments).encode(errors="replace")[:65536]
            os.pwrite(self.log, text.ljust(65536), 0)
        try:
            with time_limit(SECONDS), np.errstate(all="ignore"):
                answer = function(**arguments)
        except (*REFUSALS, TimeUpError, ZeroDivisionError) as error:
            self.outcomes[type(error).__name__] += 1
            return None
        except BaseException as error:
            raise AssertionError(f"{error!r} from {described(name, arguments)}") from error
        self.outcomes["answer"] += 1
        return answer


def _got(made: Any, member: str, given: Arguments) -> Any:
    value = getattr(made, member)
    return value(**given) if callable(value) else value


class time_limit:  # noqa: N801  # reads as a statement
    """Raises `TimeUpError` in a call that takes longer; `fit` and searches look for signals."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    @staticmethod
    def _ring(*_: object) -> None:
        raise TimeUpError


def batches(n: int, size: int = 1000) -> Iterator[int]:
    for first in range(0, n, size):
        yield min(size, n - first)


def main() -> None:
    """Make the calls that were wanted and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="names of entry points; default: all of them")
    parser.add_argument("--log", type=Path, default=Path(tempfile.gettempdir()) / "native_call")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # nanobind's about objects that were never initialized
    fuzzer = Fuzzer(options.seed, options.log, options.only)
    begun = time.monotonic()
    for n in batches(options.calls):
        faulthandler.dump_traceback_later(900, exit=True)  # a thousand calls take seconds
        fuzzer.run(n)
        print(
            f"{fuzzer.n_calls} calls in {time.monotonic() - begun:.0f} s: {dict(fuzzer.outcomes)}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
