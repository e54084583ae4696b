"""`Schema`: the layout of columns, dictionaries, values."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

from hardwood.table import Feature, Schema

MIXED = Schema(
    (
        Feature("mass", "numeric", center=2.0, scale=3.0, has_missing=True),
        Feature("species", "categorical", levels=("Adelie", "Gentoo")),
        Feature("age", "numeric", center=-1.0, scale=0.5, spread=(0.6,), origin="duration"),
        Feature("sex", "categorical", levels=(False, 7, 2.5, "f"), has_missing=True),
    )
)


def test_columns_follow_the_features_in_order():
    assert (MIXED.n_features, MIXED.n_columns) == (4, 10)
    assert MIXED.column_names == (
        "mass",
        "mass is missing",
        "species = Adelie",
        "species = Gentoo",
        "age",
        "sex = False",
        "sex = 7",
        "sex = 2.5",
        "sex = f",
        "sex is missing",
    )
    assert MIXED.first_column.tolist() == [0, 2, 4, 5]
    assert MIXED.flag_column.tolist() == [1, -1, -1, 9]
    assert MIXED.n_levels.tolist() == [0, 2, 0, 4]
    assert MIXED.column_feature.tolist() == [0, 0, 1, 1, 2, 3, 3, 3, 3, 3]
    assert MIXED.column_center.tolist() == [2, 0, 0, 0, -1, 0, 0, 0, 0, 0]
    assert MIXED.column_scale.tolist() == [3, 1, 1, 1, 0.5, 1, 1, 1, 1, 1]
    # age knows its spread; the others fall back to their scale, and 1.
    assert MIXED.column_spread.tolist() == [3, 1, 1, 1, 0.6, 1, 1, 1, 1, 1]
    for array in (MIXED.first_column, MIXED.flag_column, MIXED.n_levels):
        assert array.dtype == np.int32
        assert not array.flags.writeable


def test_a_numeric_schema_does_not_shift_or_scale():
    schema = Schema.numeric(3)
    assert schema.names == ("x0", "x1", "x2")
    assert not schema.named
    assert schema.column_scale.tolist() == [1, 1, 1]
    assert Schema.numeric(2, ["a", "b"]).named
    with pytest.raises(ValueError, match="expected 2 names, one for each feature, got 1"):
        Schema.numeric(2, ["a"])


def test_a_dictionary_survives_json_with_the_types_of_its_levels():
    schema = Schema((*MIXED.features, Feature("π\n", "numeric", center=0.1, scale=5e-324)), False)
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert again.named is False
    assert [type(level) for level in again.features[3].levels] == [bool, int, float, str]


def test_a_schema_compares_by_value():
    _ = MIXED.column_names  # cached parts do not count
    for again in (pickle.loads(pickle.dumps(MIXED)), copy.deepcopy(MIXED)):
        assert again == MIXED
        assert hash(again) == hash(MIXED)
        assert again.column_names == MIXED.column_names
    assert Schema(MIXED.features[:2]) != MIXED


def edited(feature=None, **changes):
    content = MIXED.to_dict()
    if feature is None:
        content.update(changes)
    else:
        content["features"][feature].update(changes)
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "mapping, found NoneType"),
        ([], "mapping, found list"),
        ({}, "keys"),
        (edited(more=1), "keys"),
        (edited(named=1), "named must be true or false"),
        (edited(features=[]), "at least one feature"),
        (edited(features={}), "must be a list, found dict"),
        (edited(features=[3]), "mapping, found int"),
        (edited(0, kind="text"), "kind .* found 'text'"),
        (edited(0, kind=[]), "kind"),
        (edited(0, name=3), "must be text, found 3"),
        (edited(0, name="age"), "'age' more than once"),
        (edited(0, levels=["a"]), "keys"),
        (edited(1, center=1.0), "keys"),
        (edited(0, center=float("nan")), "center of feature 'mass'"),
        (edited(0, center="0"), "center of feature 'mass'"),
        (edited(0, center=True), "center of feature 'mass'"),
        (edited(0, center=10**400), "center of feature 'mass'"),
        (edited(0, scale=0.0), "scale of feature 'mass'"),
        (edited(0, scale=-1.0), "scale of feature 'mass'"),
        (edited(0, scale=float("inf")), "scale of feature 'mass'"),
        (edited(0, scale=None), "scale of feature 'mass'"),
        (edited(0, has_missing=1), "has_missing of feature 'mass'"),
        (edited(0, spread=[1.0]), "spread of feature 'mass' must be 2 finite"),
        (edited(0, spread=[1.0, -1.0]), "spread of feature 'mass'"),
        (edited(0, spread=[1.0, float("inf")]), "spread of feature 'mass'"),
        (edited(0, spread=[1.0, True]), "spread of feature 'mass'"),
        (edited(0, spread=[1.0, 10**400]), "spread of feature 'mass'"),
        (edited(0, spread=1.0), "spread of feature 'mass'"),
        (edited(0, spread="ab"), "spread of feature 'mass'"),
        (edited(1, spread=[0.5]), "spread of feature 'species' must be 2 finite"),
        (edited(0, origin="time"), "origin of feature 'mass'"),
        (edited(0, origin=["date"]), "origin of feature 'mass'"),
        (edited(1, origin="date"), "keys"),
        (edited(1, levels=[]), "levels of feature 'species'"),
        (edited(1, levels="ab"), "levels of feature 'species'"),
        (edited(1, levels=["a", "a"]), "all different"),
        (edited(1, levels=[1, True]), "all different"),
        (edited(1, levels=["a", None]), "text, finite numbers"),
        (edited(1, levels=["a", ["b"]]), "text, finite numbers"),
        (edited(1, levels=[float("nan")]), "text, finite numbers"),
        (edited(1, levels=list(range(256))), "1 to 255"),
        (edited(0, name="a\ud83d"), r"the column name 'a\\ud83d' is not valid Unicode"),
        (edited(1, levels=["\udc80"]), r"column 'species': the level '\\udc80' is not valid"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_invalid_dictionary_is_refused_with_the_reason(content, words):
    with pytest.raises(ValueError, match=words):
        Schema.from_dict(content)


def test_an_integer_center_written_by_another_tool_is_read():
    assert Schema.from_dict(edited(0, center=2, scale=3)) == MIXED
    assert Schema.from_dict(edited(0, spread=[1, 0])).features[0].spread == (1.0, 0.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Feature("a", "categorical", levels=("x",), center=1.0),
        lambda: Feature("a", "categorical", levels=("x",), origin="date"),
        lambda: Feature("a", "numeric", levels=("x",)),
        lambda: Feature("a", "numeric", spread=[1.0]),
        lambda: Feature("a", "categorical", levels=["x"]),
        lambda: Schema(()),
        lambda: Schema([Feature("a", "numeric")]),
        lambda: Schema(("a",)),
    ],
)
def test_contradictory_parts_are_refused(make):
    with pytest.raises(ValueError, match=r"feature|schema"):
        make()
