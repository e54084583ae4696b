"""What every model is: a frozen value that reads tables, answers, and can be written down."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hardwood.model import structure
from hardwood.model.engine import not_for_the_engine
from hardwood.model.files import strict_json
from hardwood.model.outputs import answer_of_one, answers
from hardwood.model.structure import Array, Label, Link, TaskKind
from hardwood.model.views import WeightColumn, columns_of
from hardwood.table import Schema, encode_row
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from typing_extensions import Self

    from hardwood.model.cost import Flops
    from hardwood.model.kinds.forest import ObliqueForest
    from hardwood.model.kinds.tree import ObliqueTree
    from hardwood.show.page import Page

# Where fitted estimators keep their model.
MODEL_ATTRIBUTES = ("tree_", "forest_", "ensemble_", "model_")
# Parts of every model, beside its own arrays and options.
_COMMON = ("schema", "task", "classes", "target_names", "record")


class Model(ABC):
    """A value that never changes: it compares by value, and what changes it makes a new one.

    A kind of model declares its parts once: ``arrays``, and ``options``, which are the rest of its
    own. By them its constructor, `replace`, ``==``, pickles, files and the JSON form go. ``noun``
    is how messages call it. ``combine`` says how the trees of an ensemble answer together.
    """

    noun: ClassVar[str]
    arrays: ClassVar[tuple[Array, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ("link",)
    link: Link
    schema: Schema
    task: TaskKind
    classes: tuple[Label, ...] | None
    target_names: tuple[str, ...] | None
    _record: str

    __hash__ = None  # type: ignore[assignment]  # equality by value over arrays; nothing to gain

    def _keep(
        self,
        arrays: Sequence[Any],
        schema: Schema,
        task: TaskKind,
        classes: Iterable[Any] | None,
        target_names: Iterable[str] | str | None,
        record: Mapping[str, Any] | None,
        **options: Any,
    ) -> None:
        """Check and keep the parts, arrays in the order of the declaration: for constructors."""
        sizes = {"c": schema.n_columns}
        for part, value in zip(self.arrays, arrays, strict=True):
            self.__dict__[part.name] = part.read(value, sizes)
        self.__dict__.update(
            options,
            schema=schema,
            task=task,
            classes=structure.class_labels(classes, task),
            _record=structure.record_text(record),
        )
        self._check()
        self.__dict__["target_names"] = structure.target_names(target_names, task, self.n_outputs)

    @abstractmethod
    def _check(self) -> None:
        """Check that the parts fit each other, and make options what they are kept as."""

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
    def has_linear_leaves(self) -> bool:
        """Whether some leaves answer by a linear model of the row, not by a constant."""
        return False

    @property
    def is_ensemble(self) -> bool:
        """Whether it answers by several trees together, even where there is but one."""
        return isinstance(self, Ensemble)

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return 1

    @property
    def n_weights(self) -> int:
        """Number of weights other than zero, of splits and of linear leaves."""
        return sum(tree.n_weights for tree in self.hard_trees)

    def _full_sizes(self, height: Any = None) -> tuple[int, int, int]:
        """Count splits, leaves and weights of as many perfect trees of a height, all weights."""
        height = self.depth if height is None else height
        if isinstance(height, bool) or not isinstance(height, int) or height < self.depth:
            raise ValueError(
                "of must be the model before, or the height of its perfect trees, at least "
                f"{self.depth}; found {height!r:.80}"
            )
        n_splits, n_leaves = 2**height - 1, 2**height
        n_linear = sum(tree.has_linear_leaves for tree in self.hard_trees)
        n_rows = self.n_trees * n_splits + n_linear * n_leaves * self.n_outputs
        return self.n_trees * n_splits, self.n_trees * n_leaves, n_rows * self.schema.n_columns

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
    def n_bytes(self) -> int:
        """Bytes of its arrays."""
        arrays = [getattr(self, part.name) for part in self.arrays]
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def split_numbers(self) -> Sequence[int]:
        """Numbers of the splits of a tree, by which its ``split`` shows them."""
        return range(self.n_splits)

    @property
    def record(self) -> dict[str, Any]:
        """Notes of the training, a fresh copy at each access."""
        return dict(strict_json.parse(self._record))

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of what is predicted, one per output; their numbers where there are no names."""
        return self.target_names or tuple(str(i) for i in range(self.n_outputs))

    @property
    def output_labels(self) -> tuple[str, ...]:
        """Names of the columns of the outputs: classes, labels, or numbers to be predicted."""
        return tuple(map(str, self.classes)) if self.classes else self.output_names

    @property
    def target_words(self) -> str:
        """What is predicted, in a phrase: ``classification of species``."""
        names = self.target_names or ()
        if not names:
            return self.task
        return f"{self.task} of {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"

    @property
    def size_words(self) -> str:
        """The sizes of the tree, or of all trees together, in a phrase."""
        kind = "linear " if self.has_linear_leaves else ""
        splits = plural(self.n_splits, "split")
        leaves = plural(self.n_leaves, f"{kind}leaf", f"{kind}leaves")
        features = plural(self.n_features, "feature")
        if self.is_ensemble:
            return f"depth up to {self.depth}, {splits} and {leaves} in all, {features}"
        return f"depth {self.depth}, {splits}, {leaves}, {features}"

    # The hard trees in it

    @property
    @abstractmethod
    def hard_trees(self) -> tuple[ObliqueTree, ...]:
        """The hard oblique trees that it consists of.

        Of a latent tree, the one of its splits, whose leaves have no answers. None of soft trees
        and of trees with splits of more than two branches.
        """

    def hard_tree(self, index: int) -> ObliqueTree:
        """Return one of the trees, as it is when rows take one way at every split."""
        return self.hard_trees[index]

    @abstractmethod
    def hard(self, what: str) -> ObliqueTree | ObliqueForest:
        """Return the hard tree or forest that answers as this model: often the model itself.

        Raises
        ------
        TypeError
            If there is none; ``what``, like "an export", says in the message what needs one.
        """

    def split_weights(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield, for each tree, the weights (m, c) of its splits, and the rows at each or None."""
        for tree in self.hard_trees:
            yield tree.weights, None if tree.counts is None else tree.counts[: tree.n_splits]

    # What it answers

    @abstractmethod
    def outputs(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Probabilities or values of each row, (n, k) float64, whatever the task."""

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
        return answers(self.outputs(X, n_jobs=n_jobs), self.task, self.classes)

    def predict_proba(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Probabilities or shares of votes, (n, k): of ``classes``, or of yes for each label."""
        if self.task == "regression":
            raise TypeError(
                f"predict_proba needs {self.noun} of classes or labels; this one predicts numbers: "
                "use predict"
            )
        return self.outputs(X, n_jobs=n_jobs)

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
            outputs = self.outputs(encode_row.as_table(x, self.feature_names))[0]
        return answer_of_one(outputs, self.task, self.classes)

    # Other forms

    def _parts(self) -> dict[str, Any]:
        """Arguments of the constructor that make this model."""
        names = [*(part.name for part in self.arrays), *self.options, *_COMMON]
        return {name: getattr(self, name) for name in names}

    def replace(self, **changes: Any) -> Self:
        """Return a model with some parts changed, named as in the constructor; the rest is kept."""
        return type(self)(**(self._parts() | changes))

    @abstractmethod
    def flops(self, X: Any = None) -> Flops:
        """Count the operations of one prediction; what counts, see `hardwood.model.cost`.

        Parameters
        ----------
        X
            Rows to take the mean over; by default over the rows that ``counts`` counted. The worst
            cost of a forest is the sum over its trees, though no row may take the worst path of
            all.
        """

    def to_text(
        self,
        *,
        max_depth: int | None = None,
        max_terms: int | None = 4,
        digits: int | None = 3,
    ) -> str:
        """Write the model in words.

        A split of a policy tree with two branches reads as that of an oblique tree. One with more
        branches lists their scores relative to the first branch, and the branch with the largest
        is taken. Of a latent tree the text says how active the nodes are.

        Parameters
        ----------
        max_depth
            Levels of splits to write; deeper ones are counted, not shown. ``None`` writes all.
        max_terms
            Terms to write per split, the largest; the text says how many were left out.
            ``None`` writes all.
        digits
            Significant digits; ``None`` writes every number in full.
        """
        from hardwood.show.text import tree_text

        tree: Any = self  # a kind that is one tree
        return tree_text(tree, max_depth=max_depth, max_terms=max_terms, digits=digits)

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
            Rows to fill the histograms with, and their true answers to color them by; optional.
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model) or type(self) is not type(other):
            return NotImplemented
        arrays = [(getattr(self, a.name), getattr(other, a.name)) for a in self.arrays]
        names = ("task", "target_names", "_record", *self.options)
        return (
            all(a is b or (a is not None and np.array_equal(a, b)) for a, b in arrays)
            and all(getattr(self, name) == getattr(other, name) for name in names)
            and structure.typed(self.classes) == structure.typed(other.classes)
            and (self.schema is other.schema or self.schema == other.schema)
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


class SingleTree(Model):
    """One tree, of which a row reaches one leaf. Constant leaves have their answers ready."""

    values: np.ndarray

    @property
    @abstractmethod
    def node_depths(self) -> np.ndarray:
        """Depth of each node; the root has depth 0."""

    @property
    @abstractmethod
    def _router(self) -> Any:
        """The engine's form of the splits."""

    @abstractmethod
    def apply(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Leaf number of each row, (n,) int32; ``n_jobs=-1`` uses all processors."""

    @cached_property
    def columns(self) -> tuple[WeightColumn, ...]:
        """What each column of ``weights`` multiplies."""
        return columns_of(self.schema)

    @property
    def depth(self) -> int:
        """Number of splits on the longest way from root to leaf."""
        return int(self.node_depths.max())

    def predict(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        if self.has_linear_leaves:
            return super().predict(X, n_jobs=n_jobs)
        decided: np.ndarray = self._leaf_answers[self.apply(X, n_jobs=n_jobs)]
        return decided

    def predict_one(self, x: Any) -> Any:
        if self.has_linear_leaves:
            return super().predict_one(x)
        try:
            return self._answers[self._leaf_of(x)]
        except (TypeError, ValueError):
            table = encode_row.as_table(x, self.feature_names)
            return self._answers[int(self.apply(table)[0])]

    # Only in a table of numbers are the entries of an array what the engine takes; levels of
    # categories have to be looked up.

    @cached_property
    def _leaf_of(self) -> Callable[[Any], int]:
        return self._router.apply_one if self.schema.is_numeric else not_for_the_engine

    @cached_property
    def _answers(self) -> list[Any]:
        return [answer_of_one(value, self.task, self.classes) for value in self.values]

    @cached_property
    def _leaf_answers(self) -> np.ndarray:
        return answers(self.values, self.task, self.classes)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_depth: int | None = 4,
        max_terms: int | None = 4,
        digits: int | None = 3,
        fontsize: float = 9.0,
    ) -> Axes:
        """Draw the tree with matplotlib.

        Without ``ax`` a figure of the size that the tree needs is made. In a given ``ax`` the
        drawing is scaled down to fit. Other arguments are as in :meth:`to_text`.
        """
        from hardwood.show.plot import plot_tree

        tree: Any = self  # one of its kinds
        return plot_tree(
            tree, ax, max_depth=max_depth, max_terms=max_terms, digits=digits, fontsize=fontsize
        )


class Ensemble(Model):
    """Several trees that answer together."""

    combine: str

    def to_text(
        self,
        *,
        max_trees: int | None = 3,
        max_depth: int | None = None,
        max_terms: int | None = 4,
        digits: int | None = 3,
    ) -> str:
        """Write the model in words.

        Parameters
        ----------
        max_trees
            Trees to write, the first; ``None`` writes all.
        max_depth, max_terms, digits
            As in :meth:`ObliqueTree.to_text`, for each tree.
        """
        from hardwood.show.text import trees_text

        model: Any = self  # one of its kinds
        return trees_text(
            model, max_trees=max_trees, max_depth=max_depth, max_terms=max_terms, digits=digits
        )


def not_hard(what: str, found: str) -> TypeError:
    """Say that ``what`` takes hard trees, and what to do with what was found instead."""
    return TypeError(f"{what} takes hard trees with two branches at every split, got {found}")


def model_of(thing: Any) -> Model:
    """Return the model: the thing itself, or what a fitted estimator has learned.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If it is an estimator that was not fitted.
    """
    if isinstance(thing, Model):
        return thing
    for name in MODEL_ATTRIBUTES:
        if isinstance(model := getattr(thing, name, None), Model):
            return model
    if hasattr(thing, "fit") and not isinstance(thing, type):
        raise ValueError(
            f"this {type(thing).__name__} has not learned a tree yet. Call fit(X, y) first; of a "
            "pipeline give the last step"
        )
    is_class = isinstance(thing, type)
    found = f"the class {thing.__name__}" if is_class else f"a {type(thing).__name__}"
    raise TypeError(
        f"expected a tree, a forest or a fitted estimator of hardwood, got {found}. A file is "
        "opened with hardwood.load"
    )


def rebuilt(kind: type[Model], parts: dict[str, Any]) -> Model:
    """Make a model again from its parts: what pickle calls."""
    return kind(**parts)
