"""Run the Python of guide pages, and put what it prints and draws into them.

Without names of pages, of all guides that show what their Python prints::

    python tools/run_guides.py [--check] [PAGE ...]

A block ```` ```text ```` right below a block ```` ```python ```` has what that prints. A page that
shows the picture ``../images/NAME.png`` gets the file ``NAME.png`` that its Python writes, or a
picture of the page ``NAME.html``, with the largest tree of its slider. With ``--check`` nothing is
written, and it fails where a page shows something else than its Python prints.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GUIDES = ROOT / "docs" / "guide"
IMAGES = ROOT / "docs" / "images"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?", re.M | re.S
)
WINDOW = {"width": 1280, "height": 720}  # pixels of the picture of a page


def run(text: str, name: str) -> str:
    """Run all Python of a page; return the page with what it prints. Files go to this folder."""
    known: dict[str, Any] = {}

    def run_block(block: re.Match[str]) -> str:
        above = "\n" * text.count("\n", 0, block.start("code"))  # for the lines of an error
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            exec(compile(above + block["code"], name, "exec"), known)
        if block["printed"] is None:
            return block[0]
        printed = stream.getvalue().strip("\n")
        return f"```python\n{block['code']}```\n\n```text\n{printed}\n```\n"

    return BLOCK.sub(run_block, text)


def shows_what_it_prints(text: str) -> bool:
    """Whether a page has a block with what its Python prints."""
    return any(block["printed"] is not None for block in BLOCK.finditer(text))


def update_pictures(text: str, folder: Path) -> None:
    """Copy the pictures that a page shows from the folder where its Python ran."""
    for name in re.findall(r"\.\./images/(\w+)\.png", text):
        drawn, page = folder / f"{name}.png", folder / f"{name}.html"
        if page.exists():
            _photograph(page, drawn)
        if drawn.exists():
            shutil.copy(drawn, IMAGES)


def _photograph(page: Path, picture: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        opened = browser.new_page(viewport=WINDOW, reduced_motion="reduce")
        opened.goto(page.as_uri())
        if opened.locator("#size").is_visible():  # the slider of sizes
            opened.locator("#size").press("End")
        opened.screenshot(path=picture)
        browser.close()


@contextlib.contextmanager
def _empty_folder() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def main(arguments: Sequence[str]) -> int:
    """Run the pages; return 1 where a check fails."""
    is_check = "--check" in arguments
    pages = [Path(name).resolve() for name in arguments if name != "--check"]
    pages = pages or [p for p in sorted(GUIDES.glob("*.md")) if shows_what_it_prints(p.read_text())]
    differ = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        with _empty_folder() as folder:
            new = run(text, str(page))
            if not is_check:
                update_pictures(text, folder)
        if new != text:
            differ.append(page.name)
            if not is_check:
                page.write_text(new, encoding="utf-8")
    words = "show something else than they print" if is_check else "were changed"
    print(f"{len(differ)} of {len(pages)} pages {words}: {', '.join(differ) or 'none'}")
    return int(is_check and bool(differ))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
