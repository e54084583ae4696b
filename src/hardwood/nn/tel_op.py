r"""TEL as two torch operators: the output of soft trees, and its exact gradient.

Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
Conditional Computation. ICML 2020. [TEL20]

``hardwood::tree_ensemble`` computes the output, ``hardwood::tree_ensemble_backward`` its gradient.
Both look like built-in operators to `torch.compile`. Both use conditional computation if possible:
by the engine on the CPU (``native/tree/soft.hpp``), by Triton on a GPU (``tel_triton.py``).
Otherwise, and on a GPU when samples reach most leaves, so that matrix products are faster, they use
the dense definition in this file: all nodes of all trees, level by level. A compiler sees through
that definition and fuses its small steps. Outside of compilation and tracing, the same functions
are called directly, because the overhead of an operator exceeds the time for a small batch.

==========  ==========================  ========================================================
paper       here                        shape
==========  ==========================  ========================================================
x           x                           (n, d)
W           weight, bias                (T, m, d), (T, m)   m = 2^h - 1 splits in heap order
O           leaves                      (T, L, k)   L = 2^h leaves from left to right
<w, x>      scores                      (T, m, n)   a level of a tree is a block of whole rows
S, 1 - S    to_right, to_left           (T, m, n)   departs: the paper goes left with S
P(x -> i)   probabilities               (T, 2^depth, n) for every depth
dL/dT       slope                       (n, k)   loss by prediction
==========  ==========================  ========================================================
"""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode

from hardwood.nn import operators

Activation = Literal["smooth_step", "smooth_step_5", "logistic"]
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)

_HAS_TRITON = find_spec("triton") is not None
_OLDEST_GPU = (8, 0)  # that Triton supports


def _at_depth(of_nodes: Tensor, depth: int) -> Tensor:
    """Rows of the nodes at one depth of every tree, (T, 2^depth, n)."""
    return of_nodes[:, 2**depth - 1 : 2 ** (depth + 1) - 1]


def _in_gammas(x: Tensor, weight: Tensor, bias: Tensor, gamma: float) -> Tensor:
    """Scores (w x + b) / gamma of all splits, (T, m, n)."""
    scores = torch.addmm(bias.reshape(-1, 1), weight.flatten(0, 1), x.T)  # (T m, n)
    # Divide by a tensor: GPUs multiply by the inverse of a number, which rounds the edge u = 1/2.
    return (scores / scores.new_full((), gamma)).reshape(*bias.shape, -1)


def _to_the_edge(u: Tensor) -> Tensor:
    """Return the distance to the edge of the band of a smooth step, at most 1/2."""
    return torch.where(u.abs() < 0.5, 0.5 - u.abs(), 0.0)


def _a_number(u: Tensor) -> Tensor:
    """Send NaN scores right with certainty, as a smooth step does."""
    return torch.where(u.isnan(), torch.inf, u)


def sides(u: Tensor, activation: Activation) -> tuple[Tensor, Tensor]:
    """[TEL20], Eq. (4): the shares that go left and right, each to full precision."""
    if activation == "logistic":
        u = _a_number(u)
        return torch.sigmoid(-u), torch.sigmoid(u)
    q = _to_the_edge(u)
    if activation == "smooth_step":
        lesser = q * q * (3 - 2 * q)
    else:
        lesser = q * q * q * (10 + q * (6 * q - 15))
    greater = 1 - lesser
    goes_left = u < 0
    return torch.where(goes_left, greater, lesser), torch.where(goes_left, lesser, greater)


def steepness(u: Tensor, gamma: float, activation: Activation) -> Tensor:
    """S'(t); 0 at the edges of the band and beyond."""
    if activation == "logistic":
        u = _a_number(u)
        return torch.sigmoid(u) * torch.sigmoid(-u) / gamma
    q = _to_the_edge(u)
    if activation == "smooth_step":
        return q * (1 - q) * (6 / gamma)
    return (q * (1 - q)).square() * (30 / gamma)


def _probabilities(to_left: Tensor, to_right: Tensor) -> list[Tensor]:
    """P(x -> i), Eq. (2), of the nodes at every depth, the leaves last: (T, 2^depth, n) each."""
    T, m, n = to_left.shape
    levels = [to_left.new_ones((T, 1, n))]
    for depth in range((m + 1).bit_length() - 1):
        above = levels[-1]
        # above - above * S would lose precision.
        both = [above * _at_depth(side, depth) for side in (to_left, to_right)]
        levels.append(torch.stack(both, dim=2).flatten(1, 2))
    return levels


