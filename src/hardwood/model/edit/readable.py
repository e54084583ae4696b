r"""Splits that a person can read: few terms, short numbers, and the rows where they were.

A learned split weighs every column with seven digits. For given rows, most of that does not matter.
`readable` changes the tree itself, so that what is printed is the model, in three steps per split:

1. Terms go, the least important first, as long as some threshold parts the rows at the split as
   before (`hardwood.model.edit.separation`).
2. The split is multiplied such that its first term has the weight 1. The other weights are rounded
   to 1, 2, 3, ... significant digits in the units that they are written in, then each alone to
   fewer.
3. The threshold is the shortest number in the middle half of the gap between the sides, and of
   those the one nearest to where it was.

Where some rows may move, a term is worth the same number of them at every split: the largest number
that keeps the tolerance is searched for.
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
from hardwood.model.edit.separation import MOST_TOGETHER, Sides, fewest_terms
from hardwood.model.routed_rows import RoutedRows
from hardwood.text.condition import condition

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree

_ALL_DIGITS = 17  # that a float64 may take
_CAUTIONS = (1 / 16, 1.0)  # parts of the largest error of sums in float32; all is rarely needed
_PRICE_STEP = 2.0  # from one price that is tried to the next


@dataclass(frozen=True)
class ReadableSplit:
    """What became of a split.

    Attributes
    ----------
    split
        Its number.
    terms_before, terms_after
        How many terms it had and has.
    digits
        Significant digits of its longest number; 0 where it has none, None where it stays as it
        was: no row reaches it, or its rows are too near its threshold.
    condition
        The split in words, in full.
    """

    split: int
    terms_before: int
    terms_after: int
    digits: int | None
    condition: str


@dataclass(frozen=True, eq=False)
class Readable:
    """A tree with readable splits, and what was changed.

    Attributes
    ----------
    tree
        The same splits and leaves with fewer terms and shorter numbers.
    splits
        What became of each split.
    n_rows
        How many rows were given (with a weight above 0).
    share_same
        Share of these, by weight, that reach the same leaf as before.
    """

    tree: ObliqueTree
    splits: tuple[ReadableSplit, ...]
    n_rows: int
    share_same: float

    @property
    def terms_before(self) -> int:
        """Terms of all splits before."""
        return sum(split.terms_before for split in self.splits)

    @property
    def terms_after(self) -> int:
        """Terms of all splits now."""
        return sum(split.terms_after for split in self.splits)

    @property
    def digits(self) -> int | None:
        """Significant digits that write every split in full; None where it takes all there are."""
        digits = [split.digits for split in self.splits]
        return None if None in digits else max([1, *(d for d in digits if d is not None)])

    def to_text(self, *, max_depth: int | None = None) -> str:
        """Write the tree in words, with every term and digit that its splits have."""
        return self.tree.to_text(max_depth=max_depth, max_terms=None, digits=self.digits)

    def __str__(self) -> str:
        n_splits = max(1, len(self.splits))
        same = "All" if self.share_same == 1 else f"{self.share_same:.2%} of the"
        longest = "all digits" if self.digits is None else f"at most {self.digits} digits"
        longest = "one digit" if self.digits == 1 else longest
        lines = [
            f"{self.terms_before / n_splits:.1f} terms per split before, "
            f"{self.terms_after / n_splits:.1f} after ({self.terms_before:,} and "
            f"{self.terms_after:,} in all), numbers of {longest}",
            f"{same} {self.n_rows:,} rows reach the same leaf as before",
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
    """Give the splits of a tree few terms and short numbers as long as given rows keep their ways.

    Parameters
    ----------
    tree
        The tree. Its leaves stay as they are.
    X
        A table, as for ``predict``, best the one that the tree was learned from. Splits that none
        of its rows reaches stay as they are: prune first.
    tolerance
        Share of the rows, by weight, that may reach another leaf than before, in [0, 1).
    sample_weight
        (n,) what each row counts; None: 1. Rows of weight 0 are as if absent.

    Notes
    -----
    Greedy, so there may be shorter trees. O(n h c^2) for n rows, depth h and c columns at most; a
    tolerance takes some ten times as long. Nothing is promised of other rows: give many.

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
    for caution in _CAUTIONS:
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


# Which rows may move for how much


@dataclass
class _Attempt:
    """A tree whose terms were priced alike; digits by split, of the longest number and of all."""

    tree: ObliqueTree
    digits: dict[int, int] = field(default_factory=dict)
    n_digits: int = 0
    moved: float = 0.0

    @property
    def length(self) -> tuple[int, int]:
        return int(np.count_nonzero(self.tree.weights)), self.n_digits


def _shortest(rows: RoutedRows, X: Any, tolerance: float, caution: float) -> _Attempt:
    """Find the price of a term, in rows, at which the tolerance buys the shortest tree."""
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
    """Shorten every split; a term may move rows of the weight ``price``, all ``budget``."""
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
