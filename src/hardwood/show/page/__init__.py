"""A model as an interactive page: one HTML file that fetches nothing.

``content`` builds the JSON to show, ``document`` puts it into the page. The page itself is in the
folder ``source``: a template, a style sheet, and small scripts that are concatenated.
"""

from __future__ import annotations

from hardwood.show.page.document import Page, notebook_html, show

__all__ = ["Page", "notebook_html", "show"]
