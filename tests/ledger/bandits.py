"""Bandits: their decisions, trees and files; environments; off-policy evaluation."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import hardwood
from hardwood import bandit
from ledger.cases import Case, each_of

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "paper": {"method": "paper"},
    "recent": {"buffer": "recent", "buffer_size": 60},
    "many updates": {"updates_per_round": 2.5, "batch_size": 8, "input_noise": 0.0},
    "explores": {"exploration": 3.0, "max_open": 10},
}
_REGRESSIONS: Mapping[str, Mapping[str, Any]] = {
    "two points": {},
    "one point": {"method": "one_point", "perturbation": 0.25},
    "two points of the paper": {"method": "paper_two_point", "start": 1.0, "scale": 2.0},
    "one point of the paper": {"method": "paper_one_point", "gradient_accumulation": 2},
}
_METHODS = ("dm", "ips", "snips", "dr", "switch")


def cases() -> Iterator[Case]:
    """Return cases of bandits with several settings, environments, comparisons, evaluations."""
    for name, given in _SETTINGS.items():
        for seed in (0, 1):
            run = functools.partial(_bandit, given, seed)
            yield Case(f"bandit/actions/{name}/seed{seed}", run, is_quick=seed == 0)
    yield Case("bandit/actions/started", _started, is_quick=True)
    for name, given in _REGRESSIONS.items():
        for seed in (0, 1):
            run = functools.partial(_regressor, given, seed)
            yield Case(f"bandit/numbers/{name}/seed{seed}", run, is_quick=seed == 0)
    yield Case("bandit/simulated", _simulated, is_quick=True)
    yield Case("bandit/simulated losses", _simulated_losses)
    yield Case("bandit/compared", _compared)
    yield Case("bandit/logged", _logged, is_quick=True)
    for method in _METHODS:
        yield Case(f"bandit/evaluated/{method}", functools.partial(_evaluated, method))


def _rounds(n: int = 200, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 30.0, 0.01] + [0.0, 1000.0, -5.0]
    return X, np.digitize(X[:, 0], [-0.4, 0.4])


def _parts(learner: Any, X: np.ndarray) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder) / "learner")
        content = Path(folder, "learner").read_bytes()
    counts = {name: getattr(learner, name) for name in ("n_rounds_", "n_open_", "n_expired_")}
    return {
        "file": content,
        "tree": learner.tree_,
        "counts": counts,
        "predictions": learner.predict(X),
    }


def _bandit(given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    X, y = _rounds()
    learner = bandit.DGTBandit(3, max_depth=3, random_state=seed, **given)
    history = learner.replay(X[:150], y[:150])
    decisions = []
    for row, best in zip(X[150:], y[150:], strict=True):
        decision = learner.decide(row, mask=[True, True, bool(best)])
        learner.learn(decision.token, reward=float(decision.action == best))
        decisions.append((decision.action, decision.propensity))
    return _parts(learner, X) | {
        "decisions": decisions,
        "propensity": history.propensity,
        "values": learner.action_values(X[:20]),
        "probabilities": learner.action_probabilities(X[:20]),
    }


def _started() -> dict[str, Any]:
    X, y = _rounds()
    names = np.array(["left", "middle", "right"])
    start = hardwood.DGTClassifier(max_depth=2, max_epochs=5, random_state=0).fit(X, names[y])
    learner = bandit.DGTBandit(names.tolist(), max_depth=3, init=start, random_state=0)
    learner.replay(X, 10.0 + 100.0 * np.eye(3)[y])
    return _parts(learner, X)


def _regressor(given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    X, _ = _rounds()
    learner = bandit.DGTBanditRegressor(max_depth=3, random_state=seed, **given)
    y = np.where(X[:, 0] > 0, 2.0, -1.0)
    history = learner.replay(X[:150], y[:150])
    for row, aim in zip(X[150:], y[150:], strict=True):
        decision = learner.decide(row)
        tried = np.atleast_1d(decision.action)
        losses = (tried - aim) ** 2
        if len(losses) == 2:
            learner.learn(decision.token, losses=losses)
        else:
            learner.learn(decision.token, loss=losses[0])
    return _parts(learner, X) | {"losses": history.loss}


def _simulated() -> dict[str, Any]:
    X, y = _rounds(240)
    environment = bandit.classification_bandit(X, y, random_state=1, n_rounds=200)
    plain = bandit.simulate(_small(environment), environment)
    late = environment.delayed(7, lost=0.1, random_state=0).drifting(100, random_state=0)
    history = bandit.simulate(_small(late), late.masked(share=0.5, random_state=0))
    return {"plain": plain, "late": history, "rewards": environment.all_rewards()}


def _small(environment: Any, seed: int = 0) -> Any:
    return bandit.DGTBandit(
        environment.actions, max_depth=2, features=environment.features, random_state=seed
    )


def _simulated_losses() -> dict[str, Any]:
    X, _ = _rounds(150)
    environment = bandit.regression_bandit(X, X[:, 0] ** 2, loss="absolute", random_state=2)
    learner = bandit.DGTBanditRegressor(max_depth=2, features=environment.features, random_state=0)
    return {"history": bandit.simulate(learner, environment), "learner": learner.tree_}


def _compared() -> dict[str, Any]:
    X, y = _rounds(160)

    def make_environment(seed: int) -> Any:
        return bandit.classification_bandit(X, y, random_state=seed)

    report = bandit.compare(make_environment, {"tree": _small}, n_runs=2, max_depth=2)
    return {"values": report.to_dict(), "text": str(report), "page": report.to_html()}


def _log() -> tuple[np.ndarray, ...]:
    X, y = _rounds(300)
    rng = np.random.default_rng(0)
    action = rng.integers(3, size=len(X))
    return X, action, (action == y) + rng.normal(scale=0.1, size=len(X)), np.full(len(X), 1 / 3)


def _logged() -> dict[str, Any]:
    X, *log = _log()
    learner = bandit.DGTBandit(3, max_depth=2, random_state=0).learn_logged(X, *log)
    return _parts(learner, X) | {
        "estimates": bandit.reward_estimates(X, log[0], log[1], random_state=0)
    }


def _evaluated(method: str) -> dict[str, Any]:
    X, *log = _log()
    policy = np.eye(3)[np.digitize(X[:, 0], [-0.2, 0.2])] * 0.9 + 0.1 / 3
    intervals = ("normal", "bootstrap", "bernstein")
    given: dict[str, Any] = {"method": method, "random_state": 0}
    given["max_weight"] = {"switch": 2.0, "ips": 3.0}.get(method)
    return each_of(
        {
            interval: functools.partial(
                bandit.evaluate,
                policy,
                X,
                *log,
                interval=interval,
                **given,
                reward_range=(-1.0, 2.0) if interval == "bernstein" else None,
            )  # fmt: skip
            for interval in intervals
        }
    )
