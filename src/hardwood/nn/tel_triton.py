r"""TEL on a GPU, conditionally: subtrees that no sample of a block reaches are not entered.

Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
Conditional Computation. ICML 2020. [TEL20]

One node after the other, as Algorithms 1 and 2 go, would leave a GPU's arithmetic idle. Here a tree
is cut into a top and the subtrees below it. A program takes a block of samples (ROWS) through the
top, and then through the subtrees that any of them reaches: of each, the scores are one matrix
product, and the rest stays in registers. Samples are ordered by the subtree that most of each goes
to, tree by tree, so that a block reaches few. Where samples reach everything, this is the dense
computation without its memory; it never asks the CPU how many leaves are reached.

The answers and the gradient by the input are sums in a fixed order. The gradients by the parameters
are added up by atomic operations, in the order in which programs come to them: their last bits may
differ between two runs (`tel_op` takes the dense way where torch is asked to be
deterministic).

Inside a subtree, entry q of WIDTH is the node q of a heap that begins at 1: its parent is q // 2,
its children are 2q (left) and 2q + 1. The leaves have a block of their own, from left to right.

Imported where a GPU computes: torch alone does not bring Triton along.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_DEGREES = {"smooth_step": 3, "smooth_step_5": 5}

MOST_DEPTH = 12  # of a tree: a top and subtrees of up to 6 levels each
# Of the sizes that were tried on an H200 the fastest on the whole.
_ROWS = 16  # samples of a program
_WARPS = 4
_CHUNK = 64  # columns of a matrix product at a time
_MOST_COLUMNS = 128  # whose gradient a program holds
_MOST_OUTPUTS = 64
_MOST_NUMBERS = 1 << 27  # in the sums that trees leave for each other


@triton.jit
def _level_of(q, HEIGHT: tl.constexpr):
    """Level of each node of a subtree."""
    level = tl.zeros_like(q)
    for i in tl.static_range(1, HEIGHT):
        level += (q >= 2**i).to(tl.int32)
    return level


@triton.jit
def _take(block, index, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Columns of a block (ROWS, WIDTH) by their numbers (WIDTH,)."""
    return tl.gather(block, tl.broadcast_to(index[None, :], (ROWS, WIDTH)), 1)


@triton.jit
def _rows(start, index, is_wanted, column, width):
    """Rows of a matrix of `width` columns, zeros where they are not wanted."""
    at = start + index[:, None] * width + column[None, :]
    return tl.load(at, is_wanted[:, None] & (column < width)[None, :], other=0.0)


@triton.jit
def _add_rows(start, index, is_wanted, column, width, what):
    """Add to rows of a matrix, where there is something to add."""
    at = start + index[:, None] * width + column[None, :]
    mask = is_wanted[:, None] & (column < width)[None, :] & (what != 0)
    tl.atomic_add(at, what, mask=mask, sem="relaxed")


@triton.jit
def _product(a, b, total):
    """Add a matrix product to `total`.

    Float32 goes through the tensor cores in three parts, which keep 22 bits of every factor: as
    exact as sums of float32 are, and faster.
    """
    precision: tl.constexpr = "tf32x3" if total.dtype == tl.float32 else "ieee"
    return tl.dot(a, b, total, input_precision=precision, out_dtype=total.dtype)


