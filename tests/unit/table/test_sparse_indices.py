"""Indices of sparse tables are checked before they are converted to 32 bits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from hardwood.errors import TableError
from hardwood.table import Table


@pytest.mark.parametrize(
    ("part", "shift"), [("indices", 2**32 + 1), ("indices", -1), ("indptr", 2**32)]
)
def test_an_index_out_of_range_is_not_wrapped(part, shift):
    X = sp.random(20, 4, density=0.5, format="csr", random_state=0)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    getattr(X, part)[3] += shift if shift > 0 else -10
    with pytest.raises(TableError, match="damaged sparse matrix"):
        Table.of(X)
