"""What the drawings of reports share: colors, and text that is never read as a formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.text.numbers import printable, shortened

# Okabe and Ito's colors, which color-blind readers can tell apart.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GRAY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#8a8a8a",
)
COLORS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
_LARGEST = 1e100  # larger numbers on both axes are beyond what matplotlib can place
MAX_POINTS = 5000  # of a cloud: more only cover each other
_MAX_LABEL = 28


def label(text: object) -> str:
    """Write a name for a drawing: on one line, not too long."""
    return shortened(printable(text), _MAX_LABEL)


def name_axes(ax: Any, title: str, x: str, y: str) -> None:
    """Write the title and the names of both axes; a dollar sign in them is a dollar sign."""
    ax.set_title(printable(title), parse_math=False, fontsize="medium")
    ax.set_xlabel(printable(x), parse_math=False)
    ax.set_ylabel(printable(y), parse_math=False)


def unit_of(*numbers: np.ndarray) -> tuple[float, str]:
    """Return what to divide numbers by so that they can be drawn, and how an axis says so."""
    largest = max(float(np.abs(each).max(initial=0.0)) for each in numbers)
    if largest <= _LARGEST:
        return 1.0, ""
    exponent = int(np.log10(largest))
    return 10.0**exponent, f" / 1e{exponent}"


def ticks(axis: Any, places: Sequence[float], names: Sequence[str], **options: Any) -> None:
    """Write names beside an axis."""
    axis.set_ticks(places, labels=[label(name) for name in names], parse_math=False, **options)


def legend(ax: Any, **options: Any) -> None:
    """Say what the colors are."""
    for text in ax.legend(frameon=False, fontsize="small", **options).get_texts():
        text.set_parse_math(False)


def some(n: int) -> np.ndarray:
    """Return which of n points to draw: all, or as many as can be seen, chosen at random."""
    if n <= MAX_POINTS:
        return np.arange(n)
    return np.random.default_rng(0).choice(n, MAX_POINTS, replace=False)
