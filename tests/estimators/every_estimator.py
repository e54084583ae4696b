"""One list of estimators: of every class the defaults, and settings that take other ways."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    DGTForestRegressor,
    DGTRegressor,
    GreedyTreeClassifier,
    GreedyTreeRegressor,
    LatentTreeClassifier,
    LatentTreeClustering,
    LatentTreeRegressor,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
    ReinforcedTreeClassifier,
    ReinforcedTreeRegressor,
    SemanticTreeClassifier,
    SemanticTreeRegressor,
    TAOClassifier,
    TAORegressor,
    TELClassifier,
    TELRegressor,
    TreeClassifier,
    TreeRegressor,
)
from hardwood.learn import Relaxation

_SEARCH: dict[str, Any] = {
    "time_limit": None,
    "max_depth": 2,
    "random_state": 0,
    "teacher": None,
}
_LATENT: dict[str, Any] = {"max_depth": 2, "max_epochs": 10, "learning_rate": 0.05}
_GREEDY: dict[str, Any] = {
    "n_candidates": 8,
    "n_split_restarts": 2,
    "n_jumps": 2,
    "max_sweeps": 3,
    "max_epochs": 4,
}
_THREE_WAYS = (-1, *(inner for inner in range(13) for _ in range(3)))  # of depth 3

NEEDS_TORCH = (LatentTreeClassifier, LatentTreeRegressor, LatentTreeClustering)

EVERY_ESTIMATOR: list[Any] = [
    DGTClassifier(),
    DGTRegressor(),
    DGTForestClassifier(n_estimators=3),
    DGTForestRegressor(n_estimators=3),
    GreedyTreeClassifier(),
    GreedyTreeRegressor(),
    LatentTreeClassifier(**_LATENT, activation="elu"),
    LatentTreeRegressor(**_LATENT, head=(8,), pruning=2.5),
    LatentTreeClustering(max_epochs=20),
    NonGreedyTreeClassifier(),
    NonGreedyTreeRegressor(),
    ReinforcedTreeClassifier(max_depth=3),
    ReinforcedTreeRegressor(max_depth=3),
    SemanticTreeClassifier(),
    SemanticTreeRegressor(),
    TAOClassifier(),
    TAORegressor(),
    TELClassifier(),
    TELRegressor(),
    TreeClassifier(**_SEARCH, max_trials=3),
    TreeRegressor(**_SEARCH, max_trials=3),
]
"""One of every public class."""

_BALANCED: dict[str, Any] = {"class_weight": "balanced"}

OTHER_SETTINGS: list[Any] = [
    DGTClassifier(max_depth=3, n_restarts=2, early_stopping=True, n_jobs=2),
    DGTClassifier(max_depth=3, loss="hinge", **_BALANCED),
    DGTRegressor(max_depth=3, n_restarts=2, early_stopping=True, n_jobs=2),
    DGTClassifier(max_depth=2, leaves="linear", layers=[12]),
    DGTRegressor(max_depth=2, leaves="linear", layers=[12]),
    DGTClassifier(max_depth=3, relaxation=Relaxation(path="product", routing="annealed")),
    DGTForestClassifier(n_estimators=3, combine="vote", early_stopping=True, n_jobs=2),
    DGTForestClassifier(n_estimators=2, max_depth=2, bootstrap=False, **_BALANCED),
    DGTForestRegressor(
        n_estimators=3, leaves="linear", max_depth=2, oob_score=True, random_state=0
    ),
    DGTForestRegressor(n_estimators=2, max_depth=3, loss="absolute_error", sample_fraction=0.5),
    *[GreedyTreeClassifier(splitter=split, **_GREEDY) for split in ("random", "oc1", "co2")],
    *[GreedyTreeRegressor(splitter=split, **_GREEDY) for split in ("random", "oc1", "co2")],
    GreedyTreeClassifier(criterion="gini", max_depth=None, n_jobs=2),
    GreedyTreeClassifier(max_depth=3, min_samples_leaf=5, **_BALANCED),
    LatentTreeClassifier(**_LATENT, skip_connection=False, **_BALANCED),
    LatentTreeClassifier(**_LATENT, head=(4,), early_stopping=False),
    LatentTreeRegressor(**_LATENT, skip_connection=False, activation="elu"),
    LatentTreeRegressor(**_LATENT, loss="huber", early_stopping=False),
    LatentTreeClustering(max_epochs=10, max_depth=2, n_clusters=2, skip_connection=False),
    LatentTreeClustering(
        targets="all",
        split_init="random",
        activation="elu",
        max_epochs=10,
        early_stopping=False,
        n_jobs=2,
    ),
    NonGreedyTreeClassifier(
        solver="sgd", inference="fast", init="axis", nu="auto", max_epochs=5, n_jobs=2
    ),
    NonGreedyTreeClassifier(max_depth=3, loss="squared_error", early_stopping=True, **_BALANCED),
    NonGreedyTreeRegressor(max_features_per_split=2, early_stopping=False, loss="huber"),
    NonGreedyTreeRegressor(max_depth=3, solver="sgd", init="axis", loss="absolute_error"),
    ReinforcedTreeClassifier(max_depth=2, init="axis", **_BALANCED),
    ReinforcedTreeRegressor(max_depth=2, init="axis", loss="absolute_error"),
    ReinforcedTreeClassifier(parents=_THREE_WAYS, gradient="sampled", n_trajectories=3, n_jobs=2),
    ReinforcedTreeRegressor(
        parents=_THREE_WAYS,
        gradient="sampled",
        n_trajectories=4,
        baseline="value",
        early_stopping=True,
        loss="huber",
    ),
    SemanticTreeClassifier(
        max_depth=3, n_restarts=2, early_stopping=True, noise=0.1, l1=1e-4, n_jobs=2
    ),
    SemanticTreeClassifier(max_depth=3, leaves="constant", loss="hinge", **_BALANCED),
    SemanticTreeClassifier(max_depth=3, layers=[12]),
    SemanticTreeClassifier(max_depth=3, init="axis", leaves="linear"),
    SemanticTreeRegressor(max_depth=3, n_mixed=4, init="axis", loss="absolute_error"),
    SemanticTreeRegressor(max_depth=2, leaves="linear", noise=0.1, n_restarts=2),
    TAOClassifier(loss="log_loss", l1=0.1, l2=0.0, init="co2", early_stopping=False, n_jobs=2),
    TAOClassifier(leaves="linear", l1=1.0, max_depth=3),
    TAOClassifier(max_depth=2, **_BALANCED),
    TAORegressor(leaves="linear", l1=1.0, l2=0.0, max_features_per_split=2, loss="huber"),
    TAORegressor(max_depth=3, init="random", leaf_prior=0.0, loss="absolute_error"),
    TELClassifier(n_estimators=3, activation="logistic", batch_norm=False, n_restarts=2, n_jobs=2),
    TELClassifier(n_estimators=2, max_depth=3, loss="squared_error", **_BALANCED),
    TELRegressor(n_estimators=2, max_depth=2, loss="huber", batch_norm=False),
    TELRegressor(n_estimators=2, activation="logistic", n_restarts=2, combine_runs="mean"),
    TreeClassifier(**_SEARCH, max_trials=6),
    TreeClassifier(**_SEARCH, max_trials=4, leaves="linear", **_BALANCED),
    TreeClassifier(
        **_SEARCH | {"max_depth": 3}, max_trials=4, leaves="constant", scoring="accuracy"
    ),
    TreeRegressor(**_SEARCH, max_trials=6),
    TreeRegressor(**_SEARCH, max_trials=6, leaves="linear", n_jobs=2),
]
"""What a default does not reach: other leaves, starts, losses, weights, restarts, threads."""


def runnable(estimators: list[Any]) -> list[Any]:
    """Return those whose libraries are installed."""
    has_torch = find_spec("torch") is not None
    return [one for one in estimators if has_torch or not isinstance(one, NEEDS_TORCH)]
