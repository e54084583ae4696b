"""Forests: hard oblique trees whose predictions are combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from hardwood.model import cost, engine, structure
from hardwood.model.base import Ensemble
from hardwood.model.importances import Explained
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.structure import LINKS, Label, Link, TaskKind
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood._native import ForestRouter
    from hardwood.model.cost import Flops

Combine = Literal["mean", "vote", "sum"]

MAX_TREES = 100_000  # a file with more is refused

# What each tree of a voting forest votes on, by task.
_VOTES = {"classification": "class", "multilabel": "labels"}
# The task of a sum of scores, by its link.
_TASKS: dict[str, Any] = {link: task for task, links in LINKS.items() for link in links}


class ObliqueForest(Ensemble):
    r"""Hard oblique trees whose predictions are averaged, counted as votes, or summed.

    .. math:: f(x) = \frac{1}{T} \sum_{t=1}^{T} f_t(x)
        \qquad\text{or}\qquad f(x) = \mathrm{link}\Big(\sum_{t=1}^{T} f_t(x)\Big)

    where :math:`f_t(x)` are the outputs of tree t: its probabilities or values (``"mean"``), 1 for
    the class that it predicts and 0 for others (``"vote"``), or scores (``"sum"``, on the right).
    Sums are computed in float64 and in the order of the trees, so that a prediction depends neither
    on other rows nor on ``n_jobs``.

    A forest is immutable and compares by value; methods that change it return a new one.

    Parameters
    ----------
    trees
        At least one, with the same schema, task, classes, target names and number of outputs; their
        sizes, and whether their leaves are linear, may differ. The trees of a sum are regression
        trees of k scores; they get the names of what they score.
    combine
        ``"mean"`` averages probabilities or values; ``"vote"`` counts, for each class or label, the
        trees that predict it; ``"sum"`` adds up scores. Regression has no votes.
    record
        JSON-compatible training record of the forest, besides those of its trees. Optional.
    link
        For a sum, from scores to outputs: ``"softmax"`` of the scores of k classes, ``"logistic"``
        of those of k labels; ``"identity"`` and ``"exp"`` are for regression.
    classes
        For a sum with the link ``"softmax"``: the k distinct labels. Otherwise the trees have them.
    target_names
        Names of the targets: one for classification, k otherwise. By default those of the trees of
        a mean or a vote; if given, the trees get these names, too.

    Raises
    ------
    ValueError, TypeError
        If there is no tree, the trees do not match, or their scores add up to more than the maximum
        of float64.

    Examples
    --------
    >>> from hardwood import ObliqueForest, ObliqueTree
    >>> trees = [ObliqueTree.of([[1.0]], thresholds=[t], values=[0.0, 1.0]) for t in (1, 2, 3)]
    >>> forest = ObliqueForest(trees)
    >>> forest.predict([[0.0], [2.5]]).tolist()
    [0.0, 0.6666666666666666]
    >>> ObliqueForest(trees, combine="sum").predict([[0.0], [2.5]]).tolist()
    [0.0, 2.0]
    """

    noun = "a forest"
    options = ("trees", "combine", "link")
    trees: tuple[ObliqueTree, ...]
    combine: Combine

    def __init__(
        self,
        trees: Iterable[ObliqueTree],
        *,
        combine: Combine = "mean",
        record: Mapping[str, Any] | None = None,
        link: Link = "identity",
        classes: Iterable[Any] | None = None,
        target_names: Iterable[str] | str | None = None,
    ) -> None:
        if combine not in get_args(Combine):
            raise ValueError(f"combine must be 'mean', 'vote' or 'sum', not {combine!r:.80}")
        renamed = combine == "sum" or target_names is not None
        members = _fitting(trees, "target_names" if renamed else "")
        if combine == "sum":
            task, labels = _summed(members, link, classes)
        else:
            task, labels = _averaged(members[0], combine, link, classes)
        names = members[0].target_names
        if renamed:
            names = structure.target_names(target_names, task, members[0].n_outputs)
            own = score_names(labels, names) if combine == "sum" else names
            members = tuple(_named(tree, own) for tree in members)
        parts = {"trees": members, "combine": combine, "link": link}
        self._keep((), members[0].schema, task, labels, names, record, **parts)

    def _check(self) -> None:
        if self.combine != "sum":
            return
        structure.check_sums(tree.values for tree in self.trees)
        if self.link in structure.PROBABILITY_LINKS:
            for tree in self.trees:
                if tree.leaf_weights is not None:
                    structure.check_leaf_weights(tree.leaf_weights, self.schema.column_scale)

    # Properties

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return len(self.trees)

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

    @cached_property
    def depth(self) -> int:
        """Depth of the deepest tree."""
        return max(tree.depth for tree in self.trees)

    @property
    def n_bytes(self) -> int:
        """Number of bytes of the arrays of all trees."""
        return sum(tree.n_bytes for tree in self.trees)

    @property
    def has_linear_leaves(self) -> bool:
        """Whether a tree has leaves that predict by a linear model of the row."""
        return any(tree.has_linear_leaves for tree in self.trees)

    @property
    def hard_trees(self) -> tuple[ObliqueTree, ...]:
        """The trees."""
        return self.trees

    def hard(self, what: str) -> ObliqueForest:
        """Return the forest itself."""
        return self

    def _explained(self) -> Iterator[Explained]:
        return map(Explained.of_tree, self.trees)

    # Predictions

    def apply(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return the leaf of each row in each tree, (n, T) int32; ``n_jobs=-1``: all processors."""
        router, _ = self._packed
        return engine.run(self.schema, X, router.apply, n_jobs=n_jobs, who="ObliqueForest")

    @cached_property
    def _packed(self) -> tuple[ForestRouter, int]:
        """The forest for the engine, and the power of two by which its outputs are too small."""
        from hardwood._native import ForestRouter

        exponent = _headroom(self.trees) if self.combine == "mean" else 0
        leaves = [
            tree._leaf_models if tree.has_linear_leaves else np.ldexp(tree.values, -exponent)
            for tree in self.trees
        ]
        vote = _VOTES[self.task] if self.combine == "vote" else "none"
        routers = [tree._router for tree in self.trees]
        return ForestRouter(routers, leaves, vote, self.combine == "sum"), exponent

    def outputs(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        router, exponent = self._packed
        outputs = engine.run(self.schema, X, router.answer, n_jobs=n_jobs, who="ObliqueForest")
        if exponent:
            # The mean of finite numbers is within their range; rounding could exceed it.
            limit = np.ldexp(np.finfo(np.float64).max, -exponent)
            outputs = np.ldexp(np.clip(outputs, -limit, limit), exponent)
        return engine.linked(outputs, self.link, n_jobs)

    @cached_property
    def _output_of(self) -> Callable[[Any], np.ndarray]:
        # Only in a table of numbers are the entries of an array what the engine takes; levels of
        # categories have to be looked up.
        router, exponent = self._packed
        if not self.schema.is_numeric or exponent:
            return engine.not_for_the_engine
        return engine.one_row_outputs(router.answer_one, self.n_outputs, self.link)

    # Other forms

    def flops(self, X: Any = None) -> Flops:
        return cost.added_up([tree.flops(X) for tree in self.trees])

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {
            "trees": self.trees,
            "combine": self.combine,
            "record": self.record,
        }
        if self.combine == "sum":  # otherwise the trees have them
            parts |= {"link": self.link, "classes": self.classes, "target_names": self.target_names}
        return parts

    def __repr__(self) -> str:
        how = f"{self.combine} of {plural(self.n_trees, 'tree')}"
        return f"ObliqueForest({how}, {self._outputs_text()}, {self.shape_words})"


HardModel: TypeAlias = ObliqueTree | ObliqueForest
"""What `Model.hard` returns."""


def _fitting(trees: Iterable[ObliqueTree], free: str) -> tuple[ObliqueTree, ...]:
    """Check that the trees match, and let them share one schema.

    The engine then encodes rows once.
    """
    members = tuple(trees)
    if not 1 <= len(members) <= MAX_TREES:
        raise ValueError(f"a forest needs 1 to {MAX_TREES} trees, got {len(members)}")
    for i, tree in enumerate(members):
        if not isinstance(tree, ObliqueTree):
            raise TypeError(f"a forest holds ObliqueTree, but tree {i} is a {type(tree).__name__}")
        if tree.decision_weights is not None:
            raise ValueError(
                f"tree {i} has decision_weights, which a forest does not use: it averages "
                "probabilities. Leave them out with tree.replace(decision_weights=None)"
            )
        difference = _difference(members[0], tree, free)
        if difference:
            raise ValueError(f"tree {i} does not match tree 0: {difference}")
    schema = members[0].schema
    return tuple(tree if tree.schema is schema else tree.replace(schema=schema) for tree in members)


def _difference(first: ObliqueTree, other: ObliqueTree, free: str) -> str | None:
    """Return how two trees differ in what the trees of a forest must share; None if they match."""
    for name in ("task", "n_outputs", "target_names"):
        mine, theirs = getattr(other, name), getattr(first, name)
        if mine != theirs and name != free:
            return f"its {name} is {mine!r:.80}, not {theirs!r:.80}"
    if structure.typed(first.classes) != structure.typed(other.classes):
        return f"its classes are {other.classes!r:.80}, not {first.classes!r:.80}"
    if first.schema is not other.schema and first.schema != other.schema:
        return "its schema differs (names, kinds, levels, centers or scales of the features)"
    return None


def _averaged(
    first: ObliqueTree, combine: Combine, link: Any, classes: Any
) -> tuple[TaskKind, tuple[Label, ...] | None]:
    """Return the task and the classes of a mean or a vote, which are those of its trees."""
    if combine == "vote" and first.task not in _VOTES:
        raise ValueError(
            "trees vote for classes or labels; these predict numbers: use combine='mean'"
        )
    if link != "identity" or classes is not None:
        raise ValueError(
            f"link and classes are for combine='sum'; what combine={combine!r} predicts, its trees "
            "say"
        )
    return first.task, first.classes


def _summed(
    trees: Sequence[ObliqueTree], link: Any, classes: Any
) -> tuple[TaskKind, tuple[Label, ...] | None]:
    """Return the task and the classes of a sum; check that its trees have scores to add up."""
    if trees[0].task != "regression":
        raise ValueError(
            f"combine='sum' adds up scores, which regression trees give; these are "
            f"{trees[0].task} trees: use combine='mean'"
        )
    if not isinstance(link, str) or link not in _TASKS:
        raise ValueError(
            f"the link of a sum must be {', '.join(map(repr, _TASKS))}, not {link!r:.80}"
        )
    task: TaskKind = _TASKS[link]
    labels = structure.class_labels(classes, task)
    structure.check_values(trees[0].values, task, labels, are_scores=True)
    for i, tree in enumerate(trees):
        if tree.link != "identity":
            raise ValueError(
                f"the trees of a sum give scores: the link of tree {i} must be 'identity', not "
                f"{tree.link!r}"
            )
    return task, labels


def score_names(
    classes: tuple[Label, ...] | None, names: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Return the names of what the trees of a sum score: classes or targets; None without names."""
    scored = names if classes is None else classes
    return None if scored is None else tuple(f"score of {name}" for name in scored)


def _named(tree: ObliqueTree, names: tuple[str, ...] | None) -> ObliqueTree:
    return tree if tree.target_names == names else tree.replace(target_names=names)


def _headroom(trees: tuple[ObliqueTree, ...]) -> int:
    """Return the power of two by which to divide constant leaves so that sums are finite; often 0.

    This does not apply to linear leaves: even a single one may exceed float64.
    """
    if any(tree.has_linear_leaves for tree in trees):
        return 0
    largest = max(float(np.abs(tree.values).max()) for tree in trees)
    fits = largest <= np.finfo(np.float64).max / len(trees)
    return 0 if fits else len(trees).bit_length()
