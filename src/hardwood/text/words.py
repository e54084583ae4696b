"""Numbers and names as reports write them."""

from __future__ import annotations

import math


def figure(value: float | None) -> str:
    """Write a number with four significant digits, or all those before the point."""
    if value is None or not math.isfinite(value):
        return "-"
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 1e9:
        return f"{value:.3e}"
    decimals = 3 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return f"{value:,.{decimals}f}"


def span(low: float, high: float) -> str:
    """Write an interval, for example ``0.932 to 0.998``."""
    if not math.isfinite(low):
        return "-"
    return f"{figure(low)} to {figure(high)}"


def share(value: float) -> str:
    """Write a part of 1 in per cent."""
    return f"{value:.1%}" if math.isfinite(value) else "-"


def amount(value: float) -> str:
    """Write how many rows there are: a whole number in full, a sum of weights as a figure."""
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else figure(value)


def counted(n: int, one: str, many: str | None = None) -> str:
    """Write a number of things: ``1 leaf``, ``4 leaves``."""
    return f"{n} {one}" if n == 1 else f"{n} {many or one + 's'}"


def duration(micros: float) -> str:
    """Write a time given in microseconds."""
    return f"{figure(micros)} us" if micros < 1e4 else f"{figure(micros / 1e3)} ms"


def size(n_bytes: int) -> str:
    """Write a number of bytes."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    for unit in ("kB", "MB"):
        n_bytes_of_unit = n_bytes / (1e3 if unit == "kB" else 1e6)
        if n_bytes_of_unit < 1000:
            return f"{n_bytes_of_unit:.1f} {unit}"
    return f"{n_bytes / 1e9:.1f} GB"


def printable(text: object) -> str:
    r"""Write a name on one line; what a terminal would obey or not show is escaped (``\n``)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def shortened(text: str, length: int) -> str:
    """Cut a text to at most ``length`` characters, its end replaced by dots."""
    return text if len(text) <= length else text[: length - 3] + "..."
