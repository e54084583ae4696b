"""The rules of a policy, evaluated by a program that knows nothing but their JSON."""

from __future__ import annotations

import json
import operator

import numpy as np
import pandas as pd
import pytest
from rounds import contexts, labels, small_bandit

COMPARE = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


def term_of(term, row):
    value = row[term["feature"]]
    if "levels" in term:
        known = value in term["levels"]
        return term["weights"][term["levels"].index(value)] if known else term["missing"]
    return term["missing"] if value is None else term["weight"] * (value - term["center"])


def holds(condition, row, sums):
    if "sum" in condition:
        return COMPARE[condition["is"]](sums[condition["sum"]], 0)
    value = row[condition["feature"]]
    if value is None:
        return condition["missing"]
    if "in" in condition:
        return value in condition["in"]
    if "is" in condition:
        return COMPARE[condition["is"]](value, condition["value"])
    return not condition["missing"]


def rules_for(document, row):
    sums = [
        each["constant"] + sum(term_of(term, row) for term in each["terms"])
        for each in document["sums"]
    ]
    return [
        rule
        for rule in document["rules"]
        if all(holds(condition, row, sums) for condition in rule["if"])
    ]


def plain_rows(table):
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def check_rules(bandit, table):
    document = json.loads(bandit.to_rules())
    leaves, shares = bandit.apply(table), bandit.action_probabilities(table)
    values = bandit.action_values(table)
    for i, row in enumerate(plain_rows(table)):
        (rule,) = rules_for(document, row)
        assert rule["leaf"] == leaves[i]
        assert rule["probability"] == shares[i].tolist()
        assert rule["expected_reward"] == values[i].tolist()
    return document


@pytest.mark.parametrize("method", ["replay", "paper"])
def test_rules_decide_as_the_policy_does(rng, method):
    X = contexts(rng, 500)
    bandit = small_bandit(method=method, n_actions=["a", "b", "c"], features=["x", "y", "z"])
    bandit.replay(X, np.array(["a", "b", "c"])[labels(X)])
    document = check_rules(bandit, pd.DataFrame(contexts(rng, 300), columns=["x", "y", "z"]))
    assert document["actions"] == ["a", "b", "c"]
    assert document["version"] == bandit.decide(X[0]).version == 500
    assert len({rule["leaf"] for rule in document["rules"]}) == len(document["rules"]) > 2


@pytest.mark.parametrize("columns", [["n"], ["town"], ["n", "town", "paid"]])
def test_rules_of_categories_and_missing_values(rng, columns):
    n = 600
    table = pd.DataFrame(
        {
            "n": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "town": pd.Categorical(rng.choice(["Ulm", "Bonn", "Kiel"], n)).set_categories(
                ["Ulm", "Bonn", "Kiel"]
            ),
            "paid": rng.random(n) < 0.5,
        }
    )
    table.loc[rng.random(n) < 0.2, "town"] = np.nan
    best = (table["n"].fillna(1) > 0).astype(int) + (table["town"] == "Ulm").astype(int)
    bandit = small_bandit(features=table[columns])
    bandit.replay(table[columns], best.to_numpy())
    document = check_rules(bandit, table[columns])
    assert len(document["rules"]) > 1


def test_observed_rewards_are_those_of_the_stored_rounds(rng):
    X = contexts(rng, 400)
    bandit = small_bandit(exploration=50.0)
    history = bandit.replay(X, labels(X) + 0.0)
    document = json.loads(bandit.to_rules(confidence=0.9))
    leaves = bandit.apply(X)
    assert document["n_stored"] == document["n_decided"] == 400
    for rule in document["rules"]:
        for action, seen in enumerate(rule["observed"]):
            rewards = history.reward[(leaves == rule["leaf"]) & (history.action == action)]
            assert seen["n"] == len(rewards)
            if len(rewards) < 2:
                assert seen["low"] is seen["high"] is None
                continue
            reach = 1.6448536 * rewards.std(ddof=1) / np.sqrt(len(rewards))
            found = [seen["low"], seen["mean"], seen["high"]]
            mean = rewards.mean()
            assert found == pytest.approx([mean - reach, mean, mean + reach])


def test_the_papers_method_has_no_stored_rounds(rng):
    bandit = small_bandit(method="paper")
    X = contexts(rng, 40)
    bandit.replay(X, labels(X))
    observed = [rule["observed"] for rule in json.loads(bandit.to_rules())["rules"]]
    assert all(seen["n"] == 0 and seen["mean"] is None for of in observed for seen in of)


def test_rules_are_written_whole(rng, tmp_path):
    bandit = small_bandit()
    X = contexts(rng, 60)
    bandit.replay(X, labels(X))
    text = bandit.to_rules(tmp_path / "policy.json")
    assert (tmp_path / "policy.json").read_text(encoding="utf-8") == text
    with pytest.raises(IsADirectoryError, match=r"policy\.json"):
        bandit.to_rules(tmp_path)
    with pytest.raises(ValueError, match="confidence must be a number"):
        bandit.to_rules(confidence=1.0)
