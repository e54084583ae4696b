"""The splits of a perfect tree as parameters: what the layers of hard oblique trees share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hardwood.nn.checks import checked_input, placement
from hardwood.parameters import hidden_size, integer

MAX_DEPTH = 20  # a million leaves


class PerfectSplits(nn.Module):
    """The 2^h - 1 splits of a perfect tree, in heap order, whose weights may be a product.

    Attributes
    ----------
    weight_1, weight_2, ...
        The factors, from the input up; `weight` is their product (2^h - 1, in_features).
    bias
        (2^h - 1,), or None.
    """

    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        max_depth: int,
        layers: int | Sequence[int],
        bias: bool,
        device: Any,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.in_features = integer("in_features", in_features, 1)
        self.max_depth = integer("max_depth", max_depth, 1, MAX_DEPTH)
        self.hidden_sizes = _hidden_sizes(layers, self.max_depth)
        place = placement(self, device, dtype)
        sizes = (self.in_features, *self.hidden_sizes, self.n_splits)
        for i in range(1, len(sizes)):
            factor = nn.Parameter(torch.empty((sizes[i], sizes[i - 1]), **place))
            self.register_parameter(f"weight_{i}", factor)
        offsets = nn.Parameter(torch.empty(self.n_splits, **place)) if bias else None
        self.register_parameter("bias", offsets)

    @property
    def n_splits(self) -> int:
        """Number of splits, 2^h - 1."""
        return 2**self.max_depth - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves, 2^h."""
        return 2**self.max_depth

    @property
    def factors(self) -> tuple[Tensor, ...]:
        """The matrices whose product is `weight`, from the input up: W(1), ..., W(L)."""
        return tuple(getattr(self, f"weight_{i + 1}") for i in range(len(self.hidden_sizes) + 1))

    @property
    def weight(self) -> Tensor:
        """The splits' weights W = W(L) ... W(1), Eq. (5), shape (2^h - 1, in_features)."""
        factors = self.factors[::-1]
        # multi_dot multiplies in the order that costs least.
        return factors[0] if len(factors) == 1 else torch.linalg.multi_dot(factors)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new splits."""
        for factor in self.factors:
            bound = factor.shape[1] ** -0.5
            nn.init.uniform_(factor, -bound, bound, generator=generator)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def _rows(self, x: Tensor) -> Tensor:
        """Return the input (..., in_features) as rows (n, in_features), checked."""
        x = checked_input(self, x, self.factors[0].dtype)
        return x.reshape(-1, self.in_features)

    def _offsets(self, weight: Tensor) -> Tensor:
        """Return the bias (2^h - 1,), zeros for None."""
        return weight.new_zeros(self.n_splits) if self.bias is None else self.bias

    def _splits_words(self) -> str:
        hidden = f", layers={list(self.hidden_sizes)}" if self.hidden_sizes else ""
        bias = "" if self.bias is not None else ", bias=False"
        return f"max_depth={self.max_depth}{hidden}{bias}"


def _hidden_sizes(layers: int | Sequence[int], max_depth: int) -> tuple[int, ...]:
    """Return the sizes between the factors, from the input up."""
    if isinstance(layers, Iterable):
        return tuple(integer("a hidden size in layers", size, 1) for size in layers)
    n_hidden = integer("layers", layers, 1) - 1
    return (hidden_size(max_depth),) * n_hidden
