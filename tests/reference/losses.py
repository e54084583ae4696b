r"""NumPy reference of the engine's losses: value per sample and gradient, in float64.

Every function takes the prediction ``f (n, k)`` as the leaves hold it, before the link, and the
target. A value is ``(n,)``, a gradient ``(n, k)``. Losses of several outputs are *means* over the
outputs, so that a loss reads the same for one output and for ten equal ones; those of coded classes
are sums, since all outputs stand for one target.

================  ============  ========  ======================================================
name              target        link      value of one output, r = abs(f - y)
================  ============  ========  ======================================================
squared_error     (n, k)        identity  r^2
absolute_error    (n, k)        identity  r
huber             (n, k)        identity  r^2 / 2 for r <= delta, else delta (r - delta / 2)
quantile          (n, k)        identity  level (y - f) for y > f, else (1 - level) (f - y)
poisson           (n, k)        exp       exp(f) - y f
logistic          (n, k) 0, 1   sigmoid   log(1 + exp(f)) - y f
cross_entropy     (n,) class    softmax   log(sum(exp(f))) - f_y
hinge             (n,) class              sum of max(0, 1 - code f), code 1 for y, else -1
squared_codes     (n,) class              sum of (f - code)^2
================  ============  ========  ======================================================

At a kink (f = y) the gradient of the absolute and of the quantile loss is 0: a sample that is met
exactly does not pull.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


def _residual(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    f = np.asarray(f, dtype=np.float64)
    return f - np.asarray(y, dtype=np.float64).reshape(f.shape)


def squared_error(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(f - y)^2, mean over outputs."""
    return (_residual(f, y) ** 2).mean(axis=1)


def squared_error_gradient(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """2 (f - y) / k."""
    r = _residual(f, y)
    return 2.0 * r / r.shape[1]


def absolute_error(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|f - y|, mean over outputs."""
    return np.abs(_residual(f, y)).mean(axis=1)


def absolute_error_gradient(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """sign(f - y) / k, with 0 at f = y."""
    r = _residual(f, y)
    return np.sign(r) / r.shape[1]


def huber(f: np.ndarray, y: np.ndarray, delta: float = 1.35) -> np.ndarray:
    """Quadratic within delta of the target, linear beyond; mean over outputs."""
    r = np.abs(_residual(f, y))
    return np.where(r <= delta, 0.5 * r**2, delta * (r - 0.5 * delta)).mean(axis=1)


def huber_gradient(f: np.ndarray, y: np.ndarray, delta: float = 1.35) -> np.ndarray:
    """(f - y) cut to [-delta, delta], over k."""
    r = _residual(f, y)
    return np.clip(r, -delta, delta) / r.shape[1]


def quantile(f: np.ndarray, y: np.ndarray, level: float = 0.5) -> np.ndarray:
    """Pinball loss, whose minimizer is the quantile at ``level``; mean over outputs."""
    r = _residual(f, y)
    return np.where(r < 0, -level * r, (1.0 - level) * r).mean(axis=1)


def quantile_gradient(f: np.ndarray, y: np.ndarray, level: float = 0.5) -> np.ndarray:
    """-level below the target, 1 - level above it, 0 on it; over k."""
    r = _residual(f, y)
    return np.where(r < 0, -level, np.where(r > 0, 1.0 - level, 0.0)) / r.shape[1]


def poisson(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """exp(f) - y f: the negative log-likelihood of a count, up to log(y!); mean over outputs."""
    f = np.asarray(f, dtype=np.float64)
    return (np.exp(f) - np.asarray(y, dtype=np.float64).reshape(f.shape) * f).mean(axis=1)


def poisson_gradient(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(exp(f) - y) / k."""
    f = np.asarray(f, dtype=np.float64)
    return _residual(np.exp(f), y) / f.shape[1]


def logistic(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log(1 + exp(f)) - y f for labels y in {0, 1}, one or several; mean over them."""
    f = np.asarray(f, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64).reshape(f.shape)
    return (np.logaddexp(0.0, f) - y * f).mean(axis=1)


def logistic_gradient(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(sigma(f) - y) / k."""
    f = np.asarray(f, dtype=np.float64)
    e = np.exp(-np.abs(f))  # never overflows
    return _residual(np.where(f >= 0, 1.0, e) / (1.0 + e), y) / f.shape[1]


def cross_entropy(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log(sum_c exp(f_c)) - f_y for the class index y."""
    f, y = np.asarray(f, dtype=np.float64), np.asarray(y).ravel().astype(np.int64)
    top = f.max(axis=1)
    return top + np.log(np.exp(f - top[:, None]).sum(axis=1)) - f[np.arange(len(f)), y]


def cross_entropy_gradient(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """softmax(f) - e_y."""
    f, y = np.asarray(f, dtype=np.float64), np.asarray(y).ravel().astype(np.int64)
    p = np.exp(f - f.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(f)), y] -= 1.0
    return p


def _codes(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """1 at the class of a row, -1 elsewhere, (n, k)."""
    y = np.asarray(y).ravel().astype(np.int64)
    return np.where(np.arange(f.shape[1]) == y[:, None], 1.0, -1.0)


def hinge(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """max(0, 1 - code f), summed over the classes."""
    f = np.asarray(f, dtype=np.float64)
    return np.maximum(0.0, 1.0 - _codes(f, y) * f).sum(axis=1)


def hinge_gradient(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """-code where code f < 1."""
    f = np.asarray(f, dtype=np.float64)
    codes = _codes(f, y)
    return np.where(codes * f < 1.0, -codes, 0.0)


def squared_codes(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(f - code)^2, summed over the classes."""
    f = np.asarray(f, dtype=np.float64)
    return ((f - _codes(f, y)) ** 2).sum(axis=1)


def squared_codes_gradient(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """2 (f - code)."""
    f = np.asarray(f, dtype=np.float64)
    return 2.0 * (f - _codes(f, y))


class ReferenceLoss(NamedTuple):
    """A loss as a pair of functions."""

    value: Callable[..., np.ndarray]
    gradient: Callable[..., np.ndarray]


LOSSES: dict[str, ReferenceLoss] = {
    "squared_error": ReferenceLoss(squared_error, squared_error_gradient),
    "absolute_error": ReferenceLoss(absolute_error, absolute_error_gradient),
    "huber": ReferenceLoss(huber, huber_gradient),
    "quantile": ReferenceLoss(quantile, quantile_gradient),
    "poisson": ReferenceLoss(poisson, poisson_gradient),
    "logistic": ReferenceLoss(logistic, logistic_gradient),
    "cross_entropy": ReferenceLoss(cross_entropy, cross_entropy_gradient),
    "hinge": ReferenceLoss(hinge, hinge_gradient),
    "squared_codes": ReferenceLoss(squared_codes, squared_codes_gradient),
}
