"""Closest points of polyhedra equal those of SciPy's solvers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from hardwood import _probes

INFINITY = np.inf


def polyhedron(rng: np.random.Generator, kind: str):
    n, h = int(rng.integers(1, 8)), int(rng.integers(0, 10))
    normals = rng.normal(size=(h, n))
    if kind == "sparse":
        normals *= rng.random((h, n)) < 0.4
    if kind == "whole":  # parallel normals, ties and corners where many planes meet
        normals = rng.integers(-1, 2, size=(h, n)).astype(float)
    normals = normals[(normals != 0).any(axis=1)]
    h = len(normals)
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    least = rng.integers(-2, 3, size=h).astype(float) if kind == "whole" else rng.normal(size=h)
    low = np.where(rng.random(n) < 0.5, -rng.integers(0, 3, size=n), -INFINITY)
    high = np.where(rng.random(n) < 0.5, rng.integers(0, 3, size=n), INFINITY)
    if rng.random() < 0.3:  # bounds that leave out the origin
        low = np.where(rng.random(n) < 0.3, 0.5, low)
        high = np.maximum(high, low)
    return normals / lengths, (least / lengths[:, 0]), low.astype(float), high.astype(float)


def by_linear_program(normals, least, low, high):
    """Return the least sum of absolute values, or None."""
    n = normals.shape[1]
    parts = np.hstack([normals, -normals])
    bounds = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    bounds += [(max(-b, 0), max(-a, 0)) for a, b in zip(low, high, strict=True)]
    if not len(parts):
        parts, least = np.zeros((1, 2 * n)), np.zeros(1)
    found = linprog(np.ones(2 * n), A_ub=-parts, b_ub=-least, bounds=bounds, method="highs")
    assert found.status in (0, 2), found.message
    return found.fun if found.status == 0 else None


def projection_gap(u, normals, least, low, high):
    """How much the point of least length could still be improved, from the optimality conditions.

    u is the projection of the origin if and only if no feasible v has u.(v - u) < 0.
    """
    bounds = list(zip(low, high, strict=True))
    if not len(normals):
        normals, least = np.zeros((1, len(u))), np.zeros(1)
    found = linprog(u, A_ub=-normals, b_ub=-least, bounds=bounds, method="highs")
    assert found.status == 0, found.message
    return u @ u - found.fun


def assert_inside(u, normals, least, low, high):
    assert (normals @ u >= least - 1e-9).all()
    assert (u >= low - 1e-9).all()
    assert (u <= high + 1e-9).all()


@pytest.mark.parametrize("kind", ["dense", "sparse", "whole"])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_closest_points_equal_scipys(kind, norm):
    rng = np.random.default_rng(0)
    n_empty = 0
    for _ in range(120):
        parts = polyhedron(rng, kind)
        least_sum = by_linear_program(*parts)
        u = _probes.closest_point(*parts, norm)
        if least_sum is None:
            assert u is None
            n_empty += 1
            continue
        assert u is not None
        assert_inside(u, *parts)
        if norm == "l1":
            assert np.abs(u).sum() == pytest.approx(least_sum, abs=1e-9)
        else:
            assert abs(projection_gap(u, *parts)) < 1e-8
    assert n_empty > 5


def test_the_origin_stays_where_it_may():
    for norm in ("l2", "l1"):
        u = _probes.closest_point(
            np.eye(2), -np.ones(2), np.full(2, -INFINITY), np.full(2, INFINITY), norm
        )
        assert u.tolist() == [0.0, 0.0]


def test_planes_of_almost_one_direction():
    """Two nearly parallel half-spaces, which meet far away."""
    normals = np.array([[1.0, 0.0], [1.0, 1e-6]])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    parts = (normals, np.array([1.0, 2.0]), np.array([-INFINITY, 0.0]), np.full(2, INFINITY))
    u = _probes.closest_point(*parts, "l2")
    assert_inside(u, *parts)
    assert u == pytest.approx([2.0, 2e-6])
    upside_down = (np.vstack([normals[0], -normals[1]]), np.array([1.0, -0.5]), *parts[2:])
    assert _probes.closest_point(*upside_down, "l2") is None


def test_a_thousand_coordinates():
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(12, 1000))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    parts = (normals, rng.random(12), np.full(1000, -0.1), np.full(1000, 0.1))
    for norm in ("l2", "l1"):
        u = _probes.closest_point(*parts, norm)
        assert_inside(u, *parts)
    assert np.abs(u).sum() == pytest.approx(by_linear_program(*parts), abs=1e-9)


def test_sizes_must_fit():
    with pytest.raises(ValueError, match="sizes differ"):
        _probes.closest_point(np.eye(2), np.ones(3), np.ones(2), np.ones(2), "l2")
    with pytest.raises(ValueError, match="norm must be l2 or l1"):
        _probes.closest_point(np.eye(2), np.ones(2), np.ones(2), np.ones(2), "l0")
