"""The house stays in order: rooms of a size to look through, one name per thing, true signposts."""

from __future__ import annotations

import importlib
import io
import os
import re
import subprocess
import tokenize
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "hardwood"

SOURCE_PATH = re.compile(r"(?<![\w/.:<-])(?:[\w-]+/)*[\w-]+\.(?:py|hpp|cpp|md|js|css)\b")
MODULE = re.compile(r"(?<![\w/.-])hardwood(?:\.[A-Za-z_]\w*)+")
FILES_OF_USERS = {"model.py"}  # what examples in the guide write


@cache
def tracked() -> frozenset[str]:
    """Return the files of the repository; where there is no git, those that are there."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if listed.returncode == 0:
        return frozenset(path for path in listed.stdout.splitlines() if (ROOT / path).exists())
    return frozenset(str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file())


@cache
def sources():
    """Return the text of every source file and page of the repository."""
    return {
        path: (ROOT / path).read_text(encoding="utf-8")
        for path in sorted(tracked())
        if path.endswith((".py", ".hpp", ".cpp", ".md"))
        and not path.startswith(("tests/data/", "benchmarks/results/"))
    }


def prose(path, text):
    """Yield what a file says: its comments and docstrings, or all of a page."""
    if path.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_docstring = token.type == tokenize.STRING and '"""' in token.string[:5]
            if token.type == tokenize.COMMENT or is_docstring:
                yield token.string
    elif path.endswith((".hpp", ".cpp")):
        yield from re.findall(r"//(.*)", text)
    else:
        yield text


def lost(pattern, is_there):
    """List what files name in their prose and is not there."""
    found = []
    for path, text in sources().items():
        gone = {name for name in pattern.findall(text) if not is_there(name, path)}
        if gone:
            said = {name for part in prose(path, text) for name in pattern.findall(part)}
            found += [f"{path}: {name}" for name in sorted(gone & said)]
    return found


def test_source_paths_in_comments_and_pages_exist():
    names = {path.rsplit("/", 1)[-1] for path in tracked()} | FILES_OF_USERS

    def is_there(named, path):
        if "/" not in named:
            return named in names
        top = path.split("/")[0]
        starts = ["", "src", "src/hardwood", os.path.dirname(path)]
        starts += [top] if top in ("native", "benchmarks") else []
        return any(os.path.normpath(os.path.join(start, named)) in tracked() for start in starts)

    assert lost(SOURCE_PATH, is_there) == []


def test_module_names_in_comments_and_pages_exist():
    pytest.importorskip("torch")  # for `hardwood.nn`
    packages = {path.stem for path in PACKAGE.iterdir()} - {"_native"}

    @cache
    def exists(name):
        parts = name.split(".")
        if parts[1] not in packages:  # a public name of the package, which other tests import
            return True
        for length in range(len(parts), 0, -1):
            place = PACKAGE.parent.joinpath(*parts[:length])
            if place.is_dir() or place.with_suffix(".py").exists():
                break
        thing = None if length == len(parts) else importlib.import_module(".".join(parts[:length]))
        for attribute in parts[length:]:
            if not hasattr(thing, attribute):
                return False
            thing = getattr(thing, attribute)
        return True

    assert lost(MODULE, lambda name, path: exists(name)) == []


# --- rooms ------------------------------------------------------------------------------------

MOST_FILES = 20  # in a folder, besides other folders and the stub of its own names


def test_no_folder_is_too_full_to_look_through():
    counts = Counter(
        os.path.dirname(path)
        for path in tracked()
        if path.startswith(("src/", "native/")) and not path.endswith("__init__.pyi")
    )
    full = {folder: n for folder, n in counts.items() if n > MOST_FILES}
    assert not full, full


# --- names ------------------------------------------------------------------------------------

# Public in two packages.
SHARED_NAMES = {"Comparison", "Decision"}


def test_a_class_name_stands_for_one_class():
    """But for those that stay within their file."""
    homes = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^ *class ([A-Za-z]\w*)", text, re.MULTILINE):
            homes[name].append(str(path.relative_to(PACKAGE)))
    twice = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert set(twice) <= SHARED_NAMES, twice
