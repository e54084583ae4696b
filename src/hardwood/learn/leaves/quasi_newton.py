r"""Quasi-Newton steps for linear leaves with many coefficients.

A Newton step costs a matrix of all pairs of columns for each output. Here one matrix serves all
outputs and steps. It is :math:`H = L L^T`, about the Hessian of each output at the start
:math:`P_0` but for a factor :math:`s_o`. So the objective of :math:`u` in
:math:`P_o = P_{0,o} + L^{-T} u_o / \sqrt{s_o}` has about the same curvature in all directions, and
L-BFGS needs few steps. Each of them costs a product with the rows.

Nocedal, Wright. Numerical Optimization. 2006. (Chapter 7)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

_MAX_STEPS = 40
_WORTH_A_STEP = 1e-6  # of the objective
_MEMORY = 10  # steps that L-BFGS remembers

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""The value at P, and its slope by P."""


def descended(
    objective: Objective, P: np.ndarray, hessian: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Return about the minimum of a convex objective, starting from P.

    Parameters
    ----------
    objective
        What to minimize.
    P
        (k, c) the start.
    hessian
        (c, c) of the objective at the start, the mean of all outputs.
    size
        (k,) by how many times that of an output is larger.
    """
    M = np.linalg.inv(np.linalg.cholesky(hessian))  # L^-1
    length = 1.0 / np.sqrt(size)[:, None]

    def at(u: np.ndarray) -> np.ndarray:
        step: np.ndarray = (length * u.reshape(P.shape)) @ M
        return P + step

    def value_and_slope(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective(at(u))
        return value, (length * (slope @ M.T)).ravel()

    found = minimize(
        value_and_slope,
        np.zeros(P.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _MAX_STEPS, "ftol": _WORTH_A_STEP, "gtol": 0.0, "maxcor": _MEMORY},
    )
    return at(found.x)
