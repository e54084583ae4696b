"""What the scripts share that write a page of docs/results from recorded runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.provenance import Provenance, is_clean


def joined(head: list[str], sections: Iterable[tuple[str, list[str]]]) -> str:
    """Put a page together: its head, then sections with their titles."""
    lines = list(head)
    for title, body in sections:
        lines += [f"## {title}", "", *body]
    return "\n".join(lines).rstrip() + "\n"


def write_or_check(page: Callable[[], str], path: Path, description: str) -> int:
    """Write the page, or with ``--check`` say whether it is what the results give."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="compare with the page, write nothing")
    is_check = parser.parse_args().check
    text = page()
    if is_check:
        is_current = path.exists() and path.read_text(encoding="utf-8") == text
        print(f"{path}: {'as' if is_current else 'NOT as'} the results say")
        return 0 if is_current else 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(path)
    return 0


def place(found: Provenance) -> str:
    """Say where a figure was measured."""
    state = "" if is_clean(found) else ", with changes that are not in it"
    machine = ", ".join(found[key] for key in ("processor", "instruction_set") if found[key])
    return f"{machine}, commit {found['commit']}{state}"
