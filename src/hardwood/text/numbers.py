"""Format numbers and names for people.

Numbers of a model have a given number of digits, or all of them if they are short
(`format_digits`); dates and durations, which a model holds in seconds, are written as such
(`format_quantity`). Numbers of a report have four digits (`format_number`), so that they line up in
columns.
"""

from __future__ import annotations

import datetime
import math
from typing import Literal, TypeAlias

Digits: TypeAlias = int | Literal["auto"] | None
"""Significant digits of a number in a text; None for all. "auto": all of short numbers, else 3."""

_EPOCH = datetime.datetime(1970, 1, 1)
_UNITS = (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))
DATE_STEPS = (86400.0, 60.0, 1.0, 1e-3, 1e-6)  # dates are rounded to one of these, in seconds
_FAR = 1e12  # seconds; beyond any calendar
_SLACK = 1e-6  # of a step; tolerance for rounding errors in seconds
_SAME_MOMENT = 5e-7  # seconds; float64 resolves half of it for today's dates
_AUTO = 3  # digits of a number that is not short
_SHORT = 9  # digits, at most; a learned number that was not rounded almost never has so few
_EXACT_DIGITS = 15  # that every float64 preserves


def format_digits(value: float, digits: Digits, *, spread: float = math.inf) -> str:
    """Format a number with ``digits`` significant digits, or more if ``spread`` is small.

    Digits down to ``spread / 10**(digits - 1)`` are kept, however large the number is.
    ``digits=None`` returns the shortest text that is read back as the same number. "auto" writes
    numbers of at most nine digits in full, but for rounding errors, and others with three digits.
    """
    if not math.isfinite(value):
        return repr(value)
    if value == 0:
        return "0"
    if digits is None:
        return repr(float(value)).removesuffix(".0").replace("e+", "e")
    size = math.floor(math.log10(abs(value)))
    more = size - math.floor(math.log10(spread)) if 0 < spread < math.inf else 0
    if digits == "auto":
        needed, usual = n_digits(value), _AUTO + max(0, more)
        # Beside a small spread, more digits are short; of 15 digits, 13 may be so by chance.
        digits = max(needed, usual) if needed <= max(_SHORT, min(usual + 6, 12)) else usual
    else:
        digits += max(0, more)
    if digits >= 17:  # more than float64 has
        return format_digits(value, None)
    if -5 <= size < 15 and digits - 1 - size <= 15:
        text = f"{value:.{max(0, digits - 1 - size)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}"


def n_digits(value: float) -> int:
    """Count the significant digits of a number, but for rounding errors: 15 at most."""
    text = f"{value:.{_EXACT_DIGITS - 1}e}".split("e")[0]
    return len(text.strip("-").rstrip("0").replace(".", ""))


def format_quantity(
    value: float, origin: str, digits: Digits, *, spread: float, toward: float = 0.0
) -> str:
    """Format a value of a numeric column as in the table: a date, ``3.5 days``, 12.

    Parameters
    ----------
    value
        The number; seconds for a date or a duration.
    origin
        What the numbers of the column represent (`hardwood.table.Feature.origin`).
    digits, spread
        See :func:`format_digits`; dates are rounded to about ``spread / 10**(digits - 1)``, too.
        ``digits=None`` writes exact seconds. A date is short if it is a whole millisecond.
    toward
        Round a date up (positive), down (negative) or to the nearest (0). A date that is rounded in
        the direction of its inequality splits whole days like the exact number of seconds.
    """
    if digits is not None and math.isfinite(value):
        if origin == "duration":
            name, unit = time_unit(max(abs(value), spread))
            text = format_digits(value / unit, digits, spread=spread / unit)
            return f"{text} {name}" if text == "1" else f"{text} {name}s"
        if origin == "date" and abs(value) < _FAR:
            date = format_date(_rounded_date(value, digits, spread, toward))
            if date is not None:
                return date
    return format_digits(value, digits, spread=spread)


