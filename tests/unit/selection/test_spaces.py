from __future__ import annotations

import pytest
from optuna.trial import FixedTrial
from sklearn.tree import DecisionTreeClassifier

import hardwood
from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    DGTForestRegressor,
    DGTRegressor,
    TAOClassifier,
    TAORegressor,
)
from hardwood.learn import Training
from hardwood.learn.tao import PENALTIES as TAO_PENALTIES
from hardwood.selection import SPACES, Range, When, grid, space_of
from hardwood.selection.mapping_space import described

PENALTIES = {0.0, 5e-5, 1e-5, 5e-6, 1e-6}
ALL = (DGTClassifier, DGTRegressor, DGTForestClassifier, DGTForestRegressor)


def points(estimator, space=None, **options):
    """Every set of parameters in a space."""
    suggest = space_of(estimator, space, **options)
    return [suggest(FixedTrial(choices)) for choices in grid(suggest)]


def values(found, name):
    return {point[name] for point in found}


@pytest.mark.parametrize("kind", ALL)
def test_l1_and_l2_are_never_both_there(kind):
    found = points(kind())
    assert all(point["l1"] == 0 or point["l2"] == 0 for point in found)
    assert values(found, "l1") == values(found, "l2") == PENALTIES


@pytest.mark.parametrize("kind", ALL)
def test_every_point_is_parameters_of_the_estimator_and_there_once(kind):
    found = points(kind())
    assert len({tuple(sorted(point.items())) for point in found}) == len(found)
    for point in found:
        kind().set_params(**point)
    assert values(found, "max_depth") == {2, 4, 6, 8, 10}
    assert values(found, "layers") == {1, 3}


@pytest.mark.parametrize(
    ("kind", "momenta"), [(DGTClassifier, {0, 0.3, 0.8}), (DGTRegressor, {0, 0.3})]
)
def test_single_trees_as_in_table_11(kind, momenta):
    found = points(kind())
    assert values(found, "momentum") == momenta
    single = [point for point in found if point["layers"] == 1]
    assert values(single, "l1") == values(single, "l2") == {0.0}
    assert len(found) == 5 * (1 + 9) * len(momenta)


@pytest.mark.parametrize("kind", [TAOClassifier, TAORegressor])
def test_alternation_is_searched_over_depths_starts_and_pairs_of_penalties(kind):
    found = points(kind())
    assert {(point["l1"], point["l2"]) for point in found} == set(TAO_PENALTIES)
    assert values(found, "init") == {"axis", "random"}
    assert len(found) == 6 * 2 * len(TAO_PENALTIES)
    kind().set_params(**found[-1])
    held = points(kind(l1=0.1))  # then its l2 is not searched, either
    assert not any("l2" in point for point in held)


@pytest.mark.parametrize("name", SPACES)
def test_every_space_is_of_parameters_that_the_estimator_has(name):
    assert space_of(getattr(hardwood, name)(), SPACES[name])


@pytest.mark.parametrize("kind", [DGTForestClassifier, DGTForestRegressor])
def test_forests_have_penalties_without_layers_too(kind):
    found = points(kind())
    single = [point for point in found if point["layers"] == 1]
    assert values(single, "l1") == values(single, "l2") == PENALTIES
    assert values(found, "momentum") == {0, 0.2, 0.3, 0.4, 0.6}
    assert values(found, "sample_fraction") == {0.7, 0.85, 0.9, 1}
    assert len(found) == 5 * 2 * 9 * 5 * 4


@pytest.mark.parametrize("kind", [DGTForestClassifier, DGTForestRegressor])
def test_forests_on_all_rows_draw_no_part_of_them(kind):
    assert values(points(kind(bootstrap=False)), "sample_fraction") == {1}


def test_what_the_user_has_set_is_held():
    assert "max_depth" not in points(DGTClassifier(max_depth=5))[0]
    assert "momentum" not in points(DGTClassifier(momentum=0.0))[0]  # the default is None
    held = points(DGTClassifier(l2=1e-3))
    assert all("l1" not in point and "l2" not in point for point in held)
    assert "max_depth" in points(DGTClassifier(max_depth=6))[0]  # 6 is the default


def test_fixed_holds_a_parameter_at_its_default():
    found = points(DGTRegressor(max_depth=6), fixed=["max_depth"])
    assert set(found[0]) == {"layers", "l1", "l2", "momentum"}
    assert points(DGTRegressor(), fixed="layers")[0].keys() == {"max_depth", "l1", "l2", "momentum"}


@pytest.mark.parametrize(("layers", "n"), [(1, 1), (3, 9), ((20,), 9)])
def test_penalties_depend_on_layers_that_are_held(layers, n):
    found = points(DGTRegressor(layers=layers), fixed=["layers"])
    assert len({(point["l1"], point["l2"]) for point in found}) == n


def test_a_subclass_has_the_space_of_its_class():
    class Mine(DGTRegressor):
        pass

    assert len(points(Mine(layers=1), fixed=["layers"])) == 10


