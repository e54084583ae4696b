"""What a page holds, read back in Python."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np


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
