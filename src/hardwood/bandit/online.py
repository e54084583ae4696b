"""The common part of both learners: parameters, contexts, open decisions, the engine and locks."""

from __future__ import annotations

import math
import numbers
import os
import secrets
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hardwood import parameters
from hardwood.bandit.contexts import Contexts, as_table, check_length, first_contexts
from hardwood.bandit.parameters import OnlineParameters
from hardwood.bandit.tokens import LIFE_BITS, OpenDecisions
from hardwood.errors import FitInterruptedWarning, NotStartedError, TableError
from hardwood.model import ObliqueTree
from hardwood.parameters import parameters_of
from hardwood.table import Schema, Table
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_FEATURES = 1_000_000
LARGEST_FEEDBACK = 1e100  # sums of squares of rewards are float64


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineLearner(ABC):
    """A learner from bandit feedback: its parameters, its open decisions and its engine.

    Fields are the parameters, as they were given; `_parameters` holds them checked, with every
    "auto" replaced. Arguments are checked before the engine is called, so that a call with a
    wrong argument changes nothing.

    Calls may come from any thread. The lock `_deciding` guards decisions and the list of open
    ones, for microseconds; `_learning` guards learning, so that `decide` never waits for `learn`.
    Code that needs both takes `_learning` first.
    """

    method: str
    max_depth: int
    learning_rate: float | Literal["auto"] = "auto"
    batch_size: int | Literal["auto"]
    updates_per_round: float | Literal["auto"] = "auto"
    buffer_size: int = 100_000
    input_noise: float = 1.0
    gradient_accumulation: int = 4
    features: Any = None
    init: Any = None
    max_open: int = 100_000
    random_state: Any = None

    _parameters_type: ClassVar[type[OnlineParameters]]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dataclass_fields__ and "_parameters" in vars(self):
            raise AttributeError(f"{name} cannot be assigned; use set_params({name}=...).")
        super().__setattr__(name, value)

    def __post_init__(self) -> None:
        self._parameters: Any = parameters_of(self._parameters_type, self)
        self._seed, life = drawn_seeds(self.random_state)
        self._open = OpenDecisions(life, self._parameters.max_open)
        self._deciding = threading.Lock()
        self._learning = threading.Lock()
        self._engine: Any = None
        self._contexts: Contexts | None = None
        self._n_features, self._names, schema = read_features(self.features)
        tree = start_tree(self.init)
        if tree is not None:
            schema = _schema_of_start(tree, schema, self._n_features, self._names)
        if schema is not None:
            contexts = Contexts(schema, takes_missing=True, who=type(self).__name__)
            engine = self._new_engine(contexts.schema.n_columns, contexts.column_order())
            if tree is not None:
                self._start_engine(engine, tree, contexts.schema)
            self._contexts, self._engine = contexts, engine

    # Parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters as they were given, by name.

        Parameters
        ----------
        deep
            For scikit-learn; without effect, since no parameter has parameters of its own here.

        Notes
        -----
        A learner that was loaded from a file has values in place of "auto", None for ``init`` and
        ``random_state``, and a `Schema` for ``features`` that were given as a table or a tree.
        """
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters of a learner that has not decided or learned anything yet.

        Raises
        ------
        ValueError
            If it has, or if a parameter does not exist or has a wrong value; nothing changes then.
        """
        names = [each.name for each in fields(self)]
        for name in params:
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}. It has: {', '.join(names)}."
                )
        if not params:
            return self
        if self.n_rounds_ or not self._open.is_untouched:
            name = type(self).__name__
            raise ValueError(
                f"this {name} has already decided or learned, so its parameters are fixed. Make a "
                f"new one: {name}(**(learner.get_params() | {{...}}))."
            )
        changed = type(self)(**(self.get_params() | params))
        vars(self).update(vars(changed))
        return self

    @property
    def parameters_(self) -> dict[str, Any]:
        """The hyperparameters in use: those of the method, with a value for every "auto"."""
        used: dict[str, Any] = self._parameters.used()
        return used

    @abstractmethod
    def _new_engine(self, n_columns: int, order: Mapping[str, Any] | None = None) -> Any:
        """Make the engine; ``order`` is what `Contexts.column_order` returns."""

    @abstractmethod
    def _start_engine(self, engine: Any, tree: ObliqueTree, schema: Schema) -> None:
        """Start an engine from a supervised tree."""

    # Counters

    @property
    def n_rounds_(self) -> int:
        """Number of rounds it has learned from."""
        return 0 if self._engine is None else self._engine.n_learned

    @property
    def n_open_(self) -> int:
        """Number of decisions that wait for their reward."""
        return len(self._open)

    @property
    def n_expired_(self) -> int:
        """Number of decisions that expired because ``max_open`` newer ones were open."""
        return self._open.n_expired

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the features."""
        return self._started().schema.names

    # Contexts

    def _started(self) -> Contexts:
        if self._contexts is None:
            raise NotStartedError(
                f"this {type(self).__name__} has seen no context yet and does not know its "
                "features. Call decide or learn_logged first, or give features= a table or init= a "
                "tree."
            )
        return self._contexts

    def _row(self, x: Any) -> np.ndarray:
        """Read a context; the first one of a numeric learner sets the number of features."""
        contexts = self._contexts
        if contexts is not None:
            return contexts.row(x)
        names = self._names
        if names is None and hasattr(x, "keys") and not hasattr(x, "shape"):
            names = tuple(map(str, x))
        who = type(self).__name__
        if self._n_features is not None:
            check_length(x, self._n_features, who)
        table = as_table(x, names or ())
        contexts = first_contexts(table, self._n_features, names, who=who, what="x")
        row = contexts.row(x)
        return row if self._begin(contexts) else self._started().row(x)

    def _rows(self, X: Any) -> tuple[np.ndarray, Contexts]:
        """Read a table of contexts; `_begun` follows once all arguments are checked."""
        contexts = self._contexts
        if contexts is None:
            who = type(self).__name__
            contexts = first_contexts(X, self._n_features, self._names, who=who)
        return contexts.rows(X), contexts

    def _begun(self, X: Any, rows: np.ndarray, contexts: Contexts) -> np.ndarray:
        """Make the engine, if these are the first contexts, and return the encoded contexts."""
        return rows if self._begin(contexts) else self._started().rows(X)

    def _begin(self, contexts: Contexts) -> bool:
        """Make the engine, if this is the first context.

        Returns False if another thread was first; the contexts must then be read again.
        """
        if self._contexts is None:
            with self._deciding:
                if self._contexts is None:
                    n_columns, order = contexts.schema.n_columns, contexts.column_order()
                    self._engine = self._new_engine(n_columns, order)
                    self._contexts = contexts
        return self._contexts is contexts

    def _learn(self, token: int, update: Callable[[np.ndarray, int, float], Any]) -> None:
        """Update the engine with an open decision and close it; it stays open on failure."""
        with self._learning:
            with self._deciding:
                held = self._open.get(token)
            update(*held)
            with self._deciding:
                self._open.close(token)

    # The file

    @abstractmethod
    def _header(self) -> dict[str, Any]:
        """Return the entries of a file's header that only this kind of learner has."""

    @classmethod
    @abstractmethod
    def _blank(cls, header: Mapping[str, Any], **arguments: Any) -> Self:
        """Make a learner without features from a file's header."""

    @abstractmethod
    def _check_open(self, action: np.ndarray, propensity: np.ndarray) -> None:
        """Check the open decisions of a file; ``ValueError`` if one is impossible."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the complete state to a file, open decisions included; atomic.

        A loaded learner continues bit for bit as if it had never stopped, apart from the tokens of
        its next decisions: they never equal those of decisions made after the file was saved.
        """
        from hardwood.bandit import file

        file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a learner from a file that `save` wrote.

        Raises
        ------
        ModelFileError
            If the file is damaged, malicious, or holds something else; the message says which.
        """
        from hardwood.bandit import file

        return file.load_as(cls, path)

    def __reduce__(self) -> tuple[Any, ...]:
        from hardwood.bandit import file

        return file.loads, (file.dumps(self),)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._parameters.method!r}, "
            f"max_depth={self._parameters.max_depth}, "
            f"{plural(self.n_rounds_, 'round')}, {self.n_open_} open)"
        )


def drawn_seeds(random_state: Any) -> tuple[int, int]:
    """Return the seed of the engine and the number of the first life, from one state or number.

    Raises
    ------
    ValueError
        If it is not None, a non-negative integer, or a generator of NumPy.
    """
    if random_state is None:
        entropy = secrets.randbits(128)
    elif isinstance(random_state, np.random.Generator):
        entropy = int(random_state.integers(2**63))
    elif isinstance(random_state, np.random.RandomState):
        entropy = int(random_state.randint(2**31 - 1))
    else:
        entropy = parameters.integer("random_state", random_state, 0)
    seed, number = np.random.SeedSequence(entropy).generate_state(2, np.uint64).tolist()
    return seed >> 1, number >> (64 - LIFE_BITS)


def read_features(features: Any) -> tuple[int | None, tuple[str, ...] | None, Schema | None]:
    """Return the number and names of numeric features, or the schema of a table.

    Raises
    ------
    ValueError
        If ``features`` is none of these.
    """
    if features is None:
        return None, None, None
    if isinstance(features, Schema):
        return None, None, features
    if isinstance(features, numbers.Integral | bool):
        return parameters.integer("features", features, 1, MAX_FEATURES), None, None
    is_names = isinstance(features, Sequence) and all(isinstance(name, str) for name in features)
    if isinstance(features, str) or (is_names and not features):
        raise ValueError(
            "features must be None, a number of features, a list of their names, a Schema, or a "
            f"table with a few rows, got {features!r:.80}."
        )
    if is_names:
        names = tuple(features)
        Schema.numeric(len(names), names)  # refuses names that occur twice
        return len(names), names, None
    try:
        return None, None, Schema.learn(Table.of(features))
    except TableError as error:
        raise type(error)(f"features: {error}") from None


def start_tree(init: Any) -> ObliqueTree | None:
    """Return the tree to start from, given as a tree, a fitted estimator or a learner."""
    tree = init if init is None else getattr(init, "tree_", init)
    if tree is None or isinstance(tree, ObliqueTree):
        return tree
    raise TypeError(
        f"init must be None, an ObliqueTree or a fitted estimator with one, got {init!r:.80}."
    )


def _schema_of_start(
    tree: ObliqueTree, schema: Schema | None, n_features: int | None, names: Sequence[str] | None
) -> Schema:
    """Return the schema of a start tree, whose columns must agree with ``features``."""
    own = tree.schema
    if schema is not None and schema.column_names != own.column_names:
        raise ValueError(
            f"init has the columns {list(own.column_names)!r:.300}, but features has "
            f"{list(schema.column_names)!r:.300}. Leave features out: the tree has its own."
        )
    if (n_features is not None and n_features != own.n_features) or (
        names is not None and tuple(names) != own.names
    ):
        raise ValueError(
            f"init has {plural(own.n_features, 'feature')}, {list(own.names)!r:.300}; features "
            "says otherwise. Leave features out: the tree has its own."
        )
    return own


def finite(name: str, value: Any) -> float:
    """Return a finite real number as a float.

    Raises
    ------
    TypeError
        If it is not a number.
    ValueError
        If it is NaN, infinite, or so large that its square overflows.
    """
    if type(value) is not float:
        if not isinstance(value, numbers.Real | np.bool_):
            raise TypeError(f"{name} must be a number, found {value!r:.80}.")
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
    if not -LARGEST_FEEDBACK <= value <= LARGEST_FEEDBACK:
        raise ValueError(
            f"{name} must be a finite number up to {LARGEST_FEEDBACK:g} in size, got {value}. If "
            "the reward never arrived, do not call learn: the decision expires by itself."
        )
    return value


def warn_if_interrupted(done: int, n: int) -> None:
    """Warn if Ctrl-C stopped before the last row."""
    if done < n:
        warnings.warn(
            f"Learning was interrupted after {done} of {plural(n, 'row')}; what was learned "
            "is kept.",
            FitInterruptedWarning,
            stacklevel=3,
        )


@contextmanager
def all_or_interrupt() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt.

    A single learner keeps what it has learned and warns. In a loop over several, the next one would
    start instead, so the warning becomes an exception.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitInterruptedWarning)
        try:
            yield
        except FitInterruptedWarning:
            raise KeyboardInterrupt from None
