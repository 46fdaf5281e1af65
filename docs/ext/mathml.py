"""Typesets formulas as MathML when the pages are built, so that a browser needs no script, no font and no network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

Writer = Any  # of HTML; Sphinx has two
CAPITAL = re.compile(r"<mi>(&#x003(?:9[1-9A-F]|A[0-9]);)</mi>")  # Greek, which TeX sets upright


def mathml(tex: str, display: str) -> str:
    """Return a formula as a <math> element that keeps its TeX as alttext, for those who cannot see it."""
    escaped = tex.strip().replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    upright = re.sub(CAPITAL, r'<mi mathvariant="normal">\1</mi>', convert(tex, display=display))
    return upright.replace("<math ", f'<math alttext="{escaped}" ', 1)


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
