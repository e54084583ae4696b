"""`docs/guide/parameters.md` has every parameter, and a default is the same wherever it is."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from dataclasses import fields
from pathlib import Path

import hardwood
from hardwood import LatentTreeClustering
from hardwood.estimators import rewards
from hardwood.learn.latent import Latent
from hardwood.learn.rewards import RewardedPolicies
from hardwood.parameters import parameters_of

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "parameters.md"
PUBLIC = [getattr(hardwood, name) for name in hardwood.__all__]
ESTIMATORS = [one for one in PUBLIC if isinstance(one, type) and hasattr(one, "fit")]
CLASSIFIERS = [one for one in ESTIMATORS if one.__name__.endswith("Classifier")]

# Clustering learns with `Latent`, but with defaults of its own.
OWN_DEFAULTS = {"batch_size", "split_init"}


def defaults_of(function) -> dict[str, object]:
    return {one.name: one.default for one in inspect.signature(function).parameters.values()}


def family(kind) -> str:
    return re.sub(r"(Classifier|Regressor)$", "", kind.__name__)


def named(kinds) -> str:
    """Name estimators, a classifier and its regressor together."""
    members = defaultdict(list)
    for kind in kinds:
        members[family(kind)].append(kind)
    names = []
    for name, found in members.items():
        is_whole = len(found) == sum(family(kind) == name for kind in ESTIMATORS)
        names += [name] if is_whole else [kind.__name__ for kind in found]
    return ", ".join(sorted(names))


def estimators_cell(kinds) -> str:
    if kinds == ESTIMATORS:
        return "all"
    if kinds == CLASSIFIERS:
        return "all classifiers"
    others = [kind for kind in ESTIMATORS if kind not in kinds]
    return f"all but {named(others)}" if len(others) <= 4 else named(kinds)


def default_cell(defaults) -> str:
    """Write the default of most estimators first; of others with their names."""
    of_value = defaultdict(list)
    for kind, value in defaults.items():
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        of_value[shown].append(kind)
    (most, _), *others = sorted(of_value.items(), key=lambda item: (-len(item[1]), item[0]))
    return "; ".join([f"`{most}`", *(f"{some_of(kinds)} `{value}`" for value, kinds in others)])


def some_of(kinds) -> str:
    are_classifiers = len(kinds) > 4 and set(kinds) <= set(CLASSIFIERS)
    return "other classifiers" if are_classifiers else named(kinds)


def expected_rows() -> dict[str, tuple[str, str]]:
    having = defaultdict(dict)
    for kind in ESTIMATORS:
        for name, default in defaults_of(kind).items():
            having[name][kind] = default
    return {
        name: (estimators_cell(list(having[name])), default_cell(having[name]))
        for name in sorted(having)
    }


def test_the_page_has_every_parameter_with_its_estimators_and_defaults():
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    found = {name: (estimators, default) for name, _, estimators, default in rows}
    assert found == expected_rows()
    assert [name for name, *_ in rows] == list(found)
    assert all(meaning.endswith(".") for _, meaning, _, _ in rows)


def test_defaults_of_clustering_are_those_of_the_learner_but_for_its_own():
    defaults, learner = defaults_of(LatentTreeClustering), Latent()
    names = set(defaults) & {field.name for field in fields(learner)}
    assert {name for name in names if defaults[name] != getattr(learner, name)} == OWN_DEFAULTS


def test_defaults_of_learning_from_rewards_are_those_of_the_learner():
    given = {
        name: value
        for name, value in defaults_of(hardwood.learn_from_rewards).items()
        if name in {field.name for field in fields(rewards._RewardParameters)}
    }
    asked = rewards._RewardParameters(**given)
    assert vars(asked) == vars(rewards._RewardParameters())
    assert parameters_of(RewardedPolicies, asked) == RewardedPolicies()
