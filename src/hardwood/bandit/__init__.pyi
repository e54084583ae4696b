# The public names of this package, and where they are defined: for type checkers and
# `hardwood.lazy_names`.
from hardwood.bandit.comparison import Comparison as Comparison
from hardwood.bandit.comparison import compare as compare
from hardwood.bandit.deciders import DeciderReport as DeciderReport
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
