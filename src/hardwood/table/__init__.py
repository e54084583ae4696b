"""From any table to the matrix a tree is learned from, and back to the names of its columns.

`Table.of` reads what people have (NumPy, SciPy sparse, pandas, polars, Arrow, lists);
`Schema.learn` notes what a model must remember of a training table (names, levels, centers,
scales, which columns had gaps); `Schema.read` turns any later table into the matrix that model
expects.
"""

from __future__ import annotations

from hardwood.table.feature import Feature
from hardwood.table.schema import Schema
from hardwood.table.table import Table

__all__ = ["Feature", "Schema", "Table"]
