"""Take the picture of a page that the documentation shows.

python tests/browser/take_picture.py docs/images/page.png
"""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import sync_playwright

from hardwood import DGTClassifier

WIDTH, HEIGHT = 1280, 760
ROW = 120  # an Adelie


def main(path: str) -> None:
    text = (files("hardwood") / "data" / "penguins.csv").read_text().replace("NA", "")
    table = list(csv.DictReader(text.splitlines()))
    features = [name for name in table[0] if name != "species"]
    X = [[_entry(row[name]) for name in features] for row in table]
    y = [row["species"] for row in table]
    tree = DGTClassifier(max_depth=2, l1=0.002, random_state=0).fit(_frame(features, X), y).tree_
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "penguins.html"
        tree.replace(target_names="species").show(page, _frame(features, X), y)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        opened = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce"
        )
        opened.goto(page.as_uri())
        opened.click("#tab-row")
        opened.fill("#row-number", str(ROW))
        opened.press("#row-number", "Enter")
        opened.locator("#row-after").focus()
        opened.mouse.click(5, 5)
        opened.screenshot(path=path)
        browser.close()


def _entry(text: str) -> float | str | None:
    try:
        return float(text)
    except ValueError:
        return text or None


def _frame(names, rows):
    import pandas

    return pandas.DataFrame(rows, columns=names)


if __name__ == "__main__":
    main(sys.argv[1])