def torch_forward(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: Activation
) -> Tensor:
    """[TEL20], Eq. (1) and (3): the sum over trees of the expected values of their leaves."""
    u = _in_gammas(x, weight, bias, gamma)
    reached = _probabilities(*sides(u, activation))[-1]  # (T, L, n)
    return reached.flatten(0, 1).T @ leaves.flatten(0, 1)  # (n, k)


def torch_backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    slope: Tensor,
    gamma: float,
    activation: Activation,
    with_x: bool,
) -> tuple[Tensor, ...]:
    r"""[TEL20], Theorem 1 without its divisions: the gradients by x, weight, bias and leaves.

    .. math:: \frac{dL}{dt_i} = P(i) \, S'(t_i) \, (v(\text{right}) - v(\text{left}))

    where v of a leaf is the slope times its values, and of a node the expectation over its two
    children. Without `with_x` the first is empty, (0, d).
    """
    u = _in_gammas(x, weight, bias, gamma)
    to_left, to_right = sides(u, activation)
    *above, reached = _probabilities(to_left, to_right)
    v = (leaves.flatten(0, 1) @ slope.T).reshape(reached.shape)  # (T, L, n)
    differences = []
    for depth in reversed(range(len(above))):
        left, right = v[:, 0::2], v[:, 1::2]
        differences.append(right - left)
        v = _at_depth(to_left, depth) * left + _at_depth(to_right, depth) * right
    dt = torch.cat(above, dim=1) * torch.cat(differences[::-1], dim=1)  # (T, m, n)
    dt = (dt * steepness(u, gamma, activation)).flatten(0, 1)
    dx = dt.T @ weight.flatten(0, 1) if with_x else x.new_empty((0, x.shape[1]))
    dweight = (dt @ x).reshape(weight.shape)
    dleaves = (reached.flatten(0, 1) @ slope).reshape(leaves.shape)
    return dx, dweight, dt.sum(dim=1).reshape(bias.shape), dleaves


def torch_reachable_leaves(
    x: Tensor, weight: Tensor, bias: Tensor, gamma: float, activation: Activation
) -> Tensor:
    """U of every sample and tree, (n, T) int32."""
    T, m, _ = weight.shape
    if activation == "logistic":  # positive, also where its floating point number is 0
        return torch.full((x.shape[0], T), m + 1, dtype=torch.int32, device=x.device)
    u = _in_gammas(x, weight, bias, gamma)
    reached = _probabilities(*sides(u, activation))[-1] > 0
    return reached.sum(dim=1, dtype=torch.int32).T.contiguous()


def engine_forward(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> Tensor:
    """Compute `torch_forward` in the engine, in float32 and float64."""
    answer = x.new_empty((x.shape[0], leaves.shape[2]))
    operators.run_engine("tel_forward", x, weight, bias, leaves, answer, gamma, activation)
    return answer


def engine_backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    slope: Tensor,
    gamma: float,
    activation: str,
    with_x: bool,
) -> tuple[Tensor, ...]:
    """Compute `torch_backward` in the engine."""
    dx, *others = operators.empty_gradients(x, (weight, bias, leaves), with_x)
    outputs = (dx if with_x else None, *others)
    inputs = (x, weight, bias, leaves, slope)
    operators.run_engine("tel_backward", *inputs, *outputs, gamma, activation)
    return dx, *others


def engine_reachable_leaves(
    x: Tensor, weight: Tensor, bias: Tensor, gamma: float, activation: str
) -> Tensor:
    """Compute `torch_reachable_leaves` in the engine."""
    counts = torch.empty((x.shape[0], weight.shape[0]), dtype=torch.int32)
    operators.run_engine("tel_reachable", x, weight, bias, counts, gamma, activation)
    return counts


def takes_engine(x: Tensor) -> bool:
    """Whether the engine is used for `x`."""
    return x.device.type == "cpu" and operators.engine_available()


def _may_take_triton(x: Tensor, activation: str) -> bool:
    """Whether Triton supports the GPU and the trees."""
    # A logistic split is never certain, so no node can be skipped.
    is_conditional = activation != "logistic"
    return x.device.type == "cuda" and _HAS_TRITON and torch.version.hip is None and is_conditional


