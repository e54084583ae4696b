"""The engine of the tree ensemble layer equals the NumPy reference. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood import _native
from reference import tel

# Largest error, in parts of the natural scale: what the absolute values of an entry's terms add up
# to, of the entry where that is largest.
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-13}
# Of single precision: the engine and the reference see one number, and its half exactly.
GAMMAS = [float(np.float32(gamma)) for gamma in (1e-4, 1e-2, 0.1, 1.0, 10.0)]
PARTS = ("dX", "dW", "db", "dO")

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
each_gamma = pytest.mark.parametrize("gamma", GAMMAS, ids="{:.0e}".format)
each_activation = pytest.mark.parametrize("activation", tel.ACTIVATIONS)


@dataclass(frozen=True)
class Case:
    """Samples, an ensemble, and the slopes of a loss by its answers; all of one type."""

    X: np.ndarray
    W: np.ndarray
    b: np.ndarray
    O: np.ndarray
    slope: np.ndarray
    gamma: float
    activation: str

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.X, self.W, self.b, self.O

    @property
    def how(self) -> tuple[float, str]:
        return self.gamma, self.activation

    def as_type(self, dtype: type) -> Case:
        names = ("X", "W", "b", "O", "slope")
        return replace(self, **{name: getattr(self, name).astype(dtype) for name in names})


def dyadic(rng: np.random.Generator, shape, unit: float, bound: float) -> np.ndarray:
    """Multiples of a power of two: dot products of them are exact, also in float32.

    So the engine and the reference compute the same scores, also those at -+gamma/2.
    """
    n = int(bound / unit)
    return rng.integers(-n, n + 1, size=shape) * unit


def make_case(
    n: int,
    d: int,
    k: int,
    T: int,
    depth: int,
    gamma: float = 1.0,
    activation: str = "smooth_step",
    dtype: type = np.float64,
) -> Case:
    """Scores from about a quarter of gamma up to hundreds of it, split by split."""
    rng = np.random.default_rng([n, d, k, T, depth])
    m = 2**depth - 1
    size = 2.0 ** (np.floor(np.log2(gamma / np.sqrt(d))) + rng.integers(-2, 7, size=(T, m)))
    return Case(
        X=dyadic(rng, (n, d), 0.25, 2.0),
        W=dyadic(rng, (T, m, d), 0.125, 0.5) * size[:, :, None],
        b=dyadic(rng, (T, m), 0.125, 1.0) * size,
        O=rng.normal(size=(T, m + 1, k)),
        slope=rng.normal(size=(n, k)),
        gamma=gamma,
        activation=activation,
    ).as_type(dtype)


def forward(case: Case, n_threads: int = 1) -> np.ndarray:
    out = np.full_like(case.slope, np.nan)
    _native.tel_forward(*case.parts, out, *case.how, n_threads=n_threads)
    return out


def backward(case: Case, n_threads: int = 1, *, with_x: bool = True) -> list[np.ndarray]:
    """dX, dW, db and dO; dX is left as NaN where it is not asked for."""
    dX, *others = (np.full_like(part, np.nan) for part in case.parts)
    asked = dX if with_x else None
    _native.tel_backward(*case.parts, case.slope, asked, *others, *case.how, n_threads=n_threads)
    return [dX, *others]


def reachable(case: Case, n_threads: int = 1) -> np.ndarray:
    leaves = np.full((len(case.X), len(case.W)), -1, np.int32)
    _native.tel_reachable(case.X, case.W, case.b, leaves, *case.how, n_threads=n_threads)
    return leaves


def reference(case: Case) -> tuple[np.ndarray, ...]:
    """Answers, then gradients."""
    return tel.forward(*case.parts, *case.how), *tel.backward(*case.parts, case.slope, *case.how)


def scales(case: Case) -> tuple[float, ...]:
    """Natural scales of the answers and of the gradients, see TOLERANCE."""
    X, W, b, O = (part.astype(np.float64) for part in case.parts)
    t, slope = tel.scores(X, W, b), np.abs(case.slope)
    m = t.shape[2]
    P = tel.node_probabilities(t, *case.how)
    v = tel.node_values(t, np.abs(O), slope, *case.how)
    dt = P[:, :, :m] * tel.activate_derivative(t, *case.how) * (v[:, :, 2::2] + v[:, :, 1::2])
    sums = (
        np.einsum("ntl,tlk->nk", P[:, :, m:], np.abs(O)),
        np.einsum("ntm,tmd->nd", dt, np.abs(W)),
        np.einsum("ntm,nd->tmd", dt, np.abs(X)),
        dt.sum(axis=0),
        np.einsum("ntl,nk->tlk", P[:, :, m:], slope),
    )
    return tuple(part.max(initial=0.0) for part in sums)


def errors(case: Case, found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> list[float]:
    """Largest errors of the answers and of the gradients, in parts of their natural scales."""
    answer = []
    for a, e, scale in zip(found, expected, scales(case), strict=True):
        assert a.shape == e.shape
        gap = np.abs(a - e).max(initial=0.0)
        assert np.isfinite(gap)
        answer.append(float(gap / scale) if scale > 0 else float(gap))
    return answer


def assert_equals_the_reference(case: Case, tolerance: float | None = None) -> None:
    found = errors(case, [forward(case), *backward(case)], reference(case))
    tolerance = TOLERANCE[case.X.dtype.type] if tolerance is None else tolerance
    assert max(found) <= tolerance, dict(zip(("answers", *PARTS), found, strict=True))


def assert_same_bits(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), e.view(f"u{e.itemsize}"))


# Answers and gradients


@each_dtype
@pytest.mark.parametrize("n", [0, 1, 7, 300])  # tiles of 256
@pytest.mark.parametrize("T", [1, 5])
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("d", [1, 7, 8, 20, 100])
def test_any_size(d, k, T, n, dtype):
    for gamma in (0.5, 64.0):  # few leaves, all leaves
        assert_equals_the_reference(make_case(n, d, k, T, 4, gamma, dtype=dtype))


@each_dtype
@each_activation
@each_gamma
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6, 8, 10])
def test_any_depth_gamma_and_activation(depth, gamma, activation, dtype):
    n = 70 if depth < 10 else 30
    assert_equals_the_reference(make_case(n, 7, 2, 3, depth, gamma, activation, dtype))


@each_dtype
@each_activation
@each_gamma
def test_how_many_leaves_are_reached(gamma, activation, dtype):
    for depth in (1, 4, 7):
        case = make_case(300, 7, 1, 3, depth, gamma, activation, dtype)
        found = reachable(case)
        if activation == "logistic":
            np.testing.assert_array_equal(found, 2**depth)
            continue
        U = tel.reachable_leaves(case.X, case.W, case.b, *case.how)
        np.testing.assert_array_equal(found, U)
        assert U.min() < U.max()


def test_the_cases_hold_both_paths_and_the_edges():
    """Trees of which samples reach few leaves and trees of which they reach most; ties."""
    for gamma in GAMMAS:
        case = make_case(300, 7, 1, 3, 7, gamma)
        share = tel.reachable_leaves(case.X, case.W, case.b, *case.how) / 128
        assert share.min() < 0.02
        assert share.max() > 0.2
        single = case.as_type(np.float32)
        np.testing.assert_array_equal(single.X @ single.W[0].T, case.X @ case.W[0].T)
    for gamma in (0.25, 1.0, 8.0):  # powers of two, of which the scores are multiples
        case = make_case(300, 7, 1, 3, 7, gamma)
        t = tel.scores(case.X, case.W, case.b)
        assert (t == gamma / 2).sum() > 50
        assert (t == -gamma / 2).sum() > 50
    wide = make_case(300, 20, 1, 5, 4, 64.0)
    assert tel.reachable_leaves(wide.X, wide.W, wide.b, 64.0, "smooth_step").mean() < 16
    assert (tel.reachable_leaves(wide.X, wide.W, wide.b, 1e5, "smooth_step") == 16).all()


@each_dtype
@each_activation
@pytest.mark.parametrize("depth", [1, 3, 4, 9])
def test_all_leaves_reached_by_all(depth, activation, dtype):
    """Matrix products of whole subtrees, the top one's and those below it."""
    case = make_case(280, 20, 3, 2, depth, dtype=dtype, activation=activation)
    case = replace(case, gamma=4096.0)
    assert (reachable(case) == 2**depth).all()
    assert_equals_the_reference(case)


