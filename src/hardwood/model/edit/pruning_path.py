r"""Cost-complexity pruning: all prunings of a tree that are optimal for their size.

L. Breiman, J. Friedman, R. Olshen and C. Stone, *Classification and Regression Trees*, 1984,
chapter 3.

*Collapsing* a split turns it into a leaf with the constant output that is best for its rows by a
criterion (`hardwood.model.edit.criterion`), usually the weighted mean or the class frequencies. A
*pruning* of a tree results from collapsing some splits. The cost-complexity of a pruning T is

.. math:: R_\alpha(T) = R(T) + \alpha |T|

with the mean loss R on given rows and the number \|T\| of leaves. For every alpha there is a
unique smallest optimal pruning, and these are nested: as alpha grows, the *weakest link* is
collapsed, the split t with the smallest

.. math:: g(t) = \frac{R(t) - R(T_t)}{|T_t| - 1}

where the leaf R(t) replaces the branch T_t (section 3.3). Differs from the book:

1. Leaves that stay keep their learned outputs, which need not be the best, so that a branch may be
   worse than a leaf even on the given rows. Then g is negative, and alpha = 0 removes it. (The best
   prunings are nested for any R that is a sum over leaves: as a function of alpha, the risk of the
   best branch grows at least as fast as that of a leaf, so that they cross once.)
2. \|T\| may be any sum of costs of the nodes. A split on forty columns costs more than one on a
   single column; a leaf that was a split costs nothing else.
3. Links that are equally weak, except for rounding, are collapsed together.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from hardwood.errors import TableError
from hardwood.model.cost import node_operations, node_weights
from hardwood.model.edit.criterion import Criterion, criterion_for
from hardwood.model.edit.rewrite import collapse, prune_unreached
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.paths import child_nodes, parents_of, summed_up
from hardwood.model.routed_rows import RoutedRows
from hardwood.text.numbers import plural

Complexity = Literal["leaves", "weights", "flops"]
COMPLEXITIES = ("leaves", "weights", "flops")

# Rounding error of strengths, relative to the risks that they are computed from.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class PruningPath:
    """The prunings of a tree that minimize R + alpha |T|, from the largest to a single leaf.

    ``path[i]`` is the smallest optimal pruning for alpha from ``alphas[i]`` to just below
    ``alphas[i + 1]``, and a pruning of ``path[i - 1]``. `at` selects a pruning by alpha, `best` by
    its loss on other rows.

    Attributes
    ----------
    tree
        The tree to prune: the given tree without the nodes that no row reached.
    alphas
        (s,) increasing, from 0.
    risks
        (s,) mean loss of each pruning on the given rows.
    n_leaves
        (s,) number of leaves of each pruning.
    complexities
        (s,) complexity of each pruning: ``n_leaves`` by default.
    strengths
        (m,) the alpha from which each split of ``tree`` is collapsed.
    criterion
        The loss.
    """

    tree: ObliqueTree
    alphas: np.ndarray
    risks: np.ndarray
    n_leaves: np.ndarray
    complexities: np.ndarray
    strengths: np.ndarray
    criterion: Criterion
    _outputs: np.ndarray
    _counts: np.ndarray

    def at(self, alpha: float) -> ObliqueTree:
        """Return the smallest pruning that minimizes R + alpha |T|."""
        if not alpha >= 0:
            raise ValueError(f"alpha, the cost of a leaf, must be at least 0, not {alpha!r}")
        is_leaf = np.flatnonzero(self.strengths <= alpha)
        return collapse(
            self.tree, dict(zip(is_leaf, self._outputs[is_leaf], strict=True)), self._counts
        )

    def risks_on(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Return the mean loss of each pruning on other rows, (s,)."""
        rows = RoutedRows.of(self.tree, X, sample_weight)
        losses = node_losses(rows, rows.truth(y), self.criterion, self._outputs, rows.outputs(X))
        return _of_leaves(self.tree, self.alphas, self.strengths, losses) / rows.counts[0]

    def best(
        self, X: Any, y: Any, *, sample_weight: Any = None, one_standard_error: bool = False
    ) -> ObliqueTree:
        """Return the smallest pruning with the lowest mean loss on other rows.

        Parameters
        ----------
        X, y, sample_weight
            Held-out rows with their targets.
        one_standard_error
            Whether to return the smallest pruning whose mean loss is within one standard error of
            the lowest.
        """
        risks = self.risks_on(X, y, sample_weight)
        limit = risks.min() * (1 + _ROUNDING)
        if one_standard_error:
            limit += _standard_error(self[int(risks.argmin())], self.criterion, X, y, sample_weight)
        return self[int(np.flatnonzero(risks <= limit)[-1])]

    def __len__(self) -> int:
        return int(self.alphas.size)

    @overload
    def __getitem__(self, which: int) -> ObliqueTree: ...
    @overload
    def __getitem__(self, which: slice) -> list[ObliqueTree]: ...
    def __getitem__(self, which: int | slice) -> ObliqueTree | list[ObliqueTree]:
        if isinstance(which, slice):
            return [self.at(alpha) for alpha in self.alphas[which].tolist()]
        return self.at(float(self.alphas[which]))

    def __iter__(self) -> Iterator[ObliqueTree]:
        return (self.at(alpha) for alpha in self.alphas.tolist())

    def __repr__(self) -> str:
        return (
            f"PruningPath({plural(len(self), 'tree')} of {self.n_leaves[0]} to "
            f"{plural(self.n_leaves[-1], 'leaf', 'leaves')}, "
            f"alpha 0 to {self.alphas[-1]:.4g})"
        )


