"""The base of all models: immutable values that read tables, predict, and can be saved."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

import numpy as np

from hardwood.errors import ModelKindError
from hardwood.model import structure
from hardwood.model.engine import not_for_the_engine
from hardwood.model.files import strict_json
from hardwood.model.importances import Explained, importances
from hardwood.model.outputs import (
    class_positions,
    prediction_of_one,
    predictions,
    warn_if_infinite,
)
from hardwood.model.structure import Array, Label, Link, TaskKind
from hardwood.model.views import WeightColumn, columns_of
from hardwood.table import Schema, encode_row
from hardwood.text.numbers import plural
from hardwood.text.terms import MAX_TERMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from typing_extensions import Self

    from hardwood.model.cost import Flops
    from hardwood.model.kinds.forest import ObliqueForest
    from hardwood.model.kinds.tree import ObliqueTree
    from hardwood.show.page import Page
    from hardwood.text.numbers import Digits

# The attributes in which fitted estimators store their model.
MODEL_ATTRIBUTES = ("tree_", "forest_", "ensemble_", "model_")
# Parts of every model, besides its own arrays and options.
_COMMON = ("schema", "task", "classes", "target_names", "record")


class Model(ABC):
    """An immutable model, which compares by value; methods that change it return a new one.

    A kind of model declares its parts once: ``arrays`` and ``options``. Its constructor, `replace`,
    ``==``, pickles, files and the JSON form use this declaration. ``noun`` is its name in error
    messages. ``combine`` is how the predictions of the trees of an ensemble are combined.
    """

    noun: ClassVar[str]
    arrays: ClassVar[tuple[Array, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ("link",)
    link: Link
    schema: Schema
    task: TaskKind
    classes: tuple[Label, ...] | None
    target_names: tuple[str, ...] | None
    decision_weights: np.ndarray | None = None
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
        """Check and store the parts, arrays in the order of the declaration; for constructors."""
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
        """Check that the parts are consistent, and normalize the options."""

    # Properties

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
        """Number of splits on the longest path from a root to a leaf."""

    @property
    def has_linear_leaves(self) -> bool:
        """Whether leaves predict by a linear model of the row instead of a constant."""
        return False

    @property
    def is_ensemble(self) -> bool:
        """Whether it is a kind of model with several trees, even if there is only one."""
        return isinstance(self, Ensemble)

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return 1

    @property
    def n_weights(self) -> int:
        """Number of nonzero weights, of splits and of linear leaves."""
        return sum(tree.n_weights for tree in self.hard_trees)

    def _full_sizes(self, height: Any = None) -> tuple[int, int, int]:
        """Count splits, leaves and weights of as many perfect trees, without zero weights."""
        height = self.depth if height is None else height
        if isinstance(height, bool) or not isinstance(height, int) or height < self.depth:
            raise ValueError(
                "of must be the earlier model, or the depth of its perfect trees, at least "
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
        """Number of features of the table, before categories are encoded as columns."""
        return int(self.schema.n_features)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of an unnamed table."""
        return self.schema.names

    @property
    def n_bytes(self) -> int:
        """Number of bytes of its arrays."""
        arrays = [getattr(self, part.name) for part in self.arrays]
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def split_numbers(self) -> Sequence[int]:
        """Numbers of the splits of a tree, for its method ``split``."""
        return range(self.n_splits)

    @property
    def record(self) -> dict[str, Any]:
        """The training record; a copy."""
        return dict(strict_json.parse(self._record))

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, or their numbers if they have no names."""
        return self.target_names or tuple(str(i) for i in range(self.n_outputs))

    @property
    def output_labels(self) -> tuple[str, ...]:
        """Names of the columns of the outputs: classes, labels, or targets."""
        return tuple(map(str, self.classes)) if self.classes else self.output_names

    @property
    def target_words(self) -> str:
        """The task and its target: ``classification of species``."""
        names = self.target_names or ()
        if not names:
            return self.task
        return f"{self.task} of {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"

    @property
    def shape_words(self) -> str:
        """The features, and the size of the tree, or of all trees together."""
        kind = "linear " if self.has_linear_leaves else ""
        leaves = plural(self.n_leaves, f"{kind}leaf", f"{kind}leaves")
        features = plural(self.n_features, "feature")
        return f"{features}, depth {self.depth}, {self._splits_text()}, {leaves}"

    def _splits_text(self) -> str:
        return plural(self.n_splits, "split")

    @property
    def size_words(self) -> str:
        """A description of the size of the tree, or of all trees together."""
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
        """The hard oblique trees that the model consists of.

        For a latent tree, the tree of its splits, whose leaves do not predict. Empty for soft trees
        and for trees with more than two branches per split.
        """

    def hard_tree(self, index: int) -> ObliqueTree:
        """Return one of the trees as a hard tree, in which rows take one branch at every split."""
        return self.hard_trees[index]

    @abstractmethod
    def hard(self, what: str) -> ObliqueTree | ObliqueForest:
        """Return the hard tree or forest with the same predictions, often the model itself.

        Raises
        ------
        ModelKindError
            If there is none; the message says that ``what``, such as "an export", needs one.
        """

    def split_weights(self) -> Iterator[np.ndarray]:
        """Yield the split weights (m, c) of each tree."""
        for tree in self.hard_trees:
            yield tree.weights

    @cached_property
    def feature_importances(self) -> np.ndarray:
        """Share of each feature in the variance of the predictions, (p,) float64.

        It is defined in `hardwood.model.importances`. The shares add up to 1; all are 0 if no
        prediction depends on a feature.
        """
        trees = self._explained()
        if self.link == "softmax":
            trees = map(Explained.relative, trees)
        is_sum = getattr(self, "combine", None) == "sum"
        shares = importances(trees, self.task, is_sum=is_sum)
        shares.flags.writeable = False
        return shares

    @abstractmethod
    def _explained(self) -> Iterable[Explained]:
        """Return what importances depend on, tree by tree."""

    # Predictions

    @abstractmethod
    def outputs(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return the outputs of each row, (n, k) float64: probabilities or values."""

    @property
    @abstractmethod
    def _output_of(self) -> Callable[[Any], np.ndarray]:
        """Return the outputs (k,) of a row in the engine's format; ``TypeError`` for other rows."""

    def predict(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Predict each row; ``n_jobs=-1`` uses all processors.

        Returns
        -------
        predictions
            (n,) class labels, the first one on ties; (n,) values, or (n, k) if k > 1; or (n, k)
            int64 labels, 1 where the probability or the fraction of votes is at least 0.5.

        Warns
        -----
        TableWarning
            If values are beyond float64.
        """
        outputs = self.outputs(X, n_jobs=n_jobs)
        if self.task == "regression":
            warn_if_infinite(outputs)
        return self.predictions_for(outputs)

    def predictions_for(self, outputs: np.ndarray) -> np.ndarray:
        """Return what `predict` returns for rows with these outputs, (n, k)."""
        return predictions(outputs, self.task, self.classes, self.decision_weights)

    def class_positions(self, outputs: np.ndarray) -> np.ndarray:
        """Return the position of the class predicted for each row of outputs, (n,)."""
        return class_positions(outputs, self.decision_weights)

    def predict_proba(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return probabilities or fractions of votes, (n, k): of each class, or of each label."""
        if self.task == "regression":
            raise TypeError(
                f"predict_proba needs {self.noun} for classes or labels; this one predicts "
                "numbers: use predict"
            )
        return self.outputs(X, n_jobs=n_jobs)

    def predict_one(self, x: Any) -> Any:
        """Predict one row: a 1-D array, a sequence in the order of the features, or a mapping.

        A float array for a numeric table is passed directly to the engine; anything else is read
        and checked like a table with one row.

        Returns
        -------
        prediction
            The class label, a float, or a read-only array (k,) of several outputs or labels.
        """
        try:
            outputs = self._output_of(x)
        except (TypeError, ValueError):
            outputs = self.outputs(encode_row.as_table(x, self.feature_names))[0]
        return self.prediction_for(outputs)

    def prediction_for(self, outputs: np.ndarray) -> Any:
        """Return what `predict_one` returns for a row with these outputs, (k,)."""
        return prediction_of_one(outputs, self.task, self.classes, self.decision_weights)

    # Other forms

    def _parts(self) -> dict[str, Any]:
        """Return the constructor arguments of this model."""
        names = [*(part.name for part in self.arrays), *self.options, *_COMMON]
        return {name: getattr(self, name) for name in names}

    def replace(self, **changes: Any) -> Self:
        """Return a model with some parts replaced, named as in the constructor."""
        return type(self)(**(self._parts() | changes))

    @abstractmethod
    def flops(self, X: Any = None) -> Flops:
        """Count the operations of one prediction, as defined in `hardwood.model.cost`.

        Parameters
        ----------
        X
            Rows to average over; by default the training rows, from ``counts``. The worst case of a
            forest is the sum over its trees, although no row may take the worst path in all trees.
        """

    def to_text(
        self,
        *,
        max_depth: int | Literal["auto"] | None = "auto",
        max_terms: int | None = MAX_TERMS,
        digits: Digits = "auto",
        node: int = 0,
    ) -> str:
        """Return the model as readable text.

        A split of a policy tree with two branches is shown like that of an oblique tree. One with
        more branches lists their scores relative to the first branch; rows take the branch with the
        largest score. For a latent tree, the text shows how active the nodes are.

        Parameters
        ----------
        max_depth
            Number of levels to show; deeper nodes are only counted. ``"auto"``: at most 30, and as
            many as fit into about 1,000 lines. ``None`` shows all.
        max_terms
            Number of terms to show per split, the largest first; the text says how many are left
            out. ``None`` shows all. Linear leaves always show all of theirs.
        digits
            Significant digits. By default, numbers of at most nine digits are written in full and
            others with three digits; ``None`` writes all in full, and dates as seconds.
        node
            Number of the split to begin with; the text gives the numbers of those not shown.
        """
        from hardwood.show.text import tree_text

        tree: Any = self  # kinds with a single tree
        return tree_text(tree, max_depth=max_depth, max_terms=max_terms, digits=digits, node=node)

    def show(
        self,
        path: str | os.PathLike[str] | None = None,
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        max_rows: int = 300,
    ) -> Page:
        """Create an interactive page of the model: one HTML file without external resources.

        Parameters
        ----------
        path
            Where to write the page. Without it, nothing is written, and notebooks display the
            returned page.
        X, y
            Rows for the histograms, and their targets for the colors; optional.
        title
            By default the task and its target.
        max_rows
            Maximum number of rows in the page, for readers to choose from.
        """
        from hardwood.show.page import show

        return show(self, path, X, y, title=title, max_rows=max_rows)

    def _repr_html_(self) -> str | None:
        from hardwood.show.page import notebook_html

        return notebook_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, atomically: see :func:`hardwood.model.save`."""
        from hardwood.model.files.file import save

        save(self, path)

    def to_json(self) -> str:
        """Return the model as JSON text, in full precision."""
        from hardwood.model.files.json import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read the result of :meth:`to_json`; raise ``ModelFileError`` for anything else."""
        from hardwood.model.files.json import from_json

        return from_json(cls, text)

    # Immutability

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

    def _outputs_text(self) -> str:
        """Describe the outputs, for ``repr``."""
        return {
            "classification": plural(len(self.classes or ()), "class", "classes"),
            "regression": "regression",
            "multilabel": plural(self.n_outputs, "label"),
        }[self.task]


class SingleTree(Model):
    """A single tree in which each row reaches one leaf; constant leaves cache their predictions."""

    values: np.ndarray

    @property
    @abstractmethod
    def node_depths(self) -> np.ndarray:
        """Depth of each node; the root has depth 0."""

    @property
    @abstractmethod
    def _router(self) -> Any:
        """The splits in the engine's format."""

    @abstractmethod
    def apply(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return the leaf number of each row, (n,) int32; ``n_jobs=-1`` uses all processors."""

    @cached_property
    def columns(self) -> tuple[WeightColumn, ...]:
        """What each column of ``weights`` multiplies."""
        return columns_of(self.schema)

    @property
    def depth(self) -> int:
        """Number of splits on the longest path from the root to a leaf."""
        return int(self.node_depths.max())

    def predict(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        if self.has_linear_leaves:
            return super().predict(X, n_jobs=n_jobs)
        decided: np.ndarray = self._leaf_predictions[self.apply(X, n_jobs=n_jobs)]
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
        return [self.prediction_for(value) for value in self.values]

    @cached_property
    def _leaf_predictions(self) -> np.ndarray:
        return self.predictions_for(self.values)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_depth: int | None = 4,
        max_terms: int | None = MAX_TERMS,
        digits: Digits = "auto",
        fontsize: float = 9.0,
    ) -> Axes:
        """Draw the tree with matplotlib.

        Without ``ax``, a figure of the size that the tree needs is created. In a given ``ax``, the
        drawing is scaled down to fit. For other arguments see :meth:`to_text`.
        """
        from hardwood.show.plot import plot_tree

        tree: Any = self  # one of its kinds
        return plot_tree(
            tree, ax, max_depth=max_depth, max_terms=max_terms, digits=digits, fontsize=fontsize
        )


class Ensemble(Model):
    """Several trees whose predictions are combined."""

    combine: str

    def to_text(  # type: ignore[override]  # nodes are numbered tree by tree
        self,
        *,
        max_trees: int | None = 3,
        max_depth: int | Literal["auto"] | None = "auto",
        max_terms: int | None = MAX_TERMS,
        digits: Digits = "auto",
    ) -> str:
        """Return the model as readable text.

        Parameters
        ----------
        max_trees
            Number of trees to show; ``None`` shows all.
        max_depth, max_terms, digits
            For each tree, see :meth:`ObliqueTree.to_text`.
        """
        from hardwood.show.text import trees_text

        model: Any = self  # one of its kinds
        return trees_text(
            model, max_trees=max_trees, max_depth=max_depth, max_terms=max_terms, digits=digits
        )

    def plot(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: a plot shows one tree, ``hard_tree(0).plot()``."""
        raise ModelKindError(
            f"a plot shows a single tree, got {self.noun} of {plural(self.n_trees, 'tree')}: draw "
            "one of them, such as hard_tree(0).plot()"
        )


def not_hard(what: str, found: str) -> ModelKindError:
    """Return the error that ``what`` needs hard trees but got something else."""
    return ModelKindError(f"{what} needs hard trees with two branches at every split, got {found}")


def model_of(thing: Any) -> Model:
    """Return the model: the argument itself, or the model of a fitted estimator.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If it is an estimator that is not fitted.
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
        f"expected a tree, a forest or a fitted estimator of hardwood, got {found}. To open a "
        "file, use hardwood.load"
    )


def rebuilt(kind: type[Model], parts: dict[str, Any]) -> Model:
    """Create a model from its parts; called by pickle."""
    return kind(**parts)
