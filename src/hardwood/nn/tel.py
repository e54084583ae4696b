r"""TEL as a torch layer: an ensemble of soft oblique trees for any place in a network.

Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
Conditional Computation. ICML 2020. [TEL20]

A split with score t = w.x + b sends the share S(t) of a sample right and 1 - S(t) left. The smooth
step S is exactly 0 and 1 outside a band of width gamma. A sample therefore reaches few leaves, and
the cost of both passes depends only on the nodes that it reaches.

What differs from the paper:

1. S is the share that goes *right*, as everywhere in this package; the paper's goes left.
2. Splits have a bias. The batch normalization before them then needs neither scale nor shift.
   Without biases it has both, as in the paper.
3. The start; see `TreeEnsembleLayer.reset_parameters`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hardwood.nn import convert, tel_op
from hardwood.nn.checks import checked_input, own_precision, placement
from hardwood.nn.tel_op import ACTIVATIONS, Activation
from hardwood.parameters import choice, integer, real

MAX_DEPTH = 20  # a million leaves


class TreeEnsembleLayer(nn.Module):
    r"""A layer that returns the sum of the expected leaf values of soft oblique trees.

    At a split with score :math:`t = w x + b`, the share :math:`S(t)` of a sample goes right and the
    rest left. With :math:`P_{tl}(x)` the share that reaches leaf l of tree t, the layer returns

    .. math:: f(x) = \sum_{t=1}^{T} \sum_{l=1}^{L} P_{tl}(x) \, O_{tl}
        \qquad \text{[TEL20, Eq. (1)-(3)]}

    These are scores: add any loss (`torch.nn.functional.cross_entropy` for classes), or further
    layers. Gradients with respect to all parameters and the input are exact.

    Parameters
    ----------
    in_features
        Size d of the last dimension of the input.
    out_features
        Numbers k per leaf, hence the last dimension of the output.
    n_estimators
        Number of trees T.
    max_depth
        Levels of splits h, 1 to 20: a tree has 2^h - 1 splits and 2^h leaves.
    gamma
        Width of the band around a split in which a sample goes both ways, in units of the splits'
        scores. With a smaller value, a sample reaches fewer leaves and the layer is faster. Samples
        outside the band of a split give it no gradient.
    activation
        ``"smooth_step"`` of degree 3 (Eq. 4), ``"smooth_step_5"`` of degree 5, whose second
        derivative is continuous too, or ``"logistic"``, :math:`1 / (1 + e^{-t / \gamma})`, with
        which every sample reaches every leaf (for comparison).
    batch_norm
        Whether a `torch.nn.BatchNorm1d` before the splits keeps their scores at a suitable scale
        for gamma. It normalizes over all leading dimensions.
    bias
        Whether splits have a bias. Without a bias, the shift of the batch normalization moves them
        off the origin.
    generator
        Generator of the random start; the default is torch's own.
    device, dtype
        Device and dtype of the parameters, float32 or float64.

    Attributes
    ----------
    weight
        (T, 2^h - 1, in_features), the splits of each tree in heap order: the children of i are
        2i + 1 (left) and 2i + 2 (right).
    bias
        (T, 2^h - 1), or None.
    leaves
        (T, 2^h, out_features), from left to right.
    batch_norm
        The `BatchNorm1d`, with scale and shift only where `bias` is None; or None.

    Notes
    -----
    Both passes are conditional (Sec. 3): their cost depends on the nodes that samples reach. On the
    CPU the engine computes (`engine_available`), on a GPU Triton. Otherwise torch computes all
    nodes, with the same result up to rounding. The backward pass routes samples again, so training
    stores only the input. While it runs, it needs, in addition to the gradients, a copy of the
    weights and at most 8 gradients of the input of up to 64 MiB in total. With hundreds of columns,
    the second routing is expensive if all leaves are reached (`benchmarks/speed/tel_step.py`).

    Under autocast the layer computes in its own precision: half-precision input is converted, and
    the output is float32. A NaN score goes right with certainty. A NaN in the input is not a
    missing value, and may make gradients NaN.

    Examples
    --------
    >>> import torch
    >>> from hardwood.nn import TreeEnsembleLayer
    >>> layer = TreeEnsembleLayer(8, 3, n_estimators=5, max_depth=4)
    >>> layer(torch.randn(6, 8)).shape
    torch.Size([6, 3])
    """

    batch_norm: nn.BatchNorm1d | None
    bias: Tensor | None
    leaves: Tensor
    weight: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        n_estimators: int = 10,
        max_depth: int = 5,
        gamma: float = 1.0,
        *,
        activation: Activation = "smooth_step",
        batch_norm: bool = True,
        bias: bool = True,
        generator: torch.Generator | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = integer("in_features", in_features, 1)
        self.out_features = integer("out_features", out_features, 1)
        self.n_estimators = integer("n_estimators", n_estimators, 1)
        self.max_depth = integer("max_depth", max_depth, 1, MAX_DEPTH)
        # The slopes of a split are steep where gamma is small: float32 must hold both.
        self.gamma = real("gamma", gamma, 1e-30, 1e30, open_high=False)
        self.activation = choice("activation", activation, ACTIVATIONS)
        place = placement(self, device, dtype)
        T, m, L = self.n_estimators, self.n_splits, self.n_leaves
        # departs: (2)
        normalize = nn.BatchNorm1d(self.in_features, affine=not bias, **place)
        self.batch_norm = normalize if batch_norm else None
        self.weight = nn.Parameter(torch.empty((T, m, self.in_features), **place))
        offsets = nn.Parameter(torch.empty((T, m), **place)) if bias else None
        self.register_parameter("bias", offsets)
        self.leaves = nn.Parameter(torch.empty((T, L, self.out_features), **place))
        self.reset_parameters(generator)

    @property
    def n_splits(self) -> int:
        """Number of splits of a tree, 2^h - 1."""
        return 2**self.max_depth - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of a tree, 2^h."""
        return 2**self.max_depth

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw a new random start.

        Weights are uniform in :math:`\pm \gamma / (2 \sqrt{d})` and biases zero, so that scores of
        normalized input have standard deviation 0.3 gamma. For any gamma and d, nearly every sample
        goes both ways at nearly every split, and all leaves learn from the first step. (With the
        authors' :math:`\pm 0.01`, splits with a small gamma are hard from the start.) Directions
        are random, so trees differ. Leaves are uniform in :math:`\pm 0.01`, as in the authors'
        code, so the output starts near zero.
        """
        bound = 0.5 * self.gamma * self.in_features**-0.5
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)  # departs: (3)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        nn.init.uniform_(self.leaves, -0.01, 0.01, generator=generator)
        if self.batch_norm is not None:
            self.batch_norm.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of the expected leaf values, (..., out_features).

        Parameters
        ----------
        x
            (..., in_features), of the parameters' dtype.
        """
        x = checked_input(self, x, self.leaves.dtype)
        with own_precision(x):
            rows = x.reshape(-1, self.in_features)  # (n, d)
            if self.batch_norm is not None and rows.shape[0] > 0:
                rows = self.batch_norm(rows)
            answer = tel_op.answer(
                rows, self.weight, self._offsets(), self.leaves, self.gamma, self.activation
            )
        return answer.reshape(*x.shape[:-1], self.out_features)

    @torch.no_grad()
    def reachable_leaves(self, x: Tensor) -> Tensor:
        """Count the leaves of each tree that a positive share of a row reaches.

        Parameters
        ----------
        x
            (..., in_features). It is normalized as in the layer's mode, training or evaluation, but
            the running statistics stay as they are.

        Returns
        -------
        counts
            (..., n_estimators) int64, 1 to 2^h each; 2^h for the logistic function.
        """
        x = checked_input(self, x, self.leaves.dtype)
        with own_precision(x):
            rows = self._normalized(x.reshape(-1, self.in_features))
            counts = tel_op.reachable_leaves(
                rows, self.weight, self._offsets(), self.gamma, self.activation
            )
        return counts.long().reshape(*x.shape[:-1], self.n_estimators)

    def _normalized(self, rows: Tensor) -> Tensor:
        """Normalize without updating the running statistics."""
        norm = self.batch_norm
        if norm is None or rows.shape[0] == 0:
            return rows
        by_batch = self.training or norm.running_mean is None
        known = (None, None) if by_batch else (norm.running_mean, norm.running_var)
        return nn.functional.batch_norm(
            rows, *known, norm.weight, norm.bias, training=by_batch, eps=norm.eps
        )

    def _offsets(self) -> Tensor:
        if self.bias is None:
            return self.weight.new_zeros((self.n_estimators, self.n_splits))
        return self.bias

    to_ensemble = convert.to_ensemble
    from_ensemble = classmethod(convert.from_ensemble)

    def extra_repr(self) -> str:
        """Return the arguments in ``repr(layer)``."""
        parts = [
            f"{self.in_features}, {self.out_features}, n_estimators={self.n_estimators}",
            f"max_depth={self.max_depth}, gamma={self.gamma:g}",
        ]
        if self.activation != "smooth_step":
            parts.append(f"activation={self.activation!r}")
        if self.batch_norm is None:
            parts.append("batch_norm=False")
        if self.bias is None:
            parts.append("bias=False")
        return ", ".join(parts)