@each_dtype
@pytest.mark.parametrize("gamma", [0.5, 4096.0])
def test_deep_trees(gamma, dtype):
    case = replace(make_case(20, 5, 1, 1, 12, dtype=dtype), gamma=gamma)
    assert_equals_the_reference(case)


@each_dtype
@pytest.mark.parametrize("gamma", [1e-4, 1e-2, 1.0])
def test_one_leaf_reached_by_each(gamma, dtype):
    """Theorem 1 with U = 1: no gradient but that of the leaf."""
    case = make_case(300, 8, 3, 4, 6, gamma, dtype=dtype)
    case = replace(case, b=case.b + np.sign(case.b + 1e-9).astype(dtype) * dtype(1e3))
    assert (reachable(case) == 1).all()
    assert_equals_the_reference(case)
    dX, dW, db, dO = backward(case)
    assert not dX.any()
    assert not dW.any()
    assert not db.any()
    assert dO.any()


@each_dtype
@settings(max_examples=60)
@given(
    n=st.integers(0, 40),
    d=st.integers(1, 40),
    k=st.integers(1, 12),
    T=st.integers(1, 12),
    depth=st.integers(1, 7),
    gamma=st.sampled_from(GAMMAS),
    activation=st.sampled_from(tel.ACTIVATIONS),
)
def test_whatever_the_sizes(dtype, n, d, k, T, depth, gamma, activation):
    assert_equals_the_reference(make_case(n, d, k, T, depth, gamma, activation, dtype))


