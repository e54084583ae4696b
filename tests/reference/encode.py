"""NumPy reference of the engine's encoder: from a table to the columns that a split multiplies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from hardwood.table import Schema

LARGEST = float(np.finfo(np.float32).max)  # finite values stay finite in float32


def encode(schema: Schema, matrix: np.ndarray | csr_matrix) -> np.ndarray:
    """Encode a matrix that `Schema.read` returned, entry by entry.

    Parameters
    ----------
    schema
        Its layout says which columns a feature has.
    matrix
        (n, p) float32 or float64 without infinities; NaN is a missing entry, a categorical entry
        is the position of its level, and missing where there is no such level.

    Returns
    -------
    columns
        (n, c) float32. Value columns: :math:`(x - center) / scale` in float64, clamped to the
        range of float32 and rounded once to it. Indicator and flag columns: 0 or 1. A missing entry
        has value 0 or all indicators 0, and flag 1 where there is a flag column.
    """
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    columns = np.zeros((dense.shape[0], schema.n_columns), np.float32)
    for i, row in enumerate(dense):
        for j, feature in enumerate(schema.features):
            x = float(row[j])
            first, flag = schema.first_column[j], schema.flag_column[j]
            is_unknown = feature.kind == "categorical" and not 0 <= x < len(feature.levels)
            if np.isnan(x) or is_unknown:
                if flag >= 0:
                    columns[i, flag] = 1.0
            elif feature.kind == "categorical":
                columns[i, first + int(x)] = 1.0
            else:
                # By the reciprocal, as the engine does: the last bit may differ from a division's.
                value = (x - feature.center) * (1.0 / feature.scale)
                columns[i, first] = np.float32(max(-LARGEST, min(LARGEST, value)))
    return columns
