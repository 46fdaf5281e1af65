"""Formulas without a network: TeX as MathML, and the formulas inside plain sentences."""

import html
import re
from xml.etree import ElementTree

from markupsafe import Markup, escape

_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_ELEMENTS = frozenset(
    [
        "math",
        "mrow",
        "mi",
        "mn",
        "mo",
        "mtext",
        "mspace",
        "msup",
        "msub",
        "msubsup",
        "mfrac",
        "msqrt",
        "mroot",
        "mover",
        "munder",
        "munderover",
        "mtable",
        "mtr",
        "mtd",
        "mstyle",
        "mpadded",
        "mphantom",
    ]
)
_ATTRIBUTES = frozenset(
    [
        "display",
        "mathvariant",
        "stretchy",
        "fence",
        "form",
        "separator",
        "accent",
        "accentunder",
        "columnalign",
        "rowspacing",
        "columnspacing",
        "columnlines",
        "rowlines",
        "linethickness",
        "lspace",
        "rspace",
        "minsize",
        "maxsize",
        "width",
        "height",
        "depth",
        "displaystyle",
        "scriptlevel",
        "movablelimits",
        "largeop",
    ]
)
_LETTERS = {"alpha": "α", "beta": "β", "rho": "ρ", "Delta": "Δ", "delta": "δ", "Theta": "Θ", "infinity": "∞"}
_CAPITAL = re.compile(r"<mi>(&#x003(?:9[1-9A-F]|A[0-9]);)</mi>")  # Greek, which TeX sets upright
# a bracket closes what it has opened; a fraction is a power only in brackets or after a minus: rho^2/2 is half of rho^2
_POWER = re.compile(r"(?<=[\w)])\^(?:\((-?\d+(?:[./]\d+)?)\)|(-\d+(?:[./]\d+)?|\d+(?:\.\d+)?))")
_SIGNS = {"-&gt;": "→", "&gt;=": "≥", " - ": " − "}


def mathml(tex: str, display: str = "block") -> Markup:
    """Return TeX as MathML, with the TeX itself for readers that do not know MathML.

    TeX that would become anything but a formula, such as a link, a style or a script, is shown as it was written.
    """
    from latex2mathml.converter import convert

    try:
        found = _CAPITAL.sub(r'<mi mathvariant="normal">\1</mi>', convert(tex, display=display))
        plain = _is_formula(found)
    except Exception:  # the converter raises what it likes on TeX that is none
        plain = False
    if not plain:
        return Markup("<code>{}</code>").format(tex)
    return Markup(found.replace("<math ", f'<math alttext="{html.escape(tex.strip())}" ', 1))  # noqa: S704 - checked


def _is_formula(text: str) -> bool:
    """Return whether a text is MathML of elements and attributes that only set symbols in their places."""
    try:
        elements = list(ElementTree.fromstring(text).iter())  # noqa: S314 - no entities: the converter writes none
    except ElementTree.ParseError:
        return False
    named = all(element.tag.removeprefix(_NAMESPACE) in _ELEMENTS for element in elements)
    return named and all(_ATTRIBUTES.issuperset(element.attrib) for element in elements) and "<!" not in text


def sentence(text: str) -> Markup:
    """Return a plain sentence as HTML, its powers raised, its indices lowered, its Greek letters Greek."""
    found = str(escape(text))
    for plain, sign in _SIGNS.items():
        found = found.replace(plain, sign)
    found = greek(found)
    found = re.sub(r"sqrt\((\w+)\)", r"√\1", found)
    found = re.sub(r"sqrt\((\w+\(\w+\))\)", r"√\1", found)
    found = re.sub(r"\b([A-Za-zδ])_([a-z]{1,2}|\d)\b", r"\1<sub>\2</sub>", found)
    found = _POWER.sub(lambda m: f"<sup>{(m[1] or m[2]).replace('-', '−')}</sup>", found)
    return Markup(found)  # noqa: S704 - escaped above


def closed(text: str) -> str:
    """Return a sentence with the full stop at its end, whether or not it came with one."""
    return text if text.endswith((".", "?", "!")) else text + "."  # + keeps markup what it is


def greek(text: str) -> str:
    """Return a text with its spelled-out Greek letters as letters."""
    return re.sub(rf"\b({'|'.join(_LETTERS)})(?=\b|_)", lambda found: _LETTERS[found[1]], text)
