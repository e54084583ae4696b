r"""DGT: dense gradient trees.

Karthikeyan, Jain, Natarajan, Jain. Learning Accurate Decision Trees with Bandit Feedback via
Quantized Gradient Descent. TMLR 2022. [DGT22]

A tree of height h is written as a sum over its leaves (Eq. 2) whose path functions are a step
function of the *sum* of the decisions on the path (Eq. 4). The prediction is that of the hard tree.
The gradient replaces the outer step by a softmax over the path sums and the inner sign by the
straight-through estimator, so each row updates all 2^h - 1 splits (Alg. 2). Alg. 3 uses
mini-batches of that gradient.

========  ==========================  ===========================================
paper     here                        shape
========  ==========================  ===========================================
W, b      weights, bias               (m, c), (m,)   m = 2^h - 1 splits, c columns
Theta     scores                      (2^h, k)
h         ``max_depth``
eta       ``learning_rate``
lambda    ``l1``, ``l2``              on W or its factors, and on the slopes of linear leaves
L, d_i    ``layers``                  number of linear layers, or the sizes between them (Sec. 3.2)
========  ==========================  ===========================================

The step is native (``native/learn/dgt/step.hpp``, ``soft_step.hpp``); the NumPy reference is
``tests/reference/dgt.py``; layers are multiplied into one matrix at every step
(``native/learn/loop/layers.hpp``), so the learned splits are exactly those of the tree.

What differs from the paper:

1. Columns are divided by the power of two nearest their standard deviation (the paper: by the
   deviation), so that folding the scale into the weights is exact.
2. Regression targets are standardized (the paper: scaled to [0, 1]).
3. The L1 penalty is a proximal step, so weights reach exactly zero.
4. Two classes are learned with one score per leaf (logistic loss).
5. RMSprop's epsilon is 1e-5 (the paper does not state it; the authors' code has it).
6. Annealed routing (Sec. 3.3, Table 7 (c)) sharpens the sigmoids, as Sec. 3.3 says. The forms with
   a softmax over the leaves also sharpen it by the same factor, as C.3.1 says; otherwise they would
   never become hard.
7. With several layers, clipping and penalties apply to the factors, including biases, as in the
   authors' code. A product of sparse factors is not sparse.
8. Several restarts, of which the best on validation data is kept (`n_restarts`), and nodes that no
   training row reaches are dropped when learning ends (`learn/finish.py`).
9. The path "product" has no softmax after the AND layer; "product_softmax" is the paper's (C.3.1).
10. Steps can add Gaussian noise to their rows (`noise`, 0 by default), against overfitting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hardwood.learn.gradient.perfect_tree import PerfectTreeLearner
from hardwood.parameters import Parameters, Values, checked, choice_field, object_field

_SHARPNESS = (1.0, 100.0)


def _sharpness(name: str, value: Any) -> tuple[float, float]:
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    if (
        not (is_pair and all(isinstance(each, int | float) for each in value))
        or not 1e-6 <= value[0] <= value[1] <= 1e6
    ):
        raise ValueError(
            f"{name} must be two numbers from 1e-6 to 1e6, the second not smaller, got {value!r}."
        )
    return tuple(value)


@dataclass(frozen=True)
class Relaxation(Parameters):
    """How gradients pass through the decisions: the design choices that Table 7 compares.

    Parameters
    ----------
    path
        "sum": the AND along a path is a step function of a sum (Eq. 4), as in the paper. "product":
        it is a product of step functions (Eq. 2). "product_softmax": that product with a softmax
        over the leaves after it (C.3.1), the paper's own product form; "product" usually learns
        better.
    quantizer
        "sign": a decision is +1 or -1. "scaled": plus or minus the mean absolute score in the batch
        (in parts of at most 128 rows), as in the authors' code; only for path="sum" with quantized
        routing.
    routing
        "quantized": hard decisions with straight-through gradients. "annealed": sigmoids that
        sharpen during learning, so the tree is soft until the end. With path="product_softmax",
        this is the paper's baseline PAT. The record of the tree has the cost of hardening.
    sharpness
        Annealed routing: factor of the scores at the first step and at the last.
    annealing
        Annealed routing: growth of the sharpness, "linear" or "log".

    Raises
    ------
    ValueError
        For values that are unknown or out of range, and for settings without effect.
    """

    path: Literal["sum", "product", "product_softmax"] = choice_field(
        "sum", ("sum", "product", "product_softmax")
    )
    quantizer: Literal["sign", "scaled"] = choice_field("sign", ("sign", "scaled"))
    routing: Literal["quantized", "annealed"] = choice_field("quantized", ("quantized", "annealed"))
    sharpness: tuple[float, float] = checked(_SHARPNESS, _sharpness, Values("sequence"))
    annealing: Literal["linear", "log"] = choice_field("log", ("linear", "log"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_effects()

    def _check_effects(self) -> None:
        """Refuse settings without effect."""
        is_annealed = self.routing == "annealed"
        if self.quantizer == "scaled" and (is_annealed or self.path != "sum"):
            raise ValueError(
                "quantizer='scaled' scales the decisions of path='sum' with routing='quantized', "
                f"and does nothing for path={self.path!r} with routing={self.routing!r}: leave it "
                "at 'sign'"
            )
        has_schedule = self.sharpness != _SHARPNESS or self.annealing != "log"
        if has_schedule and not is_annealed:
            raise ValueError(
                f"sharpness={self.sharpness!r} and annealing={self.annealing!r} are of "
                "routing='annealed', and do nothing for routing='quantized': give that routing, or "
                "leave them at their defaults"
            )


@dataclass(frozen=True)
class DGT(PerfectTreeLearner):
    """Dense gradient trees: Algorithm 3; defaults are from Tables 11 and 12 unless noted.

    `DGTClassifier` describes the parameters.
    """

    engine_name: ClassVar[str] = "dgt"

    relaxation: Relaxation = object_field(Relaxation(), named="hardwood.learn.Relaxation")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.leaves == "linear" and self.relaxation.routing == "annealed":
            raise ValueError("leaves='linear' needs quantized routing, got routing='annealed'.")

    def _method_options(self) -> dict[str, Any]:
        return {
            "linear_leaves": self.leaves == "linear",
            "path": self.relaxation.path,
            "quantizer": self.relaxation.quantizer,
            "routing": self.relaxation.routing,
            "sharpness": self.relaxation.sharpness,
            "annealing": self.relaxation.annealing,
        }
