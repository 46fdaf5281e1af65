"""A claim's figure as inline SVG: the same bytes for the same results, and colours that follow light, dark and print."""

import html
import io
import re

from attlas.lab import Judged
from attlas.report.typeset import greek

PIXELS = 96 / 72  # in a point
SMALLEST, WIDEST = 0.8, 832  # a figure shrinks to this share of its size, or to this many pixels, and then scrolls

# every colour of claims.figure, and what it is on dark paper; then theory, grid, frames and paper
DARK = {
    "#0072b2": "#4ba3e3",
    "#d55e00": "#ff8f45",
    "#009e73": "#2fc79a",
    "#cc79a7": "#e79ac6",
    "#56b4e9": "#a9defc",
    "#e69f00": "#f4c04e",
    "#000000": "#e8e8e8",
    "#555555": "#b4b9c1",
    "#b0b0b0": "#8a9099",
    "#cccccc": "#3a3f47",
    "#ffffff": "#16181c",
}


def svg(entry: Judged, label: str) -> str:
    """Return the figure of a claim, without dates or random ids, named by `label` for who cannot see it."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": entry.claim.id, "svg.fonttype": "none"}):
        figure = entry.claim.draw(entry.measurements())
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return themed(buffer.getvalue(), label)


def themed(text: str, label: str) -> str:
    """Return matplotlib's SVG for a page: its colours as variables with themselves as default, its width free."""
    text = re.sub(r"^.*?(?=<svg)|<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"(?<=>)[^<>]+(?=</)", lambda found: greek(found[0]), text)
    text = re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda found: f"var({variable(found[0])}, {found[0]})", text)
    width = float(re.search(r'<svg[^>]*? width="([\d.]+)pt"', text)[1]) * PIXELS  # type: ignore[index]
    box = re.search(r'viewBox="([^"]*)"', text)[1]  # type: ignore[index]
    style = f"min-width: {min(SMALLEST * width, WIDEST):.0f}px; max-width: {1.25 * width:.0f}px"
    return re.sub(
        r"<svg[^>]*>",
        lambda _: f'<svg viewBox="{box}" role="img" aria-label="{html.escape(label)}" style="{style}">',
        text,
        count=1,
        flags=re.DOTALL,
    )


def variable(colour: str) -> str:
    """Return the name of the CSS variable of a colour."""
    return f"--c{colour[1:]}"
