r"""Semantic logits as a torch layer: a hard oblique tree whose scores are trained exactly.

Panda, Genest, Easwaran, Suganthan. Vanilla Gradient Descent for Oblique Decision Trees. ECAI 2024.
[DTSemNet24]

The layer returns a score for each class. The class with the largest score is the one that the hard
tree predicts, so any loss of scores trains the tree itself. `hardwood.learn.semantic` has the
formula, and the numbered list of differences from the paper; this file is its torch version, level
by level, by automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hardwood.nn import convert
from hardwood.nn.checks import own_precision
from hardwood.nn.dgt_op import leaf_of, level, scores
from hardwood.nn.splits import PerfectSplits
from hardwood.parameters import integer


class SemanticTree(PerfectSplits):
    r"""A hard oblique decision tree as a layer that returns scores of classes.

    The score of a leaf is minus the sum of the decisions that a row violates on the way to it,

    .. math:: z_l(x) = -\sum_{i \in \mathrm{path}(l)} \max\big(0, -s_{il} (w_i x + b_i)\big)

    with s = 1 where the path goes right and -1 where it goes left. Leaves are dealt to the classes
    in turn, and the score of a class is the largest of its leaves: 0 for the class of the leaf that
    the row reaches, and at most 0 for all others. Put `torch.nn.functional.cross_entropy` on top.

    Parameters
    ----------
    in_features
        Size d of the last dimension of the input.
    out_features
        Number of classes, at least 2, hence the last dimension of the output.
    max_depth
        Levels of splits h, 1 to 20: the tree has 2^h - 1 splits, and 2^h leaves for the classes.
    layers
        The number of matrices whose product gives the weights, or the hidden sizes, from the input
        up, so that ``[32]`` means two matrices.
    bias
        Whether splits have a bias. Without a bias, all splits pass through the origin.
    generator
        Generator of the random start; the default is torch's own.
    device, dtype
        Device and dtype of the parameters, float32 or float64.

    Attributes
    ----------
    weight_1, weight_2, ...
        The factors, from the input up; `weight` is their product (2^h - 1, in_features).
    bias
        (2^h - 1,), or None.
    classes
        (2^h,) the class of each leaf, from left to right.

    Notes
    -----
    Splits are in heap order: the children of i are 2i + 1 (left) and 2i + 2 (right). Scores are
    sums of the splits' scores, so their size is the sharpness of the softmax: normalize the input,
    for example by `torch.nn.BatchNorm1d`. The cost is O(2^h d) per sample.

    Examples
    --------
    >>> import torch
    >>> from hardwood.nn import SemanticTree
    >>> tree = SemanticTree(8, 3, max_depth=4)
    >>> x = torch.randn(5, 8)
    >>> torch.equal(tree(x).argmax(dim=-1), tree.classes[tree.route(x)])
    True
    """

    classes: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        max_depth: int,
        *,
        layers: int | Sequence[int] = 1,
        bias: bool = True,
        generator: torch.Generator | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, max_depth, layers, bias, device, dtype)
        self.out_features = integer("out_features", out_features, 2)
        if self.n_leaves < self.out_features:
            raise ValueError(
                f"each of the {self.out_features} classes needs a leaf, but max_depth="
                f"{self.max_depth} has {self.n_leaves} leaves. Use a larger max_depth"
            )
        dealt = torch.arange(self.n_leaves, device=device) % self.out_features
        self.register_buffer("classes", dealt)
        self.reset_parameters(generator)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes, (..., out_features), at most 0.

        Parameters
        ----------
        x
            (..., in_features), of the parameters' dtype.
        """
        z = self._leaf_scores(x)  # (L, n)
        best = _best_of_classes(z, self.classes, self.out_features)  # (K, n)
        return best.T.reshape(*x.shape[:-1], self.out_features)

    def leaf_scores(self, x: Tensor) -> Tensor:
        """Return the scores of the leaves, (..., 2^h), for other uses than classes.

        Their softmax over some or all leaves, times values of the leaves, is a regression tree that
        sharpens as the scores grow.
        """
        return self._leaf_scores(x).T.reshape(*x.shape[:-1], self.n_leaves)

    @torch.no_grad()
    def route(self, x: Tensor) -> Tensor:
        """Return the number of the leaf that each row (..., in_features) reaches, int64."""
        return leaf_of(self._scores(x)).reshape(x.shape[:-1])

    def _scores(self, x: Tensor) -> Tensor:
        rows = self._rows(x)  # (n, d)
        with own_precision(x):
            weight = self.weight
            return scores(rows, weight, self._offsets(weight))  # (m, n)

    def _leaf_scores(self, x: Tensor) -> Tensor:
        a = self._scores(x)  # (m, n)
        z = a.new_zeros((1, a.shape[1]))
        goes_right = a >= 0  # a score of 0 goes right, in the gradient as well
        paid_left, paid_right = torch.where(goes_right, a, 0.0), torch.where(goes_right, 0.0, a)
        for depth in range(self.max_depth):
            left, right = z - level(paid_left, depth), z + level(paid_right, depth)
            z = torch.stack([left, right], dim=1).flatten(0, 1)  # (2^(depth + 1), n)
        return z

    to_tree = convert.to_class_tree
    from_tree = classmethod(convert.from_class_tree)

    def extra_repr(self) -> str:
        """Return the arguments in ``repr(layer)``."""
        return f"{self.in_features}, {self.out_features}, {self._splits_words()}"


def _best_of_classes(z: Tensor, classes: Tensor, n_classes: int) -> Tensor:
    """Return the largest of the scores (L, n) of each class's leaves, (K, n).

    Only the last of equal ones has a gradient.
    """
    with torch.no_grad():
        of_class = classes[:, None].expand_as(z)
        best = z.new_full((n_classes, z.shape[1]), -torch.inf)
        best = best.scatter_reduce(0, of_class, z, "amax")
        numbers = torch.arange(len(z), device=z.device)[:, None]
        is_best = z == best[classes]
        last = numbers.new_zeros(best.shape)
        last = last.scatter_reduce(0, of_class, torch.where(is_best, numbers, 0), "amax")
    return z.gather(0, last)
