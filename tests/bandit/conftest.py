"""Modules that tests of bandits share: `rounds` beside this file, ways to spoil files in `fuzz`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.with_name("fuzz"))]
