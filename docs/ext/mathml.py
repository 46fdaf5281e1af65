"""Typesets formulas as MathML when the pages are built, so that a browser needs no script, no font and no network."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from attlas.report.typeset import mathml

Writer = Any  # of HTML; Sphinx has two


def inline(writer: Writer, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(writer: Writer, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where it is too wide for a phone."""
    writer.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
