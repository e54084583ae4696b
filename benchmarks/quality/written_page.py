"""Writing the pages of docs/results from recorded results."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.provenance import Provenance, is_clean, is_quiet
from benchmarks.record import RESULTS, file_of, read

DOCS = RESULTS.parents[1] / "docs"
LEGEND = (
    "*Provisional* figures are not from a clean commit on a quiet machine: they may not repeat "
    "exactly, and times may be too long. [What is recorded](../../benchmarks/README.md#records)."
)


def joined(head: list[str], sections: Iterable[tuple[str, list[str]]]) -> str:
    """Return a page: its head, then the sections with their titles."""
    lines = list(head)
    for title, body in sections:
        lines += [f"## {title}", "", *body]
    return "\n".join(lines).rstrip() + "\n"


def not_here(*missing: str) -> tuple[str, list[str]]:
    """Return the section that names what the page lacks of the paper."""
    return "What is not here", [*(f"- {each}" for each in missing), ""]


def write_or_check(page: Callable[[], str], path: Path, description: str) -> int:
    """Write the page; with ``--check``, only say whether it agrees with the results."""
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


def origin(*experiments: str) -> list[str]:
    """Say which results of a section are from a clean commit on a quiet machine."""
    lines = []
    for name in experiments:
        found = [record.provenance for record in read(file_of(name))]
        if found:
            n_sure = sum(is_clean(one) and is_quiet(one) for one in found)
            lines.append(f"Record: `{name}`, {len(found):,} results; {_sure(n_sure, found)}.")
    return [" ".join(lines), ""] if lines else []


def _sure(n_sure: int, found: list[Provenance]) -> str:
    if n_sure == 0:
        return "**provisional**"
    if n_sure < len(found):
        return f"{n_sure:,} from a clean commit on a quiet machine, the others **provisional**"
    commits = ", ".join(sorted({one["commit"] for one in found}))
    return f"all from a clean commit ({commits}) on a quiet machine"


def place(found: Provenance) -> str:
    """Say where a figure was measured."""
    state = "" if is_clean(found) else ", with changes that are not in it"
    machine = ", ".join(found[key] for key in ("processor", "instruction_set") if found[key])
    return f"{machine}, commit {found['commit']}{state}"
