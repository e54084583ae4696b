"""The file of a learner: resumes bit for bit; a corrupted file is refused or works."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import mutations as spoil
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import all_of, contexts, labels, small_bandit, small_network, small_regressor

import hardwood
from hardwood.bandit import DGTBandit, DGTBanditRegressor, file, load
from hardwood.errors import ModelFileError, TokenError
from hardwood.model.files.container import DIGEST

MIXED = pd.DataFrame(
    {
        "age": [20.0, 35.0, np.nan, 51.0],
        "town": pd.Categorical(["Ulm", "Bonn", "Ulm", None]),
        "paid": [True, False, True, True],
    }
)


def mixed_bandit(**given):
    return small_bandit(features=MIXED, n_actions=["mail", "call", "wait"], **given)


def mixed_rows(n=12):
    return [MIXED.iloc[i % 4].to_dict() for i in range(n)]


def some_rounds(learner, rows, first=0):
    """Decide on rows; every third reward comes late, every fifth never."""
    decisions, late = [], []
    for i, x in enumerate(rows, first):
        decision = learner.decide(x)
        decisions.append(decision)
        if i % 5 == 4:
            continue
        if i % 3 == 2:
            late.append((decision.token, i))
            continue
        learn(learner, decision.token, i)
    for token, i in reversed(late):
        with contextlib.suppress(TokenError):  # expired, if few may be open
            learn(learner, token, i)
    return decisions


def learn(learner, token, i):
    if isinstance(learner, DGTBandit):
        learner.learn(token, reward=float(i % 4) - 1.5)
    elif learner.parameters_["method"] == "two_point":
        learner.learn(token, losses=(float(i % 4), float(i % 3)))
    else:
        learner.learn(token, loss=float(i % 4))


NUMBERS = list(contexts(np.random.default_rng(1), 60))
MAKERS = {
    "replay": (small_bandit, NUMBERS),
    "paper": (lambda: small_bandit(method="paper"), NUMBERS),
    "network": (small_network, NUMBERS),
    "network by tree": (lambda: small_network(who_decides="tree", buffer_size=7), NUMBERS),
    "network, table": (lambda: mixed_bandit(method="network", hidden_size=4), mixed_rows(60)),
    "full buffer": (lambda: small_bandit(buffer_size=7), NUMBERS),
    "newest": (lambda: small_bandit(buffer_size=7, buffer="recent"), NUMBERS),
    "table": (mixed_bandit, mixed_rows(60)),
    "named": (lambda: small_bandit(features=["a", "b", "c"]), NUMBERS),
    "expiring": (lambda: small_bandit(max_open=3), NUMBERS),
    "two points": (small_regressor, NUMBERS),
    "one point": (lambda: small_regressor(method="one_point"), NUMBERS),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("stop", [0, 1, 22, 41])
def test_a_stopped_run_resumes_bit_for_bit(name, stop, tmp_path):
    make, rows = MAKERS[name]
    whole, stopped = make(), make()
    for learner in (whole, stopped):
        some_rounds(learner, rows[:stop])
    stopped.save(tmp_path / "learner.hardwood")
    stopped = load(tmp_path / "learner.hardwood")
    assert type(stopped) is type(whole)
    assert all_of(stopped) == all_of(whole)
    one, other = (some_rounds(each, rows[stop:], stop) for each in (stopped, whole))
    assert [decision[:2] for decision in one] == [decision[:2] for decision in other]
    assert without_tokens(stopped) == without_tokens(whole)
    assert stopped.tree_ == whole.tree_


def without_tokens(learner):
    """Everything that a loaded learner has in common with one that never stopped."""
    header, data = spoil.split_file(all_of(learner))
    document = header.pop("__metadata__")
    tokens = {"open.token", "expired", "lives", DIGEST}
    found = {n: data[slice(*header[n]["data_offsets"])] for n in header if n not in tokens}
    return document, found


@pytest.mark.parametrize("size", [1e-25, 1e25, 1e33])
def test_contexts_of_any_size_survive(size):
    bandit = small_bandit()
    X = size * np.array(NUMBERS)
    bandit.replay(X[:40], labels(X[:40]))
    again = file.loads(file.dumps(bandit))
    assert again.replay(X, labels(X)).action.tolist() == bandit.replay(X, labels(X)).action.tolist()


def test_a_killed_run_resumes_bit_for_bit(tmp_path):
    """In another process, which saves after each round and exits without cleanup."""
    program = f"""
