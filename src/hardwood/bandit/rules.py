"""A policy as a list of rules that any program can evaluate: JSON.

A rule is a leaf of the tree that decides: its conditions (`hardwood.export.rules.listed` describes
their form), the probability of each action there, and what was observed there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from hardwood import __version__
from hardwood.bandit.contexts import Contexts
from hardwood.bandit.trees import Parts, numbered_tree
from hardwood.export.rules.listed import rule_list
from hardwood.model.structure import Label


@dataclass(frozen=True, eq=False)
class PolicyLeaves:
    """What is known of the L leaves of a policy for K actions.

    Attributes
    ----------
    parts
        The engine's description of the tree, with its ``version`` and the expected rewards
        ``values`` (L, K).
    n_decided
        Decisions so far, on which exploration depends.
    probabilities
        (L, K), with which the policy takes each action.
    leaf, action, reward
        (n,), leaf, position of the action, and reward of every stored round.
    """

    parts: Parts
    n_decided: int
    probabilities: np.ndarray
    leaf: np.ndarray
    action: np.ndarray
    reward: np.ndarray

    @classmethod
    def of(cls, engine: Any) -> PolicyLeaves:
        """Return the leaves of an engine that does not learn meanwhile."""
        parts, stored = engine.tree(), engine.state()
        return cls(
            parts=parts,
            n_decided=engine.n_decided,
            probabilities=engine.leaf_probabilities(None),
            leaf=engine.leaves(stored["contexts"].reshape(-1, parts["weights"].shape[1])),
            action=stored["actions"],
            reward=stored["rewards"],
        )


def policy_rules(
    leaves: PolicyLeaves, contexts: Contexts, actions: Sequence[Label], confidence: float
) -> str:
    """Return the rules as JSON text; ``confidence`` is that of the intervals of mean rewards."""
    tree = numbered_tree(leaves.parts, contexts)
    sums, rules = rule_list(tree)
    observed, values = _observed(leaves, confidence), leaves.parts["values"]
    numbers = tree.values[:, 0].astype(int).tolist()
    document = {
        "format": 1,
        "kind": "policy_rules",
        "hardwood": __version__,
        "version": leaves.parts["version"],
        "n_decided": leaves.n_decided,
        "n_stored": len(leaves.leaf),
        "confidence": confidence,
        "actions": list(actions),
        "sums": sums,
        "rules": [
            {
                "leaf": number,
                "if": conditions,
                "probability": leaves.probabilities[number].tolist(),
                "expected_reward": values[number].tolist(),
                "observed": observed[number],
            }
            for number, conditions in ((numbers[place], of) for place, of in rules)
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


def _observed(leaves: PolicyLeaves, confidence: float) -> list[list[dict[str, Any]]]:
    """Return count, mean and interval of the stored rewards of every leaf and action."""
    n_leaves, n_actions = leaves.probabilities.shape
    place = leaves.leaf * n_actions + leaves.action
    size = n_leaves * n_actions
    n = np.bincount(place, minlength=size)
    mean = np.bincount(place, leaves.reward, size) / np.maximum(n, 1)
    squares = np.bincount(place, (leaves.reward - mean[place]) ** 2, size)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    entries = []
    for count, average, square in zip(n.tolist(), mean.tolist(), squares.tolist(), strict=True):
        reach = z * math.sqrt(square / (count - 1) / count) if count > 1 else None
        entries.append(
            {
                "n": count,
                "mean": average if count else None,
                "low": None if reach is None else average - reach,
                "high": None if reach is None else average + reach,
            }
        )
    return [entries[first : first + n_actions] for first in range(0, size, n_actions)]
