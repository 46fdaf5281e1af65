"""What matplotlib's SVG needs to be a part of a page: formulas as running text, and black that is written out."""

import html
import re
from itertools import groupby

FAMILY = "'DejaVu Sans', Verdana, sans-serif"
THIN = "\u2009"
OPERATORS = "=+−×<>≤≥→"
_BLACK = re.compile(r'(<use [^>]*style=")(?=[^"]*stroke:)(?![^"]*fill:)')  # of marks
_TEXT = re.compile(r"<text>\s*((?:<tspan[^>]*>[^<]*</tspan>\s*)+)</text>")
_LETTER = re.compile(r'<tspan x="([^" ]*)[^"]*" y="([^"]*)" style="([^"]*)">([^<]*)</tspan>')


def repaired(text: str) -> str:
    """Return an SVG in which the letters of a formula follow one another in whatever font there is, in reading order.

    Matplotlib puts every letter at its own place, for a font that readers may not have. Copied, searched or read aloud it
    is then a line of text; indices and powers keep their heights. And what is filled with black says so: matplotlib leaves
    it out, as SVG's own default, and black would stay black on dark paper.
    """
    return _BLACK.sub(r"\1fill: #000000; ", _TEXT.sub(lambda found: f"<text>{_line(found[1])}</text>", text))


def _line(spans: str) -> str:
    """Return letters, each with its place, as runs of one height and style, from left to right."""
    letters = [
        (float(x), float(y), style, html.unescape(own).replace("\xa0", " "))
        for x, y, style, own in _LETTER.findall(spans)
    ]
    letters.sort(key=lambda letter: letter[0])
    said = [_spaced(letters, i) for i in range(len(letters))]
    runs = groupby(range(len(letters)), key=lambda i: letters[i][1:3])
    start, height, written = letters[0][0], letters[0][1], ""
    for (y, style), places in runs:
        at = f'dy="{y - height:g}"' if written else f'x="{start:g}" y="{y:g}"'
        own = re.sub(r"font-family: [^;]*", f"font-family: {FAMILY}", style)
        written += f'<tspan {at} style="{own}">{html.escape("".join(said[i] for i in places), quote=False)}</tspan>'
        height = y
    return written


def _spaced(letters: list[tuple[float, float, str, str]], i: int) -> str:
    """Return a letter, between thin spaces if it is an operator between two others; TeX sets them apart by places alone."""
    _, y, _, letter = letters[i]
    if letter not in OPERATORS or not 0 < i < len(letters) - 1:
        return letter
    before, after = letters[i - 1], letters[i + 1]
    alone = before[3] in f"( {OPERATORS}" or after[3] == " " or y < before[1]  # a sign, or spaced, or begins a power
    return letter if alone else f"{THIN}{letter}{THIN}"
