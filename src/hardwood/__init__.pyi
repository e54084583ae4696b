# The public names of this package, and where they are defined: for type checkers and
# `hardwood.lazy_names`.
from hardwood.errors import HardwoodError as HardwoodError
from hardwood.estimators.clustering import LatentTreeClustering as LatentTreeClustering
from hardwood.estimators.dgt import DGTClassifier as DGTClassifier
from hardwood.estimators.dgt import DGTRegressor as DGTRegressor
from hardwood.estimators.forest import DGTForestClassifier as DGTForestClassifier
from hardwood.estimators.forest import DGTForestRegressor as DGTForestRegressor
from hardwood.estimators.greedy import GreedyTreeClassifier as GreedyTreeClassifier
from hardwood.estimators.greedy import GreedyTreeRegressor as GreedyTreeRegressor
from hardwood.estimators.latent import LatentTreeClassifier as LatentTreeClassifier
from hardwood.estimators.latent import LatentTreeRegressor as LatentTreeRegressor
from hardwood.estimators.non_greedy import NonGreedyTreeClassifier as NonGreedyTreeClassifier
from hardwood.estimators.non_greedy import NonGreedyTreeRegressor as NonGreedyTreeRegressor
from hardwood.estimators.reinforced import ReinforcedTreeClassifier as ReinforcedTreeClassifier
from hardwood.estimators.reinforced import ReinforcedTreeRegressor as ReinforcedTreeRegressor
from hardwood.estimators.rewards import learn_from_rewards as learn_from_rewards
from hardwood.estimators.semantic import SemanticTreeClassifier as SemanticTreeClassifier
from hardwood.estimators.semantic import SemanticTreeRegressor as SemanticTreeRegressor
from hardwood.estimators.tao import TAOClassifier as TAOClassifier
from hardwood.estimators.tao import TAORegressor as TAORegressor
from hardwood.estimators.tel import TELClassifier as TELClassifier
from hardwood.estimators.tel import TELRegressor as TELRegressor
from hardwood.estimators.tree import TreeClassifier as TreeClassifier
from hardwood.estimators.tree import TreeRegressor as TreeRegressor
from hardwood.model import ObliqueForest as ObliqueForest
from hardwood.model import ObliqueTree as ObliqueTree
from hardwood.model import from_sklearn as from_sklearn
from hardwood.model import load as load
from hardwood.search.refine import refine as refine
from hardwood.selection.compare import compare as compare
from hardwood.selection.tune import tune as tune

__version__: str
