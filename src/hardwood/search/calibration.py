r"""Fit a recalibration to predictions for held-out rows.

Platt. Probabilistic Outputs for Support Vector Machines. 1999; Guo, Pleiss, Sun, Weinberger. On
Calibration of Modern Neural Networks. ICML 2017.

For two classes it is a slope and a constant of the log odds; for more, one slope (the inverse of a
temperature) and an offset per class; for several labels, each label is treated as two classes. It
minimizes

.. math:: \sum_i w_i\, \ell_i(a, b) + \frac{\lambda}{2} \big((a - 1)^2 + |b|^2\big)

where the weights are in rows, so that with few rows hardly anything changes. The slope stays above
0: a larger probability stays the larger one.
"""

from __future__ import annotations

import numpy as np

from hardwood.model.edit.recalibration import Recalibration
from hardwood.model.structure import TaskKind

_PENALTY = 50.0  # lambda: about as many rows speak for the probabilities as they are
_LEAST_SLOPE = 0.01
_LEAST_PROBABILITY = 1e-12  # probabilities of 0 count as this


def fit_recalibration(
    outputs: np.ndarray, truth: np.ndarray, weight: np.ndarray, task: TaskKind
) -> Recalibration:
    """Fit a recalibration.

    Parameters
    ----------
    outputs
        (n, k) probabilities of classes or labels.
    truth
        (n, 1) class indices, or (n, k) zeros and ones.
    weight
        (n,) row weights, in any unit.
    task
        "classification" or "multilabel".
    """
    rows = weight * (len(weight) / weight.sum())
    if task == "classification":
        slope, offset = _fitted(outputs, truth[:, 0].astype(np.int64), rows)
        return Recalibration(np.array([slope]), offset)
    lines = []
    for share, label in zip(outputs.T, truth.T.astype(np.int64), strict=True):
        slope, offset = _fitted(np.stack([1 - share, share], axis=1), label, rows)
        lines.append((slope, offset[1] - offset[0]))
    slopes, constants = np.array(lines).T
    return Recalibration(slopes, constants)


def _fitted(outputs: np.ndarray, label: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
    """Return slope and offsets (k,) for probabilities (n, k) of classes."""
    from scipy.optimize import minimize

    scores = np.log(np.maximum(outputs, _LEAST_PROBABILITY))  # (n, k)
    k = scores.shape[1]
    is_true = np.eye(k)[label]

    def objective(line: np.ndarray) -> tuple[float, np.ndarray]:
        slope, offset = line[0], line[1:]
        changed = slope * scores + offset
        changed -= changed.max(axis=1, keepdims=True)
        log_sum = np.log(np.exp(changed).sum(axis=1))
        loss = (weight * (log_sum - (changed * is_true).sum(axis=1))).sum()
        by_row = weight[:, None] * (np.exp(changed - log_sum[:, None]) - is_true)
        gradient = np.array([(by_row * scores).sum(), *by_row.sum(axis=0)])
        away = np.array([slope - 1.0, *offset])
        return loss + _PENALTY / 2 * (away**2).sum(), gradient + _PENALTY * away

    start = np.array([1.0, *np.zeros(k)])
    bounds = [(_LEAST_SLOPE, None), *[(None, None)] * k]
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.x[0]), found.x[1:]
