"""Readable formulas of linear leaves."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardwood.model import ObliqueTree
from hardwood.table import Feature, Schema
from hardwood.text.terms import exact_sum

HOUSES = Schema(
    (
        Feature("rooms", "numeric", center=6.25, scale=1.0, has_missing=True),
        Feature("heating", "categorical", levels=("gas", "oil")),
        Feature("age", "numeric", center=40.0, scale=20.0),
    )
)  # columns: rooms, rooms missing, gas, oil, age

DECIMALS = st.decimals(-1000, 1000, places=3)


def words(weights: Any, *, value: float = 0.0, schema: Schema = HOUSES, **options: Any) -> str:
    none = np.zeros((0, schema.n_columns))
    tree = ObliqueTree.of(none, bias=[], values=[value], leaf_weights=[weights], schema=schema)
    return tree.linear_leaf(0).describe(**options)


@pytest.mark.parametrize(
    ("weights", "value", "expected"),
    [
        ([0, 0, 0, 0, 0], 3.21, "3.21"),
        ([0, 0, 0, 0, 0], 0.0, "0"),
        ([2, 0, 0, 0, 0], 12.0, "-0.5 + 2*rooms"),
        ([2, 0, 0, 0, 0], 12.5, "2*rooms"),  # through the origin
        ([-1, 0, 0, 0, 0], -6.25, "-rooms"),
        ([2, 0, 0, 0, -0.2], 22.0, "17.5 - 0.2*age + 2*rooms"),  # age by 4, rooms by 2
        ([0, 0, 0.5, -3, 0], 1.0, "1 - (3 if heating is oil) + (0.5 if heating is gas)"),
        ([2, -1, 0, 0, 0], 12.5, "2*rooms - (1 if rooms is missing)"),
        ([0, 0, -3, 0, 0], 0.0, "-(3 if heating is gas)"),
        ([1 / 7, 0, 0, 0, 0], 0.0, "-0.89375 + 0.143*rooms"),  # exact where rooms is 6.25
        ([0.123456, 0, 0, 0, 0], 0.0, "-0.7716 + 0.123456*rooms"),  # short numbers in full
    ],
)
def test_formulas(weights: list[float], value: float, expected: str) -> None:
    assert words(weights, value=value) == expected


def test_small_terms_are_left_out_at_their_center() -> None:
    weights = [2, 0, 0.1, 0.2, -0.2]
    assert words(weights, value=22.0, max_terms=2) == (
        "17.5 - 0.2*age + 2*rooms (+ 1 smaller term left out)"
    )
    assert words(weights, value=22.0, max_terms=1) == "30 - 0.2*age (+ 2 smaller terms left out)"
    assert "left out" not in words(weights, max_terms=None)


@given(
    st.lists(st.tuples(DECIMALS, DECIMALS), min_size=1, max_size=9),
    st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_a_sum_of_short_numbers_is_short(
    factors: list[tuple[Decimal, Decimal]], unit: float
) -> None:
    products = [x * y for x, y in factors]
    total = exact_sum([float(x) * unit * float(y) / unit for x, y in factors])
    assert total == float(sum(products))


def test_a_sum_beyond_float64_is_infinite() -> None:
    assert exact_sum([math.inf, 1.0]) == math.inf
    assert exact_sum([1e308, 1e308]) == math.inf
    assert exact_sum([]) == 0
    assert exact_sum([0.0, 1e-313]) == 1e-313  # whose rounding error underflows


def test_numbers_in_full() -> None:
    assert words([1 / 3, 0, 0, 0, 0], value=0.1, digits=None).endswith("+ 0.3333333333333333*rooms")


def test_the_digits_of_a_constant_follow_from_the_spread_of_the_terms() -> None:
    schema = Schema((Feature("time", "numeric", center=1.7e9, scale=1.0),))
    assert words([1.0], value=0.25, schema=schema) == "-1699999999.75 + time"


def test_dates_have_units_of_time() -> None:
    joined = Feature("joined", "numeric", center=1548115200.0, spread=(3e7,), origin="date")
    text = words([0.5 / 86400], value=3.0, schema=Schema((joined,)))
    assert text == "3 + 0.5*(joined - 2019-01-22 in days)"


@pytest.mark.parametrize("options", [{"max_terms": 0}, {"digits": 0}])
def test_options_are_checked(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        words([1.0, 0, 0, 0, 0], **options)


def test_evaluating_a_formula_gives_the_prediction_of_the_leaf(rng: np.random.Generator) -> None:
    """In full to the last few bits; rounded to the precision of the printed terms."""
    for _ in range(50):
        center, scale = rng.normal(size=4) * 100, np.exp(rng.normal(size=4))
        features = [
            Feature(f"x{j}", "numeric", center=c, scale=s)
            for j, (c, s) in enumerate(zip(center, scale, strict=True))
        ]
        schema, weights = Schema(tuple(features)), rng.normal(size=4) / scale
        tree = ObliqueTree.of(
            np.zeros((0, 4)), bias=[], values=[rng.normal()], leaf_weights=[weights], schema=schema
        )
        X = center + scale * rng.normal(size=(10, 4))
        leaf = tree.linear_leaf(0)
        for digits, room in ((None, 1e-5), (3, 0.05)):
            read = [_evaluated(leaf.describe(digits=digits), x) for x in X]
            np.testing.assert_allclose(read, tree.predict(X), atol=room)


def _evaluated(text: str, x: np.ndarray) -> float:
    code = re.sub(r"x(\d)", r"x[\1]", text)
    return float(eval(code, {"x": x}))
