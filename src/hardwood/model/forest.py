"""The forest: several trees over one schema, and the one way they answer together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from hardwood.model import engine, one_row, strict_json, structure
from hardwood.model.answers import answer_of_one, answers
from hardwood.model.structure import Label, Task
from hardwood.model.tree import ObliqueTree
from hardwood.table import Schema

if TYPE_CHECKING:
    from hardwood._native import ForestRouter
    from hardwood.model.cost import Flops

Combine = Literal["mean", "vote"]

MAX_TREES = 100_000  # a file that claims more is not believed

# What a tree of a forest that votes has one vote for.
_VOTES = {"classification": "class", "multilabel": "labels"}


class ObliqueForest:
    r"""Hard oblique trees that answer together.

    .. math:: f(x) = \frac{1}{T} \sum_{t=1}^{T} f_t(x)

    where :math:`f_t(x)` is what tree t says: its probabilities or values (``"mean"``), or 1 for the
    class it predicts and 0 for others (``"vote"``). Sums are in float64 and in the order of the
    trees, so that an answer depends neither on other rows nor on ``n_jobs``.

    The value is frozen: it compares by value, and whatever changes a forest returns a new one.

    Parameters
    ----------
    trees
        At least one. They agree in schema, task, classes, target names and number of outputs; their
        sizes, and whether their leaves are linear, may differ.
    combine
        ``"mean"`` averages probabilities or values; ``"vote"`` counts, for each class or label, the
        trees that predict it. Regression has the mean only.
    record
        JSON-able notes of the training of all; each tree has its own besides. Optional.

    Raises
    ------
    ValueError, TypeError
        If there is no tree, or the trees do not fit each other.

    Examples
    --------
    >>> from hardwood import ObliqueForest, ObliqueTree
    >>> trees = [ObliqueTree.of([[1.0]], thresholds=[t], values=[0.0, 1.0]) for t in (1, 2, 3)]
    >>> forest = ObliqueForest(trees)
    >>> forest.predict([[0.0], [2.5]]).tolist()
    [0.0, 0.6666666666666666]
    """

    trees: tuple[ObliqueTree, ...]
    combine: Combine
    _record: str

    __hash__ = None  # type: ignore[assignment]  # equality by value over arrays; nothing to gain

    def __init__(
        self,
        trees: Iterable[ObliqueTree],
        *,
        combine: Combine = "mean",
        record: Mapping[str, Any] | None = None,
    ) -> None:
        members = _fitting(trees)
        if combine not in get_args(Combine):
            raise ValueError(f"combine must be 'mean' or 'vote', not {combine!r:.80}")
        if combine == "vote" and members[0].task not in _VOTES:
            raise ValueError(
                "trees vote for classes or labels; these predict numbers: use combine='mean'"
            )
        self.__dict__.update(trees=members, combine=combine, _record=structure.record_text(record))

    # What it is

    @property
    def record(self) -> dict[str, Any]:
        """Notes of the training, a fresh copy at each access."""
        return dict(strict_json.parse(self._record))

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return len(self.trees)

    @property
    def schema(self) -> Schema:
        """How a table becomes the columns that the weights of all trees multiply."""
        return self.trees[0].schema

    @property
    def task(self) -> Task:
        """What is predicted: ``"classification"``, ``"regression"`` or ``"multilabel"``."""
        return self.trees[0].task

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The k distinct labels of a classification forest."""
        return self.trees[0].classes

    @property
    def target_names(self) -> tuple[str, ...] | None:
        """What is predicted, by name, where known."""
        return self.trees[0].target_names

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of an unnamed table."""
        return self.schema.names

    @property
    def n_features(self) -> int:
        """Number of features of the table, before categories become columns."""
        return int(self.schema.n_features)

    @property
    def n_outputs(self) -> int:
        """Number of classes, labels, or regression outputs."""
        return self.trees[0].n_outputs

    @property
    def n_splits(self) -> int:
        """Number of internal nodes of all trees."""
        return sum(tree.n_splits for tree in self.trees)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return sum(tree.n_leaves for tree in self.trees)

    @property
    def n_nodes(self) -> int:
        """Number of splits and leaves of all trees."""
        return self.n_splits + self.n_leaves

    @cached_property
    def depth(self) -> int:
        """Depth of the deepest tree."""
        return max(tree.depth for tree in self.trees)

    @property
    def has_linear_leaves(self) -> bool:
        """Whether some tree's leaves answer by a linear model of the row."""
        return any(tree.has_linear_leaves for tree in self.trees)

    # What it answers

    def apply(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Leaf number of each row in each tree, (n, T) int32; ``n_jobs=-1``: all processors."""
        router, _ = self._packed
        return engine.ask(
            self.schema, X, router.apply, router.apply_csr, n_jobs=n_jobs, who="ObliqueForest"
        )

    def predict(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Predict each row.

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
                "predict_proba needs a forest of classes or labels; this one predicts numbers: "
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
            outputs = self._outputs(one_row.as_table(x, self.feature_names), 1)[0]
        return answer_of_one(outputs, self.task, self.classes)

    @cached_property
    def _packed(self) -> tuple[ForestRouter, int]:
        """The engine's form, and the power of two by which its answers are too small."""
        from hardwood._native import ForestRouter

        exponent = _headroom(self.trees)
        leaves = [
            tree._leaf_models if tree.has_linear_leaves else np.ldexp(tree.values, -exponent)
            for tree in self.trees
        ]
        vote = _VOTES[self.task] if self.combine == "vote" else "none"
        return ForestRouter([tree._router for tree in self.trees], leaves, vote), exponent

    def _outputs(self, X: Any, n_jobs: int | None) -> np.ndarray:
        """Probabilities or values of each row, (n, k) float64."""
        router, exponent = self._packed
        outputs = engine.ask(
            self.schema, X, router.mean, router.mean_csr, n_jobs=n_jobs, who="ObliqueForest"
        )
        if exponent:
            # No mean of finite numbers is beyond them; rounding could make it so.
            limit = np.ldexp(np.finfo(np.float64).max, -exponent)
            outputs = np.ldexp(np.clip(outputs, -limit, limit), exponent)
        return outputs

    @cached_property
    def _output_of(self) -> Callable[[Any], np.ndarray]:
        # Only in a table of numbers are the entries of an array what the engine takes; levels of
        # categories have to be looked up.
        (router, exponent), k = self._packed, self.n_outputs
        if not self.schema.is_numeric or exponent:
            return _not_an_engine_row
        mean_one = router.mean_one

        def output_of(x: Any) -> np.ndarray:
            outputs = np.empty(k)
            mean_one(x, outputs)
            return outputs

        return output_of

    # Other forms

    def replace(self, **changes: Any) -> ObliqueForest:
        """Return a forest with other trees, another way to combine them, or another record.

        Examples
        --------
        Smaller trees: ``forest.replace(trees=[tree.prune(X) for tree in forest.trees])``.
        """
        kept = {"trees": self.trees, "combine": self.combine, "record": self.record}
        return ObliqueForest(**(kept | changes))

    def with_trees(self, trees: Iterable[ObliqueTree]) -> ObliqueForest:
        """Return a forest that has these trees, too, after its own."""
        return ObliqueForest((*self.trees, *trees), combine=self.combine, record=self.record)

    def flops(self, X: Any = None) -> Flops:
        """Operations per prediction, mean and worst: see :func:`hardwood.model.cost.flops`."""
        from hardwood.model.cost import flops

        return flops(self, X)

    def to_text(
        self,
        *,
        max_trees: int | None = 3,
        max_depth: int | None = None,
        max_terms: int | None = 4,
        digits: int | None = 3,
    ) -> str:
        """Write the forest in words.

        Parameters
        ----------
        max_trees
            Trees to write, the first; ``None`` writes all.
        max_depth, max_terms, digits
            As in :meth:`ObliqueTree.to_text`, for each tree.
        """
        from hardwood.show.forest import forest_text

        return forest_text(
            self, max_trees=max_trees, max_depth=max_depth, max_terms=max_terms, digits=digits
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the forest to a file, in whole or not at all: see :func:`hardwood.model.save`."""
        from hardwood.model.file import save

        save(self, path)

    def to_json(self) -> str:
        """Write the forest as JSON text, in full precision."""
        from hardwood.model.document import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> ObliqueForest:
        """Read what :meth:`to_json` wrote; ``ModelFileError`` says what is wrong otherwise."""
        from hardwood.model.document import forest_from_json

        return forest_from_json(text)

    # A frozen value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"an ObliqueForest is frozen: cannot set {name!r}; make a new forest instead"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an ObliqueForest is frozen: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObliqueForest):
            return NotImplemented
        return (
            (self.combine, self._record) == (other.combine, other._record)
            and self.n_trees == other.n_trees
            and all(mine == theirs for mine, theirs in zip(self.trees, other.trees, strict=True))
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.trees, self.combine, self.record)

    def __repr__(self) -> str:
        what = {
            "classification": f"{len(self.classes or ())} classes",
            "regression": "regression",
            "multilabel": f"{self.n_outputs} labels",
        }[self.task]
        return (
            f"ObliqueForest({self.combine} of {self.n_trees} trees, {what}, {self.n_features} "
            f"features, depth {self.depth}, {self.n_splits} splits, {self.n_leaves} "
            f"{'linear ' * self.has_linear_leaves}leaves)"
        )


def _fitting(trees: Iterable[ObliqueTree]) -> tuple[ObliqueTree, ...]:
    """Check that the trees agree, and let them share one schema: the engine encodes rows once."""
    members = tuple(trees)
    if not 1 <= len(members) <= MAX_TREES:
        raise ValueError(f"a forest needs 1 to {MAX_TREES} trees, got {len(members)}")
    for i, tree in enumerate(members):
        if not isinstance(tree, ObliqueTree):
            raise TypeError(f"a forest holds ObliqueTree, but tree {i} is a {type(tree).__name__}")
        difference = _difference(members[0], tree)
        if difference:
            raise ValueError(f"tree {i} does not fit tree 0: {difference}")
    schema = members[0].schema
    return tuple(tree if tree.schema is schema else tree.replace(schema=schema) for tree in members)


def _difference(first: ObliqueTree, other: ObliqueTree) -> str | None:
    """Say in what two trees differ that those of a forest must share; None if in nothing."""
    for name in ("task", "n_outputs", "target_names"):
        mine, theirs = getattr(other, name), getattr(first, name)
        if mine != theirs:
            return f"its {name} is {mine!r:.80}, not {theirs!r:.80}"
    if _typed(first.classes) != _typed(other.classes):
        return f"its classes are {other.classes!r:.80}, not {first.classes!r:.80}"
    if first.schema is not other.schema and first.schema != other.schema:
        return "its schema is another (names, kinds, levels, centers or scales of the features)"
    return None


def _typed(classes: tuple[Label, ...] | None) -> list[tuple[type, Label]] | None:
    return None if classes is None else [(type(label), label) for label in classes]


def _headroom(trees: tuple[ObliqueTree, ...]) -> int:
    """Power of two by which constant leaves must be divided for their sum to be finite: mostly 0.

    Linear leaves are not limited so: what one of them answers may be beyond float64 by itself.
    """
    if any(tree.has_linear_leaves for tree in trees):
        return 0
    largest = max(float(np.abs(tree.values).max()) for tree in trees)
    fits = largest <= np.finfo(np.float64).max / len(trees)
    return 0 if fits else len(trees).bit_length()


def _not_an_engine_row(x: Any) -> np.ndarray:
    raise TypeError("such rows are read as a table")


def _rebuild(
    trees: tuple[ObliqueTree, ...], combine: Combine, record: dict[str, Any]
) -> ObliqueForest:
    return ObliqueForest(trees, combine=combine, record=record)
