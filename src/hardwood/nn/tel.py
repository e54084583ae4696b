r"""TEL as a torch layer: an ensemble of soft oblique trees for any place in a network.

Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
Conditional Computation. ICML 2020. [TEL20]

A split sends a sample both ways, by the shares 1 - S(t) and S(t) of its score t = w.x + b. The
smooth step S is exactly 0 and 1 outside of a band of width gamma, so that a sample reaches few
leaves, and both passes cost as much as the nodes that it reaches.

What differs from the paper:

1. S is the share that goes *right*, as everywhere in this package; the paper's goes left.
2. Splits have a bias. The batch normalization before them then needs neither scale nor shift, which
   weights and biases can express. Without biases it has both, as in the paper.
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
    r"""Soft oblique trees as a layer, whose expected leaf values add up.

    The share :math:`S(t)` of a sample goes right at a split of score :math:`t = w x + b`, the rest
    left. With :math:`P_{tl}(x)` the share that reaches leaf l of tree t, the layer returns

    .. math:: f(x) = \sum_{t=1}^{T} \sum_{l=1}^{L} P_{tl}(x) \, O_{tl}
        \qquad \text{[TEL20, Eq. (1)-(3)]}

    These are scores: put any loss on top (`torch.nn.functional.cross_entropy` for classes), or
    further layers. Gradients by all parameters and by the input are exact.

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
        scores. The smaller, the fewer leaves a sample reaches and the faster the layer; what lies
        outside of the band of a split does not move it.
    activation
        ``"smooth_step"`` of degree 3 (Eq. 4), ``"smooth_step_5"`` of degree 5, whose second
        derivative is continuous too, or ``"logistic"``, :math:`1 / (1 + e^{-t / \gamma})`, with
        which every sample reaches every leaf: for comparison.
    batch_norm
        Whether a `torch.nn.BatchNorm1d` stands before the splits, which keeps their scores at the
        scale that gamma is meant for. It normalizes over all leading dimensions.
    bias
        Whether splits have a bias. Without, the shift of the batch normalization is what moves them
        off the origin.
    generator
        Where the random start comes from; by default torch's own generator.
    device, dtype
        Of the parameters. float32 and float64 are supported.

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
    Both passes are conditional (Sec. 3): their cost follows the nodes that samples reach. On the
    CPU the engine computes (`engine_available`), on a GPU Triton; where there is neither, torch
    computes all nodes, which is the same up to rounding. The backward pass walks again instead of
    keeping what it met: training keeps the input alone. While it runs it has, besides gradients, a
    copy of the weights and at most 8 gradients by the input of up to 64 MiB together. Inputs of
    hundreds of columns pay for the second walk where all leaves are reached
    (`benchmarks/speed/tel_step.py`).

    Under autocast the layer computes in its own precision: half-precision input is converted, and
    the output is float32. A score that is not a number counts as sure, to the right: a NaN in the
    input is no missing value, and gradients may become NaN of it.

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
        normalized input deviate by 0.3 gamma: nearly every sample goes both ways at nearly every
        split, whatever gamma and d are, and all leaves learn from the first step. (The authors have
        :math:`\pm 0.01`, with which the splits of a small gamma are hard from the start.)
        Directions are random, hence no two trees are alike. Leaves are uniform in
        :math:`\pm 0.01`, as the authors have them: the output begins near zero.
        """
        bound = 0.5 * self.gamma * self.in_features**-0.5
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)  # departs: (3)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        nn.init.uniform_(self.leaves, -0.01, 0.01, generator=generator)
        if self.batch_norm is not None:
            self.batch_norm.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of what the trees expect, (..., out_features).

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
        """Count the leaves of each tree that some share of a row reaches.

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
        """Normalize without a trace in the running statistics."""
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
        """Say what stands between the brackets of ``repr(layer)``."""
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