def rounded_quantity(value: float, origin: str, digits: int, *, spread: float) -> float:
    """Return the number that `format_quantity` writes."""
    if origin == "duration":
        unit = time_unit(max(abs(value), spread))[1]
        return float(format_digits(value / unit, digits, spread=spread / unit)) * unit
    if origin == "date" and abs(value) < _FAR:
        return _rounded_date(value, digits, spread, 0.0)
    return float(format_digits(value, digits, spread=spread))


def _rounded_date(seconds: float, digits: int | Literal["auto"], spread: float, to: float) -> float:
    if digits == "auto":
        for step in DATE_STEPS[:-1]:
            if abs(_rounded_to(step, seconds) - seconds) <= _SAME_MOMENT:
                return _rounded_to(step, seconds)
        digits = _AUTO
    fineness = spread * 10.0 ** (1 - digits) if spread > 0 else 1.0
    step = next((step for step in DATE_STEPS if step <= fineness), DATE_STEPS[-1])
    return _rounded_to(step, seconds, to)


def time_unit(seconds: float) -> tuple[str, float]:
    """Return the name and seconds of the largest unit of time that is not longer than this."""
    return next((unit for unit in _UNITS if unit[1] <= seconds), _UNITS[-1])


def format_date(seconds: float) -> str | None:
    """Format seconds since 1970 as a date, with the time of day unless it is midnight.

    Returns None for years that Python's datetime does not support.
    """
    try:
        moment = _EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None
    if moment.microsecond:
        return moment.isoformat(" ", "microseconds").rstrip("0")
    text = moment.isoformat(" ", "seconds")
    return text.removesuffix(":00").removesuffix(" 00:00")


def _rounded_to(step: float, value: float, toward: float = 0.0) -> float:
    steps = value / step
    if toward > 0:
        return math.ceil(steps - _SLACK) * step
    if toward < 0:
        return math.floor(steps + _SLACK) * step
    return round(steps) * step


# Numbers of reports


def format_number(value: float | None) -> str:
    """Format a number with four significant digits, or all digits before the point."""
    if value is None or not math.isfinite(value):
        return "-"
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 1e9:
        return f"{value:.3e}"
    decimals = 3 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return f"{value:,.{decimals}f}"


def format_with_error(value: float, error: float) -> str:
    """Format a number with its standard error, which has two digits: ``0.0231 ± 0.0058``."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return f"{format_number(value)} ± {format_number(error)}"
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def format_interval(low: float, high: float) -> str:
    """Format an interval, such as ``0.932 to 0.998``."""
    if not math.isfinite(low):
        return "-"
    return f"{format_number(low)} to {format_number(high)}"


def format_percent(value: float) -> str:
    """Format a fraction as a percentage."""
    return f"{value:.1%}" if math.isfinite(value) else "-"


def format_count(value: float) -> str:
    """Format a number of rows: whole numbers in full, sums of weights like other numbers."""
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else format_number(value)


def plural(n: float, one: str, many: str | None = None, *, form: str = "") -> str:
    """Format a count with its noun: ``1 leaf``, ``4 leaves``; ``form`` is that of the number."""
    return f"{n:{form}} {one if n == 1 else many or one + 's'}"


def format_duration(micros: float) -> str:
    """Format a time given in microseconds."""
    return f"{format_number(micros)} us" if micros < 1e4 else f"{format_number(micros / 1e3)} ms"


def format_bytes(n_bytes: int) -> str:
    """Format a number of bytes."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    for unit in ("kB", "MB"):
        n_bytes_of_unit = n_bytes / (1e3 if unit == "kB" else 1e6)
        if n_bytes_of_unit < 1000:
            return f"{n_bytes_of_unit:.1f} {unit}"
    return f"{n_bytes / 1e9:.1f} GB"


def printable(text: object) -> str:
    r"""Return a name as one printable line; control characters are escaped (``\n``)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def shortened(text: str, length: int = 60) -> str:
    """Shorten a text to at most ``length`` characters, ending in dots."""
    return text if len(text) <= length else text[: length - 3] + "..."
