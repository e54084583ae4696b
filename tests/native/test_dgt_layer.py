"""The engine of the DGT torch layer equals the NumPy reference. Needs no torch."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import _native
from reference import dgt


def dyadic(rng: np.random.Generator, shape, unit: float, bound: float) -> np.ndarray:
    """Multiples of a power of two: their float32 dot products are exact, including ties."""
    n = int(bound / unit)
    return (rng.integers(-n, n + 1, size=shape) * unit).astype(np.float32)


def make_case(n: int, d: int, height: int, k: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([n, d, height, k])
    m = 2**height - 1
    return {
        "X": dyadic(rng, (n, d), 0.25, 2.0),
        "W": dyadic(rng, (m, d), 0.125, 0.5),
        "b": dyadic(rng, m, 0.125, 1.0),
        "theta": rng.normal(size=(m + 1, k)).astype(np.float32),
        "slope": rng.normal(size=(n, k)).astype(np.float32),
    }


def forward(case, n_threads=1):
    X, W, b, theta, slope = case.values()
    prediction, leaf = np.full_like(slope, np.nan), np.full(len(X), -1, np.int32)
    _native.dgt_layer_forward(X, W, b, theta, prediction, leaf, n_threads=n_threads)
    return prediction, leaf


def backward(case, leaf, with_x=True, n_threads=1):
    X, W, b, theta, slope = case.values()
    dX, *others = (np.full_like(part, np.nan) for part in (X, W, b, theta))
    _native.dgt_layer_backward(
        X, W, b, theta, leaf, slope, dX if with_x else None, *others, n_threads=n_threads
    )
    return (dX, *others) if with_x else tuple(others)


# Tiles of 128 samples, from height 9 on of 64; a second task from 512 rows on.
SIZES = [(n, 5, 3) for n in (1, 15, 16, 17, 127, 129, 513, 1300)]
SIZES += [(140, 1, 1), (600, 8, 6), (65, 17, 9)]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("n", "d", "height"), SIZES)
def test_predictions_and_gradients_equal_the_reference(n, d, height, k):
    case = make_case(n, d, height, k)
    X, W, b, theta, slope = case.values()
    a = dgt.scores(X, W, b)
    prediction, leaf = forward(case)
    np.testing.assert_array_equal(leaf, dgt.leaf_of(a))
    np.testing.assert_array_equal(prediction, theta[leaf])
    expected = (dgt.score_gradient(a, theta, slope) @ W, *dgt.backward(X, W, b, theta, slope))
    for found, e in zip(backward(case, leaf), expected, strict=True):
        np.testing.assert_allclose(found, e, rtol=0, atol=1e-5 * np.abs(e).max())


def test_no_rows_have_no_gradient():
    case = make_case(0, 3, 2, 2)
    prediction, leaf = forward(case)
    assert (prediction.shape, leaf.shape) == ((0, 2), (0,))
    for gradient in backward(case, leaf):
        assert not gradient.any()


def test_threads_change_nothing():
    case = make_case(40_000, 3, 4, 2)
    answers = [forward(case, n_threads) for n_threads in (1, 3)]
    gradients = [backward(case, answers[0][1], n_threads=n_threads) for n_threads in (1, 3)]
    for first, other in (answers, gradients):
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_leaving_out_the_inputs_gradient_changes_nothing_else():
    case = make_case(200, 7, 5, 3)
    _, leaf = forward(case)
    for a, b in zip(backward(case, leaf)[1:], backward(case, leaf, with_x=False), strict=True):
        np.testing.assert_array_equal(a, b)


def test_leaves_get_their_slopes_where_the_forward_pass_says():
    case = make_case(50, 3, 3, 2)
    leaf = np.full(50, 5, np.int32)
    dtheta = backward(case, leaf)[-1]
    assert not np.delete(dtheta, 5, axis=0).any()
    np.testing.assert_allclose(dtheta[5], case["slope"].sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"W": np.zeros((6, 3), np.float32)}, r"2\^h - 1 splits"),
        ({"theta": np.zeros((7, 2), np.float32)}, r"2\^h - 1 splits"),
        ({"W": np.zeros((7, 4), np.float32)}, "one length"),
        ({"slope": np.zeros((5, 1), np.float32)}, "sizes differ"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(change, message):
    case = make_case(5, 3, 3, 2) | change
    with pytest.raises(ValueError, match=message):
        backward(case, np.zeros(5, np.int32))


@pytest.mark.parametrize("leaf", [-1, 8])
def test_leaves_out_of_range_are_refused(leaf):
    case = make_case(5, 3, 3, 2)
    with pytest.raises(ValueError, match="a leaf must lie between"):
        backward(case, np.full(5, leaf, np.int32))


def test_another_dtype_is_refused_rather_than_copied():
    case = make_case(5, 3, 3, 2)
    with pytest.raises(TypeError):
        forward(case | {"X": case["X"].astype(np.float64)})