def test_spaces_are_data_to_build_upon():
    space = {**SPACES["DGTRegressor"], "max_depth": [3]}
    assert values(points(DGTRegressor(), space), "max_depth") == {3}


def test_any_object_can_be_a_value():
    slow, fast = Training(optimizer="adam"), Training(optimizer="sgd")
    found = points(DGTClassifier(), {"training": [slow, fast, None], "layers": [(4, 4), 1]})
    assert {id(point["training"]) for point in found} == {id(slow), id(fast), id(None)}
    assert [point["layers"] for point in found[:2]] == [(4, 4), 1]


def test_both_branches_of_a_condition_may_have_a_choice():
    space = {"layers": [1, 2], "momentum": When("layers", 1, then=[0.0, 0.1], otherwise=[0.5, 0.6])}
    found = points(DGTClassifier(), space)
    assert {(p["layers"], p["momentum"]) for p in found} == {(1, 0.0), (1, 0.1), (2, 0.5), (2, 0.6)}


def test_ranges_and_functions_are_enumerated():
    space = {"max_depth": Range(2, 6, step=2), "momentum": Range(0.1, 0.3, step=0.1)}
    found = points(DGTClassifier(), space)
    assert values(found, "max_depth") == {2, 4, 6}
    assert sorted(values(found, "momentum")) == pytest.approx([0.1, 0.2, 0.3])

    def choose(trial):
        depth = trial.suggest_int("depth", 1, 3)
        again = trial.suggest_int("depth", 1, 3)
        momentum = trial.suggest_float("m", 0.0, 0.5, step=0.25) if depth == 2 else 0.0
        return {"max_depth": depth, "batch_size": again, "momentum": momentum}

    found = points(DGTClassifier(), choose)
    assert [(p["max_depth"], p["momentum"]) for p in found] == [
        (1, 0.0),
        (2, 0.0),
        (2, 0.25),
        (2, 0.5),
        (3, 0.0),
    ]
    assert all(p["batch_size"] == p["max_depth"] for p in found)


def test_numpy_values_become_plain_numbers():
    import numpy as np

    found = points(DGTClassifier(), {"max_depth": np.arange(1, 4)})
    assert [type(p["max_depth"]) for p in found] == [int, int, int]


def test_a_description_is_the_same_for_the_same_space_only():
    def text(space):
        return described(space_of(DGTClassifier(), space))

    assert text({"layers": [1, 2]}) == text({"layers": (1, 2)})
    assert text({"layers": [1, 2]}) != text({"layers": [1, 3]})
    assert " at 0x" not in text({"loss": [lambda p, t: p - t, "log_loss"]})


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({}, "empty"),
        ({"max_dept": [1]}, "Did you mean 'max_depth'"),
        ({"max_depth": 3}, "must be a list"),
        ({"max_depth": "auto"}, "must be a list"),
        ({"max_depth": []}, "is empty"),
        ({"max_depth": [1, 2, 1]}, "more than once"),
        ({"l1": [0.1], ("l1", "l2"): [(0.1, 0.1)]}, "'l1' is in the space more than once"),
        ({("l1", "l2"): [0.1, 0.2]}, "a tuple of 2"),
        ({("l1", "l2"): Range(0.1, 0.2)}, "chosen together"),
        ({"l1": When("layers", 1, [0], [1]), "layers": [1, 2]}, "must come before"),
        ({"l1": When("layer", 1, [0], [1])}, "Did you mean 'layers'"),
        ({"l1": When("layers", 1, [0], 1)}, "must be a list"),
    ],
)
def test_what_is_no_space_is_refused(space, words):
    with pytest.raises(ValueError, match=words):
        space_of(DGTClassifier(), space)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Range(2, 1),
        lambda: Range(0.0, 1.0, log=True),
        lambda: Range(0.1, 1.0, step=-0.1),
        lambda: Range(0, float("inf")),
    ],
)
def test_what_is_no_range_is_refused(make):
    with pytest.raises(ValueError, match="Range"):
        make()


def test_other_mistakes_are_explained():
    with pytest.raises(ValueError, match="no built-in space for DecisionTreeClassifier"):
        space_of(DecisionTreeClassifier(), None)
    with pytest.raises(ValueError, match="no parameter 'depth'"):
        space_of(DGTClassifier(), None, fixed=["depth"])
    with pytest.raises(ValueError, match="All parameters of the space"):
        space_of(DGTClassifier(), None, fixed=["max_depth", "layers", "l1", "momentum"])
    with pytest.raises(ValueError, match="leave them out"):
        space_of(DGTClassifier(), {"l1": [0.0, 0.1]}, fixed=["l2"])
    with pytest.raises(TypeError, match="space must be"):
        space_of(DGTClassifier(), 3)
    with pytest.raises(ValueError, match="'learning_rate' is any number from 0.001 to 0.1"):
        grid(space_of(DGTClassifier(), {"learning_rate": Range(0.001, 0.1, log=True)}))
    with pytest.raises(ValueError, match="more than 100,000 points"):
        grid(space_of(DGTClassifier(), {"max_depth": Range(1, 10**6)}))
