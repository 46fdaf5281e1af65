"""Matplotlib's SVG for pages: colours that follow light, dark and print, in the page itself or in a file of its own."""

import html
import re

from attlas.report.repaired import repaired
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
    "#bbbbbb": "#7d838c",
    "#cccccc": "#3a3f47",
    "#e6e6e6": "#2b2f36",
    "#ffffff": "#16181c",
}


def themed(text: str, label: str, over: str = "") -> str:
    """Return matplotlib's SVG for a page: its colours as variables with themselves as default, its width free.

    What is `over` it is drawn last, in the same units.
    """
    text = _variable(text)
    text = text.rstrip().removesuffix("</svg>") + over + "</svg>\n"
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


def standalone(text: str) -> str:
    """Return matplotlib's SVG as a file that a page shows as an image: it sees light and dark by itself."""
    text = _variable(text)
    box = re.search(r'viewBox="([^"]*)"', text)[1]  # type: ignore[index]
    dark = "".join(f"{variable(light)}:{colour};" for light, colour in DARK.items())
    style = f"text{{fill:var({variable('#555555')},#555555)}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}">'
    return re.sub(r"<svg[^>]*>", lambda _: f"{head}<style>{style}</style>", text, count=1, flags=re.DOTALL)


def _variable(text: str) -> str:
    """Return matplotlib's SVG without what is not drawn, its Greek letters Greek, its colours variables."""
    text = re.sub(r"^.*?(?=<svg)|<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = repaired(text)
    text = re.sub(r"(?<=>)[^<>]+(?=</)", lambda found: greek(found[0]), text)
    return re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda found: f"var({variable(found[0])}, {found[0]})", text)


def variable(colour: str) -> str:
    """Return the name of the CSS variable of a colour."""
    return f"--c{colour[1:]}"
