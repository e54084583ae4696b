r"""Readable splits: few terms and short numbers, with the same path for every given row.

A learned split has a weight for every column, with seven digits. For given rows, most of that does
not matter. `readable` changes the tree itself, so that the printed tree is the model, in three
steps per split:

1. Remove terms, the least important first, as long as a threshold separates the rows at the split
   as before (`hardwood.model.edit.separation`).
2. Scale the split so that its first term has the weight 1. Round the other weights to 1, 2, 3, ...
   significant digits in the units of the printed split, then each one to fewer digits.
3. Choose as the threshold the shortest number in the middle half of the gap between the sides, and
   on ties the one closest to the original threshold.

With a tolerance, removing a term may move the same number of rows at every split: the largest
number that stays within the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.edit.each_split import (
    Changed,
    RowsAtSplit,
    change_each_split,
    check_tolerance,
    share_elsewhere,
)
from hardwood.model.edit.rounding import ShortSplit, short_split
from hardwood.model.edit.separation import CAUTIONS, MOST_TOGETHER, Sides, fewest_terms
from hardwood.model.routed_rows import RoutedRows
from hardwood.text.condition import condition
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree

_ALL_DIGITS = 17  # maximum number of digits of a float64
_PRICE_STEP = 2.0  # ratio of successive prices to try


@dataclass(frozen=True)
class ReadableSplit:
    """The change of one split.

    Attributes
    ----------
    split
        Its number.
    terms_before, terms_after
        Number of terms before and after.
    digits
        Significant digits of its longest number; 0 if it has no numbers; None if it is unchanged,
        because no row reaches it or its rows are too close to its threshold.
    condition
        The condition as text, in full.
    """

    split: int
    terms_before: int
    terms_after: int
    digits: int | None
    condition: str


@dataclass(frozen=True, eq=False)
class Readable:
    """A tree with readable splits, and the changes.

    Attributes
    ----------
    tree
        The same splits and leaves with fewer terms and shorter numbers.
    splits
        The change of each split.
    n_rows
        Number of given rows with positive weight.
    share_same
        Fraction of these rows, by weight, that reach the same leaf as before.
    """

    tree: ObliqueTree
    splits: tuple[ReadableSplit, ...]
    n_rows: int
    share_same: float

    @property
    def terms_before(self) -> int:
        """Number of terms of all splits before."""
        return sum(split.terms_before for split in self.splits)

    @property
    def terms_after(self) -> int:
        """Number of terms of all splits after."""
        return sum(split.terms_after for split in self.splits)

    @property
    def digits(self) -> int | None:
        """Number of significant digits for every split in full; None if all digits are needed."""
        digits = [split.digits for split in self.splits]
        return None if None in digits else max([1, *(d for d in digits if d is not None)])

    def to_text(self, *, max_depth: int | None = None) -> str:
        """Return the tree as text, with all terms and digits."""
        return self.tree.to_text(max_depth=max_depth, max_terms=None, digits=self.digits)

    def __str__(self) -> str:
        n_splits = max(1, len(self.splits))
        same = "All" if self.share_same == 1 else f"{self.share_same:.2%} of the"
        longest = "all digits" if self.digits is None else f"at most {plural(self.digits, 'digit')}"
        longest = "one digit" if self.digits == 1 else longest
        lines = [
            f"{self.terms_before / n_splits:.1f} terms per split before, "
            f"{self.terms_after / n_splits:.1f} after ({self.terms_before:,} and "
            f"{self.terms_after:,} in all), numbers of {longest}",
            f"{same} {plural(self.n_rows, 'row', form=',')} reach the same leaf as before",
            "",
            "split  terms before  after  digits  condition",
        ]
        for split in self.splits:
            digits = "all" if split.digits is None else split.digits
            lines.append(
                f"{split.split:>5}{split.terms_before:>14}{split.terms_after:>7}{digits:>8}  "
                f"{split.condition}"
            )
        return "\n".join(lines)


def readable(
    tree: ObliqueTree, X: Any, *, tolerance: float = 0.0, sample_weight: Any = None
) -> Readable:
    """Rewrite the splits of a tree with few terms and short numbers; given rows keep their paths.

    Parameters
    ----------
    tree
        The tree. Its leaves do not change.
    X
        A table, as for ``predict``, preferably the training table. Splits that none of its rows
        reaches do not change: prune first.
    tolerance
        Fraction of the rows, by weight, that may reach another leaf than before, in [0, 1).
    sample_weight
        (n,) row weights; None for equal weights. Rows of weight 0 are ignored.

    Notes
    -----
    The algorithm is greedy, so that there may be shorter trees. It takes at most O(n h c^2) for n
    rows, depth h and c columns; with a tolerance about ten times as long. Other rows may take other
    paths: pass many rows.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> from hardwood.model.edit.readable import readable
    >>> tree = ObliqueTree.of([[0.7912, -1.5837, 0.0021]], thresholds=[1.0791], values=[0.0, 1.0],
    ...                       feature_names=["length", "width", "age"])
    >>> X = [[2.0, 0.1, 30.0], [3.1, 1.0, 41.0], [4.1, 1.2, 40.0], [5.0, 2.0, 25.0]]
    >>> found = readable(tree, X)
    >>> found.splits[0].condition
    'width - 0.5*length <= -0.7'
    >>> found.tree.apply(X).tolist() == tree.apply(X).tolist()
    True
    """
    check_tolerance(tolerance)
    rows = RoutedRows.of(tree, X, sample_weight)
    for caution in CAUTIONS:
        found = _shortest(rows, X, tolerance, caution)
        elsewhere = share_elsewhere(rows, X, found.tree)
        if elsewhere <= tolerance:
            break
    splits = tuple(_report(tree, found, i) for i in range(tree.n_splits))
    return Readable(found.tree, splits, n_rows=len(rows), share_same=1 - elsewhere)


def _report(tree: ObliqueTree, found: _Attempt, i: int) -> ReadableSplit:
    digits = found.digits.get(i)
    split = found.tree.split(i)
    words = condition(split, max_terms=None, digits=None if digits is None else max(1, digits))
    before = int(np.count_nonzero(tree.weights[i]))
    return ReadableSplit(i, before, len(split.terms), digits, words)


# The price of a term


@dataclass
class _Attempt:
    """A tree for one price of a term; digits of each split, of the longest number and in total."""

    tree: ObliqueTree
    digits: dict[int, int] = field(default_factory=dict)
    n_digits: int = 0
    moved: float = 0.0

    @property
    def length(self) -> tuple[int, int]:
        return int(np.count_nonzero(self.tree.weights)), self.n_digits


def _shortest(rows: RoutedRows, X: Any, tolerance: float, caution: float) -> _Attempt:
    """Find the price of a term, in rows, with the shortest tree within the tolerance."""
    best = _attempt(rows, X, 0.0, 0.0, caution)
    budget = tolerance * float(rows.counts[0])
    least = float(rows.weight.min(initial=np.inf))
    price = budget
    while budget >= least and price > least / MOST_TOGETHER:
        found = _attempt(rows, X, price, budget, caution)
        best = min(best, found, key=lambda one: one.length)
        price /= _PRICE_STEP
    return best


def _attempt(rows: RoutedRows, X: Any, price: float, budget: float, caution: float) -> _Attempt:
    """Shorten every split; a term may move rows of weight ``price``, and all terms ``budget``."""
    tree = rows.tree
    attempt = _Attempt(tree)

    def shorten(at: RowsAtSplit) -> Changed:
        draft = _short_split(tree, at, price, max(0.0, budget - attempt.moved), caution)
        if draft is None:
            weights = tree.weights[at.split]
            attempt.n_digits += _ALL_DIGITS * (1 + np.count_nonzero(weights))
            return weights, float(tree.bias[at.split]), np.zeros(len(at), dtype=bool)
        attempt.digits[at.split] = draft.digits
        attempt.n_digits += draft.n_digits
        attempt.moved += float(at.weight[draft.moved].sum())
        return draft.weights, draft.bias, draft.moved

    attempt.tree = change_each_split(rows, X, shorten)
    return attempt


# One split


def _short_split(
    tree: ObliqueTree, at: RowsAtSplit, price: float, most_moved: float, caution: float
) -> ShortSplit | None:
    scale = tree.schema.column_scale
    weights = tree.weights[at.split] * scale
    largest = float(np.abs(weights).max(initial=0.0))
    if largest == 0:
        return None
    weights, bias = weights / largest, float(tree.bias[at.split]) / largest
    sides = Sides(at.weight, at.goes_right, caution)
    variance = (tree.schema.column_spread / scale) ** 2
    terms = fewest_terms(at, weights, variance, sides, price=price, most_moved=most_moved)
    most_moved = min(terms.moved + price, most_moved)
    return short_split(tree, terms, sides, most_moved=most_moved, mean=terms.mean + bias)
