"""What a study must agree with to be continued, as text that is the same in every process."""

from __future__ import annotations

from typing import Any

ROWS = "the rows"
VALIDATION = "the validation rows"
"""Names of settings that are digests: that they differ can be said, but not how."""


def as_text(value: Any) -> str:
    """Return a value in words without anything that changes from run to run."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_text, value))}]"
    text = getattr(value, "__qualname__", None) or repr(value)
    return type(value).__name__ if " at 0x" in text else text
