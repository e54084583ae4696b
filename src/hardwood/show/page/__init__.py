"""A model as an interactive page: one HTML file that fetches nothing.

``content`` gathers what is shown as JSON, ``document`` puts it into the page. The page itself is in
the folder ``source``: a template, a style sheet, and small scripts that are joined as they are.
"""

from __future__ import annotations

from hardwood.show.page.document import Page, notebook_html, show

__all__ = ["Page", "notebook_html", "show"]
