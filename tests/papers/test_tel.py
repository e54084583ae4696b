"""Claims of the TEL paper (Hazimeh et al., ICML 2020), held against the NumPy reference.

The definition that the conditional passes are compared with is written anew in torch, from Eq. (1)
to (4), and differentiated by autograd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import dgt, tel

# Of single precision, so that small multiples of half of them are exact in float64.
GAMMAS = [float(np.float32(gamma)) for gamma in (1e-4, 1e-2, 0.1, 1.0, 10.0)]
SMOOTH = ["smooth_step", "smooth_step_5"]
DEPTHS = range(1, 7)
each_gamma = pytest.mark.parametrize("gamma", GAMMAS, ids="{:.0e}".format)
each_smooth_step = pytest.mark.parametrize("activation", SMOOTH)

seeds = st.integers(0, 2**32 - 1)
gammas = st.sampled_from(GAMMAS)
activations = st.sampled_from(tel.ACTIVATIONS)
some = settings(max_examples=40)


@dataclass(frozen=True)
class Case:
    """Samples, an ensemble, and a slope of the loss by the output."""

    X: np.ndarray
    W: np.ndarray
    b: np.ndarray
    O: np.ndarray
    slope: np.ndarray

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.X, self.W, self.b, self.O

    @property
    def splits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.X, self.W, self.b

    @property
    def scores(self) -> np.ndarray:
        return tel.scores(*self.splits)


def random_case(depth: int, n: int = 25, T: int = 3, k: int = 2, seed: int = 0) -> Case:
    """Scores of about unit size, some of which are very near to zero: a small gamma finds them."""
    rng = np.random.default_rng([depth, n, T, k, seed])
    m, d = 2**depth - 1, 4
    W, b = rng.normal(size=(T, m, d)) / 2, rng.normal(size=(T, m)) / 2
    size = 10.0 ** rng.uniform(-5, 0, size=(T, m))
    return Case(
        X=rng.normal(size=(n, d)),
        W=W * size[:, :, None],
        b=b * size,
        O=rng.normal(size=(T, m + 1, k)),
        slope=rng.normal(size=(n, k)),
    )


def case_at_the_edges(
    depth: int, gamma: float, n: int = 40, T: int = 3, k: int = 2, seed: int = 0
) -> Case:
    """Scores that are multiples of gamma/8 without a rounding error: many at -+gamma/2, and at 0.

    Weights and biases are whole numbers, samples whole multiples of gamma/8 with a constant one at
    the end to carry the bias.
    """
    rng = np.random.default_rng([depth, n, T, k, seed])
    m, d = 2**depth - 1, 3
    X = gamma / 8 * rng.integers(-2, 3, size=(n, d))
    X[:, -1] = gamma / 8
    return Case(
        X=X,
        W=rng.integers(-2, 3, size=(T, m, d)).astype(np.float64),
        b=np.zeros((T, m)),
        O=rng.normal(size=(T, m + 1, k)),
        slope=rng.normal(size=(n, k)),
    )


def cases(depth: int, gamma: float) -> list[Case]:
    return [random_case(depth), case_at_the_edges(depth, gamma)]


def test_the_cases_hold_what_they_promise():
    for gamma in GAMMAS:
        t = case_at_the_edges(5, gamma).scores
        assert np.isin(t, gamma / 8 * np.arange(-10, 11)).all()
        for edge in (-gamma / 2, gamma / 2, 0.0):
            assert (t == edge).sum() > 100
        inside = np.abs(random_case(5).scores) < gamma / 2
        assert inside.mean() > 0.01
        assert gamma == 10 or inside.mean() < 1


# The smooth step, Eq. (4)


@each_gamma
def test_the_smooth_step_is_equation_4(gamma):
    t = np.linspace(-gamma, gamma, 4001)
    cubic = -2 / gamma**3 * t**3 + 3 / (2 * gamma) * t + 0.5
    expected = np.where(t <= -gamma / 2, 0.0, np.where(t >= gamma / 2, 1.0, cubic))
    np.testing.assert_allclose(tel.smooth_step(t, gamma), expected, atol=2e-15)


@each_smooth_step
@each_gamma
def test_shares_are_exactly_zero_and_one_outside_of_the_band_and_fractional_inside(
    gamma, activation
):
    edge = gamma / 2
    outside = np.array([edge, np.nextafter(edge, np.inf), 3 * edge, np.inf])
    np.testing.assert_array_equal(tel.activate(outside, gamma, activation), 1.0)
    np.testing.assert_array_equal(tel.activate(-outside, gamma, activation), 0.0)
    for t in (outside, -outside):
        np.testing.assert_array_equal(tel.activate_derivative(t, gamma, activation), 0.0)
    inside = np.array([0.0, np.nextafter(edge, 0.0), -np.nextafter(edge, 0.0)])
    for t in (inside, -inside):
        assert (tel.activate(t, gamma, activation) > 0).all()
        assert (tel.activate_derivative(t, gamma, activation) > 0).all()


@some
@given(st.floats(-2, 2), gammas, activations)
def test_the_share_to_the_left_is_the_share_to_the_right_of_the_mirror_image(u, gamma, activation):
    t = u * gamma
    right, left = tel.activate(t, gamma, activation), tel.activate(-t, gamma, activation)
    assert right + left == pytest.approx(1.0, abs=1e-15)
    slopes = [tel.activate_derivative(s * t, gamma, activation) for s in (1, -1)]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("activation", tel.ACTIVATIONS)
@each_gamma
def test_derivatives_of_the_activations_by_finite_differences(gamma, activation):
    """Over the band, its edges and beyond: once differentiable everywhere."""
    t, step = gamma * np.linspace(-1, 1, 801), 1e-6 * gamma
    difference = tel.activate(t + step, gamma, activation) - tel.activate(
        t - step, gamma, activation
    )
    np.testing.assert_allclose(
        gamma * tel.activate_derivative(t, gamma, activation), difference / 2e-6, atol=4e-6
    )


@each_gamma
def test_order_5_is_twice_differentiable_and_order_3_is_not(gamma):
    """Second derivatives inside of the edge, as the distance from it goes to zero; outside, 0."""
    distances = np.array([1e-2, 1e-3, 1e-4]) * gamma
    for sign in (-1, 1):
        edge = sign * gamma / 2
        second = {
            order: np.abs(tel.smooth_step_derivative(edge - sign * distances, gamma, order))
            / distances
            for order in (3, 5)
        }
        np.testing.assert_allclose(second[3][-1] * gamma**2, 6.0, rtol=1e-3)  # jumps
        np.testing.assert_allclose(second[5] * gamma**2, 30 * distances / gamma, rtol=0.05)


def test_the_degrees_that_there_are():
    for function in (tel.smooth_step, tel.smooth_step_derivative):
        with pytest.raises(ValueError, match="order 3 or 5"):
            function(0.0, 1.0, 4)


def test_figure_1_the_logistic_of_the_same_scale_is_near_in_the_middle():
    """Smooth step of gamma = 1 beside 1 / (1 + exp(-6 t)); the latter is never 0 or 1."""
    t = np.linspace(-0.5, 0.5, 101)
    logistic = tel.activate(t, 1 / 6, "logistic")
    np.testing.assert_allclose(logistic, 1 / (1 + np.exp(-6 * t)), rtol=1e-14)
    gap = np.abs(tel.smooth_step(t, 1.0) - logistic)
    assert gap.max() < 0.06
    assert gap[35:66].max() < 0.01
    assert logistic.min() > 0.04


def test_single_precision_loses_the_edges_of_equation_4_as_it_is_written():
    """Why the reference and the kernels evaluate u^2 (3 - 2u), and S(-t) instead of 1 - S(t)."""
    one = np.float32(1)
    u = np.geomspace(1e-7, 1e-3, 2000).astype(np.float32)
    t = u - one / 2
    cubic = -2 * t * t * t + np.float32(1.5) * t + one / 2
    u = t + one / 2  # what is left of it
    lost = (cubic <= 0) & (u > 0)
    factored = u * u * (3 - 2 * u)
    slope = 6 * u * (1 - u)
    assert slope[lost].max() > 5e-4  # of at most 1.5: what "0 < S < 1" would leave out
    assert (factored[u > 0] > 0).all()
    assert (one - factored[lost] == 1).any()  # and on the other side, 1 - S with S near 1
    exact = u.astype(np.float64) ** 2 * (3 - 2 * u.astype(np.float64))
    np.testing.assert_allclose(factored, exact, rtol=3e-7)


# The layer, Eq. (1) to (3)


@some
@given(st.integers(1, 6), gammas, activations, seeds)
def test_leaf_probabilities_sum_to_one(depth, gamma, activation, seed):
    for case in (random_case(depth, 6, seed=seed), case_at_the_edges(depth, gamma, 6, seed=seed)):
        P = tel.leaf_probabilities(case.scores, gamma, activation)
        assert (P >= 0).all()
        np.testing.assert_allclose(P.sum(axis=2), 1.0, rtol=1e-13)
        m = case.W.shape[1]
        downwards = tel.node_probabilities(case.scores, gamma, activation)
        np.testing.assert_allclose(P, downwards[:, :, m:], rtol=1e-12, atol=1e-300)
        below = downwards[:, :, 1::2] + downwards[:, :, 2::2]
        np.testing.assert_allclose(below, downwards[:, :, :m], rtol=1e-13, atol=1e-300)


def test_leaves_and_their_ancestors():
    assert tel.ancestors(0, 3) == [(0, False), (1, False), (3, False)]
    assert tel.ancestors(5, 3) == [(0, True), (2, False), (5, True)]
    for depth in DEPTHS:
        paths = [[i for i, _ in tel.ancestors(l, depth)] for l in range(2**depth)]
        np.testing.assert_array_equal(np.transpose(paths), dgt.predecessors(depth))


def test_the_output_is_a_sum_over_trees():
    case = random_case(3, T=4)
    trees = [(case.W[[j]], case.b[[j]], case.O[[j]]) for j in range(4)]
    alone = sum(tel.forward(case.X, *tree, gamma=0.3) for tree in trees)
    np.testing.assert_allclose(tel.forward(*case.parts, gamma=0.3), alone, rtol=1e-12)


def share_at(u: float) -> float:
    """Score, in units of gamma, at which a smooth step has this share."""
    roots = np.roots([-2.0, 0.0, 1.5, 0.5 - u])
    return float(roots[np.abs(roots) <= 0.5].real[0])


def test_the_example_of_appendix_c():
    """Figure C.1: depth 4, three reachable leaves of 0.8 * 0.3, 0.8 * 0.7 and 0.2, T(x) = -0.34.

    So the root is fractional, and one split below it on the side of the 0.8, here two levels down.
    """
    m = 15
    b = np.full((1, m), -1.0)  # to the left, for certain
    b[0, 0], b[0, 3] = share_at(0.2), share_at(0.7)
    b[0, 2] = 1.0
    O = np.full((1, 16, 1), 100.0)
    O[0, [0, 2, 12], 0] = 1.5, -2.0, 2.1
    X, W = np.ones((1, 1)), np.zeros((1, m, 1))
    assert tel.forward(X, W, b, O, 1.0)[0, 0] == pytest.approx(-0.34, abs=1e-12)
    output, prob = tel.conditional_forward(X[0], W[0], b[0], O[0], 1.0, "smooth_step")
    assert output[0] == pytest.approx(-0.34, abs=1e-12)
    assert sorted(i - m for i in prob if i >= m) == [0, 2, 12]
    assert tel.reachable_leaves(X, W, b, 1.0, "smooth_step") == 3
    F = tel.fractional_nodes(X, W, b, 1.0, "smooth_step")
    assert np.flatnonzero(F).tolist() == [0, 3]
    assert sum(i < m for i in prob) == 8  # the forward pass visits more splits than there are in F


# Conditional computation, Sec. 3


@each_smooth_step
@each_gamma
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_algorithm_1_is_the_definition_and_visits_what_can_be_reached(depth, gamma, activation):
    for case in cases(depth, gamma):
        m, tree_outputs = case.W.shape[1], np.zeros_like(case.slope)
        visited = tel.reached(case.scores, gamma, activation)
        for i, x in enumerate(case.X):
            for j, tree in enumerate(zip(case.W, case.b, case.O, strict=True)):
                output, prob = tel.conditional_forward(x, *tree, gamma, activation)
                tree_outputs[i] += output
                assert sorted(prob) == np.flatnonzero(visited[i, j]).tolist()
        expected = tel.forward(*case.parts, gamma, activation)
        np.testing.assert_allclose(tree_outputs, expected, rtol=1e-10, atol=1e-12)
        U = tel.reachable_leaves(*case.splits, gamma, activation)
        np.testing.assert_array_equal(U, visited[:, :, m:].sum(axis=2))


@some
@given(st.integers(1, 7), gammas, activations, seeds)
def test_fractional_splits_are_one_less_than_reachable_leaves(depth, gamma, activation, seed):
    """|F| = U - 1, for every sample and tree: the discussion after Definition 1."""
    for case in (random_case(depth, 8, seed=seed), case_at_the_edges(depth, gamma, 8, seed=seed)):
        U = tel.reachable_leaves(*case.splits, gamma, activation)
        F = tel.fractional_nodes(*case.splits, gamma, activation)
        np.testing.assert_array_equal(F.sum(axis=2), U - 1)
        assert (U >= 1).all()
        if activation != "logistic":
            inside = np.abs(case.scores) < gamma / 2
            reached = tel.reached(case.scores, gamma, activation)[:, :, : case.W.shape[1]]
            np.testing.assert_array_equal(F, inside & reached)


@each_gamma
def test_the_logistic_activation_reaches_every_leaf(gamma):
    """Which is why soft trees cost 2^depth; some shares are 0 in floating point, none in fact."""
    case = random_case(4)
    assert (tel.reachable_leaves(*case.splits, gamma, "logistic") == 16).all()
    assert tel.fractional_nodes(*case.splits, gamma, "logistic").all()


def test_the_cases_reach_from_one_leaf_to_all():
    found = {
        gamma: tel.reachable_leaves(*random_case(6).splits, gamma, "smooth_step")
        for gamma in GAMMAS
    }
    assert found[GAMMAS[0]].min() == 1
    assert found[GAMMAS[-1]].min() == 64
    means = [U.mean() for U in found.values()]
    assert means == sorted(means)
    at_the_edges = tel.reachable_leaves(*case_at_the_edges(6, 0.1).splits, 0.1, "smooth_step")
    assert at_the_edges.min() < 10 < at_the_edges.max()


@some
@given(st.integers(1, 6), gammas, st.sampled_from(SMOOTH), seeds)
def test_what_is_not_reached_gets_exactly_no_gradient(depth, gamma, activation, seed):
    """Theorem 1: dL/dw_i = 0 outside of F and dL/do_l = 0 outside of R; here, for one sample."""
    case = random_case(depth, 1, seed=seed)
    _, dW, db, dO = tel.backward(*case.parts, case.slope, gamma, activation)
    F = tel.fractional_nodes(*case.splits, gamma, activation)[0]
    R = tel.reached(case.scores, gamma, activation)[0, :, F.shape[1] :]
    assert not dW[~F].any()
    assert not db[~F].any()
    assert not dO[~R].any()
    assert (db[F] != 0).all()
    assert dO[R].any(axis=1).all()


# Theorem 1


def dense_output(torch, X, W, b, O, gamma: float, activation: str):
    """Eq. (1) to (4), every leaf of every tree, with S to the right."""
    t = torch.einsum("nd,tmd->ntm", X, W) + b
    if activation == "smooth_step":
        polynomial = -2 / gamma**3 * t**3 + 3 / (2 * gamma) * t + 0.5
    else:
        u = t / gamma + 0.5
        polynomial = 6 * u**5 - 15 * u**4 + 10 * u**3
    zero, one = torch.zeros_like(t), torch.ones_like(t)
    S = torch.where(t <= -gamma / 2, zero, torch.where(t >= gamma / 2, one, polynomial))
    if activation == "logistic":
        S = torch.sigmoid(t / gamma)
    depth = dgt.height_of(W.shape[1])
    total = 0
    for l in range(2**depth):
        P = torch.ones_like(t[:, :, 0])
        for i, is_right in tel.ancestors(l, depth):
            P = P * (S[:, :, i] if is_right else 1 - S[:, :, i])
        total = total + P @ O[:, l]
    return total


@pytest.fixture
def torch():
    """On one thread: torch's threads wait long for each other on a busy machine."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(before)