# Numerical care


def edge_case(gamma: float, dtype: type, activation: str = "smooth_step") -> Case:
    """One split, and scores at all distances from the edges of the band, down to the last place."""
    q = np.geomspace(1e-7, 0.5, 400)
    X = np.concatenate([gamma * (0.5 - q), gamma * (q - 0.5)]).astype(dtype)
    return Case(
        X=X[:, None],
        W=np.ones((1, 1, 1), dtype),
        b=np.zeros((1, 1), dtype),
        O=np.array([[[0.0], [1.0]]], dtype),
        slope=np.ones((len(X), 1), dtype),
        gamma=gamma,
        activation=activation,
    )


@each_dtype
@pytest.mark.parametrize("activation", ["smooth_step", "smooth_step_5"])
@pytest.mark.parametrize("gamma", [2.0**-13, 0.125, 1.0, 8.0])
def test_gradients_near_the_edges_of_the_band_have_all_their_digits(gamma, activation, dtype):
    """Where S is as small as 1e-14, or 1 - S is: the paper's polynomial has none left there.

    Powers of two, so that the distance from the edge is not rounded before it is used.
    """
    case = edge_case(gamma, dtype, activation)
    dX = backward(case)[0]
    expected = tel.backward(*case.parts, case.slope, *case.how)[0]
    assert (expected > 0).all()
    np.testing.assert_allclose(dX, expected, rtol=1e-6 if dtype is np.float32 else 1e-14)
    np.testing.assert_array_equal(reachable(case), 2)
    np.testing.assert_allclose(
        forward(case), tel.forward(*case.parts, *case.how), rtol=1e-6, atol=0
    )


@each_dtype
@each_gamma
@pytest.mark.parametrize("activation", ["smooth_step", "smooth_step_5"])
def test_scores_on_the_edges_and_beside_them(gamma, activation, dtype):
    """Exactly at -+gamma/2 a sample goes one way and moves no split; one place inside, it does."""
    edge = dtype(gamma / 2)
    inside, outside = np.nextafter(edge, dtype(0)), np.nextafter(edge, dtype(np.inf))
    base = edge_case(gamma, dtype, activation)
    for t, n_leaves in ((edge, 1), (outside, 1), (inside, 2), (dtype(0), 2)):
        for sign in (-1, 1):
            case = replace(base, X=np.full((3, 1), sign * t, dtype), slope=np.ones((3, 1), dtype))
            assert (reachable(case) == n_leaves).all()
            dX, dW, db, dO = backward(case)
            assert (dX != 0).all() == (n_leaves == 2)
            if n_leaves == 1:
                assert not dX.any()
                assert not dW.any()
                assert not db.any()
                assert (forward(case) == (sign > 0)).all()
                assert dO[0, :, 0].tolist() == ([0, 3] if sign > 0 else [3, 0])


def real_case(rng: np.random.Generator, depth: int, gamma: float, activation: str) -> Case:
    """As after some training: normalized samples, scores of unit size."""
    m, d, n, T, k = 2**depth - 1, 20, 128, 4, 3
    return Case(
        X=rng.normal(size=(n, d)),
        W=rng.normal(size=(T, m, d)) / np.sqrt(d),
        b=0.1 * rng.normal(size=(T, m)),
        O=rng.normal(size=(T, m + 1, k)),
        slope=rng.normal(size=(n, k)) / n,
        gamma=gamma,
        activation=activation,
    ).as_type(np.float32)


