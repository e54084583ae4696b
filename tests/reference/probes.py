"""Learners of the engine over one batch of encoded rows, as tests of single steps call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hardwood import _probes

NO_LIMIT = float(np.finfo(np.float32).max)


def augment(
    X: np.ndarray,
    target: np.ndarray,
    children: np.ndarray,
    tree: tuple[np.ndarray, ...],
    inference: str,
    loss: str,
    loss_parameter: float,
    assigned: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Loss-augmented inference of a non-greedy tree (W, b, theta), of splits of any size."""
    probe = _probes.LearnerProbe(
        "non_greedy",
        X,
        target,
        np.ones(len(X), dtype=np.float32),
        n_outputs=tree[2].shape[1],
        loss=loss,
        loss_parameter=loss_parameter,
        options={
            "children": children,
            "nu": [NO_LIMIT],
            "inference": inference,
            "stable": assigned is not None,
            "max_features": 0,
            "feature_of_column": list(range(X.shape[1])),
        },
    )
    probe.set(*tree)
    found: dict[str, np.ndarray] = probe.augment(assigned)
    return found


def policy_gradient(
    X: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    parents: np.ndarray,
    policy: tuple[np.ndarray, ...],
    loss: str,
    loss_parameter: float,
    uniforms: np.ndarray | None,
    values: np.ndarray | None,
    seed: int,
    n_threads: int,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Gradient of the mean loss of a policy tree (W, b, alpha), by given numbers or a seed."""
    probe = _probes.LearnerProbe(
        "reinforced",
        X,
        target,
        weight,
        n_outputs=policy[2].shape[1],
        loss=loss,
        loss_parameter=loss_parameter,
        seed=seed,
        n_threads=n_threads,
        options={"parents": parents, "n_actions": 0, **options},
    )
    probe.set(*policy)
    if uniforms is not None:
        probe.set_uniforms(uniforms)
    if values is not None:
        probe.set_values(values)
    total, weights, bias, scores, _ = probe.gradient()
    return {"loss": total, "weights": weights, "bias": bias, "scores": scores}
