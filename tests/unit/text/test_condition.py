"""Readable conditions of splits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardwood.model import ObliqueTree
from hardwood.table import Feature, Schema
from hardwood.text.numbers import Digits, format_digits, format_quantity
from hardwood.text.terms import label_text, name_text

LEVELS = ("Adelie", "Chinstrap", "Gentoo")
PENGUINS = Schema(
    (
        Feature("mass", "numeric", center=4200.0, scale=800.0, has_missing=True),
        Feature("species", "categorical", levels=LEVELS, has_missing=True),
        Feature("year", "numeric", center=2008.0, scale=0.8),
    )
)  # columns: mass, mass missing, three species, species missing, year


def words(weights: Any, *, bias: float = 0.0, schema: Schema = PENGUINS, **options: Any) -> str:
    tree = ObliqueTree.of([weights], bias=[bias], values=[0, 1], schema=schema)
    return tree.split(0).describe(**options)


def numeric(n: int) -> Schema:
    return Schema.numeric(n, [f"x{i}" for i in range(n)])


@pytest.mark.parametrize(
    ("weights", "bias", "expected"),
    [
        ([0.8, -1.1], -2.3, "1.1*x1 - 0.8*x0 <= -2.3"),
        ([1.1, -0.8], -2.3, "1.1*x0 - 0.8*x1 >= 2.3"),
        ([1.0, -1.0], 0.0, "x0 - x1 >= 0"),
        ([2.0, 0.0], -5.0, "x0 >= 2.5"),
        ([0.0, -2.0], 5.0, "x1 <= 2.5"),
        ([0.0, 0.0], 0.0, "always"),
        ([0.0, 0.0], -1.0, "never"),
        ([1234.5678, 0.00012345], 1e-9, "1235*x0 + 0.000123*x1 >= -1e-9"),
        ([1e20, 1e-20], 1.0, "1e20*x0 + 1e-20*x1 >= -1"),
    ],
)
def test_numbers(weights: list[float], bias: float, expected: str) -> None:
    assert words(weights, bias=bias, schema=numeric(2), digits=3) == expected


@pytest.mark.parametrize(
    ("weights", "bias", "expected"),
    [
        # Importance is weight times scale: mass by 0.8, species by 0.4, year by 0.24.
        (
            [0.001, 0, 0.4, 0, 0, 0, -0.3],
            0.0,
            "0.001*mass + (0.4 if species is Adelie) - 0.3*year >= -598.2",
        ),
        ([0.001, -0.3, 0, 0, 0, 0, 0], 0.0, "mass >= 4200 and not missing"),
        ([-0.001, 0.3, 0, 0, 0, 0, 0], 0.0, "mass <= 4200 or missing"),
        ([0, 0, 0, 0, 0, 0.2, -1.0], 0.5, "year - (0.2 if species is missing) <= 2008.5"),
        ([0, 0, 1, 0, 0, 0, 0], -0.5, "species is Adelie"),
        ([0, 0, 1, 1, 0, 0, 0], -0.5, "species is one of Adelie, Chinstrap"),
        ([0, 0, 1, 0, 0, 1, 0], -0.5, "species is one of Adelie, missing"),
        ([0, 0, -1, 0, 0, 0, 0], 0.5, "species is not Adelie"),
        ([0, 0, 0, 0, 0, 1, 0], -0.5, "species is missing"),
        ([0, 0, 0, 0, 0, -1, 0], 0.5, "species is not missing"),
        ([0, 0, 1, 1, 1, 0, 0], -0.5, "species is not missing"),
        ([0, 0, 1, 1, 0, 0, 0], -2.0, "never"),
        ([0, 0, -1, 1, 0, 0, 0], 2.0, "always"),
        ([0, 1, 0, 0, 0, 0, 0], -0.5, "mass is missing"),
        ([0, -1, 0, 0, 0, 0, 0], 0.5, "mass is not missing"),
    ],
)
def test_levels_and_missing_values(weights: list[float], bias: float, expected: str) -> None:
    assert words(weights, bias=bias) == expected


def test_terms_are_ranked_by_the_spread_of_their_columns() -> None:
    """A rare missing indicator ranks low in spite of its large weight."""
    features = (
        Feature("mass", "numeric", center=4.0, scale=1.0, has_missing=True, spread=(0.8, 0.05)),
        Feature("sex", "categorical", levels=("f", "m"), spread=(0.5, 0.5)),
    )
    text = words([1.0, 5.0, 0.6, 0.0], schema=Schema(features), max_terms=2)
    assert text == "mass + (0.6 if sex is f) (+ 1 smaller term left out) >= 4"


def test_many_levels_are_counted() -> None:
    levels = tuple("abcdefghijkl")
    schema = Schema((Feature("letter", "categorical", levels=levels),))
    weights = [1.0] * 6 + [0.0] * 6
    text = "letter is one of a, b, c, d (+ 2 more left out)"
    assert words(weights, bias=-0.5, schema=schema, max_terms=4) == text
    assert words(weights, bias=-0.5, schema=schema) == "letter is one of a, b, c, d, e, f"
    # "missing" is always shown: here the levels a to f do not go right, and neither does it.
    inverse = words(weights, bias=-0.5, schema=schema, max_terms=2)
    assert inverse == "letter is one of a, b (+ 4 more left out)"
    negative = words([-1.0] * 2 + [1.0] * 10, bias=-0.5, schema=schema, max_terms=2)
    assert negative == "letter is none of a, missing (+ 1 more left out)"


def test_small_terms_are_left_out_and_counted() -> None:
    weights = np.r_[[5, -4, 3, -2], np.full(12, 0.01)]
    text = words(weights, schema=numeric(16), max_terms=4)
    assert text == "5*x0 - 4*x1 + 3*x2 - 2*x3 (+ 12 smaller terms left out) >= 0"
    text = words(weights[:5], schema=numeric(5), max_terms=4)
    assert text.endswith("(+ 1 smaller term left out) >= 0")
    assert words(weights, schema=numeric(16), max_terms=None).count("0.01*") == 12


@pytest.mark.parametrize("n_terms", [2, 5, 12, 13, 40])
def test_up_to_twelve_terms_are_never_left_out(n_terms: int) -> None:
    text = words(np.arange(n_terms, 0.0, -1), schema=numeric(n_terms))
    assert text.count("x") == min(n_terms, 12)
    left_out = n_terms - 12
    assert (f"(+ {left_out} smaller term{'s' * (left_out > 1)} left out)" in text) == (left_out > 0)


def test_terms_left_out_are_set_to_their_center() -> None:
    # year is left out: an average year leaves the threshold of mass alone where it is.
    text = words([0.001, 0, 0, 0, 0, 0, 0.01], bias=-0.3, max_terms=1)
    assert text == "0.001*mass (+ 1 smaller term left out) >= 4.5"


def test_rounded_weights_keep_the_split_where_it_is() -> None:
    schema = Schema((Feature("time", "numeric", center=1.7e9), Feature("x", "numeric")))
    text = words([1.23456, 1.0], schema=schema, bias=-0.5, digits=3)
    assert text == "1.23*time + x >= 2091000000.5"  # 1.23 * 1.7e9 + 0.5, not 1.23456 * 1.7e9
    assert words([2.0, 0.0], schema=schema, bias=-0.5) == "time >= 1700000000.25"


YEAR, DAY = 365.25 * 86400, 86400.0
JANUARY_22 = 1548115200.0  # 2019-01-22 00:00 UTC


def dated(spread: float, origin: str = "date", center: float = JANUARY_22) -> Schema:
    feature = Feature("joined", "numeric", center=center, spread=(spread,), origin=origin)
    return Schema((feature, Feature("age", "numeric")))


@pytest.mark.parametrize(
    ("weight", "seconds", "spread", "expected"),
    [
        (1.0, 0.0, YEAR, "joined >= 2019-01-22"),
        (-2.0, 0.0, YEAR, "joined <= 2019-01-22"),
        # Days are split like by the exact time: a date on that day is not >= 15:00.
        (1.0, 15 * 3600.0, YEAR, "joined >= 2019-01-23"),
        (-1.0, 15 * 3600.0, YEAR, "joined <= 2019-01-22"),
        (1.0, 15 * 3600.0 + 29.0, DAY, "joined >= 2019-01-22 15:01"),
        (1.0, 15 * 3600.0 + 29.0, 600.0, "joined >= 2019-01-22 15:00:29"),
        (1.0, 0.25, 1.0, "joined >= 2019-01-22 00:00:00.25"),
        (1.0, 0.0, 0.0, "joined >= 2019-01-22"),
        (1.0, 1e-7, YEAR, "joined >= 2019-01-22"),  # a rounding error is not another day
        (1.0, 1e15, YEAR, "joined >= 1.0000015481e15"),  # beyond every calendar
        (1.0, 1e306, 1e-300, "joined >= 1e306"),
    ],
)
def test_dates(weight: float, seconds: float, spread: float, expected: str) -> None:
    schema, weights, bias = dated(spread), [weight, 0.0], -weight * seconds
    assert words(weights, bias=bias, schema=schema, digits=3) == expected
    exact = words(weights, bias=bias, schema=schema, max_terms=None, digits=None)
    assert float(exact.split()[-1]) == pytest.approx(JANUARY_22 + seconds, rel=1e-15)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (15 * 3600.0, "joined >= 2019-01-22 15:00"),
        (-1.0, "joined >= 2019-01-21 23:59:59"),
        (0.25, "joined >= 2019-01-22 00:00:00.25"),
        (1.2345678, "joined >= 2019-01-23"),  # not a whole millisecond
    ],
)
def test_short_dates_are_written_in_full(seconds: float, expected: str) -> None:
    assert words([1.0, 0.0], bias=-seconds, schema=dated(YEAR)) == expected


@given(st.integers(-(10**8), 10**8), st.integers(-6, 6), st.floats(1e-3, 1e6))
def test_short_numbers_are_written_in_full(whole: int, exponent: int, unit: float) -> None:
    """Also where a unit is divided by and multiplied with again."""
    number = float(f"{whole}e{exponent}")
    assert float(format_digits(number / unit * unit, "auto")) == number
    assert float(format_quantity(number, "number", "auto", spread=abs(number) + 1.0)) == number


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (3.5 * DAY, "joined >= 3.5 days"),
        (DAY, "joined >= 1 day"),
        (90.0, "joined >= 1.5 minutes"),
        (0.0, "joined >= 0 minutes"),
        (-7200.0, "joined >= -2 hours"),
    ],
)
def test_durations(seconds: float, expected: str) -> None:
    schema = dated(100.0, "duration", center=0.0)
    assert words([1.0, 0.0], bias=-seconds, schema=schema) == expected
    assert words([1.0, 0.0], bias=-seconds, schema=schema, digits=None).endswith(f" {seconds:g}")


def test_dates_and_durations_next_to_other_terms_have_units_of_time() -> None:
    six_o_clock = JANUARY_22 + 0.25 * DAY
    text = words([0.5 / DAY, 3.0], bias=1.0, schema=dated(YEAR, center=six_o_clock))
    # At the average, 0.25 days from the 22nd, and age 0 the score is 1.
    assert text == "0.5*(joined - 2019-01-22 in days) + 3*age >= -0.875"
    text = words([0.5 / DAY, 3.0], bias=1.0, schema=dated(3 * DAY, "duration", center=DAY))
    assert text == "3*age + 0.5*(joined in days) >= -0.5"
    exact = words([0.5, 1.0], schema=dated(YEAR), digits=None)
    assert exact == f"0.5*joined + age >= {JANUARY_22 / 2:.0f}"


def test_numbers_in_full() -> None:
    text = words([1 / 3, 0.1], bias=-0.1, schema=numeric(2), digits=None)
    assert text == "0.3333333333333333*x0 + 0.1*x1 >= 0.1"


@pytest.mark.parametrize("options", [{"max_terms": 0}, {"digits": 0}])
def test_options_are_checked(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        words([1.0, 1.0], schema=numeric(2), **options)


@pytest.mark.parametrize(
    ("value", "digits", "spread", "expected"),
    [
        (0.0, 3, math.inf, "0"),
        (-0.0, 3, math.inf, "0"),
        (1.0, 3, math.inf, "1"),
        (0.99999, 3, math.inf, "1"),
        (-1.2345, 3, math.inf, "-1.23"),
        (123456.0, 3, math.inf, "123456"),
        (1.5e16, 3, math.inf, "1.5e16"),
        (1e-7, 3, math.inf, "1e-7"),
        (1700000000.25, 3, 1.0, "1700000000.25"),
        (1700000000.25, 3, 1000.0, "1700000000"),
        (12.3456, 3, 0.01, "12.3456"),
        (1e300, 3, 1e-300, "1e300"),
        (1.0, None, math.inf, "1"),
        (0.1, None, math.inf, "0.1"),
        (math.inf, 3, 1.0, "inf"),
        (0.1 + 0.2, "auto", math.inf, "0.3"),  # without the rounding error
        (-12345.6789, "auto", math.inf, "-12345.6789"),
        (1 / 3, "auto", math.inf, "0.333"),
        (100000 / 3, "auto", math.inf, "33333"),
        (12.34567891, "auto", math.inf, "12.3"),  # ten digits
        (1699999999.75, "auto", 1.0, "1699999999.75"),
        (1699999999.754321, "auto", 1.0, "1699999999.75"),
        (math.pi * 1e9, "auto", 1.0, "3141592653.59"),
    ],
)
def test_number(value: float, digits: Digits, spread: float, expected: str) -> None:
    assert format_digits(value, digits, spread=spread) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("petal length (cm)", "petal length (cm)"),
        ("größe", "größe"),
        ("a\nb\x00", "a\\nb\\x00"),
        ("a - b", '"a - b"'),
        ("2*x", '"2*x"'),
        ("", '""'),
        (" x", '" x"'),
        ("y is missing", '"y is missing"'),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert name_text(name) == expected


def test_labels() -> None:
    assert [label_text(x) for x in ("a", 1, 2.5, True)] == ["a", "1", "2.5", "True"]
    assert [label_text(x) for x in ("missing", "a, b", "\t")] == ['"missing"', '"a, b"', "\\t"]
