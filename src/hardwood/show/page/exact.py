"""What a page needs to send every row to the leaf that the engine sends it to, bit for bit.

The engine scores splits in float32, in sixteen running sums folded in one order, and by
fused multiply-adds where the processor has them. All of that can be done in JavaScript (see
``predict.js``), given the engine's own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardwood.model.engine import scaled_splits

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree
    from hardwood.table import Schema

_MODERATE = 2.0**40  # scales beyond this, either way, stay with the rows (`Encoder::unscaled`)


@dataclass(frozen=True)
class ExactSplits:
    """Splits as the engine has them: a score is this one's times two to the power ``exponent``."""

    weights: np.ndarray  # (m, c) float32
    bias: np.ndarray  # (m,) float32
    exponent: np.ndarray  # (m,) int


def exact_splits(tree: ObliqueTree) -> ExactSplits:
    """Return the numbers that the engine computes with, columns in the order of the schema."""
    weights, bias, exponent = scaled_splits(tree)
    with np.errstate(over="ignore", under="ignore"):
        scaled = (weights * weight_factors(tree.schema)).astype(np.float32)
        return ExactSplits(scaled, bias.astype(np.float32), exponent)


def value_factors(schema: Schema) -> np.ndarray:
    """By which the engine multiplies a number less its center, per column; mostly 1."""
    factors: np.ndarray = 1.0 / weight_factors(schema)
    return factors


def weight_factors(schema: Schema) -> np.ndarray:
    """By which the engine multiplies raw weights in turn, per column."""
    scale = schema.column_scale
    is_moderate = ((scale >= 1 / _MODERATE) & (scale <= _MODERATE)).all()
    return np.ones_like(scale) if is_moderate else scale


def has_fused_products() -> bool:
    """Whether the engine on this machine rounds ``a*b + c`` once, not twice.

    Asked of the engine itself: with a = 1 + 2**-12, the product a*a is 1 + 2**-11 + 2**-24, which
    float32 rounds to 1 + 2**-11. So ``1 + 2**-11 - a*a`` is 0 where products are rounded, which
    goes right, and negative where they are not.
    """
    from hardwood.model import ObliqueTree

    a = 1 + 2.0**-12
    probe = ObliqueTree.of([[-a]], bias=[1 + 2.0**-11], values=[0.0, 1.0])
    return int(probe.apply([[a]])[0]) == 0
