"""What every model is: a frozen value that reads tables, answers, and can be written down."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hardwood.model.files import strict_json
from hardwood.model.outputs import answer_of_one, answers
from hardwood.model.structure import Label, TaskKind, typed
from hardwood.table import Schema, encode_row

if TYPE_CHECKING:
    from typing_extensions import Self

    from hardwood.model.cost import Flops
    from hardwood.show.page import Page


class FrozenModel(ABC):
    """A value that never changes: it compares by value, and what changes it makes a new one.

    A model of its own kind keeps its parts in ``__dict__`` and says, beside what is abstract here,
    how it compares. ``noun`` is how messages call it.
    """

    noun: ClassVar[str]
    schema: Schema
    task: TaskKind
    classes: tuple[Label, ...] | None
    target_names: tuple[str, ...] | None
    _record: str

    __hash__ = None  # type: ignore[assignment]  # equality by value over arrays; nothing to gain

    # What it is

    @property
    @abstractmethod
    def n_splits(self) -> int:
        """Number of internal nodes."""

    @property
    @abstractmethod
    def n_leaves(self) -> int:
        """Number of leaves."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of classes, labels, or regression outputs, k."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """Number of splits on the longest way from a root to a leaf."""

    @property
    @abstractmethod
    def has_linear_leaves(self) -> bool:
        """Whether some leaves answer by a linear model of the row, not by a constant."""

    @property
    def n_nodes(self) -> int:
        """Number of splits and leaves together."""
        return self.n_splits + self.n_leaves

    @property
    def n_features(self) -> int:
        """Number of features of the table, before categories become columns."""
        return int(self.schema.n_features)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of an unnamed table."""
        return self.schema.names

    @property
    def record(self) -> dict[str, Any]:
        """Notes of the training, a fresh copy at each access."""
        return dict(strict_json.parse(self._record))

    # What it answers

    @abstractmethod
    def _outputs(self, X: Any, n_jobs: int | None) -> np.ndarray:
        """Probabilities or values of each row, (n, k) float64."""

    @property
    @abstractmethod
    def _output_of(self) -> Callable[[Any], np.ndarray]:
        """Outputs (k,) of a row as the engine takes it; ``TypeError`` where it is none."""

    def predict(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Predict each row; ``n_jobs=-1`` uses all processors.

        Returns
        -------
        answers
            (n,) class labels, the first where several are as likely; (n,) values, or (n, k) where
            there are k > 1; or (n, k) int64 of labels, 1 where the probability of yes, or the share
            of votes, is at least a half.
        """
        return answers(self._outputs(X, n_jobs), self.task, self.classes)

    def predict_proba(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Probabilities or shares of votes, (n, k): of ``classes``, or of yes for each label."""
        if self.task == "regression":
            raise TypeError(
                f"predict_proba needs {self.noun} of classes or labels; this one predicts numbers: "
                "use predict"
            )
        return self._outputs(X, n_jobs)

    def predict_one(self, x: Any) -> Any:
        """Predict one row: a 1-D array, a sequence in the order of the features, or a mapping.

        A float array of a table of numbers goes straight to the engine; anything else is read as
        carefully as a table with one row.

        Returns
        -------
        answer
            The class label, a float, or for several outputs or labels a read-only array (k,).
        """
        try:
            outputs = self._output_of(x)
        except (TypeError, ValueError):
            outputs = self._outputs(encode_row.as_table(x, self.feature_names), 1)[0]
        return answer_of_one(outputs, self.task, self.classes)

    # Other forms

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """Arguments of the constructor that make this model."""

    def replace(self, **changes: Any) -> Self:
        """Return a model with some parts changed, named as in the constructor; the rest is kept."""
        return type(self)(**(self._parts() | changes))

    def flops(self, X: Any = None) -> Flops:
        """Operations per prediction, mean and worst: see :func:`hardwood.model.cost.flops`."""
        from hardwood.model.cost import flops

        return flops(self, X)

    def show(
        self,
        path: str | os.PathLike[str] | None = None,
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        max_rows: int = 300,
    ) -> Page:
        """Make an interactive page of the model: one HTML file that fetches nothing.

        Parameters
        ----------
        path
            Where to write the page; without it, nothing is written, and a notebook displays what
            is returned.
        X, y
            Rows to fill the histograms with, and their true answers to colour them by; optional.
        title
            By default, what is predicted.
        max_rows
            How many of the rows the page holds for its readers to choose from.
        """
        from hardwood.show.page import show

        return show(self, path, X, y, title=title, max_rows=max_rows)

    def _repr_html_(self) -> str | None:
        from hardwood.show.page import notebook_html

        return notebook_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, in whole or not at all: see :func:`hardwood.model.save`."""
        from hardwood.model.files.file import save

        save(self, path)

    def to_json(self) -> str:
        """Write the model as JSON text, in full precision."""
        from hardwood.model.files.json import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what :meth:`to_json` wrote; ``ModelFileError`` says what is wrong otherwise."""
        from hardwood.model.files.json import from_json

        return from_json(cls, text)

    # A frozen value

    def __setattr__(self, name: str, value: Any) -> None:
        new = self.noun.split()[-1]
        raise AttributeError(
            f"{self.noun} is frozen: cannot set {name!r}; make a new {new} instead"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self.noun} is frozen: cannot delete {name!r}")

    def _is_like(self, other: FrozenModel) -> bool:
        """Whether another model has the same task, names, schema and record."""
        return (
            (self.task, self.target_names) == (other.task, other.target_names)
            and typed(self.classes) == typed(other.classes)
            and (self.schema is other.schema or self.schema == other.schema)
            and self._record == other._record
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (type(self), self._parts())

    def _answer_words(self) -> str:
        """Say what is predicted, for ``repr``."""
        return {
            "classification": f"{len(self.classes or ())} classes",
            "regression": "regression",
            "multilabel": f"{self.n_outputs} labels",
        }[self.task]


def rebuilt(kind: type[FrozenModel], parts: dict[str, Any]) -> FrozenModel:
    """Make a model again from its parts: what pickle calls."""
    return kind(**parts)
