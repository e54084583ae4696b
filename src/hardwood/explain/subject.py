"""What is explained: hard trees, alone or together."""

from __future__ import annotations

from typing import Any

from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.report.subject import model_of


def hard_model_of(thing: Any) -> ObliqueTree | ObliqueForest:
    """Return the tree or forest: the thing itself, or what a fitted estimator has learned.

    Raises
    ------
    TypeError
        If it is neither, or a soft ensemble, whose rows reach several leaves at once.
    ValueError
        If it is an estimator that was not fitted.
    """
    model = model_of(thing)
    if isinstance(model, ObliqueTree | ObliqueForest):
        return model
    raise TypeError(
        f"explanations are of hard trees and forests, found a {type(model).__name__}. "
        "Of a soft ensemble, explain what its harden() returns"
    )
