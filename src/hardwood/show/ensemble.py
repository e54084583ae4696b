"""A soft ensemble in words: what it does, then its trees as they are when hard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardwood.show.forest import members_text
from hardwood.show.text import summary
from hardwood.text.numbers import format_digits

if TYPE_CHECKING:
    from hardwood.model import TreeEnsemble

_ACTIVATIONS = {
    "smooth_step": "smooth step",
    "smooth_step_5": "smooth step of degree 5",
    "logistic": "logistic function",
}


def ensemble_text(
    ensemble: TreeEnsemble,
    *,
    max_trees: int | None = 3,
    max_depth: int | None = None,
    max_terms: int | None = 4,
    digits: int | None = 3,
) -> str:
    """Write an ensemble in words; arguments as in :meth:`hardwood.TreeEnsemble.to_text`."""
    members = members_text(
        ensemble.hard_tree,
        ensemble.n_trees,
        max_trees=max_trees,
        max_depth=max_depth,
        max_terms=max_terms,
        digits=digits,
    )
    return "\n".join([ensemble_summary(ensemble), _meaning(ensemble, digits) + "\n", *members])


def ensemble_summary(ensemble: TreeEnsemble) -> str:
    """One line: what is predicted, how large all trees are together, and how soft they are."""
    as_one: Any = ensemble  # it has all that the line about a tree speaks of
    trees = f"{ensemble.n_trees} soft tree" + ("s" if ensemble.n_trees != 1 else "")
    sizes = summary(as_one).removeprefix("Oblique tree: ")
    softness = f"{_ACTIVATIONS[ensemble.activation]}, gamma {format_digits(ensemble.gamma, None)}"
    how = "sum" if ensemble.link == "identity" else f"{ensemble.link} of the sum"
    return f"Tree ensemble: {how} of {trees}, {sizes}, {softness}"


def _meaning(ensemble: TreeEnsemble, digits: int | None) -> str:
    """Say how a condition is to be read, which the words about a hard tree leave out."""
    if ensemble.activation == "logistic":
        unit = format_digits(ensemble.gamma, digits)
        return (
            "Every row goes both ways at every split: where a condition reads w.x >= t, the share\n"
            f"1 / (1 + exp((t - w.x) / {unit})) goes the way of its 'if'."
        )
    half = format_digits(ensemble.gamma / 2, digits)
    return (
        f"Where a condition reads w.x >= t, a row with w.x within {half} of t goes both ways, by\n"
        "shares. A condition on one number alone is divided by its weight, and that distance, too."
    )
