"""Tables: reading them, and the schema that turns later tables into the matrix a model expects.

`Table.of` reads a table of any kind (NumPy, SciPy sparse, pandas, polars, Arrow, lists).
`Schema.learn` stores what a model needs to know about its training table: names, levels, centers,
scales, and which columns had missing values. `Schema.read` turns later tables into a matrix.
"""

from __future__ import annotations

from hardwood.table.feature import Feature
from hardwood.table.schema import Schema
from hardwood.table.table import Table

__all__ = ["Feature", "Schema", "Table"]
