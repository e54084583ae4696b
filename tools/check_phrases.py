"""Fail where a phrase of `tools/banned_phrases.txt` stands in the package, its docs or its tests.

Without arguments it reads all text files that git tracks, else the files that are named::

    python tools/check_phrases.py [FILE ...]
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PHRASES = Path(__file__).with_name("banned_phrases.txt")
# The changelog names what things were called before.
SKIPPED = {"CHANGELOG.md"}
SUFFIXES = {".cpp", ".css", ".hpp", ".html", ".js", ".md", ".py", ".pyi", ".toml"}


@dataclass(frozen=True)
class Rule:
    """A phrase that must not be used, and the wording that takes its place."""

    pattern: re.Pattern[str]
    instead: str


def read_rules(text: str) -> list[Rule]:
    """Read one rule per line; blank lines and lines that begin with # are comments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    pairs = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines]
    return [Rule(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in pairs]


def findings(text: str, rules: Sequence[Rule]) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the phrase and the wording to use instead."""
    for number, line in enumerate(text.splitlines(), 1):
        for rule in rules:
            for match in rule.pattern.finditer(line):
                yield number, match.group(), rule.instead


def tracked_files() -> list[Path]:
    """List the text files of the repository that git tracks."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True
    )
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [
        path
        for path in paths
        if path.suffix in SUFFIXES and path.name not in SKIPPED and path.is_file()
    ]


def main(arguments: Sequence[str]) -> int:
    """Print every finding; 1 if there is one."""
    rules = read_rules(PHRASES.read_text(encoding="utf-8"))
    n_found = 0
    for path in [Path(name).resolve() for name in arguments] or tracked_files():
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for number, phrase, instead in findings(path.read_text(encoding="utf-8"), rules):
            print(f"{shown}:{number}: {phrase!r}; use: {instead}")
            n_found += 1
    if n_found:
        print(f"{n_found} banned phrase(s); tools/banned_phrases.txt has the list.")
    return int(n_found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
