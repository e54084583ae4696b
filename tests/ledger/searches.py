"""Searches and chains of learners: tune, compare, refine, learn_from_rewards, purity; layers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import hardwood
from hardwood.report import dendrogram_purity, sampled_dendrogram_purity
from ledger import tables
from ledger.cases import Case
from ledger.fits import model_bytes
from ledger.values import same_every_time

_SPACE = {"max_depth": [1, 2, 3], "momentum": [0.0, 0.3], "learning_rate": [0.003, 0.03]}


def cases() -> Iterator[Case]:
    """Return cases of functions that run several learners, and of layers."""
    for sampler in ("tpe", "random", "grid"):
        yield Case(f"tune/{sampler}", functools.partial(_tuned, sampler), sampler == "random")
    yield Case("tune/numbers, folds", _tuned_by_folds)
    yield Case("compare/classes", functools.partial(_compared, "classes", "iris"))
    yield Case("compare/numbers", functools.partial(_compared, "numbers", "gaps"))
    for names in (["dgt", "tao"], ["tao"], ["non_greedy", "reinforced"]):
        run = functools.partial(_refined, names)
        yield Case(f"refine/{', '.join(names)}", run, names == ["dgt", "tao"])
    for per in ("row", "batch"):
        yield Case(f"rewards/{per}", functools.partial(_rewarded, per), is_quick=True)
    yield Case("purity", _purity)
    for name, make in _LAYERS.items():
        yield Case(f"layer/{name}", functools.partial(_layer, make), is_quick=True)


def _quick(**parameters: Any) -> Any:
    return hardwood.DGTClassifier(max_epochs=6, n_restarts=1, **parameters)


def _tuned(sampler: str) -> dict[str, Any]:
    table = tables.classes("iris")
    found = hardwood.tune(
        *(_quick(), table.X, table.y),
        **{"space": _SPACE, "n_trials": 6, "sampler": sampler, "random_state": 0},
    )
    return _tuning(found)


def _tuned_by_folds() -> dict[str, Any]:
    table = tables.numbers("gaps")
    estimator = hardwood.DGTRegressor(max_epochs=6, n_restarts=1)
    found = hardwood.tune(
        *(estimator, table.X, table.y),
        **{"fixed": ["max_depth"], "n_trials": 4, "validation": 3, "random_state": 1},
        **{"scoring": "neg_mean_absolute_error", "pruner": "halving"},
    )
    return _tuning(found)


def _tuning(found: Any) -> dict[str, Any]:
    trials = [(trial.number, trial.state, trial.value, trial.params) for trial in found.trials]
    return {
        "best": found.best_params,
        "value": found.best_value,
        "trials": trials,
        "model": model_bytes(found.best_estimator),
    }


def _compared(task: str, name: str) -> dict[str, Any]:
    table = tables.classes(name) if task == "classes" else tables.numbers(name)
    # The names in this list have no time limit of their own.
    names = ["constant", "linear", "CART", "DGT", "TAO", "random forest"]
    found = hardwood.compare(table.X, table.y, models=names, cv=2, time_limit=None, random_state=0)
    words, _, _ = str(found).partition("Cost and size")  # times, and columns as wide as they are
    return {"values": found.to_dict(), "text": same_every_time(words)}


def _refined(names: list[str]) -> dict[str, Any]:
    table = tables.classes("iris")
    start = hardwood.GreedyTreeClassifier(max_depth=2).fit(table.X, table.y)
    refined = hardwood.refine(start, table.X, table.y, learners=names, random_state=0)
    stages = [
        (stage.name, stage.kept, stage.train_score, stage.validation_score)
        for stage in refined.stages
    ]
    return {"stages": stages, "tree": refined.tree_}


def _rewarded(per: str) -> dict[str, Any]:
    table = tables.classes("iris")

    def reward(rows: np.ndarray, done: np.ndarray) -> Any:
        hits = table.y[rows] == done
        return hits.astype(float) if per == "row" else float(hits.mean())

    options = {
        "reward_per": per,
        "max_depth": 2,
        "max_epochs": 5,
        "n_trajectories": 4,
        "random_state": 0,
    }
    learned = hardwood.learn_from_rewards(table.X, reward, actions=[0, 1, 2], **options)
    return {"model": model_bytes(learned), "told": learned.predict(table.X_other)}


def _purity() -> dict[str, Any]:
    table = tables.classes("iris")
    found = hardwood.LatentTreeClustering(max_depth=3, max_epochs=8, random_state=0).fit(table.X)
    merges, leaves = found.children_, found.apply(table.X)
    return {
        "exact": dendrogram_purity(table.y, merges, leaves),
        "sampled": sampled_dendrogram_purity(table.y, merges, leaves, n_pairs=500, random_state=0),
    }


def _dgt(nn: Any, generator: Any) -> Any:
    return nn.DenseGradientTree(4, 3, 3, layers=2, generator=generator)


_LAYERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "DenseGradientTree": _dgt,
    "LatentTree": lambda nn, generator: nn.LatentTree(4, 3, generator=generator),
    "ReinforcedTree": lambda nn, generator: nn.ReinforcedTree(4, 3, 3, generator=generator),
    "SemanticTree": lambda nn, generator: nn.SemanticTree(4, 3, 3, generator=generator),
    "TreeEnsembleLayer": lambda nn, generator: nn.TreeEnsembleLayer(
        4, 3, 4, 3, generator=generator
    ),
}


def _layer(make: Callable[[Any, Any], Any]) -> dict[str, Any]:
    import torch

    from hardwood import nn

    torch.manual_seed(0)  # for layers that sample paths
    layer = make(nn, torch.Generator().manual_seed(0))
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    out = _flat(layer(x))
    (out**2).sum().backward()
    gradients = {name: weight.grad for name, weight in layer.named_parameters()}
    return {
        "out": out.detach().numpy(),
        "slope": None if x.grad is None else x.grad.numpy(),
        "gradients": {
            name: None if slope is None else slope.numpy() for name, slope in gradients.items()
        },
        "names": list(layer.state_dict()),
        "text": repr(layer),
        "unlearned": _flat(layer.eval()(x.detach())).detach().numpy(),
    }


def _flat(out: Any) -> Any:
    import torch

    return torch.cat([each.flatten() for each in out]) if isinstance(out, tuple) else out
