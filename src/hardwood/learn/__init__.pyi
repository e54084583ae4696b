# The public names of this package, and where they are defined: for type checkers and
# `hardwood.lazy_names`.
from hardwood.learn.dgt import Relaxation as Relaxation
from hardwood.learn.losses import Huber as Huber
from hardwood.learn.losses import Quantile as Quantile
from hardwood.learn.training import Epoch as Epoch
from hardwood.learn.training import Training as Training
