r"""Linear trees: few leaves, each a sparse linear model, shrunk toward the model of its parent.

Quinlan. Learning with Continuous Classes. AI 1992. (M5: linear leaves, smoothed along the path)
Landwehr, Hall, Frank. Logistic Model Trees. Machine Learning 2005. (linear leaves for classes)
Loh. Regression Trees with Unbiased Variable Selection and Interaction Detection. 2002. (GUIDE)

Every node, not only every leaf, has a linear model of its own rows. It minimizes

.. math:: \sum_n w_n L(y_n, \theta + A x_n) + \tfrac12 \lambda \|A - A_{parent}\|^2

where :math:`\lambda` is ``leaf_l2`` at the root, whose parent is zero, and ``parent_l2`` below it.
So a leaf of few rows stays close to a model of more rows, and many columns need not make it
unstable.

**Growth.** The node whose split gains most is split next. The gain is what one Newton step of both
sides' models lowers the loss by (``native/learn/linear_tree/``). It is computed for all thresholds
of all numbers and, for categories, for sets of levels along a few orders of them. With
``growth="linear"`` the models that move are those of the node's most important features. With
``growth="constant"`` they are constants, as in an ordinary tree, so that splits follow the target
itself and not what a linear model leaves of it.

**Terms.** Each node also has sparse models, of 0, 1, 2, ... features. They come from the full one
by backward elimination. The features whose removal raises the loss least, by its parabola at the
optimum, go first; the others are fitted again, shrunk toward the parent's coefficients.

One growth therefore holds a tree of every number of leaves and terms (`Growth.tree`); the search
for the best tree compares all of them on held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.linear_trees.grower import Grower, GrowthSettings
from hardwood.learn.linear_trees.growth import Growth
from hardwood.learn.losses import LEAF_LOSSES
from hardwood.learn.task import Task
from hardwood.parameters import choice_field, integer_field, real_field

GrowthKind = Literal["linear", "constant"]

# Numbers of features that a leaf may have, besides all of them.
TERMS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24)


@dataclass(frozen=True)
class LinearTree(Learner):
    """How a linear tree grows.

    Parameters
    ----------
    max_depth, max_leaves
        At most; None for any depth.
    max_terms
        Features in the model of a leaf, at most; None: all.
    leaf_l2, parent_l2
        Penalty on the coefficients at the root, and on the difference from the parent's below it.
    leaf_prior
        Rows with the mean target that each leaf has besides its own.
    growth
        What a split is to improve: "linear" models or "constant" ones.
    min_samples_leaf
        Rows of each side of a split, at least, counted by their weights.
    """

    takes_start: ClassVar[bool] = False
    losses: ClassVar[frozenset[str]] = LEAF_LOSSES

    max_depth: int | None = integer_field(None, 1, or_none=True)
    max_leaves: int = integer_field(8, 1)
    max_terms: int | None = integer_field(None, 0, or_none=True)
    leaf_l2: float = real_field(10.0, 0)
    parent_l2: float = real_field(30.0, 0)
    leaf_prior: float = real_field(1.0, 0)
    growth: GrowthKind = choice_field("linear", get_args(GrowthKind))
    min_samples_leaf: float = real_field(20, 1)

    def __str__(self) -> str:
        if self.max_terms == 0:
            smoothed = f", {self.leaf_prior:g} prior rows" if self.leaf_prior > 1 else ""
            return f"axis-aligned, constant leaves{smoothed}"
        if self.max_leaves == 1:
            return f"one linear leaf, l2 {self.leaf_l2:g}"
        splits = "residuals" if self.growth == "linear" else "the target"
        return (
            f"linear leaves, splits by {splits}, l2 {self.leaf_l2:g} and {self.parent_l2:g} below"
        )

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        terms = self.max_terms
        growth = self.grow(task, run, (terms,))
        return Learned(growth.tree(self.max_leaves, terms), history=None)

    def grow(self, task: Task, run: Run, terms: Sequence[int | None] = (*TERMS, None)) -> Growth:
        """Grow a tree from the training rows, with models of each of these numbers of terms."""
        run.progress.update(str(self))
        settings = GrowthSettings(
            self.max_depth,
            self.max_leaves,
            self.leaf_l2,
            self.parent_l2,
            self.leaf_prior,
            self.growth == "linear",
            self.min_samples_leaf,
        )
        return Grower(task, settings, run, terms).grow()