@triton.jit
def _scores(
    x, row, is_row, weight, bias, gamma, root, d,
    HEIGHT: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Scores u = (w.x + b) / gamma of the splits of a subtree, and their numbers in the tree."""
    q = tl.arange(0, WIDTH)
    is_split = (q > 0) & (q < 2**HEIGHT)
    level = _level_of(q, HEIGHT)
    node = tl.where(is_split, (root << level) + q - (1 << level) - 1, 0)
    t = tl.zeros((ROWS, WIDTH), gamma.dtype)
    for first in range(0, d, CHUNK):
        column = first + tl.arange(0, CHUNK)
        W = _rows(weight, node, is_split, column, d)
        t = _product(_rows(x, row, is_row, column, d), tl.trans(W), t)
    t += tl.load(bias + node, is_split, other=0.0)[None, :]
    # Plain division of float32 may miss the edge u = 1/2 by rounding.
    u = tl.div_rn(t, gamma) if t.dtype == tl.float32 else t / gamma
    return u, node, is_split


@triton.jit
def _sides(u, DEGREE: tl.constexpr):
    """[TEL20], Eq. (4): the shares that go left and right, and S'(t) gamma."""
    q = tl.maximum(0.5 - tl.abs(u), 0.0)
    if DEGREE == 3:
        lesser = q * q * (3 - 2 * q)
        steepness = 6 * q * (1 - q)
    else:
        lesser = q * q * q * (10 + q * (6 * q - 15))
        steepness = 30 * q * q * (1 - q) * (1 - q)
    return tl.where(u < 0, 1 - lesser, lesser), tl.where(u < 0, lesser, 1 - lesser), steepness


@triton.jit
def _from_parent(
    to_left, to_right, parent, q, ROWS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """Share that comes from the parent to each node, or leaf: right ones have odd numbers."""
    right = _take(to_right, parent, ROWS, WIDTH)
    return tl.where((q % 2 == 1)[None, :], right, _take(to_left, parent, ROWS, WIDTH))


@triton.jit
def _probabilities(
    to_left, to_right, p, HEIGHT: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    """P(x -> i) of the splits of a subtree whose root has p (ROWS,), and of its leaves."""
    q = tl.arange(0, WIDTH)
    P = tl.where((q == 1)[None, :], p[:, None], tl.zeros_like(to_left))
    if HEIGHT > 1:
        level = _level_of(q, HEIGHT)
        share = _from_parent(to_left, to_right, q // 2, q, ROWS, WIDTH)
        for i in tl.static_range(1, HEIGHT):
            below = _take(P, q // 2, ROWS, WIDTH) * share
            P = tl.where((level == i)[None, :], below, P)
    parent = tl.where(q < 2**HEIGHT, (q + 2**HEIGHT) // 2, 0)  # there is no node 0: P is 0
    share = _from_parent(to_left, to_right, parent, q, ROWS, WIDTH)
    return P, _take(P, parent, ROWS, WIDTH) * share


@triton.jit
def _values(
    to_left, to_right, of_leaves, HEIGHT: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    """From v of the leaves of a subtree v(right) - v(left) at its splits, and v of its root."""
    q = tl.arange(0, WIDTH)
    level = _level_of(q, HEIGHT)
    zero = tl.zeros_like(to_left)
    difference, v = zero, zero
    for i in tl.static_range(HEIGHT):
        is_here = (level == HEIGHT - 1 - i) & (q > 0) & (q < 2**HEIGHT)
        if i == 0:
            child = tl.where(is_here, 2 * q - 2**HEIGHT, 0)
            left = _take(of_leaves, child, ROWS, WIDTH)
            right = _take(of_leaves, child + 1, ROWS, WIDTH)
        else:
            child = tl.where(is_here, 2 * q, 0)
            left = _take(v, child, ROWS, WIDTH)
            right = _take(v, child + 1, ROWS, WIDTH)
        difference = tl.where(is_here[None, :], right - left, difference)
        v = tl.where(is_here[None, :], to_left * left + to_right * right, v)
    return difference, tl.sum(tl.where((q == 1)[None, :], v, zero), 1)


@triton.jit
def _descend(
    x, row, is_row, weight, bias, gamma, p, root, d,
    HEIGHT: tl.constexpr, DEGREE: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Take samples through a subtree that p (ROWS,) of each reaches."""
    u, node, is_split = _scores(
        x, row, is_row, weight, bias, gamma, root, d, HEIGHT, ROWS, WIDTH, CHUNK
    )
    to_left, to_right, steepness = _sides(u, DEGREE)
    P, of_leaves = _probabilities(to_left, to_right, p, HEIGHT, ROWS, WIDTH)
    return of_leaves, P, to_left, to_right, steepness, node, is_split


@triton.jit
def _of_roots(
    x, row, is_row, weight, bias, gamma, d,
    TOP: tl.constexpr, DEGREE: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Probabilities of the roots of the subtrees, (ROWS, WIDTH)."""
    p = is_row.to(gamma.dtype)
    P = tl.where((tl.arange(0, WIDTH) == 0)[None, :], p[:, None], tl.zeros_like(p)[:, None])
    if TOP > 0:
        P, _, _, _, _, _, _ = _descend(
            x, row, is_row, weight, bias, gamma, p, 1, d, TOP, DEGREE, ROWS, WIDTH, CHUNK
        )
    return P


@triton.jit
def _column_of(block, index, WIDTH: tl.constexpr):
    """One column of a block (ROWS, WIDTH)."""
    is_it = (tl.arange(0, WIDTH) == index)[None, :]
    return tl.sum(tl.where(is_it, block, tl.zeros_like(block)), 1)


@triton.jit(do_not_specialize=["n"])
def _order_kernel(
    x, weight, bias, gamma_at, main_root, n, d,
    TOP: tl.constexpr, BOTTOM: tl.constexpr, DEGREE: tl.constexpr,
    ROWS: tl.constexpr, TOP_WIDTH: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Find the subtree that most of each sample goes to, (trees, n)."""
    SPLITS: tl.constexpr = 2 ** (TOP + BOTTOM) - 1
    tree = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_row = row < n
    gamma = tl.load(gamma_at)
    W, b = weight + tree * SPLITS * d, bias + tree * SPLITS
    P = _of_roots(x, row, is_row, W, b, gamma, d, TOP, DEGREE, ROWS, TOP_WIDTH, CHUNK)
    tl.store(main_root + tree * n + row, tl.argmax(P, 1), mask=is_row)


@triton.jit(do_not_specialize=["order_stride", "n", "k"])
def _forward_kernel(
    x, weight, bias, leaves, gamma_at, order, order_stride, out, n, d, k,
    TOP: tl.constexpr, BOTTOM: tl.constexpr, DEGREE: tl.constexpr, COUNTS: tl.constexpr,
    ROWS: tl.constexpr, TOP_WIDTH: tl.constexpr, WIDTH: tl.constexpr, CHUNK: tl.constexpr,
    OUTPUTS: tl.constexpr,
):  # fmt: skip
    """Write the answers of a tree for ROWS samples, (trees, n, k), or COUNTS reachable leaves."""
    SPLITS: tl.constexpr = 2 ** (TOP + BOTTOM) - 1
    tree = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_row = row < n
    if TOP > 0:
        row = tl.load(order + tree * order_stride + row, is_row, other=0)
    gamma = tl.load(gamma_at)
    W, b = weight + tree * SPLITS * d, bias + tree * SPLITS
    O = leaves + tree * (SPLITS + 1) * k
    leaf, output = tl.arange(0, WIDTH), tl.program_id(2) * OUTPUTS + tl.arange(0, OUTPUTS)
    of_roots = _of_roots(x, row, is_row, W, b, gamma, d, TOP, DEGREE, ROWS, TOP_WIDTH, CHUNK)
    total = tl.zeros((ROWS, OUTPUTS), gamma.dtype)
    count = tl.zeros((ROWS,), tl.int32)
    for root in range(2**TOP):
        p = _column_of(of_roots, root, TOP_WIDTH)
        if tl.max(p, 0) > 0:
            P, _, _, _, _, _, _ = _descend(
                x, row, is_row, W, b, gamma, p, root + 2**TOP, d,
                BOTTOM, DEGREE, ROWS, WIDTH, CHUNK,
            )  # fmt: skip
            if COUNTS:
                count += tl.sum((P > 0).to(tl.int32), 1)
            else:
                values = _rows(O + root * 2**BOTTOM * k, leaf, leaf < 2**BOTTOM, output, k)
                total = _product(P, values, total)
    if COUNTS:
        tl.store(out + tree * n + row, count, mask=is_row)
    else:
        at = out + (tree * n + row)[:, None] * k + output[None, :]
        tl.store(at, total, mask=is_row[:, None] & (output < k)[None, :])


@triton.jit
def _through_leaves(
    leaves, dleaves, slope, row, is_row, P, k,
    BOTTOM: tl.constexpr, WIDTH: tl.constexpr, OUTPUTS: tl.constexpr,
):  # fmt: skip
    """Values v = <slope, o_l> of the leaves of a subtree; adds what they get from P."""
    v = tl.zeros_like(P)
    leaf = tl.arange(0, WIDTH)
    is_leaf = leaf < 2**BOTTOM
    for first in range(0, k, OUTPUTS):
        output = first + tl.arange(0, OUTPUTS)
        slopes = _rows(slope, row, is_row, output, k)
        v = _product(slopes, tl.trans(_rows(leaves, leaf, is_leaf, output, k)), v)
        if tl.program_id(2) == 0:
            dO = _product(tl.trans(P), slopes, tl.zeros((WIDTH, OUTPUTS), P.dtype))
            _add_rows(dleaves, leaf, is_leaf, output, k, dO)
    return v


@triton.jit
def _through_splits(
    x, row, is_row, weight, dweight, dbias, dt, node, is_split, dX, column, d,
    WITH_X: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add what the splits of a subtree get from dt (ROWS, WIDTH); return dX + dt w."""
    X = _rows(x, row, is_row, column, d)
    dW = _product(tl.trans(dt), X, tl.zeros((WIDTH, COLUMNS), dt.dtype))
    _add_rows(dweight, node, is_split, column, d, dW)
    if tl.program_id(2) == 0:
        db = tl.sum(dt, 0)
        tl.atomic_add(dbias + node, db, mask=is_split & (db != 0), sem="relaxed")
    if WITH_X:
        dX = _product(dt, _rows(weight, node, is_split, column, d), dX)
    return dX


@triton.jit(do_not_specialize=["order_stride", "n", "k"])
def _backward_kernel(
    x, weight, bias, leaves, gamma_at, order, order_stride, slope, dx, dweight, dbias, dleaves,
    n, d, k,
    TOP: tl.constexpr, BOTTOM: tl.constexpr, DEGREE: tl.constexpr, WITH_X: tl.constexpr,
    ROWS: tl.constexpr, TOP_WIDTH: tl.constexpr, WIDTH: tl.constexpr, CHUNK: tl.constexpr,
    OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Theorem 1 for a tree and ROWS samples, as `tel_op.torch_backward` writes it.

    Adds to dweight, dbias and dleaves; writes what the tree gives to COLUMNS of dx (trees, n, d).
    """
    SPLITS: tl.constexpr = 2 ** (TOP + BOTTOM) - 1
    tree = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_row = row < n
    if TOP > 0:
        row = tl.load(order + tree * order_stride + row, is_row, other=0)
    gamma = tl.load(gamma_at)
    W, dW = weight + tree * SPLITS * d, dweight + tree * SPLITS * d
    b, db = bias + tree * SPLITS, dbias + tree * SPLITS
    O, dO = leaves + tree * (SPLITS + 1) * k, dleaves + tree * (SPLITS + 1) * k
    column = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    dX = tl.zeros((ROWS, COLUMNS), gamma.dtype)
    of_roots = _of_roots(x, row, is_row, W, b, gamma, d, TOP, DEGREE, ROWS, TOP_WIDTH, CHUNK)
    v_roots = tl.zeros_like(of_roots)
    for root in range(2**TOP):
        p = _column_of(of_roots, root, TOP_WIDTH)
        if tl.max(p, 0) > 0:
            of_leaves, P, to_left, to_right, steepness, node, is_split = _descend(
                x, row, is_row, W, b, gamma, p, root + 2**TOP, d,
                BOTTOM, DEGREE, ROWS, WIDTH, CHUNK,
            )  # fmt: skip
            first = root * 2**BOTTOM * k
            v_leaves = _through_leaves(
                O + first, dO + first, slope, row, is_row, of_leaves, k, BOTTOM, WIDTH, OUTPUTS
            )
            difference, v = _values(to_left, to_right, v_leaves, BOTTOM, ROWS, WIDTH)
            dX = _through_splits(
                x, row, is_row, W, dW, db, P * steepness * difference / gamma, node, is_split,
                dX, column, d, WITH_X, WIDTH, COLUMNS,
            )  # fmt: skip
            v_roots = tl.where((tl.arange(0, TOP_WIDTH) == root)[None, :], v[:, None], v_roots)
    if TOP > 0:
        _, P, to_left, to_right, steepness, node, is_split = _descend(
            x, row, is_row, W, b, gamma, is_row.to(gamma.dtype), 1, d,
            TOP, DEGREE, ROWS, TOP_WIDTH, CHUNK,
        )  # fmt: skip
        difference, _ = _values(to_left, to_right, v_roots, TOP, ROWS, TOP_WIDTH)
        dX = _through_splits(
            x, row, is_row, W, dW, db, P * steepness * difference / gamma, node, is_split,
            dX, column, d, WITH_X, TOP_WIDTH, COLUMNS,
        )  # fmt: skip
    if WITH_X:
        at = dx + (tree * n + row)[:, None] * d + column[None, :]
        tl.store(at, dX, mask=is_row[:, None] & (column < d)[None, :])


def _width(n: int) -> int:
    """Width of a block that holds n: a power of two, which matrix products want to be 16."""
    return max(16, triton.next_power_of_2(n))


def _levels_below(depth: int) -> int:
    """Levels of the subtrees; the top has the others."""
    if depth <= 6:
        return depth
    return 5 if depth <= 10 else 6


def _shapes(d: int, depth: int) -> dict[str, int]:
    """How a tree is cut, and the blocks that a program works on."""
    bottom = _levels_below(depth)
    return {
        "TOP": depth - bottom,
        "BOTTOM": bottom,
        "ROWS": _ROWS,
        "TOP_WIDTH": _width(2 ** (depth - bottom)),
        "CHUNK": min(_width(d), _CHUNK),
        "num_warps": _WARPS,
        "num_stages": 1,  # the only long loops are over columns, of which there are few
    }


def _parts(n: int, weight: Tensor, leaves: Tensor) -> list[slice]:
    """Rows that are worked on at a time, so that what trees leave for each other is bounded."""
    T, _, d = weight.shape
    at_most = max(_MOST_NUMBERS // (T * max(d, leaves.shape[-1])), _ROWS)
    return [slice(first, min(first + at_most, n)) for first in range(0, n, at_most)]


def order_shape(x: Tensor, weight: Tensor) -> tuple[int, int]:
    """Shape of what `order` returns."""
    depth = weight.shape[1].bit_length()
    return (weight.shape[0], x.shape[0]) if depth > _levels_below(depth) else (0, 0)


def order(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> Tensor:
    """Order samples so that those that reach the same part of a tree stand together.

    Returns
    -------
    order
        (T, n) int64, numbers of samples within the part of the batch that is worked on at a time;
        (0, 0) where trees have no top, and any order will do.
    """
    (n, d), (T, m, _) = x.shape, weight.shape
    main_root = torch.empty(order_shape(x, weight), dtype=torch.int32, device=x.device)
    if main_root.numel() == 0:
        return main_root.long()
    _order_kernel[triton.cdiv(n, _ROWS), T](
        x, weight, bias, x.new_full((), gamma), main_root, n, d,
        DEGREE=_DEGREES[activation], **_shapes(d, m.bit_length()),
    )  # fmt: skip
    parts = [main_root[:, part] for part in _parts(n, weight, leaves)]
    orders = [part.sort(dim=1, stable=True).indices for part in parts]
    return orders[0] if len(orders) == 1 else torch.cat(orders, dim=1)


def _walk(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    gamma: float,
    activation: str,
    order: Tensor,
    out: Tensor,
    *,
    counts: bool,
) -> None:
    """Fill the answers (T, n, k) of every tree, or the counts (T, n) of reachable leaves."""
    (n, d), (T, m, _), k = x.shape, weight.shape, leaves.shape[-1]
    shapes, outputs = _shapes(d, m.bit_length()), 16 if counts else min(_width(k), _MOST_OUTPUTS)
    grid = (triton.cdiv(n, _ROWS), T, 1 if counts else triton.cdiv(k, outputs))
    _forward_kernel[grid](
        x, weight, bias, leaves, x.new_full((), gamma), order, order.stride(0), out, n, d, k,
        DEGREE=_DEGREES[activation], COUNTS=counts, WIDTH=_width(2 ** shapes["BOTTOM"]),
        OUTPUTS=outputs, **shapes,
    )  # fmt: skip


def forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    gamma: float,
    activation: str,
    order: Tensor,
) -> Tensor:
    """Answer as `tel_op.torch_forward` does, in the order of `order`; tensors are contiguous."""
    n, (T, _, k) = len(x), leaves.shape
    answers = x.new_empty((n, k))
    for part in _parts(n, weight, leaves):
        of_trees = x.new_empty((T, part.stop - part.start, k))
        _walk(
            x[part], weight, bias, leaves, gamma, activation, order[:, part], of_trees,
            counts=False,
        )  # fmt: skip
        torch.sum(of_trees, dim=0, out=answers[part])
    return answers


def reachable_leaves(
    x: Tensor, weight: Tensor, bias: Tensor, gamma: float, activation: str
) -> Tensor:
    """Count as `tel_op.torch_reachable_leaves` does; all tensors are contiguous."""
    counts = torch.empty((len(x), len(weight)), dtype=torch.int32, device=x.device)
    of_trees = (weight, bias, weight, gamma, activation)  # no leaves: they are not looked at
    for part in _parts(len(x), weight, weight):
        by_tree = counts.new_empty((len(weight), part.stop - part.start))
        _walk(x[part], *of_trees, order(x[part], *of_trees), by_tree, counts=True)
        counts[part] = by_tree.T
    return counts


def backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    slope: Tensor,
    gamma: float,
    activation: str,
    order: Tensor,
    *,
    with_x: bool,
) -> tuple[Tensor, ...]:
    """Return the gradients as `tel_op.torch_backward` does; in the order of `order`."""
    (T, m, d), k = weight.shape, leaves.shape[2]
    shapes, columns = _shapes(d, m.bit_length()), min(_width(d), _MOST_COLUMNS)
    sums = tuple(torch.zeros_like(part) for part in (weight, bias, leaves))
    dx = x.new_empty((len(x) if with_x else 0, d))
    for part in _parts(len(x), weight, leaves):
        n = part.stop - part.start
        of_trees = x.new_empty((T, n if with_x else 0, d))
        _backward_kernel[triton.cdiv(n, _ROWS), T, triton.cdiv(d, columns)](
            x[part], weight, bias, leaves, x.new_full((), gamma),
            order[:, part], order.stride(0), slope[part], of_trees, *sums, n, d, k,
            DEGREE=_DEGREES[activation], WITH_X=with_x, WIDTH=_width(2 ** shapes["BOTTOM"]),
            OUTPUTS=min(_width(k), _MOST_OUTPUTS), COLUMNS=columns, **shapes,
        )  # fmt: skip
        if with_x:
            torch.sum(of_trees, dim=0, out=dx[part])
    return dx, *sums
