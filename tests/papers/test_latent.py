"""Claims of the latent trees paper: the program, Lemma 1, Propositions 1 and 2, the gradient.

Zantedeschi, Kusner, Niculae. Learning Binary Decision Trees by Argmin Differentiation. ICML 2021.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from hardwood import _native
from reference import latent


def solved(q, pruning):
    """Return traversals and activities of the engine."""
    activity, z = np.empty(q.shape[1]), np.empty(q.shape)
    group, curvature = np.empty(q.shape[1], np.int32), np.empty(q.shape[1])
    _native.latent_prune(q, True, pruning, activity, group, curvature)
    _native.latent_traverse(q, True, activity, z, 1)
    return z, activity, group, curvature


def by_generic_solver(q, pruning):
    """Solve Eq. (3) as it stands: z (n, nodes) and a (nodes,) at once."""
    n, n_nodes = q.shape

    def objective(x):
        z, a = x[n_nodes:].reshape(n, n_nodes), x[:n_nodes]
        rest = z - q - 0.5
        gradient = np.concatenate([pruning * a, rest.ravel()])
        return 0.5 * pruning * a @ a + 0.5 * (rest**2).sum(), gradient

    constraints = []
    for t in range(1, n_nodes):
        row = np.zeros(n_nodes * (n + 1))
        row[(t - 1) // 2], row[t] = 1.0, -1.0
        constraints.append(row)
    for i, t in itertools.product(range(n), range(n_nodes)):
        row = np.zeros(n_nodes * (n + 1))
        row[t], row[n_nodes * (i + 1) + t] = 1.0, -1.0
        constraints.append(row)
    matrix = np.array(constraints)
    found = minimize(
        objective,
        np.full(n_nodes * (n + 1), 0.5),
        jac=True,
        bounds=[(0, 1)] * (n_nodes * (n + 1)),
        constraints={"type": "ineq", "fun": lambda x: matrix @ x, "jac": lambda x: matrix},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.status in (0, 8)  # 8: no step is left that improves anything
    return found.x[n_nodes:].reshape(n, n_nodes), found.x[:n_nodes]


@pytest.mark.parametrize("pruning", [0.1, 1.3, 6.0])
@pytest.mark.parametrize("is_pooled", [False, True])
def test_the_program_is_solved(pruning, is_pooled):
    """Eq. (3), against a solver that knows nothing of trees; q that is pooled and that is not."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        q = latent.rewards(rng.normal(size=(5, 3)))
        if is_pooled:
            q = 0.4 * rng.normal(size=(5, 7)) + 0.1 * np.arange(7) - 0.3
        z, a, group, _ = solved(q, pruning)
        assert (len(np.unique(group)) < 7) == is_pooled
        expected_z, expected_a = by_generic_solver(q, pruning)
        np.testing.assert_allclose(a, expected_a, atol=1e-6)
        np.testing.assert_allclose(z, expected_z, atol=1e-6)


def test_without_relaxation_the_program_finds_the_path():
    """Lemma 1: the best z of Eq. (1), over all of {0, 1}^nodes, is the way down the hard tree."""
    rng = np.random.default_rng(1)
    every = np.array(list(itertools.product([0, 1], repeat=7)))
    every = every[every[:, 0] == 1]
    for scores in rng.normal(size=(50, 3)):
        best = every[np.argmax(every @ latent.rewards(scores[None])[0])]
        path = np.zeros(7)
        t = 0
        while t < 3:
            path[t] = 1
            t = 2 * t + 1 + (scores[t] >= 0)
        path[t] = 1
        assert (best == path).all()
        # With the relaxation, splits that are sure by more than the margin of 1/2 are as hard.
        sure = 0.5 * np.sign(scores) + scores
        z, _, _, _ = solved(latent.rewards(sure[None]), 0.0)
        assert (z == path).all()


@pytest.mark.parametrize("pruning", [0.2, 2.0, 50.0])
def test_a_group_is_solved_exactly(pruning):
    """Proposition 2: the activity of a single node minimizes its g_t."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        q = np.hstack([np.full((12, 1), 9.0), rng.normal(size=(12, 2)) - 9])
        q[:, 1] = rng.normal(size=12)
        v = q[:, 1] + 0.5

        def objective(a, v=v):
            return 0.5 * pruning * a**2 + 0.5 * (np.maximum(v - a, 0) ** 2).sum()

        _, a, group, _ = solved(q, pruning)
        if group[1] == 1:
            best = minimize_scalar(objective, bounds=(0, 1), options={"xatol": 1e-12})
            assert a[1] == pytest.approx(best.x, abs=1e-6)


def slopes(q, pruning, dz, da):
    _, a, group, curvature = solved(q, pruning)
    slope = np.empty_like(q)
    _native.latent_backward(q, True, a, group, curvature, dz, da, slope, 1)
    return slope


@pytest.mark.parametrize("pruning", [0.3, 1.48, 4.0, 20.0])
def test_the_gradient_is_that_of_finite_differences(pruning):
    """For any real lambda, with and without pooling."""
    rng = np.random.default_rng(3)
    step = 1e-6
    for scale, shift in ((0.6, 0.0), (0.3, 0.05)):
        q = scale * rng.normal(size=(6, 7)) + shift * np.arange(7)
        dz, da = rng.normal(size=(6, 7)), rng.normal(size=7)

        def value(q, dz=dz, da=da):
            z, a, _, _ = solved(q, pruning)
            return (dz * z).sum() + da @ a

        expected = np.empty_like(q)
        for at in np.ndindex(q.shape):
            moved = [q.copy(), q.copy()]
            moved[0][at] += step
            moved[1][at] -= step
            expected[at] = (value(moved[0]) - value(moved[1])) / (2 * step)
        np.testing.assert_allclose(slopes(q, pruning, dz, da), expected, atol=1e-5)


def test_the_gradient_of_activities_is_the_implicit_jacobian():
    """Section 3.2: 1 / (lambda |G| + k) for values in the support of the group, else nothing."""
    rng = np.random.default_rng(4)
    q = 0.3 * rng.normal(size=(9, 15)) + 0.02 * np.arange(15)
    pruning = 2.5
    _, a, group, _ = solved(q, pruning)
    assert 1 < len(np.unique(group)) < 15
    for t in range(15):
        da = np.zeros(15)
        da[t] = 1.0
        members = np.flatnonzero(group == group[t])
        support = (q + 0.5 > a) & np.isin(np.arange(15), members)
        expected = support / (pruning * len(members) + support.sum()) * (0 < a[t] < 1)
        np.testing.assert_allclose(slopes(q, pruning, np.zeros(q.shape), da), expected, atol=1e-14)


def test_the_paper_s_own_rewards_are_hardly_ever_pooled():
    """q is a minimum over the path, so a child's values never exceed its parent's."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        q = latent.rewards(rng.normal(size=(64, 15)))
        _, _, group, _ = solved(q, 0.3 * 64)
        assert (group == np.arange(31)).all()
