"""A table with some of its columns shuffled or set to a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.table import Schema, Table


class PermutedColumns:
    """Makes changed copies of a table; the table itself stays unchanged.

    Copies share memory: each is valid until the next one is made.
    """

    def __init__(self, schema: Schema, matrix: Any) -> None:
        self._schema = schema
        self._is_dense = isinstance(matrix, np.ndarray)
        self._given = matrix if self._is_dense else matrix.tocsc()
        self._work = matrix.copy() if self._is_dense else None
        self._changed: list[int] = []

    def shuffled(self, columns: Sequence[int], order: np.ndarray) -> Table:
        """Give row i the values that row ``order[i]`` has in some columns, which stay together."""
        chosen = list(columns)
        if self._work is not None:
            self._restore()
            self._work[:, chosen] = self._given[:, chosen][order]
            self._changed = chosen
            return self._schema.as_table(self._work)
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        moved = self._given.copy()
        for j in chosen:
            entries = slice(moved.indptr[j], moved.indptr[j + 1])
            moved.indices[entries] = place[moved.indices[entries]]
        moved.has_sorted_indices = False
        return self._sparse_table(moved)

    def constant(self, column: int, value: float) -> Table:
        """Give all rows the same value in a column."""
        if self._work is not None:
            self._restore()
            self._work[:, column] = value
            self._changed = [column]
            return self._schema.as_table(self._work)
        from scipy.sparse import csc_matrix, hstack

        n = self._given.shape[0]
        same = csc_matrix(np.full((n, 1), value, dtype=self._given.dtype))
        parts = [self._given[:, :column], same, self._given[:, column + 1 :]]
        return self._sparse_table(hstack(parts, format="csc"))

    def present(self, column: int) -> np.ndarray:
        """Return the values of a column that are not missing."""
        entries = self._given[:, column]
        entries = entries if self._is_dense else entries.toarray()[:, 0]
        return entries[~np.isnan(entries)]

    def _restore(self) -> None:
        assert self._work is not None
        self._work[:, self._changed] = self._given[:, self._changed]

    def _sparse_table(self, matrix: Any) -> Table:
        csr = matrix.tocsr()
        csr.sort_indices()
        return self._schema.as_table(csr)
