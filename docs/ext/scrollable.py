"""What scrolls sideways can be scrolled from the keyboard: wide code, tables and formulas take the focus.

The theme leaves that out, and the level of the headings in its contents, without which a screen reader cannot place them.
"""

import html
import re
from typing import Any

from sphinx.application import Sphinx

FITS = 40  # characters of code in the width of a phone


def scrollable(body: str) -> str:
    """Return the body of a page in which whatever may be wider than a phone can be reached by the tabulator."""
    body = re.sub(r"<pre([^>]*)>(.*?)</pre>", code, body, flags=re.DOTALL)
    return re.sub(r'<div class="(table-wrapper[^"]*|formula)"', r'<div class="\1" tabindex="0"', body)


def code(found: re.Match[str]) -> str:
    """Return a block of code, which takes the focus if a line of it is long."""
    lines = html.unescape(re.sub(r"<[^>]+>", "", found[2])).splitlines()
    focus = ' tabindex="0"' if max(map(len, lines), default=0) > FITS else ""
    return f"<pre{found[1]}{focus}>{found[2]}</pre>"


def mend(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:  # noqa: ARG001
    """Change what the theme is about to write."""
    if "body" in context:
        context["body"] = scrollable(context["body"])
    if tree := context.get("furo_navigation_tree"):
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen where the theme has done its part."""
    app.connect("html-page-context", mend, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
