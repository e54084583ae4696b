"""Parameters of the learners: their defaults, scikit-learn's interface, what a method refuses."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rounds import all_of, contexts, labels, small_bandit, small_regressor
from sklearn.base import clone

from hardwood.bandit import DGTBandit, DGTBanditRegressor, load
from hardwood.bandit.parameters import BanditParameters, RegressionParameters

KINDS = [(DGTBandit, BanditParameters), (DGTBanditRegressor, RegressionParameters)]
KINDS_AND_METHODS = [(*each, method) for each in KINDS for method in each[1].METHODS]
METHODS = [(kind, method) for kind, _, method in KINDS_AND_METHODS]


def made(kind, **given):
    return kind(3, **given) if kind is DGTBandit else kind(**given)


@pytest.mark.parametrize(("kind", "checked"), KINDS)
def test_the_signature_documents_and_checks_every_parameter(kind, checked):
    signature = inspect.signature(kind).parameters
    assert not any(p.kind is p.VAR_KEYWORD for p in signature.values())
    for each in dataclasses.fields(checked):
        assert signature[each.name].default == each.default, each.name
    unchecked = signature.keys() - {each.name for each in dataclasses.fields(checked)}
    assert unchecked <= {"n_actions", "features", "init", "random_state"}
    for name in signature:
        assert re.search(rf"^    .*\b{name}\b( : |, |$)", kind.__doc__, re.MULTILINE), name


@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_auto_depends_on_the_method(kind, method):
    learner = made(kind, method=method)
    assert learner.get_params()["learning_rate"] == "auto"
    rate = 1e-3 if "paper" in method else 2e-3 if method == "network" else 5e-3
    assert learner.parameters_["learning_rate"] == rate
    if "paper" not in method:
        assert learner.parameters_["updates_per_round"] == (0.5 if method == "network" else 1.0)
    if kind is DGTBanditRegressor:
        assert learner.parameters_["perturbation"] == (0.7 if method == "one_point" else 0.5)
        assert made(kind, method=method, perturbation=0.2).parameters_["perturbation"] == 0.2


# Where 0.5 is no value of a parameter.
OTHER_VALUES = {
    "batch_size": 7,
    "buffer_size": 7,
    "gradient_accumulation": 7,
    "buffer": "recent",
    "hidden_size": 7,
    "loss": "huber",
    "who_decides": "auto",
    "explore_by": "epsilon",
    "detect_change": False,
    "quantizer": "scaled",
}


@pytest.mark.parametrize(("kind", "checked", "method"), KINDS_AND_METHODS)
def test_only_parameters_in_use_are_listed_and_others_are_refused(kind, checked, method):
    used = made(kind, method=method).parameters_
    assert ("buffer_size" in used) != ("gradient_accumulation" in used)
    for name, methods in checked.USED_BY.items():
        value = OTHER_VALUES.get(name, 0.5)
        if method in methods:
            assert made(kind, method=method, **{name: value}).parameters_[name] == value
        else:
            assert name not in used
            with pytest.raises(
                ValueError, match=f"{name} is not used with method='{method}', only"
            ):
                made(kind, method=method, **{name: value})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"learning_rate": 2.0}, "learning_rate must be at most 1 with method='network', got 2"),
        ({"batch_size": 2000}, "batch_size must be at most 1024"),
        ({"updates_per_round": 200}, "updates_per_round must be at most 100"),
    ],
)
def test_a_network_has_limits_of_its_own(given, words):
    with pytest.raises(ValueError, match=words):
        DGTBandit(3, method="network", **given)


@pytest.mark.parametrize("name", ["scale", "perturbation"])
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e300, np.nan])
def test_sizes_by_which_no_loss_can_be_divided_are_refused(name, size):
    with pytest.raises(ValueError, match=rf"{name} must be a number in \[1e-"):
        DGTBanditRegressor(**{name: size})


def test_get_params_gives_back_what_was_given():
    features = pd.DataFrame({"age": [1.0, None], "town": ["Ulm", "Bonn"]})
    given = {
        "n_actions": ["a", "b"],
        "features": features,
        "max_depth": np.int64(3),
        "buffer": "recent",
    }
    found = DGTBandit(**given).get_params()
    assert list(found) == [each.name for each in dataclasses.fields(DGTBandit)]
    for name, value in given.items():
        assert found[name] is value
    assert DGTBandit(**found).parameters_ == DGTBandit(**given).parameters_


@pytest.mark.parametrize("make", [small_bandit, small_regressor])
def test_scikit_learn_clones_it(make, rng):
    learner = make()
    X = contexts(rng)
    learner.replay(X, labels(X))
    copy = clone(learner)
    assert (copy.n_rounds_, copy.get_params()) == (0, learner.get_params())
    copy.replay(X, labels(X))
    assert all_of(copy) == all_of(learner)


def test_set_params_makes_it_anew():
    bandit = small_bandit(features=2)
    assert bandit.set_params() is bandit
    assert bandit.set_params(max_depth=2, buffer_size=50) is bandit
    assert (bandit.get_params()["max_depth"], bandit.parameters_["buffer_size"]) == (2, 50)
    assert all_of(bandit) == all_of(small_bandit(features=2, max_depth=2, buffer_size=50))
    bandit.decide([0.0, 1.0])
    assert bandit.tree_.depth <= 2


def test_assigning_a_parameter_is_refused():
    bandit = small_bandit()
    with pytest.raises(AttributeError, match=r"max_depth cannot be assigned; use set_params"):
        bandit.max_depth = 5
    assert bandit.get_params()["max_depth"] == bandit.parameters_["max_depth"] == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_depth": 0}, "max_depth must be an integer"),
        ({"depth": 3}, "DGTBandit has no parameter 'depth'. It has: .*max_depth"),
        ({"method": "paper"}, "batch_size is not used with method='paper'"),
    ],
)
def test_a_failed_set_params_changes_nothing(given, words):
    bandit = small_bandit(features=2)
    before, params = all_of(bandit), bandit.get_params()
    with pytest.raises(ValueError, match=words):
        bandit.set_params(**given)
    assert (all_of(bandit), bandit.get_params()) == (before, params)


@pytest.mark.parametrize("begin", ["decide", "learn_logged"])
def test_parameters_are_fixed_once_it_has_begun(begin):
    bandit = small_bandit()
    if begin == "decide":
        bandit.decide([0.0, 1.0])
    else:
        bandit.learn_logged([[0.0, 1.0]], [1], [1.0], 0.5)
    with pytest.raises(ValueError, match="already decided or learned"):
        bandit.set_params(max_depth=2)
    assert bandit.set_params() is bandit


def test_a_loaded_learner_knows_its_parameters(tmp_path):
    features = pd.DataFrame({"age": [1.0, None], "town": ["Ulm", "Bonn"]})
    for given in ({"features": features}, {"features": ["a", "b"]}, {"method": "paper"}):
        bandit = small_bandit(max_open=70, **given)
        bandit.save(tmp_path / "b")
        for again in (load(tmp_path / "b"), pickle.loads(pickle.dumps(bandit))):
            assert again.parameters_ == bandit.parameters_
            fresh = again.set_params(**again.get_params())
            assert fresh.parameters_ == bandit.parameters_
            assert (fresh._contexts is None) == (bandit._contexts is None)


SOME = {"init": ("replay, paper",)}  # which is checked where the learner is made
METHOD_WORDS = {"two_point, one_point": "buffer", "paper_two_point, paper_one_point": "paper"}


@pytest.mark.parametrize(("kind", "checked"), KINDS)
def test_the_guide_has_every_parameter_with_its_default_and_methods(kind, checked):
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "bandits.md").read_text()
    section = guide.split(f"### {kind.__name__}\n")[1].split("\n#")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("| `")]
    found = {
        name.strip("` "): (default.strip(), methods.strip())
        for names, default, methods in rows
        for name in names.split(",")
    }
    signature = inspect.signature(kind).parameters
    assert found.keys() == signature.keys()
    for name, (default, methods) in found.items():
        if default:
            assert ast.literal_eval(default.strip("`")) == signature[name].default, name
        used_by = ", ".join(checked.USED_BY.get(name, ()))
        words = METHOD_WORDS.get(used_by, used_by)
        allowed = {words} if words else {"all", "", *SOME.get(name, ())}
        assert methods in allowed, name
