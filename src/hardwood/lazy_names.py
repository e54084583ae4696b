"""Lazy import of the public names of a package."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` would take longer than all the rest
    from collections.abc import Callable
    from typing import Any


def lazy_names(
    package: str, file: str
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    The stub next to the package's ``__init__.py`` lists its names: a line ``from module import name
    as name`` makes a name public, and says which module defines it.

    Parameters
    ----------
    package, file
        The package's ``__name__`` and ``__file__``.
    """
    with open(file.rpartition(".")[0] + ".pyi", encoding="utf-8") as stub:
        lines = [line.split() for line in stub]
    home = {line[3]: line[1] for line in lines if line[:1] == ["from"] and line[4:5] == ["as"]}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home[name]), name)

    return sorted(home), get, lambda: sorted({*vars(sys.modules[package]), *home})
