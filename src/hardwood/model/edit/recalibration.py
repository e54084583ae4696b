r"""Change the probabilities of a tree by a straight line in their logarithms.

.. math:: p'_c \propto \exp(a \log p_c + b_c) \qquad\text{or, for labels,}\qquad
          \mathrm{logit}\, p'_j = a_j\, \mathrm{logit}\, p_j + b_j

The tree stays an ordinary tree: leaf values change, or the coefficients and constants of linear
leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardwood.model.engine import linked
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.structure import TaskKind


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A straight line in the logarithms of probabilities.

    Attributes
    ----------
    slope
        (1,) for classes, or (k,) for labels, above 0: one slope for all classes keeps the order of
        the rows if there are two, and the class that is most probable if the offsets are 0.
    offset
        (k,).
    """

    slope: np.ndarray
    offset: np.ndarray

    @classmethod
    def dividing_by(cls, factors: np.ndarray) -> Recalibration:
        """Return the change that divides the probabilities of classes by factors (k,) > 0."""
        return cls(np.ones(1), -np.log(factors))

    def of_outputs(self, outputs: np.ndarray, task: TaskKind) -> np.ndarray:
        """Return the changed probabilities (n, k) of classes or labels; 0 and 1 stay."""
        with np.errstate(divide="ignore"):
            if task == "classification":
                return linked(np.log(outputs) * self.slope + self.offset, "softmax", 1)
            log_odds = np.log(outputs) - np.log1p(-outputs)
        return linked(log_odds * self.slope + self.offset, "logistic", 1)

    def of_tree(self, tree: ObliqueTree) -> ObliqueTree:
        """Return the tree with changed probabilities."""
        if tree.leaf_weights is None:
            return tree.replace(values=self.of_outputs(tree.values, tree.task))
        return tree.replace(
            values=tree.values * self.slope + self.offset,
            leaf_weights=tree.leaf_weights * self.slope[:, None],
        )
