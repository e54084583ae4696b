"""Create data frames with any installed library, through narwhals."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from hardwood.errors import MissingExtraError

Backend = Literal["pandas", "polars", "pyarrow"]
BACKENDS: tuple[Backend, ...] = ("pandas", "polars", "pyarrow")


def make_frame(
    columns: Mapping[str, Sequence[Any]], backend: Backend | None = None, *, purpose: str
) -> Any:
    """Create a data frame from columns.

    Parameters
    ----------
    columns
        Columns of equal length.
    backend
        The library; None for the first of pandas, polars and pyarrow that is installed.
    purpose
        What the frame is for, for the message of a ``MissingExtraError``.
    """
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"backend must be one of {list(BACKENDS)} or None, found {backend!r:.80}")
    chosen = backend or first_installed(BACKENDS)
    if chosen is None or not is_installed(chosen):
        raise MissingExtraError(chosen or BACKENDS[0], extra="data", purpose=purpose)
    import narwhals.stable.v1 as nw

    return nw.from_dict(dict(columns), backend=chosen).to_native()


def first_installed(backends: Sequence[Backend]) -> Backend | None:
    """Return the first library that is installed, or None."""
    return next((name for name in backends if is_installed(name)), None)


def is_installed(name: str) -> bool:
    """Whether a library is installed, without importing it."""
    return importlib.util.find_spec(name) is not None


def columns_of(names: Any, entries: Sequence[Any]) -> dict[str, list[Any]]:
    """Turn attributes of objects into columns: the given names, or all fields of a dataclass."""
    chosen = names if isinstance(names, tuple) else [field.name for field in fields(names)]
    return {name: [getattr(entry, name) for entry in entries] for name in chosen}
