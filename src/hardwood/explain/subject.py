"""What is explained: hard trees, alone or together."""

from __future__ import annotations

from typing import Any

from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.model.edit.rewrite import hard_form
from hardwood.report.subject import model_of


def hard_model_of(thing: Any) -> ObliqueTree | ObliqueForest:
    """Return the tree or forest: the thing itself, or what a fitted estimator has learned.

    Raises
    ------
    TypeError
        If it is neither; a soft ensemble, whose rows reach several leaves at once; or a policy tree
        with splits of more than two ways.
    ValueError
        If it is an estimator that was not fitted.
    """
    model = hard_form(model_of(thing), "explanations are")
    if isinstance(model, ObliqueTree | ObliqueForest):
        return model
    raise TypeError(
        f"explanations are of hard trees and forests, found a {type(model).__name__}. "
        "Of a soft ensemble, explain what its harden() returns"
    )