def gradient_as_written(case: Case, *, asks_for_fractions: bool) -> np.ndarray:
    """dW in float32 with S and 1 - S from Eq. (4) as it is written.

    Whether a split is fractional is known from its score, or by asking 0 < S < 1.
    """
    X, W, b, O = case.parts
    gamma, m = np.float32(case.gamma), W.shape[1]
    t = np.einsum("nd,tmd->ntm", X, W) + b
    inside = np.abs(t) < gamma / 2
    cubic = -2 / gamma**3 * t**3 + np.float32(1.5) / gamma * t + np.float32(0.5)
    S = np.where(inside, np.clip(cubic, 0, 1), (t > 0).astype(np.float32))
    fractional = (S > 0) & (S < 1) if asks_for_fractions else inside
    slope = np.where(fractional, (np.float32(1.5) - 6 * (t / gamma) ** 2) / gamma, np.float32(0))
    P = np.ones((*t.shape[:2], 2 * m + 1), np.float32)
    v = np.zeros_like(P)
    v[:, :, m:] = np.einsum("nk,tlk->ntl", case.slope, O)
    for i in range(m):
        P[:, :, 2 * i + 1], P[:, :, 2 * i + 2] = (
            P[:, :, i] * (1 - S[:, :, i]),
            P[:, :, i] * S[:, :, i],
        )
    for i in reversed(range(m)):
        v[:, :, i] = (1 - S[:, :, i]) * v[:, :, 2 * i + 1] + S[:, :, i] * v[:, :, 2 * i + 2]
    dt = P[:, :, :m] * slope * (v[:, :, 2::2] - v[:, :, 1::2])
    assert dt.dtype == np.float32
    return np.einsum("ntm,nd->tmd", dt, X)


def test_what_asking_for_fractions_would_drop():
    """A gradient of some 1e-5 of the largest, where float32 has some 1e-7 to lose: see tel.md."""
    lost = []
    for seed in range(20):
        case = real_case(np.random.default_rng(seed), 4, 1.0, "smooth_step")
        expected = tel.backward(*case.parts, case.slope, *case.how)[1]
        found = (
            backward(case)[1],
            gradient_as_written(case, asks_for_fractions=False),
            gradient_as_written(case, asks_for_fractions=True),
        )
        lost.append([np.abs(dW - expected).max() / np.abs(expected).max() for dW in found])
    engine, from_scores, from_shares = np.max(lost, axis=0)
    assert engine < 1e-6
    assert from_scores < 2e-6
    assert from_shares > 2e-5


@each_activation
@each_gamma
@pytest.mark.parametrize("depth", [4, 8])
def test_single_precision_of_real_numbers(depth, gamma, activation, rng):
    """A score is rounded to some 1e-7 of its terms, which is that over gamma of the band."""
    case = real_case(rng, depth, gamma, activation)
    assert_equals_the_reference(case, 1e-6 * max(1.0, 0.5 / gamma))


# What a layer promises


@each_dtype
@pytest.mark.parametrize("gamma", [0.1, 1.0, 1000.0])
@pytest.mark.parametrize(("n", "T", "depth"), [(1000, 5, 6), (40, 12, 4), (3000, 1, 3)])
def test_threads_change_nothing(n, T, depth, gamma, dtype):
    case = make_case(n, 7, 3, T, depth, dtype=dtype)
    case = replace(case, gamma=gamma)
    one = [forward(case), reachable(case), *backward(case)]
    for n_threads in (2, 5):
        assert_same_bits(
            [forward(case, n_threads), reachable(case, n_threads), *backward(case, n_threads)], one
        )


@each_dtype
@pytest.mark.parametrize("gamma", [0.1, 1000.0])
def test_leaving_out_the_inputs_gradient_changes_nothing_else(gamma, dtype):
    case = replace(make_case(300, 20, 3, 5, 5, dtype=dtype), gamma=gamma)
    dX, *others = backward(case, with_x=False)
    assert np.isnan(dX).all()
    assert_same_bits(others, backward(case)[1:])


