"""Trees that learn from what their own decisions earn: policies, their evaluation, simulators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardwood.lazy_names import lazy_names

if TYPE_CHECKING:
    from hardwood.bandit.comparison import Comparison as Comparison
    from hardwood.bandit.comparison import compare as compare
    from hardwood.bandit.environments import LossSimulator as LossSimulator
    from hardwood.bandit.environments import Simulator as Simulator
    from hardwood.bandit.environments import classification_bandit as classification_bandit
    from hardwood.bandit.environments import regression_bandit as regression_bandit
    from hardwood.bandit.environments import reward_bandit as reward_bandit
    from hardwood.bandit.evaluation import Estimate as Estimate
    from hardwood.bandit.evaluation import evaluate as evaluate
    from hardwood.bandit.file import load as load
    from hardwood.bandit.history import History as History
    from hardwood.bandit.history import LossHistory as LossHistory
    from hardwood.bandit.policy import DGTBandit as DGTBandit
    from hardwood.bandit.regressor import DGTBanditRegressor as DGTBanditRegressor
    from hardwood.bandit.reward_model import reward_estimates as reward_estimates
    from hardwood.bandit.simulation import simulate as simulate
    from hardwood.bandit.tokens import Decision as Decision

# Names are imported when first used: a policy that serves needs neither scikit-learn nor the
# simulators.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "hardwood.bandit.comparison": "Comparison compare",
        "hardwood.bandit.environments": (
            "LossSimulator Simulator classification_bandit regression_bandit reward_bandit"
        ),
        "hardwood.bandit.evaluation": "Estimate evaluate",
        "hardwood.bandit.file": "load",
        "hardwood.bandit.history": "History LossHistory",
        "hardwood.bandit.policy": "DGTBandit",
        "hardwood.bandit.regressor": "DGTBanditRegressor",
        "hardwood.bandit.reward_model": "reward_estimates",
        "hardwood.bandit.simulation": "simulate",
        "hardwood.bandit.tokens": "Decision",
    },
)
