r"""DGT as a torch layer: a hard oblique tree that learns together with the network below it.

Karthikeyan, Jain, Natarajan, Jain. Learning Accurate Decision Trees with Bandit Feedback via
Quantized Gradient Descent. TMLR 2022. [DGT22]

The prediction is that of the hard tree; the gradient is Algorithm 2's: the outer step of Eq. (4)
becomes a softmax over the path sums, the inner sign the straight-through estimator. It reaches all
splits, the leaves, and the input, so that layers below the tree learn as well.

What differs from the paper:

1. The bias is a parameter of its own: overparameterization (Sec. 3.2) applies only to the weights.
2. Depths that Table 12 leaves out get hidden sizes halfway between their neighbors, or those of the
   nearest depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hardwood.nn import convert
from hardwood.nn.checks import own_precision, placement
from hardwood.nn.dgt_op import descend
from hardwood.nn.splits import PerfectSplits
from hardwood.parameters import integer


class DenseGradientTree(PerfectSplits):
    r"""A hard oblique decision tree as a layer, with the dense gradient of DGT.

    A row :math:`x` goes right at split i where :math:`w_i x + b_i \ge 0`, and the layer returns the
    values of the leaf it reaches: :math:`f(x; W, \theta)` of [DGT22], Eq. (2). They are scores: put
    any loss on top (`torch.nn.functional.cross_entropy` for classes).

    Parameters
    ----------
    in_features
        Size d of the last dimension of the input.
    out_features
        Numbers k per leaf, hence the last dimension of the output.
    max_depth
        Levels of splits h, 1 to 20: the tree has 2^h - 1 splits and 2^h leaves.
    layers
        Overparameterization (Sec. 3.2): the number of matrices whose product gives the weights,
        with hidden sizes from Table 12; or the hidden sizes, from the input up, so that ``[240]``
        means two matrices. The function is still that of one tree; only learning changes.
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
    leaves
        (2^h, out_features), from left to right.

    Notes
    -----
    Splits are in heap order: the children of i are 2i + 1 (left) and 2i + 2 (right). Splits start
    uniform in :math:`\pm 1/\sqrt{\text{inputs}}` of each factor, biases at zero, leaves uniform in
    :math:`\pm 1/\sqrt{2^h}`, as in the authors' code. Gradients pass if :math:`|a| \le 1`, so
    scores should be about that size: normalize the input, for example by `torch.nn.BatchNorm1d`.

    The cost is O(2^h d) per sample in both passes, without a matrix of paths. On the CPU in float32
    the engine computes (`engine_available`); elsewhere torch does.

    Under autocast the tree computes in its own precision; half-precision input is converted. A NaN
    in the input goes left, because every comparison is false; it is not a missing value.

    Examples
    --------
    >>> import torch
    >>> from hardwood.nn import DenseGradientTree
    >>> tree = DenseGradientTree(8, 3, max_depth=4)
    >>> tree(torch.zeros(5, 8)).shape
    torch.Size([5, 3])
    """

    leaves: Tensor

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
        super().__init__(in_features, max_depth, layers, bias, device, dtype)  # departs: (1), (2)
        self.out_features = integer("out_features", out_features, 1)
        place = placement(self, device, dtype)
        self.leaves = nn.Parameter(torch.empty((self.n_leaves, self.out_features), **place))
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw a new random start."""
        super().reset_parameters(generator)
        bound = self.n_leaves**-0.5
        nn.init.uniform_(self.leaves, -bound, bound, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """Return the values of the leaf that each row reaches, (..., out_features).

        Parameters
        ----------
        x
            (..., in_features), of the parameters' dtype.
        """
        prediction, _ = self._descend(x)
        return prediction

    @torch.no_grad()
    def route(self, x: Tensor) -> Tensor:
        """Return the number of the leaf that each row (..., in_features) reaches, int64."""
        _, leaf = self._descend(x)
        return leaf.long()

    def _descend(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = self._rows(x)  # (n, d)
        with own_precision(x):
            weight = self.weight
            prediction, leaf = descend(rows, weight, self._offsets(weight), self.leaves)
        shape = x.shape[:-1]
        return prediction.reshape(*shape, self.out_features), leaf.reshape(shape)

    to_tree = convert.to_tree
    from_tree = classmethod(convert.from_tree)

    def extra_repr(self) -> str:
        """Return the arguments in ``repr(layer)``."""
        return f"{self.in_features}, {self.out_features}, {self._splits_words()}"
