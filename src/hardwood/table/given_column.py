"""A column of a later table, and its values in terms of a feature that a model learned."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hardwood.errors import TableError, warn_about_table
from hardwood.table.feature import Feature, Level
from hardwood.table.levels import (
    UnknownLevels,
    different_types,
    in_learned_type,
    is_boolean_text,
    is_number_text,
)
from hardwood.text.numbers import format_date, format_quantity

_LEARNED_FROM = {
    "number": "numbers. Convert the column to numbers, with NaN or None for missing values.",
    "integer": "numbers. Convert the column to numbers, with NaN or None for missing values.",
    "boolean": "true and false. Convert the column to booleans or to 0 and 1.",
    "date": "dates. Parse the column, for example with pandas.to_datetime, or with "
    "parse_dates=[...] in pandas.read_csv.",
    "duration": "durations. Parse the column, for example with pandas.to_timedelta.",
}
# Booleans are the numbers 0 and 1.
_UNIT = {
    "number": "number",
    "integer": "number",
    "boolean": "number",
    "date": "date",
    "duration": "duration",
}
_FAR = 16  # standard deviations from the mean: days and years are no seconds


@dataclass(frozen=True, eq=False)
class GivenColumn:
    """A column of a later table.

    Parameters
    ----------
    values
        (n,) numbers, or codes of the levels; NaN where missing.
    levels
        Its levels; None for numbers.
    origin
        What its numbers represent (`hardwood.table.feature.ORIGINS`).
    label
        The column, for messages.
    unknown
        Its levels that the model did not learn, after `codes`.
    """

    values: np.ndarray
    levels: tuple[Level, ...] | None
    origin: str
    label: str
    unknown: list[UnknownLevels] = field(default_factory=list)

    def numbers(self, feature: Feature) -> np.ndarray | None:
        """Return the numbers for a numeric feature; None if they are the values."""
        if self.levels == ():
            return None  # all missing, which fits every feature
        if self.levels is not None:
            return self._numbers_of_levels(self.levels, feature.origin)
        if _UNIT[self.origin] != _UNIT[feature.origin]:
            if not np.isnan(self.values).all():
                self._check_unit(feature)
        elif feature.origin == "boolean" and self.origin != "boolean":
            self._check_boolean()
        return None

    def codes(self, feature: Feature) -> np.ndarray | None:
        """Return positions in the levels of a categorical feature; None if they are the values."""
        codes, found = self.values, self.levels
        if found == () or found == feature.levels:
            return None
        if found is None:
            present = np.unique(codes[~np.isnan(codes)])
            if not len(present):
                return None
            found = tuple(present.tolist())
            codes = np.where(np.isnan(codes), np.nan, np.searchsorted(present, codes))
        learned = in_learned_type(found, feature.levels, self.origin)
        if learned is None:
            raise different_types(found, feature.levels, self.origin, self.label)
        code = {level: i for i, level in enumerate(feature.levels)}
        lookup = np.array([code.get(level, np.nan) for level in learned], dtype=np.float32)
        if np.isnan(lookup).any():
            self._keep_unknown(codes, learned, np.isnan(lookup))
        return _looked_up(codes, lookup)

    def _keep_unknown(
        self, codes: np.ndarray, levels: tuple[Level, ...], is_unknown: np.ndarray
    ) -> None:
        counts = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=len(levels))
        counts[~is_unknown] = 0
        if counts.any():  # rows of a table may lack some of its levels
            example = levels[int(counts.argmax())]
            n_levels = int(np.count_nonzero(counts))
            self.unknown.append(UnknownLevels(self.label, n_levels, int(counts.sum()), example))

    def _numbers_of_levels(self, levels: tuple[Level, ...], learned: str) -> np.ndarray:
        """Return the values of a categorical column whose levels are numbers; refuse text."""
        is_text = np.array([isinstance(level, str) for level in levels])
        if not is_text.any():
            return _looked_up(self.values, np.array(levels, dtype=np.float64))
        is_wrong = np.array([isinstance(v, str) and not _READS[learned](v) for v in levels])
        quoted = is_wrong if is_wrong.any() else is_text  # "oops" rather than "1.5"
        present = np.flatnonzero(~np.isnan(self.values))
        row = int(present[quoted[self.values[present].astype(np.int64)]][0])
        raise TableError(
            f"{self.label} holds the text {levels[int(self.values[row])]!r:.60} at row {row}, "
            f"where the model learned from {_LEARNED_FROM[learned]}"
        )

    def _check_boolean(self) -> None:
        """Warn of other numbers than 0 and 1 where the model learned booleans."""
        is_other = ~np.isnan(self.values) & (self.values != 0) & (self.values != 1)
        if is_other.any():
            warn_about_table(
                f"{self.label} holds other numbers than 0 and 1, where the model learned true and "
                "false"
            )

    def _check_unit(self, feature: Feature) -> None:
        """Warn of numbers that are no seconds where the model learned dates, and the reverse.

        Raises
        ------
        TableError
            For numbers beyond the calendar where the model learned dates.
        """
        row = int(np.nanargmax(np.abs(self.values - feature.center)))
        farthest = float(self.values[row])
        learned = _UNIT[feature.origin]
        if learned == "date" and format_date(farthest) is None:
            raise TableError(
                f"{self.label} holds the number {farthest:.17g} at row {row}, where the model "
                "learned from dates: as seconds since 1970-01-01 it lies beyond the calendar. "
                "Convert the column to dates, for example with pandas.to_datetime, which reads "
                "integers as nanoseconds."
            )
        if abs(farthest - feature.center) > _FAR * feature.scale:
            center = format_quantity(feature.center, feature.origin, 3, spread=feature.scale)
            warn_about_table(
                f"{self.label} holds {_UNIT[self.origin]}s, where the model learned {learned}s: in "
                f"seconds, some are far from those that it learned (around {center}). Convert the "
                f"column to {learned}s"
            )


def _looked_up(codes: np.ndarray, lookup: np.ndarray) -> np.ndarray:
    present = ~np.isnan(codes)
    out = np.full(len(codes), np.nan, lookup.dtype)
    out[present] = lookup[codes[present].astype(np.int64)]
    return out


def _is_date_text(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


# Whether a text could be read as what a feature was learned from.
_READS: dict[str, Callable[[str], bool]] = {
    "number": is_number_text,
    "integer": is_number_text,
    "boolean": is_boolean_text,
    "date": _is_date_text,
    "duration": is_number_text,
}
