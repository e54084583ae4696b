"""A real browser, and a page opened in it that may neither complain nor fetch anything."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser():
    """Start the system's Chromium, or the one that HARDWOOD_BROWSER names."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="pages are tested with playwright: pip install '.[dev]'"
    )
    path = os.environ.get("HARDWOOD_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), "")
    if not path:
        pytest.skip(
            "pages are tested in Chromium, which is not installed: apt-get install chromium"
        )
    with sync_api.sync_playwright() as playwright:
        # No sandbox: it does not start for root, who runs the tests in CI; the pages are our own.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Reader:
    """A reader of a page; collects the browser's ``complaints`` and ``requests``."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, html: Any, path: Any) -> Reader:
        """Open a page from disk."""
        html.save(path)
        self.page.goto(path.as_uri())
        assert self.page.locator("html").get_attribute("data-ready") == "yes"
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until all animations have ended."""
        self.page.wait_for_function("!document.getElementById('canvas').dataset.moving")

    def evaluate(self, script: str, *argument: Any) -> Any:
        """Run JavaScript in the page."""
        return self.page.evaluate(script, *argument)

    def texts(self, selector: str) -> list[str]:
        """Texts of all elements that match."""
        return self.page.locator(selector).all_text_contents()

    def prediction(self) -> tuple[list[int], list[float]]:
        """Leaves reached, and outputs, of the row that is shown."""
        shown = self.page.locator("#prediction")
        return tuple(
            json.loads(shown.get_attribute(f"data-{name}")) for name in ("leaves", "outputs")
        )

    def nodes(self, selector: str) -> list[int]:
        """Numbers of the nodes whose cards match."""
        return self.evaluate(
            "all => [...document.querySelectorAll(all)].map((card) => +card.dataset.node)", selector
        )

    def shown_nodes(self) -> set[int]:
        """Numbers of the nodes that have a card."""
        return set(self.nodes(".card"))


@pytest.fixture
def open_page(browser, tmp_path):
    """Open pages: ``open_page(page, width=..., theme=...)`` returns its reader.

    Whatever the browser complains of, and whatever a page asks the network for, fails the test.
    """
    readers: list[Reader] = []

    def open_one(html, *, width=1200, height=800, theme="light", touch=False):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion="reduce",
            has_touch=touch,
        )
        reader = Reader(context.new_page())
        readers.append(reader)
        _listen(context, reader)
        return reader.open(html, tmp_path / f"page{len(readers)}.html")

    yield open_one
    for reader in readers:
        reader.page.context.close()
        assert reader.complaints == []
        assert reader.requests == []


def _listen(context: Any, reader: Reader) -> None:
    def answer(route: Any) -> None:
        if route.request.url.startswith("file:") and route.request.is_navigation_request():
            route.continue_()
            return
        reader.requests.append(route.request.url)
        route.abort()

    context.route("**/*", answer)
    reader.page.on("pageerror", lambda error: reader.complaints.append(str(error)))
    reader.page.on(
        "console",
        lambda message: (
            reader.complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    reader.page.on("dialog", lambda dialog: reader.complaints.append(f"dialog {dialog.message}"))
