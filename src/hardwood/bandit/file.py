"""Save and load the complete state of a learner, so that it resumes as if it had never stopped.

A loaded learner differs in its tokens alone: the next decision begins a new life (see `tokens`).
A file is a `hardwood.model.files.container` of parameters, open decisions and the engine's state.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from hardwood.atomic_file import checked_target, whole_file
from hardwood.bandit import tokens
from hardwood.bandit.contexts import LARGEST, Contexts
from hardwood.bandit.online import OnlineLearner
from hardwood.bandit.parameters import MAX_DEPTH, MAX_OPEN
from hardwood.bandit.policy import DGTBandit
from hardwood.bandit.regressor import DGTBanditRegressor
from hardwood.errors import ModelFileError
from hardwood.model.files import container
from hardwood.model.files.container import Kinds
from hardwood.model.files.format import FORMAT, check_format, check_keys
from hardwood.table import Schema
from hardwood.text.numbers import plural

KINDS: dict[str, type[OnlineLearner]] = {
    "bandit": DGTBandit,
    "bandit_regressor": DGTBanditRegressor,
}
# Entries of the header: integers with their ranges, and others.
_NUMBERS = {
    "max_depth": (1, MAX_DEPTH),
    "max_open": (1, MAX_OPEN),
    "seed": (0, 2**63 - 1),
    "n_expired": (0, 2**53),
}
_OTHERS = {
    "format", "kind", "parameters", "actions", "schema", "takes_missing", "n_features", "names"
}  # fmt: skip
_ENGINE = "engine."
# In size: limits of learning rates and steps keep every weight far below.
_MOST_WEIGHT = 1e30
# Of the averages of gradients and of their squares: sqrt((1 - 0.9)^2 / (1 - 0.999) / (1 - 0.9^2 /
# 0.999)) = 7.3 with the decays of Adam, by the inequality of Cauchy and Schwarz.
_MOST_RATIO = 8.0
_LEAST_GRADIENT = 1e-15  # the squares of smaller ones may vanish
_SEEN = {"rewards_seen", "targets_seen", "costs_seen"}
_MOST_SEEN = 1e150  # in size: squares are float64
_CODES = {dtype: code for code, dtype in container.DTYPES.items()}

_Kind = TypeVar("_Kind", bound=OnlineLearner)


def dumps(learner: OnlineLearner) -> bytes:
    """Return the contents of a learner's file. Equal learners give equal bytes."""
    with learner._learning, learner._deciding:
        contexts, opened, used = learner._contexts, learner._open, learner.parameters_
        header = {
            "format": FORMAT,
            "kind": next(kind for kind, of in KINDS.items() if isinstance(learner, of)),
            "parameters": {name: value for name, value in used.items() if name not in _NUMBERS},
            "schema": None if contexts is None else contexts.schema.to_dict(),
            "takes_missing": contexts is not None and contexts.takes_missing,
            "n_features": learner._n_features,
            "names": None if learner._names is None else list(learner._names),
            "max_depth": used["max_depth"],
            "max_open": used["max_open"],
            "seed": learner._seed,
            "n_expired": opened.n_expired,
            **learner._header(),
        }
        arrays = opened.to_arrays(0 if contexts is None else contexts.schema.n_columns)
        if learner._engine is not None:
            state = learner._engine.state()
            arrays |= {_ENGINE + name: np.ascontiguousarray(a) for name, a in state.items()}
    return container.pack(header, arrays)