def cost_complexity_path(
    tree: ObliqueTree,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    criterion: Any = None,
    complexity: Complexity = "leaves",
) -> PruningPath:
    r"""Find all prunings that minimize R + alpha |T| for some alpha >= 0.

    Nodes that no row reaches are removed first, like with `prune_unreached`.

    Parameters
    ----------
    tree
        The tree.
    X, y
        Rows with their targets, preferably the training rows: class labels, numbers (n,) or (n, k),
        or 0 and 1 (n, k) for binary labels.
    sample_weight
        (n,) row weights; None for equal weights. For a tree that was learned with class weights,
        include them.
    criterion
        The loss, which new leaves minimize: see `hardwood.model.edit.criterion.criterion_for`.
    complexity
        What \|T\| counts: ``"leaves"``; ``"weights"``, the nonzero weights; or ``"flops"``, the
        multiplications and additions of a prediction, averaged over the rows.

    Notes
    -----
    O(n h k) for n rows and depth h, then O(m h log m) for m splits.
    """
    if complexity not in COMPLEXITIES:
        raise ValueError(f"complexity must be one of {COMPLEXITIES}, not {complexity!r:.80}")
    loss = criterion_for(tree, criterion)
    tree = prune_unreached(tree, X, sample_weight=sample_weight)
    rows = RoutedRows.of(tree, X, sample_weight)
    truth = rows.truth(y)
    outputs = best_outputs(rows, truth, loss)
    risks = node_losses(rows, truth, loss, outputs, rows.outputs(X)) / rows.counts[0]
    prices = _prices(rows, complexity)
    strengths = link_strengths(tree, risks, prices)
    alphas = np.unique(np.append(strengths, 0.0))
    n_leaves = _of_leaves(tree, alphas, strengths, np.ones(tree.n_nodes))
    return PruningPath(
        tree=tree,
        alphas=alphas,
        risks=_of_leaves(tree, alphas, strengths, risks),
        n_leaves=n_leaves.astype(np.int64),
        complexities=_of_branches(tree, alphas, strengths, prices) + (complexity == "leaves"),
        strengths=strengths,
        criterion=loss,
        _outputs=outputs,
        _counts=rows.counts,
    )


def best_outputs(rows: RoutedRows, truth: np.ndarray, loss: Criterion) -> np.ndarray:
    """Return the best constant output for the rows of each split, (m, k)."""
    splits = range(rows.tree.n_splits)
    best = [loss.best(truth[rows.at(i)], rows.weight[rows.at(i)]) for i in splits]
    return np.array(best).reshape(-1, rows.tree.n_outputs)


def node_losses(
    rows: RoutedRows,
    truth: np.ndarray,
    loss: Criterion,
    of_splits: np.ndarray,
    of_rows: np.ndarray,
) -> np.ndarray:
    """Sum up the losses at each node, (m + L,), if it were a leaf.

    ``of_splits`` (m, k) are the outputs that splits would have as leaves, ``of_rows`` (n, k) the
    outputs of the tree's own leaves for each row.
    """
    m = rows.tree.n_splits
    losses = np.empty(rows.tree.n_nodes)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(m):
            here = rows.at(i)
            losses[i] = rows.weight[here] @ loss.losses(of_splits[i : i + 1], truth[here])
        at_rows = rows.weight * loss.losses(of_rows, truth)
        losses[m:] = np.bincount(rows.leaf, at_rows, minlength=m + 1)
    if not np.isfinite(losses).all():
        raise TableError("the sum of the losses is infinite: y or sample_weight has huge numbers")
    return losses


