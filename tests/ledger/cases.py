"""A case of the ledger: a name, and a function whose results are recorded."""

from __future__ import annotations

import contextlib
import fnmatch
import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.values import as_bytes, same_every_time


@dataclass(frozen=True)
class Case:
    """A case to run.

    Attributes
    ----------
    name
        Name, for people and for ``--only``, such as ``fit/DGTClassifier/iris/seed0/default``.
    run
        Returns the parts to record, by name: bytes, text or simple values.
    is_quick
        Whether ``--quick`` includes it.
    """

    name: str
    run: Callable[[], Mapping[str, Any]]
    is_quick: bool = False


def chosen(cases: Iterable[Case], *, only: str | None, quick: bool) -> list[Case]:
    """Return the selected cases."""
    pattern = "*" if only is None else f"*{only}*"
    return [
        case
        for case in cases
        if (case.is_quick or not quick) and fnmatch.fnmatchcase(case.name, pattern)
    ]


def parts_of(case: Case) -> dict[str, bytes]:
    """Run a case; return its parts, including printed text, warnings and the exception."""
    parts: dict[str, Any] = {}
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            parts.update(case.run())
        except Exception as error:  # an error is a result, too
            parts["raised"] = said_by(error)
    if printed.getvalue():
        parts["printed"] = same_every_time(printed.getvalue())
    if caught:
        texts = {f"{each.category.__name__}: {each.message}" for each in caught}
        parts["warnings"] = same_every_time("\n".join(sorted(texts)))
    return {name: as_bytes(part) for name, part in parts.items()}


def said_by(error: BaseException) -> str:
    """Return the kind and the message of an exception, and those of its cause."""
    text = f"{type(error).__name__}: {error}"
    if error.__cause__ is not None:
        text += f"\ncaused by {said_by(error.__cause__)}"
    return same_every_time(text)


def each_of(calls: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the result of each call, or its error message.

    Calls with an AttributeError are left out, because some kinds of models lack some methods.
    """
    parts: dict[str, Any] = {}
    for name, call in calls.items():
        try:
            parts[name] = call()
        except AttributeError:
            continue
        except Exception as error:
            parts[name] = said_by(error)
    return parts
