"""Trees that learn from what their own decisions earn: policies, their evaluation, simulators."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hardwood.bandit.evaluation import Estimate, evaluate
    from hardwood.bandit.reward_model import reward_estimates

# Names are imported when first used: a policy that serves needs neither scikit-learn nor the
# simulators.
_HOME = {
    "Estimate": "hardwood.bandit.evaluation",
    "evaluate": "hardwood.bandit.evaluation",
    "reward_estimates": "hardwood.bandit.reward_model",
}

__all__ = [
    "Estimate",
    "evaluate",
    "reward_estimates",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hardwood.bandit' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
