"""The page as one HTML document that fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from hardwood.atomic_file import checked_target, whole_file
from hardwood.errors import ModelKindError
from hardwood.model.base import Model
from hardwood.show.page.content import MAX_ROWS, content_of
from hardwood.show.page.sizes import Sizes
from hardwood.table.feature import check_text
from hardwood.text.numbers import plural

# The scripts in order: each uses names from earlier ones, and `main.js` starts the page.
SCRIPTS = (
    "basics/elements.js",
    "basics/numbers.js",
    "model/data.js",
    "model/predict.js",
    "basics/state.js",
    "model/terms.js",
    "basics/tables.js",
    "model/colors.js",
    "drawing/charts.js",
    "drawing/layout.js",
    "drawing/viewport.js",
    "drawing/cards.js",
    "drawing/drawing.js",
    "drawing/keyboard.js",
    "panels/node_panel.js",
    "panels/row_panel.js",
    "panels/model_panel.js",
    "panels/text_panel.js",
    "panels/search.js",
    "panels/size_bar.js",
    "main.js",
)
FRAME_HEIGHT = 640  # pixels, in a notebook
MAX_NOTEBOOK_BYTES = 8_000_000


@dataclass(frozen=True)
class Page:
    """An HTML document that displays itself in a notebook, or can be saved with `save`.

    Parameters
    ----------
    html
        The whole document.
    """

    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document to a file, atomically."""
        _check_path(path)
        with whole_file(path) as stream:
            stream.write(self.html.encode())

    def _repr_html_(self) -> str | None:
        """Return the page in a frame, or None if it is too large for a notebook.

        The frame is sandboxed: it may run its script, but cannot access the notebook.
        """
        if len(self.html) > MAX_NOTEBOOK_BYTES:
            return None
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" '
            f'title="hardwood" width="100%" height="{FRAME_HEIGHT}" '
            'style="border: 0; border-radius: 8px"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Page({plural(len(self.html), 'byte')})"


def show(
    model: Model,
    path: str | os.PathLike[str] | None = None,
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    max_rows: int = MAX_ROWS,
    sizes: Sizes | None = None,
) -> Page:
    """Return the page of a model; arguments as in :meth:`hardwood.ObliqueTree.show`.

    With ``sizes`` readers choose among trees of several sizes; the model is shown first.
    """
    hard = model.hard("a page")
    if path is not None:
        _check_path(path)
    content = content_of(hard, X, y, max_rows=max_rows, sizes=sizes)
    content["title"] = check_text("the title", title) if title else _title(hard)
    page = Page(_document(content))
    if path is not None:
        page.save(path)
    return page


def _check_path(path: str | os.PathLike[str]) -> None:
    checked_target(path, what="a page", example="model.html", instead="write its html there")


def notebook_html(model: Model) -> str | None:
    """Return the page of a model for a notebook; None if the model has no page."""
    try:
        hard = model.hard("a page")
    except ModelKindError:
        return None
    return show(hard)._repr_html_()


def _title(model: Model) -> str:
    """Return a title with the names of the targets, if known."""
    kind = "forest" if model.is_ensemble else "tree"
    if not model.target_names:
        return f"An oblique {kind}"
    names = ", ".join(model.target_names[:3]) + (", ..." if len(model.target_names) > 3 else "")
    return f"{names}: an oblique {kind}"


def _document(content: dict[str, Any]) -> str:
    """Put style, script and data into the template."""
    style = _source("page.css")
    script = "\n".join(_source(name) for name in SCRIPTS)
    parts = {
        "policy": _policy(script, style),
        "title": html.escape(content["title"]),
        "style": style,
        "script": script,
        "data": _inert_json(content),
    }
    # In one pass, so that marks within names are not replaced.
    return re.sub(r"\[\[(\w+)\]\]", lambda mark: parts[mark[1]], _source("page.html"))


def _policy(script: str, style: str) -> str:
    """Return a Content-Security-Policy that allows this script and style, and no requests."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _inert_json(content: dict[str, Any]) -> str:
    """Write JSON that cannot end a script element or start a comment, whatever the names are."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _source(name: str) -> str:
    return (files("hardwood.show.page") / "source" / name).read_text(encoding="utf-8")
