"""The columns a model was learned from, and the columns its splits multiply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.table.feature import Feature
from hardwood.table.features import default_names, learn_features
from hardwood.table.matching import match
from hardwood.table.table import FLOATS, Table

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from hardwood._native import Encoder


@dataclass(frozen=True)
class Schema:
    """The features of a model's training table, in order, and the layout of its columns.

    *Features* are what the user has; *columns* are what a split's weights multiply. Feature by
    feature, a numeric one has one value column, a categorical one a 0/1 indicator column per
    level; then, where training saw missing entries, comes a 0/1 missing flag. The encoded value of
    a numeric entry is ``float32((x - center) / scale)``. A missing entry has value 0 or all
    indicators 0, and flag 1 where there is a flag column. A level that training did not see is a
    missing entry.

    Parameters
    ----------
    features
        At least one; names differ.
    named
        Whether the names are the user's. Otherwise (an array was learned from) a data frame is
        read by position, as an array is.

    Examples
    --------
    >>> schema = Schema.learn(Table.of([[1.0, "a"], [3.0, "b"], [None, "a"]]))
    >>> schema.column_names
    ('x0', 'x0 is missing', 'x1 = a', 'x1 = b')
    >>> schema.read([[2.0, "b"], [5.0, "c"]])
    array([[ 2.,  1.],
           [ 5., nan]])
    """

    features: tuple[Feature, ...]
    named: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.features, tuple) or not self.features:
            raise ValueError("a schema needs a tuple of at least one feature")
        for feature in self.features:
            if not isinstance(feature, Feature):
                raise ValueError(f"a schema holds features, found a {type(feature).__name__}")
        if not isinstance(self.named, bool):
            raise ValueError(f"named must be true or false, found {self.named!r:.80}")
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise ValueError(
                    f"names of features must differ, found {name!r:.80} more than once"
                )
            seen.add(name)

    @classmethod
    def numeric(cls, n_features: int, names: Sequence[str] | None = None) -> Schema:
        """Return the schema of numeric features that are neither shifted nor scaled."""
        named = names is not None
        names = tuple(names) if names is not None else default_names(n_features)
        if len(names) != n_features:
            raise ValueError(f"{len(names)} names were given for {n_features} features")
        return cls(tuple(Feature(name, "numeric") for name in names), named)

    @classmethod
    def learn(
        cls, table: Table, sample_weight: Any = None, rows: np.ndarray | None = None
    ) -> Schema:
        """Learn what a model must remember of its training table.

        Parameters
        ----------
        table
            What `Table.of` returned.
        sample_weight
            (n,) at least 0; None for equal weights. Honored by means, deviations and the choice
            of levels; rows of weight zero are as if absent.
        rows
            Which rows to learn from, in the order of summation, a weight for each; None for all.

        Raises
        ------
        TableError
            Where a column has no entry at all, or the weights are unusable.
        """
        return cls(learn_features(table, sample_weight, rows), named=table.names is not None)

    def read(self, X: Any, *, who: str = "ObliqueTree") -> np.ndarray | csr_matrix:
        """Turn a table into the matrix that this schema's model takes.

        Parameters
        ----------
        X
            Whatever `Table.of` takes, or a `Table`. A data frame is read by name, in any order,
            further columns ignored; an array by position.
        who
            Whom the message about a wrong number of columns should name.

        Returns
        -------
        matrix
            (n, p) C-contiguous float32 or float64: raw numbers, positions in `Feature.levels`, NaN
            where missing or not a known level; or CSR where `X` is sparse. A C-contiguous float
            array for numeric features comes back itself, unscanned: the engine reports infinities.

        Raises
        ------
        TableError
            Where a column is absent, holds infinity, or text in place of numbers and the like; the
            message names the column.
        """
        if type(X) is np.ndarray and X.ndim == 2 and X.dtype in FLOATS:
            n, p = X.shape
            flags = X.flags
            if p == self._plain_width and n and flags.c_contiguous and flags.aligned:
                return X
        return match(self, X, who)

    def as_table(self, matrix: np.ndarray | csr_matrix) -> Table:
        """Return what `read` returned, or rows of it, as a table that is read back as it is."""
        return Table(
            np.ascontiguousarray(matrix) if isinstance(matrix, np.ndarray) else matrix,
            tuple(f.levels if f.kind == "categorical" else None for f in self.features),
            self.names,
            tuple(feature.origin for feature in self.features),
        )

    @cached_property
    def _plain_width(self) -> int:
        """Width of an array that needs no translation; -1 where every table does."""
        return self.n_features if self.is_numeric else -1

    @cached_property
    def n_features(self) -> int:
        """Number of columns of the user's table."""
        return len(self.features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def is_numeric(self) -> bool:
        """Whether no feature is categorical."""
        return all(feature.kind == "numeric" for feature in self.features)

    @cached_property
    def n_levels(self) -> np.ndarray:
        """(p,) int32, the number of levels of each feature; 0 for numeric ones."""
        return _constant([len(feature.levels) for feature in self.features], np.int32)

    @cached_property
    def has_missing(self) -> np.ndarray:
        """(p,) bool, whether a feature has a missing-flag column."""
        return _constant([feature.has_missing for feature in self.features], np.bool_)

    @cached_property
    def _widths(self) -> np.ndarray:
        return np.array([feature.n_columns for feature in self.features])  # (p,)

    @cached_property
    def n_columns(self) -> int:
        """Number of columns that a split's weights multiply."""
        return int(self._widths.sum())

    @cached_property
    def first_column(self) -> np.ndarray:
        """(p,) int32, the value column or the first indicator column of each feature."""
        return _constant(np.cumsum(self._widths) - self._widths, np.int32)

    @cached_property
    def flag_column(self) -> np.ndarray:
        """(p,) int32, the missing-flag column of each feature; -1 where it has none."""
        return _constant(np.where(self.has_missing, np.cumsum(self._widths) - 1, -1), np.int32)

    @cached_property
    def column_feature(self) -> np.ndarray:
        """(c,) int32, the feature that each column belongs to."""
        return _constant(np.repeat(np.arange(self.n_features), self._widths), np.int32)

    @cached_property
    def column_center(self) -> np.ndarray:
        """(c,) float64, the center of value columns; 0 for indicators and flags."""
        return self._by_column([feature.center for feature in self.features], 0.0)

    @cached_property
    def column_scale(self) -> np.ndarray:
        """(c,) float64, the scale of value columns; 1 for indicators and flags."""
        return self._by_column([feature.scale for feature in self.features], 1.0)

    @cached_property
    def column_spread(self) -> np.ndarray:
        """(c,) float64, the standard deviation of each column in training.

        Of a feature that does not know it: the scale of a number, 1 for indicators and flags.
        """
        known: list[float] = []
        for feature in self.features:
            known += feature.spread or (feature.scale, *[1.0] * (feature.n_columns - 1))
        return _constant(known, np.float64)

    def _by_column(self, of_features: list[float], otherwise: float) -> np.ndarray:
        columns = np.full(self.n_columns, otherwise)
        columns[self.first_column] = (
            of_features  # a categorical feature has center 0 and scale 1 too
        )
        return _constant(columns, np.float64)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """What each column says: ``"mass"``, ``"species = Adelie"``, ``"sex is missing"``."""
        names: list[str] = []
        for feature in self.features:
            indicators = [f"{feature.name} = {level}" for level in feature.levels]
            names += indicators or [feature.name]
            names += [f"{feature.name} is missing"] if feature.has_missing else []
        return tuple(names)

    @cached_property
    def encoder(self) -> Encoder:
        """The engine's encoder: matrix (n, p) to columns (n, c)."""
        from hardwood._native import Encoder

        return Encoder(
            (self.n_levels > 0).astype(np.uint8),
            self.first_column,
            self.n_levels,
            self.flag_column,
            self.column_center[self.first_column],
            self.column_scale[self.first_column],
            self.n_columns,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold and `from_dict` reads back unchanged."""
        return {"named": self.named, "features": [feature.to_dict() for feature in self.features]}

    @classmethod
    def from_dict(cls, content: object) -> Schema:
        """Read what `to_dict` wrote; `ValueError` says what is wrong with anything else."""
        if not isinstance(content, Mapping):
            raise ValueError(f"a schema must be a mapping, found {type(content).__name__}")
        if set(content) != {"named", "features"}:
            raise ValueError(
                f"a schema must have the keys 'named' and 'features', "
                f"found {sorted(map(str, content))}"
            )
        features = content["features"]
        if not isinstance(features, list):
            raise ValueError(f"features must be a list, found {type(features).__name__}")
        return cls(tuple(map(Feature.from_dict, features)), content["named"])

    def __getstate__(self) -> dict[str, Any]:
        # Only the value: cached arrays are cheap to make again, and the engine's encoder cannot be
        # pickled.
        return {"features": self.features, "named": self.named}


def _constant(values: Any, dtype: type[np.generic]) -> np.ndarray:
    """Return a read-only array: a schema is a value and its parts are shared."""
    array = np.ascontiguousarray(values, dtype=dtype)
    array.flags.writeable = False
    return array
