"""Columns -> a data frame of whichever library is there, through narwhals."""

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
    """Return a data frame of the columns.

    Parameters
    ----------
    columns
        All of one length.
    backend
        The library; None for the first of pandas, polars and pyarrow that is installed.
    purpose
        What the frame is for, in the message of a ``MissingExtraError``.
    """
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"backend must be one of {list(BACKENDS)} or None, found {backend!r:.80}")
    chosen = backend or first_installed(BACKENDS)
    if chosen is None or not is_installed(chosen):
        raise MissingExtraError(chosen or BACKENDS[0], extra="data", purpose=purpose)
    import narwhals.stable.v1 as nw

    return nw.from_dict(dict(columns), backend=chosen).to_native()


def first_installed(backends: Sequence[Backend]) -> Backend | None:
    """Return the first library that is there, or None."""
    return next((name for name in backends if is_installed(name)), None)


def is_installed(name: str) -> bool:
    """Whether a library could be imported; it is not imported for that."""
    return importlib.util.find_spec(name) is not None


def columns_of(names: Any, entries: Sequence[Any]) -> dict[str, list[Any]]:
    """Turn objects into columns by the names of attributes, or all fields of their dataclass."""
    chosen = names if isinstance(names, tuple) else [field.name for field in fields(names)]
    return {name: [getattr(entry, name) for entry in entries] for name in chosen}
