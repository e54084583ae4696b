"""Trees that learn from what their own decisions earn: policies, their evaluation, simulators."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hardwood.bandit.comparison import Comparison, compare
    from hardwood.bandit.environments import (
        LossSimulator,
        Simulator,
        classification_bandit,
        regression_bandit,
        reward_bandit,
    )
    from hardwood.bandit.evaluation import Estimate, evaluate
    from hardwood.bandit.file import load
    from hardwood.bandit.history import History, LossHistory
    from hardwood.bandit.policy import DGTBandit
    from hardwood.bandit.regressor import DGTBanditRegressor
    from hardwood.bandit.reward_model import reward_estimates
    from hardwood.bandit.simulation import simulate
    from hardwood.bandit.tokens import Decision

# Names are imported when first used: a policy that serves needs neither scikit-learn nor the
# simulators.
_HOME = {
    "Comparison": "hardwood.bandit.comparison",
    "DGTBandit": "hardwood.bandit.policy",
    "DGTBanditRegressor": "hardwood.bandit.regressor",
    "Decision": "hardwood.bandit.tokens",
    "Estimate": "hardwood.bandit.evaluation",
    "History": "hardwood.bandit.history",
    "LossHistory": "hardwood.bandit.history",
    "LossSimulator": "hardwood.bandit.environments",
    "Simulator": "hardwood.bandit.environments",
    "classification_bandit": "hardwood.bandit.environments",
    "compare": "hardwood.bandit.comparison",
    "evaluate": "hardwood.bandit.evaluation",
    "load": "hardwood.bandit.file",
    "regression_bandit": "hardwood.bandit.environments",
    "reward_bandit": "hardwood.bandit.environments",
    "reward_estimates": "hardwood.bandit.reward_model",
    "simulate": "hardwood.bandit.simulation",
}

__all__ = [
    "Comparison",
    "DGTBandit",
    "DGTBanditRegressor",
    "Decision",
    "Estimate",
    "History",
    "LossHistory",
    "LossSimulator",
    "Simulator",
    "classification_bandit",
    "compare",
    "evaluate",
    "load",
    "regression_bandit",
    "reward_bandit",
    "reward_estimates",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hardwood.bandit' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