def link_strengths(tree: ObliqueTree, risks: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Find the alpha at which each split is collapsed, (m,).

    Parameters
    ----------
    tree
        The tree.
    risks
        (m + L,) risk of each node as a leaf.
    prices
        (m + L,) what each node adds to the complexity, unless it or a split above it is collapsed;
        positive for splits.

    Returns
    -------
    strengths
        At least 0, and at most that of the parent. The smallest pruning that minimizes
        R + alpha |T| consists of the splits whose strength exceeds alpha.
    """
    m, nodes, parents = tree.n_splits, child_nodes(tree.children), parents_of(tree.children)
    branch_risk, branch_price = risks.copy(), prices.copy()
    branch_risk[:m] = 0
    summed_up(tree.children, branch_risk)
    summed_up(tree.children, branch_price)
    strengths = np.full(m, np.inf)

    def link(i: int) -> float:  # g(t), section 3.3
        return float((risks[i] - branch_risk[i]) / branch_price[i])

    waiting = [(link(i), i) for i in range(m)]
    heapq.heapify(waiting)
    alpha = 0.0
    while waiting:
        g, i = heapq.heappop(waiting)
        if strengths[i] < np.inf or g != link(i):
            continue  # outdated: collapsed, or the branch has become smaller
        if g > alpha + _ROUNDING * risks[i] / branch_price[i]:
            alpha = g
        _collapse_branch(i, alpha, nodes, strengths)
        branch_risk[i], branch_price[i] = risks[i], 0.0
        while (i := int(parents[i])) >= 0:
            branch_risk[i] = branch_risk[nodes[i]].sum()
            branch_price[i] = prices[i] + branch_price[nodes[i]].sum()
            heapq.heappush(waiting, (link(i), i))
    return strengths


def _collapse_branch(top: int, alpha: float, nodes: np.ndarray, strengths: np.ndarray) -> None:
    """Record the alpha at which a split and all remaining splits below it were collapsed."""
    branch = [top]
    for i in branch:  # grows during the loop
        if i < strengths.size and strengths[i] == np.inf:
            strengths[i] = alpha
            branch += nodes[i].tolist()


def _prices(rows: RoutedRows, complexity: Complexity) -> np.ndarray:
    """Return the cost of each node while it is part of the tree, (m + L,)."""
    tree = rows.tree
    if complexity == "leaves":  # one more than the number of splits
        return np.concatenate([np.ones(tree.n_splits), np.zeros(tree.n_leaves)])
    if complexity == "weights":
        return node_weights(tree).astype(np.float64)
    share: np.ndarray = rows.counts / rows.counts[0]
    return share * np.add(*node_operations(tree))


def _of_leaves(
    tree: ObliqueTree, alphas: np.ndarray, strengths: np.ndarray, amounts: np.ndarray
) -> np.ndarray:
    """Add up values (m + L,) over the leaves of each pruning, (s,).

    A node is a leaf from the alpha that collapses it to just below the one that collapses its
    parent.
    """
    begins = np.append(strengths, np.zeros(tree.n_leaves))
    return _between(alphas, begins, _collapsed_above(tree, strengths), amounts)


def _of_branches(
    tree: ObliqueTree, alphas: np.ndarray, strengths: np.ndarray, prices: np.ndarray
) -> np.ndarray:
    """Add up the costs (m + L,) of the splits and of the original leaves, (s,)."""
    ends = _collapsed_above(tree, strengths)
    ends[: tree.n_splits] = strengths
    return _between(alphas, np.zeros(tree.n_nodes), ends, prices)


def _collapsed_above(tree: ObliqueTree, strengths: np.ndarray) -> np.ndarray:
    """Return the strength of each node's parent, (m + L,); infinity for the root."""
    return np.append(strengths, np.inf)[parents_of(tree.children)]


def _between(
    alphas: np.ndarray, begins: np.ndarray, ends: np.ndarray, amounts: np.ndarray
) -> np.ndarray:
    """Add up, for each alpha, the values with begin <= alpha < end."""
    changes = np.zeros(alphas.size + 1)
    np.add.at(changes, np.searchsorted(alphas, begins), amounts)
    np.subtract.at(changes, np.searchsorted(alphas, ends), amounts)
    sums: np.ndarray = np.cumsum(changes[:-1])
    return sums


def _standard_error(
    tree: ObliqueTree, loss: Criterion, X: Any, y: Any, sample_weight: Any
) -> float:
    """Return the standard error of a tree's mean loss on rows."""
    rows = RoutedRows.of(tree, X, sample_weight)
    losses = loss.losses(rows.outputs(X), rows.truth(y))
    share = rows.weight / rows.weight.sum()
    variance = share @ (losses - share @ losses) ** 2
    return float(np.sqrt(variance * (share @ share)))  # over the effective number of rows
