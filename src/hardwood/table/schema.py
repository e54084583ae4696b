"""The features of a training table, and the columns that they are encoded as."""

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
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from hardwood._native import Encoder


@dataclass(frozen=True)
class Schema:
    """The features of a model's training table, in order, and the layout of its columns.

    *Features* are the columns of the user's table; *columns* are what the weights of a split
    multiply. A numeric feature has one value column, a categorical feature a 0/1 indicator column
    per level; a 0/1 missing indicator follows if the training table had missing values. The encoded
    value of a number is ``float32((x - center) / scale)``. A missing value is encoded as 0 or as
    indicators that are all 0, with missing indicator 1 if there is one. A level that is not in the
    training table counts as missing.

    Parameters
    ----------
    features
        At least one, with distinct names.
    named
        Whether the names come from the user. Otherwise (if the training table was an array) data
        frames are read by position, like arrays.

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
                raise ValueError(f"feature names must be unique, found {name!r:.80} more than once")
            seen.add(name)

    @classmethod
    def numeric(cls, n_features: int, names: Sequence[str] | None = None) -> Schema:
        """Return a schema of numeric features without centering and scaling."""
        named = names is not None
        names = tuple(names) if names is not None else default_names(n_features)
        if len(names) != n_features:
            raise ValueError(
                f"expected {plural(n_features, 'name')}, one for each feature, got {len(names)}"
            )
        return cls(tuple(Feature(name, "numeric") for name in names), named)

    @classmethod
    def learn(
        cls, table: Table, sample_weight: Any = None, rows: np.ndarray | None = None
    ) -> Schema:
        """Learn the schema of a training table.

        Parameters
        ----------
        table
            The result of `Table.of`.
        sample_weight
            (n,) at least 0; None for equal weights. They affect means, standard deviations and the
            choice of levels; rows of weight zero are ignored.
        rows
            The rows to learn from, in the order of summation, with a weight for each; None for all.

        Raises
        ------
        TableError
            If all values of a column are missing, or the weights are invalid.
        """
        return cls(learn_features(table, sample_weight, rows), named=table.names is not None)

    def read(
        self, X: Any, *, who: str = "ObliqueTree", is_training: bool = False
    ) -> np.ndarray | csr_matrix:
        """Turn a table into the matrix that this schema's model expects.

        Parameters
        ----------
        X
            Anything that `Table.of` accepts, or a `Table`. A data frame is read by name, in any
            order, ignoring other columns; an array is read by position.
        who
            The name in the error message about a wrong number of columns.
        is_training
            Whether the schema was learned from this table: the levels that it left out are known.

        Returns
        -------
        matrix
            (n, p) C-contiguous float32 or float64: raw numbers, positions in `Feature.levels`, and
            NaN for missing values and unknown levels; or CSR if `X` is sparse. A C-contiguous float
            array for numeric features is returned as it is, unchecked: the engine reports
            infinities.

        Raises
        ------
        TableError
            If a column is absent, or holds infinity or values of the wrong kind, such as text
            instead of numbers; the message names the column.

        Warns
        -----
        TableWarning
            For levels that are not in the schema; and for numbers that are no seconds where it
            has dates or durations, or the reverse.
        """
        if type(X) is np.ndarray and X.ndim == 2 and X.dtype in FLOATS:
            n, p = X.shape
            flags = X.flags
            if p == self._plain_width and n and flags.c_contiguous and flags.aligned:
                return X
        return match(self, X, who, is_training=is_training)

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
        """(p,) bool, whether a feature has a missing indicator."""
        return _constant([feature.has_missing for feature in self.features], np.bool_)

    @cached_property
    def _widths(self) -> np.ndarray:
        return np.array([feature.n_columns for feature in self.features])  # (p,)

    @cached_property
    def n_columns(self) -> int:
        """Number of columns, which is the number of weights of a split."""
        return int(self._widths.sum())

    @cached_property
    def first_column(self) -> np.ndarray:
        """(p,) int32, the value column or the first indicator column of each feature."""
        return _constant(np.cumsum(self._widths) - self._widths, np.int32)

    @cached_property
    def flag_column(self) -> np.ndarray:
        """(p,) int32, the missing indicator of each feature; -1 for features without one."""
        return _constant(np.where(self.has_missing, np.cumsum(self._widths) - 1, -1), np.int32)

    @cached_property
    def column_feature(self) -> np.ndarray:
        """(c,) int32, the feature that each column belongs to."""
        return _constant(np.repeat(np.arange(self.n_features), self._widths), np.int32)

    @cached_property
    def column_center(self) -> np.ndarray:
        """(c,) float64, the center of value columns; 0 for indicators."""
        return self._by_column([feature.center for feature in self.features], 0.0)

    @cached_property
    def column_scale(self) -> np.ndarray:
        """(c,) float64, the scale of value columns; 1 for indicators."""
        return self._by_column([feature.scale for feature in self.features], 1.0)

    @cached_property
    def column_spread(self) -> np.ndarray:
        """(c,) float64, the standard deviation of each column in training.

        If a feature does not have it: the scale of a number, 1 for indicators.
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
        """The name of each column: ``"mass"``, ``"species = Adelie"``, ``"sex is missing"``."""
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
        """Return a JSON-compatible dictionary for `from_dict`."""
        return {"named": self.named, "features": [feature.to_dict() for feature in self.features]}

    @classmethod
    def from_dict(cls, content: object) -> Schema:
        """Read the result of `to_dict`; raise `ValueError` for anything else."""
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
        # Without the cached arrays, which are cheap to compute, and the encoder, which cannot be
        # pickled.
        return {"features": self.features, "named": self.named}


def _constant(values: Any, dtype: type[np.generic]) -> np.ndarray:
    """Return a read-only array: a schema is immutable, and its parts are shared."""
    array = np.ascontiguousarray(values, dtype=dtype)
    array.flags.writeable = False
    return array