import os, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
import numpy as np
from rounds import contexts, small_bandit
bandit = small_bandit()
for i, x in enumerate(contexts(np.random.default_rng(1), 60)[:30]):
    token = bandit.decide(x).token
    bandit.save({str(tmp_path / "b")!r})
    if i == 29:
        os._exit(1)
    bandit.learn(token, float(i % 4))
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=120, check=False)
    assert done.returncode == 1
    resumed, whole = DGTBandit.load(tmp_path / "b"), small_bandit()
    for i, x in enumerate(NUMBERS[:30]):
        token = whole.decide(x).token
        if i < 29:
            whole.learn(token, float(i % 4))
    for bandit in (resumed, whole):
        bandit.learn(token, 2.5)  # the open decision survived
        for i, x in enumerate(NUMBERS[30:]):
            bandit.learn(bandit.decide(x).token, float(i % 4))
    assert without_tokens(resumed) == without_tokens(whole)


def test_saved_tokens_are_open_used_or_expired_as_before(tmp_path):
    bandit = small_bandit(max_open=2)
    tokens = [bandit.decide(x).token for x in NUMBERS[:4]]
    bandit.learn(tokens[2], 1.0)
    bandit.save(tmp_path / "b")
    bandit = DGTBandit.load(tmp_path / "b")
    assert (bandit.n_open_, bandit.n_expired_, bandit.n_rounds_) == (1, 2, 1)
    for token, words in ((tokens[0], "expired"), (tokens[2], "already"), (tokens[3] + 1, "lost")):
        with pytest.raises(TokenError, match=words):
            bandit.learn(token, 1.0)
    bandit.learn(tokens[3], 1.0)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_copy_is_independent(again):
    bandit = small_bandit()
    some_rounds(bandit, NUMBERS[:20])
    other = again(bandit)
    before = all_of(other)
    assert before == all_of(bandit)
    some_rounds(bandit, NUMBERS[20:30])
    assert all_of(other) == before


def test_each_class_loads_its_own_files(tmp_path):
    small_bandit().save(tmp_path / "bandit")
    small_regressor().save(tmp_path / "regressor")
    hardwood.ObliqueTree.of([[1.0]], thresholds=[0.0], values=[1.0, 2.0]).save(tmp_path / "tree")
    assert isinstance(load(tmp_path / "bandit"), DGTBandit)
    assert isinstance(DGTBanditRegressor.load(tmp_path / "regressor"), DGTBanditRegressor)
    with pytest.raises(ModelFileError, match=r"holds a DGTBanditRegressor. Use DGTBanditRegressor"):
        DGTBandit.load(tmp_path / "regressor")
    with pytest.raises(ModelFileError, match="holds a 'tree'.*hardwood.load"):
        load(tmp_path / "tree")
    with pytest.raises(ModelFileError, match=r"holds a 'bandit'.*hardwood\.bandit\.load"):
        hardwood.load(tmp_path / "bandit")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


# Corrupted files


def learned(make, rows):
    learner = make()
    some_rounds(learner, rows[:15])
    return learner


CONTENTS = {
    name: file.dumps(learned(*MAKERS[name]))
    for name in ("replay", "paper", "network", "table", "expiring", "two points", "one point")
} | {"fresh": file.dumps(small_bandit(features=["a", "b"]))}
MUTATIONS = [
    spoil.truncated,
    spoil.flipped,
    spoil.relabelled,
    spoil.overwritten,
    spoil.forged,
    spoil.resized,
]


def check_works(learner):
    """An accepted learner can be used in every way and saved again."""
    assert all_of(file.loads(all_of(learner))) == all_of(learner)
    if learner._contexts is None:
        return
    names = learner.feature_names_
    x = dict.fromkeys(names) if learner._contexts.takes_missing else [0.5] * len(names)
    token = learner.decide(x).token
    learn(learner, token, 1)
    assert learner.tree_.n_features == len(names)


@settings(max_examples=100)
@given(data=st.data())
@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda m: m.__name__)
def test_a_corrupted_file_is_refused_or_works(mutate, data):
    content = CONTENTS[data.draw(st.sampled_from(sorted(CONTENTS)))]
    corrupted = data.draw(mutate(content))
    with np.errstate(all="ignore"):
        try:
            learner = file.loads(corrupted)
        except ModelFileError:
            return
        check_works(learner)


