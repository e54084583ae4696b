"""What a page holds, read back in Python; and what tests in a browser share."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np

SIZES = [(400, 800), (1600, 900)]
THEMES = ["light", "dark"]

# What can be used or has a role, is seen, and has neither text nor a label.
UNNAMED = """[...document.querySelectorAll("button, input, select, [role]:not([role=status])")]
  .filter((e) => e.checkVisibility() && !e.closest("[aria-hidden=true]"))
  .filter((e) => !e.textContent.trim() && !e.ariaLabel && !e.labels?.length)
  .map((e) => e.outerHTML)"""


def content_in(html: str) -> dict[str, Any]:
    """The JSON in a page."""
    return json.loads(re.search(r'type="application/json">(.*?)</script>', html, re.S)[1])


def unpacked(value: Any) -> np.ndarray:
    """What the page's own script makes of a packed array."""
    if isinstance(value, list):
        return np.array([np.nan if v is None else v for v in value], dtype=np.float64)
    if "size" in value:
        array = np.zeros(value["size"])
        array[unpacked(value["at"]).astype(int)] = unpacked(value["is"])
        return array
    ((kind, text),) = value.items()
    return np.frombuffer(base64.b64decode(text), f"<{kind}").astype(np.float64)
