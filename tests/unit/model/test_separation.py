"""Thresholds between two sides, and fewer terms that separate them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.model.edit.each_split import RowsAtSplit
from hardwood.model.edit.separation import Gap, Sides, _inverse_covariance, _Terms, fewest_terms


def least_moved(sides: Sides, scores: np.ndarray, doubt: np.ndarray) -> float:
    """Try all thresholds."""
    keys = np.unique(np.where(sides.goes_right, scores - doubt, scores + doubt))
    between = (keys[1:] + keys[:-1]) / 2
    best = np.inf
    for threshold in [keys[0] - 1, *between, keys[-1] + 1]:
        moved = sides.moved_by(scores, doubt, threshold)
        halves = all(
            sides.weight[moved & side].sum() <= sides.weight[side].sum() / 2
            for side in (sides.goes_right, ~sides.goes_right)
        )
        best = min(best, sides.weight[moved].sum() if halves else np.inf)
    return best


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 25),
    n_values=st.sampled_from([3, 10, 1000]),
    noise=st.sampled_from([0.0, 0.3, 2.0]),
    doubt=st.sampled_from([0.0, 0.01]),
)
def test_no_threshold_moves_fewer_rows(seed, n, n_values, noise, doubt):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, n_values, n) * 10 / n_values  # with ties
    goes_right = scores + noise * rng.normal(size=n) > 5
    sides = Sides(rng.integers(1, 4, n).astype(float), goes_right, caution=1.0)
    doubts = doubt * rng.random(n)
    gap = sides.gap(scores, doubts)
    assert gap.moved == pytest.approx(least_moved(sides, scores, doubts))
    if np.isfinite(gap.moved):
        assert gap.low < gap.high
        low, high = np.clip([gap.low, gap.high], -100, 100)
        for part in (0.01, 0.5, 0.99):
            moved = sides.moved_by(scores, doubts, low + part * (high - low))
            assert sides.weight[moved].sum() == pytest.approx(gap.moved)


def test_the_widest_gap_wins_ties():
    sides = Sides(np.ones(6), np.array([0, 0, 1, 0, 1, 1], dtype=bool), caution=1.0)
    gap = sides.gap(np.array([0.0, 1.0, 1.5, 4.0, 4.1, 5.0]), np.zeros(6))
    assert gap == Gap(1.0, 1.5, moved=1.0)  # the same number is moved between 4.0 and 4.1


def test_other_weights_are_adjusted_by_least_squares(rng):
    values = rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6))
    share = np.full(200, 1 / 200)
    means = share @ values
    H = _inverse_covariance(values, share, means, np.ones(6))
    weights = rng.normal(size=6)
    terms = _Terms(weights, values, H)
    group = np.array([1, 4])
    fewer = terms.weights_without(group)
    assert (fewer[group] == 0).all()
    # The smallest change of scores, including the prior: the gradient is zero.
    others = np.setdiff1d(np.arange(6), group)
    assert (np.linalg.inv(H) @ (fewer - weights))[others] == pytest.approx(0, abs=1e-9)
    # One after the other gives the same as both at once.
    terms.remove(np.array([4]))
    terms.remove(np.array([1]))
    assert terms.weights == pytest.approx(fewer)
    assert terms.left.tolist() == others.tolist()
    assert terms.norms == pytest.approx(np.linalg.norm(values[:, others], axis=1))


def at_split(columns: np.ndarray, goes_right: np.ndarray) -> RowsAtSplit:
    return RowsAtSplit(0, columns.astype(np.float32), np.ones(len(columns)), goes_right)


def test_a_copy_of_a_column_is_not_needed(rng):
    x = rng.normal(size=(300, 2))
    columns = np.hstack([x, x[:, :1]])
    weights = np.array([0.5, -1.0, 0.5])
    at = at_split(columns, columns @ weights > 0)
    sides = Sides(at.weight, at.goes_right, caution=1.0)
    found = fewest_terms(at, weights, np.ones(3), sides, price=0.0, most_moved=0.0)
    assert found.used.size == 2
    assert found.moved == 0
    assert found.weights[0] == pytest.approx(-found.weights[1], rel=0.05)


def test_removed_terms_move_rows_within_price_and_limit(rng):
    columns = rng.normal(size=(400, 8))
    weights = 0.5 ** np.arange(8)
    at = at_split(columns, columns @ weights > 0)
    sides = Sides(at.weight, at.goes_right, caution=1.0)

    def found(price, most_moved=np.inf):
        return fewest_terms(at, weights, np.ones(8), sides, price=price, most_moved=most_moved)

    sizes = [found(price).used.size for price in (0.0, 5.0, 50.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2]
    for price, most_moved in [(1.0, 3.0), (50.0, 3.0), (50.0, 0.0)]:
        short = found(price, most_moved)
        assert short.moved <= min(most_moved, price * (8 - short.used.size))