def _triton(x: Tensor, weight: Tensor, activation: str) -> ModuleType | None:
    """Return the module with the conditional passes on a GPU, if it is used."""
    if not _may_take_triton(x, activation):
        return None
    from hardwood.nn import tel_triton

    is_deep = weight.shape[1] >= 2**tel_triton.MOST_DEPTH
    is_old = torch.cuda.get_device_capability(x.device) < _OLDEST_GPU
    return None if is_deep or is_old else tel_triton


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> tuple[Tensor, Tensor]:
    """Return the output (see `torch_forward`) and the order of Triton's backward pass."""
    parts = (part.contiguous() for part in (x, weight, bias, leaves))
    inputs = (*parts, gamma, activation)
    triton = _triton(x, weight, activation)
    if triton is None:
        run: Any = engine_forward if takes_engine(x) else torch_forward
        return run(*inputs), _no_order(x)
    with torch.cuda.device_of(x):
        order = triton.order(*inputs)
        return triton.forward(*inputs, order), order


def _no_order(x: Tensor) -> Tensor:
    return x.new_empty((0, 0), dtype=torch.int64)


def _backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    order: Tensor,
    slope: Tensor,
    gamma: float,
    activation: str,
    with_x: bool,
) -> tuple[Tensor, ...]:
    """Return the exact gradient; see `torch_backward`."""
    parts = (part.contiguous() for part in (x, weight, bias, leaves, slope))
    inputs = (*parts, gamma, activation)
    triton = _triton(x, weight, activation)
    # Triton sums gradients in varying order.
    if triton is None or torch.are_deterministic_algorithms_enabled():
        run: Any = engine_backward if takes_engine(x) else torch_backward
        return run(*inputs, with_x)
    with torch.cuda.device_of(x):
        return triton.backward(*inputs, order, with_x=with_x)


tree_ensemble = torch.library.custom_op(
    "hardwood::tree_ensemble",
    _forward,
    mutates_args=(),
    schema=(
        "(Tensor x, Tensor weight, Tensor bias, Tensor leaves, float gamma, str activation)"
        " -> (Tensor, Tensor)"
    ),
)
tree_ensemble_backward = torch.library.custom_op(
    "hardwood::tree_ensemble_backward",
    _backward,
    mutates_args=(),
    schema=(
        "(Tensor x, Tensor weight, Tensor bias, Tensor leaves, Tensor order, Tensor slope, "
        "float gamma, str activation, bool with_x) -> (Tensor, Tensor, Tensor, Tensor)"
    ),
)


@tree_ensemble.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> tuple[Tensor, Tensor]:
    triton = _triton(x, weight, activation)
    shape = (0, 0) if triton is None else triton.order_shape(x, weight)
    answer = x.new_empty((x.shape[0], leaves.shape[2]))
    return answer, x.new_empty(shape, dtype=torch.int64)


@tree_ensemble_backward.register_fake
def _(x: Tensor, *others: Any) -> tuple[Tensor, ...]:
    return operators.empty_gradients(x, others[:3], with_x=others[-1])


tree_ensemble.register_autograd(
    operators.gradient_by(tree_ensemble_backward), setup_context=operators.keep
)
tree_ensemble_backward.register_autograd(
    operators.no_second_derivative(
        "TreeEnsembleLayer has no second derivative: the smooth step of degree 3 has none at the "
        "edges of its band, and none is implemented for the others."
    )
)


def _direct_backward(*inputs: Any) -> tuple[Tensor, ...]:
    # The operator refuses second derivatives.
    return (tree_ensemble_backward if torch.is_grad_enabled() else _backward)(*inputs)


def _dense_forward(x: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return torch_forward(x, *others), _no_order(x)


def _dense_backward(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, order: Tensor, *others: Any
) -> tuple[Tensor, ...]:
    return torch_backward(x, weight, bias, leaves, *others)


_Direct = operators.without_operator(_forward, _direct_backward)
_Transparent = operators.without_operator(_dense_forward, _dense_backward)


def answer(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> Tensor:
    """Return the sum over trees of the expected values of their leaves, (n, k)."""
    run: Any = tree_ensemble
    if torch.compiler.is_compiling():
        if not (takes_engine(x) or _may_take_triton(x, activation)):
            run = _Transparent.apply
    # Tracing and tensors without data need operators.
    elif _get_current_dispatch_mode() is None and type(x) in (Tensor, nn.Parameter):
        run = _Direct.apply
    return run(x, weight, bias, leaves, gamma, activation)[0]


def reachable_leaves(
    x: Tensor, weight: Tensor, bias: Tensor, gamma: float, activation: str
) -> Tensor:
    """Return the number of leaves that each sample reaches in each tree, (n, T) int32."""
    triton = _triton(x, weight, activation)
    by_cpu: Any = engine_reachable_leaves if takes_engine(x) else torch_reachable_leaves
    run = by_cpu if triton is None else triton.reachable_leaves
    with torch.cuda.device_of(x):  # has no effect on other devices
        return run(x.contiguous(), weight.contiguous(), bias.contiguous(), gamma, activation)
