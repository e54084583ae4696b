"""The format of every hardwood file: its number, its kinds, and the checks that all kinds share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hardwood.errors import ModelFileError

FORMAT = 1
READERS = {
    "tree": "hardwood.load",
    "forest": "hardwood.load",
    "ensemble": "hardwood.load",
    "policy_tree": "hardwood.load",
    "latent_tree": "hardwood.load",
    "bandit": "hardwood.bandit.load",
    "bandit_regressor": "hardwood.bandit.load",
}
"""Every kind of file, and the function that reads it."""


def check_format(header: Any, kinds: Collection[str]) -> str:
    """Check the format and the kind of a header, and return the kind.

    The format is checked first: a newer format may have other kinds and keys.

    Parameters
    ----------
    kinds
        The kinds that the caller reads.

    Raises
    ------
    ModelFileError
        If the format is unknown or the kind is another.
    """
    if not isinstance(header, dict) or "format" not in header:
        raise ModelFileError("it is not a hardwood file: the JSON has no 'format'")
    version, kind = header["format"], header.get("kind")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"format must be a positive integer, not {version!r:.80}")
    if version > FORMAT:
        raise ModelFileError(
            f"it was written by a newer hardwood (format {version!r:.80}, this version reads "
            f"format {FORMAT}). Update your checkout of hardwood and install it there with:  "
            "pip install .  (hardwood is not on PyPI yet)"
        )
    if isinstance(kind, str) and kind in kinds:
        return kind
    if isinstance(kind, str) and kind in READERS:
        raise ModelFileError(f"it holds a {kind!r}. Load it with {READERS[kind]}")
    raise ModelFileError(f"kind must be {' or '.join(map(repr, kinds))}, not {kind!r:.80}")


def check_keys(content: Mapping[str, Any], keys: Collection[str], what: str = "its JSON") -> None:
    """Check that a mapping has exactly these keys."""
    missing, unknown = sorted(set(keys) - set(content)), sorted(set(content) - set(keys))
    if missing or unknown:
        raise ModelFileError(f"{what} lacks the keys {missing}, has unknown keys {unknown!r:.200}")