def forged(content, change):
    """A file with a changed header and a matching digest."""
    header, data = spoil.split_file(content)
    document = json.loads(header["__metadata__"]["hardwood"])
    change(document)
    header["__metadata__"]["hardwood"] = json.dumps(document)
    return spoil.signed(spoil.join_file(header, data))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "newer hardwood"),
        ({"format": "1"}, "format must be a positive integer"),
        ({"kind": "grove"}, "kind must be 'bandit' or 'bandit_regressor'"),
        ({"kind": "tree"}, "holds a 'tree'. Load it with hardwood.load"),
        ({"kind": "bandit_regressor"}, "."),
        ({"max_depth": 10}, "engine.parameters has .* values, fewer than the .* max_depth 10"),
        ({"actions": list(range(9000))}, "engine.parameters .* and 9000 outputs"),
        ({"max_depth": 2}, "."),
        ({"max_depth": 10**9}, "max_depth must be from 1 to 10"),
        ({"max_open": 1}, "numbers of open and of expired"),
        ({"max_open": -1}, "max_open must be from"),
        ({"seed": -1}, "seed must be from"),
        ({"n_expired": 5}, "numbers of open and of expired"),
        ({"n_expired": 1.0}, "n_expired must be from"),
        ({"actions": [0, 1]}, "."),
        ({"actions": [0, 0, 1]}, "occurs twice"),
        ({"actions": None}, "."),
        ({"actions": "abc"}, "actions must be a list"),
        ({"parameters": {}}, "parameters must be"),
        ({"parameters": []}, "parameters must be a mapping"),
        ({"schema": None}, "."),
        ({"schema": {"named": False, "features": []}}, "at least one feature"),
        ({"takes_missing": 1}, "takes_missing must be"),
        ({"names": ["a"]}, "."),
        ({"n_features": 0}, "n_features must be"),
        ({"more": 1}, r"unknown keys \['more'\]"),
    ],
)
def test_a_forged_header_is_refused(change, words):
    content = CONTENTS["replay"]
    assert all_of(file.loads(forged(content, lambda document: None)))
    with pytest.raises(ModelFileError, match=words):
        file.loads(forged(content, lambda document: document.update(change)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": 4096}, "engine.network has .* values, fewer than the .* hidden_size 4096"),
        ({"hidden_size": 3}, "'network' of the state must have"),
        ({"hidden_size": 0}, "hidden_size must be an integer from 1 to 4096"),
        ({"batch_size": 65_536}, "batch_size must be at most 1024 with method='network'"),
        ({"who_decides": "me"}, "who_decides must be one of"),
        ({"loss": "absolute"}, "loss must be one of"),
        ({"min_propensity": 2.0}, "min_propensity must be a number"),
        ({"detect_change": 1}, "detect_change must be True or False"),
        ({"input_noise": 1.0}, "parameters must be"),
        ({"method": "replay"}, "hidden_size.* is not used|parameters must be|detect_change"),
    ],
)
def test_forged_parameters_of_a_network_are_refused(change, words):
    content = CONTENTS["network"]
    with pytest.raises(ModelFileError, match=words):
        file.loads(forged(content, lambda document: document["parameters"].update(change)))


def test_a_center_beyond_contexts_is_refused():
    def change(document):
        document["schema"]["features"][0]["center"] = 1.7e308

    with pytest.raises(ModelFileError, match=r"the center of feature 'x0' is 1.7e\+308"):
        file.loads(forged(CONTENTS["replay"], change))