def save(learner: OnlineLearner, path: str | os.PathLike[str]) -> None:
    """Write a learner to ``path``; atomic."""
    path = checked_target(
        path,
        what="a learner",
        example="bandit.hardwood",
        instead="write hardwood.bandit.file.dumps(learner) there",
    )
    content = dumps(learner)
    with whole_file(path) as stream:
        stream.write(content)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a `DGTBandit` or `DGTBanditRegressor` from a file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is damaged, malicious, from a newer hardwood, or not a learner.
    """
    return container.load(path, _contents, _build, reads_bytes="hardwood.bandit.file.loads")


def load_as(kind: type[_Kind], path: str | os.PathLike[str]) -> _Kind:
    """Load a learner of the given class from a file."""
    learner = load(path)
    if not isinstance(learner, kind):
        raise ModelFileError(
            f"cannot load a {kind.__name__} from {os.fspath(path)}: it holds a "
            f"{type(learner).__name__}. Use {type(learner).__name__}.load"
        )
    return learner


def loads(content: bytes | bytearray | memoryview) -> Any:
    """Load a learner from the contents of a file; raises ``ModelFileError`` like `load`."""
    return container.loads(content, _contents, _build)


def _contents(head: Any) -> tuple[Kinds, Kinds]:
    """Check a header, and return which arrays belong to it."""
    _check_header(head)
    if head["schema"] is None:
        return tokens.ARRAYS, {}
    try:
        smallest = _blank(_small(head), max_depth=1)._new_engine(1).state()
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{error}") from error
    return tokens.ARRAYS | {
        _ENGINE + name: (_CODES[array.dtype], array.ndim) for name, array in smallest.items()
    }, {}


def _small(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header whose network, if there is one, is as small as can be."""
    given = head["parameters"]
    return {**head, "parameters": given | ({"hidden_size": 1} if "hidden_size" in given else {})}


def _check_header(head: Any) -> None:
    check_format(head, KINDS)
    check_keys(head, _NUMBERS.keys() | _OTHERS)
    for name, (low, high) in _NUMBERS.items():
        if type(head[name]) is not int or not low <= head[name] <= high:
            raise ModelFileError(f"{name} must be from {low} to {high}, not {head[name]!r:.80}")
    _check_features(head)


def _check_features(head: Mapping[str, Any]) -> None:
    names, n = head["names"], head["n_features"]
    if names is not None and not (type(names) is list and all(type(each) is str for each in names)):
        raise ModelFileError(f"names must be a list of text or null, not {names!r:.80}")
    fits = n is None if names is None else n == len(names)
    if not fits and (type(n) is not int or n < 1 or names is not None):
        raise ModelFileError(f"n_features must be a number that fits the names, not {n!r:.80}")
    if type(head["takes_missing"]) is not bool:
        raise ModelFileError(
            f"takes_missing must be true or false, not {head['takes_missing']!r:.80}"
        )
    if type(head["parameters"]) is not dict:
        raise ModelFileError(f"parameters must be a mapping, not {head['parameters']!r:.80}")
    if head["actions"] is not None and type(head["actions"]) is not list:
        raise ModelFileError(f"actions must be a list or null, not {head['actions']!r:.80}")


def _blank(head: Mapping[str, Any], max_depth: int) -> Any:
    """Make the learner in its state before the first context."""
    given = dict(head["parameters"])
    kind = KINDS[head["kind"]]
    features = head["names"] if head["names"] is not None else head["n_features"]
    made = kind._blank(
        head, features=features, max_depth=max_depth, max_open=head["max_open"], **given
    )
    expected = made.parameters_.keys() - _NUMBERS.keys()
    if given.keys() != expected:
        raise ValueError(f"parameters must be {sorted(expected)}, not {sorted(given)!r:.200}")
    return made


