"""Ensembles of soft oblique trees: the predictive form of the tree ensemble layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hardwood.model import cost, engine, structure
from hardwood.model.base import Ensemble, not_hard
from hardwood.model.importances import Explained
from hardwood.model.kinds.forest import MAX_TREES, ObliqueForest, score_names
from hardwood.model.kinds.tree import ObliqueTree, heap_children
from hardwood.model.structure import Activation, Array, Link, TaskKind
from hardwood.table import Schema
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood._native import SoftRouter
    from hardwood.model.cost import Flops
    from hardwood.model.edit.harden import HardeningCost

MAX_DEPTH = 20
# The engine limits values to 2^64 scales from their centers, and the scores of such rows must be
# float32.
MAX_STEEPNESS = 2.0**56


def _check_sizes(weights: np.ndarray) -> None:
    n_trees, n_splits = weights.shape[:2]
    if not 1 <= n_trees <= MAX_TREES:
        raise ValueError(f"an ensemble needs 1 to {MAX_TREES} trees, got {n_trees}")
    depth = n_splits.bit_length()
    if n_splits != 2**depth - 1 or not 1 <= depth <= MAX_DEPTH:
        raise ValueError(
            f"{n_splits} splits do not fill a perfect tree of depth 1 to {MAX_DEPTH} (1, 3, 7, ...)"
        )


class TreeEnsemble(Ensemble):
    r"""An ensemble of soft oblique trees in raw feature units, whose scores are added up.

    A row x has the score :math:`s_i(x)` at split i of a tree, as in `ObliqueTree`. It goes right
    with probability :math:`S(s_i(x))`, otherwise left. With the probability :math:`P_{tl}(x)` of
    leaf l of tree t, the prediction is

    .. math:: f(x) = \mathrm{link}\Big(\sum_{t=1}^{T} \sum_{l=1}^{L} P_{tl}(x) O_{tl}\Big)
        \qquad \text{[TEL20, Eq. (1)-(3)]}

    A smooth step S is 0 or 1 outside of a band of width gamma around the split. A row therefore
    reaches few leaves, and the cost of a prediction depends on the nodes that it reaches.

    An ensemble is immutable: its arrays are read-only copies, it compares by value, and methods
    that change it return a new one.

    Parameters
    ----------
    weights
        (T, m, c) float64, per column of the schema, in raw units. The m = 2^depth - 1 splits of a
        tree are in heap order: split i has the children 2i + 1 (left) and 2i + 2 (right).
    bias
        (T, m) float64.
    values
        (T, L, k) float64, the scores O of the L = 2^depth leaves, from left to right.
    gamma
        Width of the band in which a smooth step is neither 0 nor 1, in units of the splits' scores;
        for the logistic function, its scale.
    activation
        ``"smooth_step"`` of degree 3, ``"smooth_step_5"`` of degree 5, or ``"logistic"``, with
        which every row reaches every leaf.
    schema
        How a table becomes the columns that the weights multiply.
    task
        ``"classification"``, ``"regression"`` or ``"multilabel"`` (k binary labels).
    link
        From scores to outputs: ``"softmax"`` for classification, ``"identity"`` or ``"exp"`` for
        regression, ``"logistic"`` for multilabel tasks. By default the first for the task.
    classes
        The k distinct labels, for classification.
    target_names
        Names of the targets: one for classification, k otherwise; optional.
    counts
        (T, m + L) number of training samples at each split, then at each leaf, weighted by
        `sample_weight` and by the probability of reaching it; optional.
    record
        JSON-compatible training record; optional.

    Raises
    ------
    ValueError, TypeError
        If the arrays are not perfect trees of finite numbers that match the schema; if the scores
        of all trees may add up to more than the maximum of float64; or if a split is so steep that
        its scores exceed float32: if the sum of its weights per scale of their columns, and its
        bias, exceed 7e16 gamma. Use `harden` instead of such a split.

    Notes
    -----
    Splits are scored in float32, divided by gamma; values are limited to 1.8e19 scales from the
    center. Probabilities are float32 and scores float64. Predictions do not depend on other rows or
    on ``n_jobs``.

    Examples
    --------
    >>> from hardwood.model import TreeEnsemble
    >>> from hardwood.table import Schema
    >>> soft = TreeEnsemble([[[1.0]]], [[0.0]], [[[0.0], [8.0]]], gamma=2.0,
    ...                     schema=Schema.numeric(1), task="regression")
    >>> soft.predict([[-1.0], [0.0], [0.5], [1.0]]).tolist()
    [0.0, 4.0, 6.75, 8.0]
    >>> soft.reachable_leaves([[-1.0], [0.0], [0.5], [1.0]]).ravel().tolist()
    [1, 2, 2, 1]
    >>> soft.harden().predict([[-1.0], [0.0], [0.5], [1.0]]).tolist()
    [0.0, 8.0, 8.0, 8.0]
    """

    noun = "an ensemble"
    arrays = (
        Array("weights", "T m c", check=_check_sizes),
        Array("bias", "T m"),
        Array("values", "T m+1 k"),
        Array("counts", "T m+m+1", is_optional=True, check=structure.check_counts),
    )
    options = ("gamma", "activation", "link")
    combine = "sum"
    weights: np.ndarray
    bias: np.ndarray
    values: np.ndarray
    gamma: float
    activation: Activation
    counts: np.ndarray | None

    def __init__(
        self,
        weights: Any,
        bias: Any,
        values: Any,
        *,
        gamma: float,
        activation: Activation = "smooth_step",
        schema: Schema,
        task: TaskKind,
        link: Link | None = None,
        classes: Iterable[Any] | None = None,
        target_names: Iterable[str] | str | None = None,
        counts: Any = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        softness = {"gamma": gamma, "activation": activation}
        arrays = (weights, bias, values, counts)
        self._keep(arrays, schema, task, classes, target_names, record, link=link, **softness)

    def _check(self) -> None:
        structure.check_values(self.values[0], self.task, self.classes, are_scores=True)
        structure.check_sums(self.values)
        structure.check_activation(self.activation)
        self.__dict__["link"] = structure.score_link(self.link, self.task, "ensemble")
        self.__dict__["gamma"] = structure.positive_number("gamma", self.gamma)
        _check_steepness(self.weights, self.bias, self.schema, self.gamma)

    # Properties

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return int(self.weights.shape[0])

    @property
    def n_splits(self) -> int:
        """Number of internal nodes of all trees."""
        return int(self.bias.size)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return self.n_trees * int(self.values.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of classes, labels, or regression outputs, k."""
        return int(self.values.shape[2])

    @property
    def depth(self) -> int:
        """Number of splits on every path from a root to a leaf."""
        return int(self.weights.shape[1]).bit_length()

    @property
    def n_weights(self) -> int:
        """Number of nonzero weights."""
        return int(np.count_nonzero(self.weights))

    @property
    def hard_trees(self) -> tuple[ObliqueTree, ...]:
        """Empty: the trees are soft."""
        return ()

    def hard(self, what: str) -> NoReturn:
        """Raise an error: the trees are soft; use `harden`."""
        raise not_hard(what, "an ensemble of soft trees: pass the result of its harden()")

    def split_weights(self) -> Iterator[np.ndarray]:
        yield from self.weights

    def hard_tree(self, index: int) -> ObliqueTree:
        """Return a tree as a hard regression tree of scores, with all its splits and leaves.

        A row goes right if its score is at least 0: to the more probable side. The tree has no
        counts, since those of the soft tree are weighted by probabilities.
        """
        if not 0 <= index < self.n_trees:
            raise IndexError(f"the ensemble has trees 0 to {self.n_trees - 1}, got {index}")
        return ObliqueTree(
            self.weights[index],
            self.bias[index],
            heap_children(self.bias.shape[1]),
            self.values[index],
            schema=self.schema,
            task="regression",
            target_names=score_names(self.classes, self.target_names),
        )

    def _explained(self) -> Iterator[Explained]:
        for t in range(self.n_trees):
            tree = self.hard_tree(t)
            counted = tree if self.counts is None else tree.replace(counts=self.counts[t])
            yield Explained.of_tree(counted)

    # Predictions

    def reachable_leaves(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Count the leaves of each tree that a row reaches, at least in part, (n, T) int32."""
        reachable = self._router.reachable
        return engine.run(self.schema, X, reachable, n_jobs=n_jobs, who="TreeEnsemble")

    @cached_property
    def _router(self) -> SoftRouter:
        return engine.packed_ensemble(self)

    def outputs(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        scores = engine.run(self.schema, X, self._router.scores, n_jobs=n_jobs, who="TreeEnsemble")
        return engine.linked(scores, self.link, n_jobs)

    @cached_property
    def _output_of(self) -> Callable[[Any], np.ndarray]:
        if not self.schema.is_numeric:  # levels have to be looked up
            return engine.not_for_the_engine
        return engine.one_row_outputs(self._router.scores_one, self.n_outputs, self.link)

    # Other forms

    def flops(self, X: Any = None) -> Flops:
        return cost.soft_flops(self, X)

    def harden(self) -> ObliqueForest:
        """Return hard trees with the same splits, simplified; `hardening_cost` compares both.

        Returns
        -------
        forest
            A sum with the same link. Every row goes to the leaf that `hard_tree` sends it to.
            `ObliqueTree.prune` removes nodes that no row of a table reaches.
        """
        trees = [self.hard_tree(i).simplify() for i in range(self.n_trees)]
        hardened = {"gamma": self.gamma, "activation": self.activation}
        return ObliqueForest(
            trees,
            combine="sum",
            link=self.link,
            classes=self.classes,
            target_names=self.target_names,
            record=self.record | {"hardened": hardened},
        )

    def hardening_cost(self, X: Any, y: Any, sample_weight: Any = None) -> HardeningCost:
        """Compare the ensemble with its hard trees on rows: see `hardwood.model.edit.harden`."""
        from hardwood.model.edit.harden import hardening_cost

        return hardening_cost(self, X, y, sample_weight)

    def __repr__(self) -> str:
        return (
            f"TreeEnsemble(sum of {plural(self.n_trees, 'soft tree')}, {self._outputs_text()}, "
            f"{plural(self.n_features, 'feature')}, depth {self.depth}, {self.activation}, "
            f"gamma {self.gamma:g})"
        )


def _check_steepness(weights: np.ndarray, bias: np.ndarray, schema: Schema, gamma: float) -> None:
    """Check that the scores of all splits, divided by gamma, fit into float32 for every row."""
    with np.errstate(over="ignore"):
        steepness = (np.abs(weights) @ schema.column_scale + np.abs(bias)) / gamma  # (T, m)
    if not (steepness <= MAX_STEEPNESS).all():
        tree, split = np.argwhere(~(steepness <= MAX_STEEPNESS))[0].tolist()
        raise ValueError(
            f"split {split} of tree {tree} is too steep to be soft: its weights and bias are "
            f"{steepness[tree, split]:.3g} gamma, more than {MAX_STEEPNESS:.3g}. Use a larger "
            "gamma, or a hard tree"
        )
