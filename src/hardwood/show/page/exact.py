"""The engine's numbers, with which a page sends every row to the same leaf, bit for bit.

The engine scores splits in float32, in sixteen running sums that are folded in a fixed order, with
fused multiply-adds if the processor has them. JavaScript can do the same (see ``predict.js``),
given the engine's own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardwood.model.engine import scaled_splits

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree
    from hardwood.table import Schema

_MODERATE = (
    2.0**40
)  # larger scales, or smaller than its inverse, stay with the rows (`Encoder::unscaled`)


@dataclass(frozen=True)
class ExactSplits:
    """Splits in the engine's numbers; scores are multiplied by two to the power ``exponent``."""

    weights: np.ndarray  # (m, c) float32
    bias: np.ndarray  # (m,) float32
    exponent: np.ndarray  # (m,) int


def exact_splits(tree: ObliqueTree) -> ExactSplits:
    """Return the numbers that the engine uses, with columns in the order of the schema."""
    weights, bias, exponent = scaled_splits(tree)
    with np.errstate(over="ignore", under="ignore"):
        scaled = (weights * weight_factors(tree.schema)).astype(np.float32)
        return ExactSplits(scaled, bias.astype(np.float32), exponent)


def value_factors(schema: Schema) -> np.ndarray:
    """Return the engine's factor for a number minus its center, per column; usually 1."""
    factors: np.ndarray = 1.0 / weight_factors(schema)
    return factors


def weight_factors(schema: Schema) -> np.ndarray:
    """Return the inverse factor, for raw weights, per column."""
    scale = schema.column_scale
    is_moderate = ((scale >= 1 / _MODERATE) & (scale <= _MODERATE)).all()
    return np.ones_like(scale) if is_moderate else scale


def has_fused_products() -> bool:
    """Whether the engine on this machine rounds ``a*b + c`` once rather than twice.

    Tested with the engine: with a = 1 + 2**-12, the product a*a is 1 + 2**-11 + 2**-24, which
    float32 rounds to 1 + 2**-11. So ``1 + 2**-11 - a*a`` is 0 where products are rounded, which
    goes right, and negative where they are not.
    """
    from hardwood.model import ObliqueTree

    a = 1 + 2.0**-12
    probe = ObliqueTree.of([[-a]], bias=[1 + 2.0**-11], values=[0.0, 1.0])
    return int(probe.apply([[a]])[0]) == 0