def _build(head: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> OnlineLearner:
    try:
        made: OnlineLearner = _blank(head, max_depth=head["max_depth"])
        made._seed = head["seed"]
        made._open.restore(head["n_expired"], arrays)
        made._check_open(arrays["open.action"], arrays["open.propensity"])
        if head["schema"] is None:
            if not made._open.is_untouched:
                raise ValueError("it has made decisions, but has no features")
            return made
        made._contexts = Contexts(
            Schema.from_dict(head["schema"]),
            takes_missing=head["takes_missing"],
            who=type(made).__name__,
        )
        if made.features is None and made._contexts.takes_missing:
            vars(made)["features"] = made._contexts.schema
        _check_centers(made._contexts.schema)
        _check_contexts(arrays["open.context"], made)
        made._engine = _engine_of(made, arrays)
    except (ValueError, TypeError, MemoryError) as error:
        raise ModelFileError(f"{error}") from error
    return made


def _check_centers(schema: Schema) -> None:
    """Check that contexts less their centers are float32, as they are where they were learned."""
    for feature in schema.features:
        if not abs(feature.center) <= LARGEST:
            raise ValueError(
                f"the center of feature {feature.name!r:.80} is {feature.center:g}, but numbers of "
                f"contexts lie within {LARGEST:g}"
            )


def _check_contexts(context: np.ndarray, learner: OnlineLearner) -> None:
    contexts = learner._started()
    names, n = learner._names, learner._n_features
    if names not in (None, contexts.schema.names) or n not in (None, contexts.schema.n_features):
        raise ValueError("the features contradict n_features or names")
    if context.shape[1] != contexts.schema.n_columns:
        raise ValueError("the contexts of open decisions have another number of columns")
    if np.isinf(context).any() or (np.isnan(context).any() and not contexts.takes_missing):
        raise ValueError("the contexts of open decisions are not all finite numbers")


def _engine_of(learner: OnlineLearner, arrays: Mapping[str, np.ndarray]) -> Any:
    contexts = learner._started()
    state = {
        name.removeprefix(_ENGINE): array
        for name, array in arrays.items()
        if name.startswith(_ENGINE)
    }
    n_columns = contexts.schema.n_columns
    # Checked before the engine allocates its tree, so that a header cannot request more memory
    # than the file has.
    n_outputs = len(learner.actions_) if isinstance(learner, DGTBandit) else 1
    needed = (2**learner.max_depth - 1) * (n_columns + 1) + 2**learner.max_depth * n_outputs
    if state["parameters"].size < needed:
        raise ValueError(
            f"engine.parameters has {state['parameters'].size} values, fewer than the {needed} of "
            f"a tree with max_depth {learner.max_depth}, {n_columns} columns and {n_outputs} "
            "outputs"
        )
    _check_network_size(learner, n_columns, state)
    engine = learner._new_engine(n_columns, contexts.column_order())
    engine.set_state(state)
    _check_state(engine.state())
    return engine


def _check_network_size(
    learner: OnlineLearner, n_columns: int, state: Mapping[str, np.ndarray]
) -> None:
    if "network" not in state:
        return
    assert isinstance(learner, DGTBandit)  # others have no network
    hidden, n_actions = learner.hidden_size, len(learner.actions_)
    needed = hidden * (n_columns + 1) + hidden * (hidden + 1) + n_actions * (hidden + 1)
    if state["network"].size < needed:
        raise ValueError(
            f"engine.network has {plural(state['network'].size, 'value')}, fewer than the {needed} "
            f"of hidden_size {hidden}, {plural(n_columns, 'column')} and "
            f"{plural(n_actions, 'action')}"
        )


def _check_state(state: Mapping[str, np.ndarray]) -> None:
    """Check that what the engine has computed and will compute is as small as learning makes it."""
    if not (np.abs(state["parameters"]) <= _MOST_WEIGHT).all():  # products of layers, if it has any
        raise ValueError(f"engine.parameters must lie within {_MOST_WEIGHT:g}")
    for of in ("", "network_") if "network" in state else ("",):
        _check_moments(of, state)
    for name in _SEEN & state.keys():
        lowest, highest = state[name][2:4]  # infinities of the other signs: none was seen
        if not (lowest >= -_MOST_SEEN and highest <= _MOST_SEEN):
            raise ValueError(
                f"engine.{name} must lie within {_MOST_SEEN:g}, not from {lowest:g} to {highest:g}"
            )


def _check_moments(of: str, state: Mapping[str, np.ndarray]) -> None:
    first, second = f"{of}first_moment", f"{of}second_moment"
    most = _MOST_RATIO * np.sqrt(state[second]) + _LEAST_GRADIENT
    if (np.abs(state[first]) > most).any():
        raise ValueError(
            f"engine.{first} contradicts engine.{second}: a mean of gradients exceeds "
            f"{_MOST_RATIO:g} times the root of the mean of their squares"
        )