@each_dtype
def test_no_rows_have_no_gradient(dtype):
    case = make_case(0, 3, 2, 2, 3, dtype=dtype)
    assert forward(case).shape == (0, 2)
    assert reachable(case).shape == (0, 2)
    for gradient in backward(case):
        assert not gradient.any()


@each_dtype
@pytest.mark.parametrize("gamma", [0.5, 1000.0])
def test_a_rows_answer_does_not_depend_on_its_company(gamma, dtype):
    """To rounding: in company its scores may come from a matrix product."""
    case = replace(make_case(300, 20, 3, 3, 5, dtype=dtype), gamma=gamma)
    whole, (dX, *_) = forward(case), backward(case)
    for i in (0, 17, 299):
        alone = replace(case, X=case.X[[i]], slope=case.slope[[i]])
        np.testing.assert_allclose(forward(alone)[0], whole[i], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            backward(alone)[0][0], dX[i], rtol=1e-5, atol=1e-5 * np.abs(dX).max()
        )


@each_dtype
def test_infinite_scores_are_sure(dtype):
    case = make_case(20, 3, 2, 2, 3, dtype=dtype)
    case = replace(case, X=np.where(case.X > 0, dtype(np.inf), dtype(1.0)), W=np.abs(case.W) + 1)
    found = forward(case)
    expected = tel.forward(np.minimum(case.X, 1e6), case.W, case.b, case.O, *case.how)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@each_activation
@each_dtype
@pytest.mark.parametrize("n", [1, 200])
def test_scores_that_are_no_numbers_go_right_and_teach_nothing(n, dtype, activation):
    case = replace(make_case(n, 3, 2, 2, 3, dtype=dtype), activation=activation)
    case = replace(case, X=np.full_like(case.X, np.nan))
    np.testing.assert_allclose(
        forward(case), np.broadcast_to(case.O[:, -1].sum(axis=0), (n, 2)), rtol=1e-5
    )
    dX, _, db, dO = backward(case)
    assert not dX.any()
    assert not db.any()
    assert not dO[:, :-1].any()
    expected = np.broadcast_to(case.slope.sum(axis=0), (2, 2))
    np.testing.assert_allclose(dO[:, -1], expected, rtol=1e-4, atol=1e-4)


# Refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"W": np.zeros((2, 6, 3)), "b": np.zeros((2, 6))}, r"2\^h - 1 splits"),
        ({"b": np.zeros((1, 7))}, r"2\^h - 1 splits"),
        ({"W": np.zeros((2, 7, 4))}, "one length"),
        ({"O": np.zeros((2, 7, 2))}, r"2\^h leaves"),
        ({"O": np.zeros((1, 8, 2))}, r"2\^h leaves"),
        ({"O": np.zeros((2, 8, 3))}, "sizes differ"),
        ({"slope": np.zeros((4, 2))}, "sizes differ"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": np.nan}, "gamma"),
        ({"gamma": np.inf}, "gamma"),
        ({"gamma": 1e-60}, "gamma"),  # not a number greater than zero in float32
        ({"activation": "sigmoid"}, "activation"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    case = make_case(5, 3, 2, 2, 3, dtype=np.float32)
    change = {
        name: part.astype(np.float32) if isinstance(part, np.ndarray) else part
        for name, part in change.items()
    }
    case = replace(case, **change)
    with pytest.raises(ValueError, match=message):
        forward(case)
    with pytest.raises(ValueError, match=message):
        backward(case)


@each_dtype
@pytest.mark.parametrize("name", ["X", "W", "b", "O", "slope"])
def test_another_type_or_order_is_refused_rather_than_copied(name, dtype):
    case = make_case(6, 4, 2, 2, 3, dtype=dtype)
    part = getattr(case, name)
    other = part.astype(np.float64 if dtype is np.float32 else np.float32)
    for wrong in (other, np.asfortranarray(part), part.repeat(2, axis=0)[::2]):
        with pytest.raises(TypeError):
            backward(replace(case, **{name: wrong}))


@each_dtype
def test_results_go_into_memory_of_their_own_type_and_order(dtype):
    case = make_case(6, 4, 2, 2, 3, dtype=dtype)
    for out in (np.zeros((6, 2), np.int64), np.zeros((2, 6), dtype).T):
        with pytest.raises(TypeError):
            _native.tel_forward(*case.parts, out, *case.how)
    with pytest.raises(TypeError):
        _native.tel_reachable(case.X, case.W, case.b, np.zeros((6, 2), np.int64), *case.how)