def test_a_header_cannot_request_more_memory_than_the_file_has():
    def widen(document):
        one = document["schema"]["features"][0]
        document["schema"]["features"] = [one | {"name": f"x{j}"} for j in range(20_000)]
        document["max_depth"] = 10
        document["parameters"]["buffer_size"] = 2**31 - 1
        document["parameters"]["batch_size"] = 65_536

    corrupted = forged(CONTENTS["replay"], widen)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"engine\.parameters has|columns"):
            file.loads(corrupted)
        assert tracemalloc.get_traced_memory()[1] < 60 * len(corrupted) + 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("powers", [7.0, 0.5], "'powers' of the state must lie between 0 and 1, got 7"),
        ("powers", [0.5, -1e300], "'powers' of the state must lie between 0 and 1"),
        ("second_moment", -1.0, "'second_moment' of the state must lie between 0"),
        ("first_moment", 3.4e38, "engine.first_moment contradicts engine.second_moment"),
        ("first_moment", np.nan, "'first_moment' of the state must"),
        ("parameters", 3.4e38, r"engine.parameters must lie within 1e\+30"),
        ("rewards_seen", [0.0, 0.0, -np.inf, 1.0, 0.0, 1.0], "engine.rewards_seen must lie within"),
        ("rewards_seen", [0.0, 0.0, 0.0, 1e200, 0.0, 1.0], "engine.rewards_seen must lie within"),
        ("propensities", 0.0, "a propensity is not in"),
        ("rewards_seen", [0.0, 0.0, 0.0, 1.0, 0.0, -1.0], "scale of rewards in the state"),
        ("counters", 0, "next_look|scale of rewards|more rounds"),
    ],
)
def test_a_forged_state_is_refused_by_name(name, value, words):
    check_forged_array(f"engine.{name}", value, words)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("network", np.nan, "'network' of the state must lie between"),
        ("network", 1e7, "'network' of the state must lie between"),
        ("network_first_moment", 1e30, "network_first_moment contradicts engine.network_second"),
        ("network_second_moment", -1.0, "'network_second_moment' of the state must lie between"),
        ("network_powers", 2.0, "'network_powers' of the state must lie between 0 and 1"),
        ("compared", np.inf, "compared"),
        ("compared", -1.0, "a weight of compared rounds in the state must lie between 0"),
        ("expected", np.inf, "expected"),
        ("expected", 1e300, "an expectation in the state must lie between"),
        ("network_counters", 2**40, "has learned from more rounds than there were"),
        ("weights", -1.0, "'weights' of the state must lie between 0"),
    ],
)
def test_a_forged_state_of_a_network_is_refused_by_name(name, value, words):
    check_forged_array(f"engine.{name}", value, words, CONTENTS["network"])


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (1, 10_000, "the state's next hand-over is too far away"),
        (3, 10_000, "the state explores from a round that has not been"),
    ],
)
def test_forged_counters_of_a_network_are_refused(place, value, words):
    def change(entry):
        entry[place] = value

    content = with_entry(CONTENTS["network"], "engine.network_counters", change)
    with pytest.raises(ModelFileError, match=words):
        file.loads(content)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("lives", -1, "lives must hold the next token of each life"),
        ("lives", 2**53, "lives must hold the next token of each life"),
        ("open.token", 7, "tokens must be different numbers"),
        ("open.token", -1, "tokens must be different numbers"),
    ],
)
def test_forged_tokens_are_refused(name, value, words):
    check_forged_array(name, value, words)


def test_tokens_that_were_not_issued_are_refused():
    bandit = small_bandit()
    next_token = bandit.decide(NUMBERS[0]).token + 1
    check_forged_array("open.token", next_token, "was not issued in its life", all_of(bandit))


def test_layers_whose_product_is_too_large_are_refused():
    check_forged_array("engine.layers", 1e20, "engine.parameters must", CONTENTS["two points"])


def check_forged_array(name, value, words, content=CONTENTS["replay"]):
    def change(entry):
        entry[...] = value

    content = with_entry(content, name, change)
    with pytest.raises(ModelFileError, match=words):
        file.loads(content)


def with_entry(content, name, change):
    """A file in which an array was changed, with a matching digest."""
    header, data = spoil.split_file(content)
    first, last = header[name]["data_offsets"]
    dtype = {"F64": "f8", "F32": "f4", "U64": "u8", "I32": "i4", "I64": "i8"}[header[name]["dtype"]]
    entry = np.frombuffer(data[first:last], dtype).copy()
    change(entry)
    return spoil.signed(spoil.join_file(header, data[:first] + entry.tobytes() + data[last:]))


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    bandit = small_bandit()
    bandit.save(tmp_path / "b")
    before = (tmp_path / "b").read_bytes()
    some_rounds(bandit, NUMBERS[:5])
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        bandit.save(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    with pytest.raises(IsADirectoryError, match="bandit.hardwood"):
        bandit.save(tmp_path)


def test_loading_needs_neither_scikit_learn_nor_pandas(tmp_path):
    bandit = mixed_bandit()
    some_rounds(bandit, mixed_rows(5))
    bandit.save(tmp_path / "b")
    program = (
        f"from hardwood.bandit import load; import sys; b = load({str(tmp_path / 'b')!r}); "
        "d = b.decide({'age': 3.0, 'town': 'Ulm', 'paid': True}); b.learn(d.token, 1.0); "
        "heavy = {'sklearn', 'pandas', 'torch', 'matplotlib', 'polars'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_labels_and_contexts_survive(tmp_path):
    X = np.array(NUMBERS)
    bandit = small_bandit(n_actions=["a", 2, 3.5])
    named = np.array(["a", 2, 3.5], object)[labels(X)]
    bandit.replay(X, named)
    bandit.save(tmp_path / "b")
    again = load(tmp_path / "b")
    assert again.actions_ == ("a", 2, 3.5)
    assert [type(action) for action in again.actions_] == [str, int, float]
    assert again.predict(X).tolist() == bandit.predict(X).tolist()
    assert again.feature_names_ == ("x0", "x1", "x2")