def autograd(
    torch, case: Case, gamma: float, activation: str
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Output of the definition, and gradients of <slope, output> by X, W, b and O."""
    parts = [torch.tensor(part, requires_grad=True) for part in case.parts]
    output = dense_output(torch, *parts, gamma, activation)
    (output * torch.tensor(case.slope)).sum().backward()
    return output.detach().numpy(), [part.grad.numpy() for part in parts]


def conditional(case: Case, gamma: float, activation: str, one_tree) -> list[np.ndarray]:
    """Gradients of all samples and trees, from a function of one sample and one tree."""
    sums = [np.zeros_like(part) for part in case.parts]
    for i, (x, slope) in enumerate(zip(case.X, case.slope, strict=True)):
        for j, tree in enumerate(zip(case.W, case.b, case.O, strict=True)):
            dx, *others = one_tree(x, *tree, slope, gamma, activation)
            sums[0][i] += dx
            for total, part in zip(sums[1:], others, strict=True):
                total[j] += part
    return sums


def assert_close(found, expected, tolerance: float) -> None:
    """Within a part of the largest entry, whose size is that of 1/gamma and of X or W."""
    for part, a, e in zip(("dX", "dW", "db", "dO"), found, expected, strict=True):
        size = max(np.abs(e).max(), 1e-300)
        np.testing.assert_allclose(a / size, e / size, rtol=0, atol=tolerance, err_msg=part)


@each_smooth_step
@each_gamma
@pytest.mark.parametrize("depth", DEPTHS)
def test_theorem_1_the_conditional_gradient_is_that_of_the_dense_definition(
    depth, gamma, activation, torch
):
    """Also for samples whose scores are exactly -+gamma/2: there S is 0 or 1 and S' is 0."""
    for case in cases(depth, gamma):
        output, expected = autograd(torch, case, gamma, activation)
        np.testing.assert_allclose(
            tel.forward(*case.parts, gamma, activation), output, rtol=1e-10, atol=1e-11
        )
        found = tel.backward(*case.parts, case.slope, gamma, activation)
        assert_close(found, expected, 1e-10)
        assert np.abs(expected[2]).max() > 0


@each_gamma
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_the_logistic_activation_has_its_dense_gradient(depth, gamma, torch):
    case = random_case(depth)
    output, expected = autograd(torch, case, gamma, "logistic")
    np.testing.assert_allclose(tel.forward(*case.parts, gamma, "logistic"), output, rtol=1e-10)
    found = tel.backward(*case.parts, case.slope, gamma, "logistic")
    assert_close(found, expected, 1e-10)


@pytest.mark.parametrize("one_tree", [tel.theorem_1, tel.conditional_backward])
@each_smooth_step
@each_gamma
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_sums_and_divisions_of_the_paper_are_the_recursion_without_a_division(
    depth, gamma, activation, one_tree
):
    for case in (random_case(depth, 8), case_at_the_edges(depth, gamma, 8)):
        expected = tel.backward(*case.parts, case.slope, gamma, activation)
        assert_close(conditional(case, gamma, activation, one_tree), expected, 1e-12)


@some
@given(st.integers(1, 5), gammas, activations, seeds)
def test_what_all_leaves_share_pulls_no_split(depth, gamma, activation, seed):
    case = random_case(depth, 5, seed=seed)
    shared = np.random.default_rng(seed).normal(size=(3, 1, 2))
    dt, moved = (
        tel.score_gradient(case.scores, O, case.slope, gamma, activation)
        for O in (case.O, case.O + shared)
    )
    np.testing.assert_allclose(gamma * moved, gamma * dt, atol=1e-12)


@some
@given(st.integers(1, 5), gammas, activations, seeds)
def test_gradients_of_a_batch_are_the_sums_of_its_samples(depth, gamma, activation, seed):
    case = random_case(depth, 4, seed=seed)
    dX, *whole = tel.backward(*case.parts, case.slope, gamma, activation)
    alone = [
        tel.backward(case.X[[i]], case.W, case.b, case.O, case.slope[[i]], gamma, activation)
        for i in range(4)
    ]
    np.testing.assert_allclose(dX * gamma, np.vstack([a[0] for a in alone]) * gamma, atol=1e-12)
    for part, parts in zip(whole, list(zip(*alone, strict=True))[1:], strict=True):
        np.testing.assert_allclose(part * gamma, sum(parts) * gamma, atol=1e-12)


def mirrored(nodes: np.ndarray) -> np.ndarray:
    """Splits (T, m, ...) with left and right exchanged everywhere: levels back to front."""
    depth = dgt.height_of(nodes.shape[1])
    levels = [nodes[:, 2**i - 1 : 2 ** (i + 1) - 1][:, ::-1] for i in range(depth)]
    return np.concatenate(levels, axis=1)


@some
@given(st.integers(1, 5), gammas, activations, seeds)
def test_left_and_right_are_names(depth, gamma, activation, seed):
    """The paper's convention, S to the left, is ours with negated splits and leaves in reverse."""
    case = random_case(depth, 5, seed=seed)
    other = mirrored(-case.W), mirrored(-case.b), case.O[:, ::-1]
    np.testing.assert_allclose(
        tel.forward(case.X, *other, gamma, activation),
        tel.forward(*case.parts, gamma, activation),
        atol=1e-13,
    )


# gamma to zero


@each_smooth_step
@pytest.mark.parametrize("depth", DEPTHS)
def test_gamma_to_zero_is_the_hard_tree(depth, activation):
    case = random_case(depth, n=60)
    t = case.scores
    leaves = np.stack([dgt.leaf_of(t[:, j]) for j in range(len(case.W))])  # right when t >= 0
    hard = sum(O[leaf] for O, leaf in zip(case.O, leaves, strict=True))
    gamma = 1.99 * np.abs(t).min()  # no score is inside the band
    np.testing.assert_array_equal(tel.reachable_leaves(*case.splits, gamma, activation), 1)
    np.testing.assert_allclose(tel.forward(*case.parts, gamma, activation), hard, rtol=1e-12)
    gaps = [np.abs(tel.forward(*case.parts, g, activation) - hard).mean() for g in (10, 1e-3, 1e-7)]
    assert gaps[0] > gaps[1] > gaps[2]
    _, dW, db, _ = tel.backward(*case.parts, case.slope, gamma, activation)
    assert not dW.any()
    assert not db.any()


@pytest.mark.parametrize("activation", tel.ACTIVATIONS)
@pytest.mark.parametrize("gamma", [1e-300, 1e-4, 1.0])
def test_a_score_of_zero_goes_both_ways_by_halves_however_small_gamma_is(gamma, activation):
    """A hardened tree sends it right: hardening is not the limit there, but half of it."""
    X, W, b = np.ones((1, 2)), np.array([[[1.0, -1.0]]]), np.zeros((1, 1))
    O = np.array([[[2.0], [5.0]]])
    assert tel.forward(X, W, b, O, gamma, activation)[0, 0] == 3.5
    assert O[0, dgt.leaf_of(tel.scores(X, W, b)[:, 0])[0], 0] == 5.0
    assert tel.reachable_leaves(X, W, b, gamma, activation) == 2


# Batch normalization before the layer


def test_a_normalized_batch_has_mean_zero_and_nearly_unit_variance():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(3.0, [0.01, 1.0, 100.0], size=(200, 3)), rng.uniform(0, 2, size=200)
    Z = tel.batch_normalized(X, weight)
    np.testing.assert_allclose(np.average(Z, axis=0, weights=weight), 0.0, atol=1e-9)
    variance = np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    np.testing.assert_allclose(
        np.average(Z**2, axis=0, weights=weight), variance / (variance + 1e-3), rtol=1e-9
    )


def test_a_sample_of_weight_two_is_two_samples():
    X = np.random.default_rng(0).normal(size=(5, 3))
    weight = np.array([1.0, 2.0, 0.0, 1.0, 1.0])
    repeated = tel.batch_normalized(X[[0, 1, 1, 3, 4]], np.ones(5))
    np.testing.assert_allclose(tel.batch_normalized(X, weight)[[0, 1, 1, 3, 4]], repeated)


def test_unit_weights_are_the_batch_norm_of_torch(torch):
    X = np.random.default_rng(0).normal(2.0, 3.0, size=(40, 5))
    norm = torch.nn.BatchNorm1d(5, eps=1e-3, affine=False).double().train()
    np.testing.assert_allclose(
        tel.batch_normalized(X, np.ones(40)), norm(torch.tensor(X)).numpy(), rtol=1e-10, atol=1e-12
    )


def test_a_constant_column_is_normalized_to_zero():
    X = np.full((10, 1), 7.0)
    np.testing.assert_allclose(tel.batch_normalized(X, np.ones(10)), 0.0, atol=1e-12)


def test_folded_splits_have_the_same_scores():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(3.0, [0.1, 1.0, 20.0], size=(30, 3)), rng.uniform(0.1, 2, size=30)
    W, b = rng.normal(size=(2, 7, 3)), rng.normal(size=(2, 7))
    np.testing.assert_allclose(
        tel.scores(X, *tel.folded(W, b, *tel.batch_statistics(X, weight))),
        tel.scores(tel.batch_normalized(X, weight), W, b),
        rtol=1e-9,
        atol=1e-10,
    )
