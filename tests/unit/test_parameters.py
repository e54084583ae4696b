"""Fields say what they take, and take no more than that."""

from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from hardwood.parameters import (
    Parameters,
    Values,
    choice_field,
    integer_field,
    real_field,
    unchecked_field,
)


@dataclass(frozen=True)
class Sample(Parameters):
    depth: int | None = integer_field(6, 1, 16, or_none=True)
    rows: int = integer_field(128, 1)
    share: float = real_field(1.0, 0, 1, open_low=True, open_high=False)
    momentum: float = real_field(0.9, 0, 1)
    penalty: float = real_field(0.0, 0, 1e37)
    center: float = real_field(0.0, float("-inf"))
    kind: str = choice_field("axis", ("axis", "random"))
    scoring: str | None = unchecked_field(None, "text", or_none=True)


VALUES = {each.name: each.metadata["values"] for each in fields(Sample)}


def test_a_field_says_what_it_takes():
    assert VALUES["depth"] == Values("integer", 1, 16, or_none=True)
    assert VALUES["kind"] == Values("choice", choices=("axis", "random"))
    assert VALUES["kind"].words == ("axis", "random")
    assert VALUES["scoring"].words == ("none",)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("depth", "1 to 16"),
        ("rows", ">= 1"),
        ("share", "> 0 and <= 1"),
        ("momentum", ">= 0 and < 1"),
        ("penalty", ">= 0"),
        ("center", ""),
        ("kind", ""),
    ],
)
def test_bounds_are_said_in_words(name, bounds):
    assert VALUES[name].bounds == bounds


@pytest.mark.parametrize(("name", "low"), [("depth", 0), ("share", 0.0), ("momentum", 1.0)])
def test_what_is_out_of_bounds_is_refused(name, low):
    with pytest.raises(ValueError, match=f"{name} must be .*, got {low}"):
        Sample(**{name: low})


def test_what_is_not_checked_passes():
    assert Sample(scoring="roc_auc").scoring == "roc_auc"
