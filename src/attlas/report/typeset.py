"""Formulas without a network: TeX as MathML, and the formulas inside plain sentences."""

import html
import math
import re
from xml.etree import ElementTree

from markupsafe import Markup, escape

from attlas.claims.tex import FORMULA
from attlas.claims.verdict import Region

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
_LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "eta": "η",
    "kappa": "κ",
    "theta": "θ",
    "rho": "ρ",
    "sigma": "σ",
}
_LETTERS |= {"tau": "τ", "omega": "ω", "Delta": "Δ", "Theta": "Θ", "infinity": "∞"}
_CAPITAL = re.compile(r"<mi>(&#x003(?:9[1-9A-F]|A[0-9]);)</mi>")  # Greek, which TeX sets upright
# a bracket closes what it has opened; a fraction is a power only in brackets or after a minus: rho^2/2 is half of rho^2
# a letter that follows at once belongs to it: ^2T, W^T
_POWER = re.compile(
    r"(?<=[\w)])\^(?:\((-?\d+(?:[./]\d+)?(?: ± \d+(?:\.\d+)?)?)\)|(-\d+(?:[./]\d+)?|\d+[A-Z]\b|\d+(?:\.\d+)?|[A-Z]\b))"
)
_TENS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?)0*(\d+)\b")  # 2e-07, as code writes it
_BAR = '<mo stretchy="false" lspace="0em" rspace="0em">&#x02016;</mo>'  # of a norm, as high as a letter
_SLASH = '<mo lspace="0em" rspace="0em">/</mo>'  # as TeX sets it, with no space about it
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SHORT = 28  # letters; what is shorter is no headline
_SIGNS = {"-&gt;": "→", "&gt;=": "≥", " - ": " − "}


def mathml(tex: str, display: str = "block") -> Markup:
    """Return TeX as MathML, with the TeX itself for readers that do not know MathML.

    TeX that would become anything but a formula, such as a link, a style or a script, is shown as it was written.
    """
    from latex2mathml.converter import convert

    try:
        found = _CAPITAL.sub(r'<mi mathvariant="normal">\1</mi>', convert(tex, display=display))
        found = found.replace("<mo>&#x02016;</mo>", _BAR).replace("<mo>&#x0002F;</mo>", _SLASH)
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
    """Return a sentence as HTML: TeX between dollar signs as MathML, the rest as `_prose` sets it."""
    parts = FORMULA.split(text)  # prose and formulas in turn
    found = Markup("")
    for i in range(1, len(parts), 2):
        before, after = parts[i - 1].rstrip("(["), parts[i + 1].lstrip(")],.;:?!")
        opening, closing = parts[i - 1].removeprefix(before), parts[i + 1].removesuffix(after)
        parts[i + 1] = after
        formula = mathml(parts[i], "inline")
        if opening or closing:  # no line ends between them
            formula = Markup('<span class="whole">{}{}{}</span>').format(opening, formula, closing)
        found += _prose(before) + formula
    return found + _prose(parts[-1])


def _prose(text: str) -> Markup:
    """Return plain words as HTML, their powers raised, their indices lowered, their Greek letters Greek."""
    found = str(escape(text))
    for plain, sign in _SIGNS.items():
        found = found.replace(plain, sign)
    found = greek(found)
    found = re.sub(r"sqrt\((\w+)\)", r"√\1", found)
    found = re.sub(r"sqrt\((\w+\(\w+\))\)", r"√\1", found)
    found = re.sub(r"\b([A-Za-zδ])_([A-Za-z]{1,4}|\d)\b", r"\1<sub>\2</sub>", found)
    found = re.sub(r"(?<=[a-z]{2})_(?=[a-z]{2})", " ", found)
    found = re.sub(r"(?<=\w)=(?=[\w.-])", " = ", found)  # settings as code names them
    found = _POWER.sub(lambda m: f"<sup>{(m[1] or m[2]).replace('-', '−')}</sup>", found)
    found = _TENS.sub(
        lambda m: (f"{m[1]} × " if m[1] != "1" else "") + f"10<sup>{'−' * (m[2] == '-')}{m[3]}</sup>", found
    )
    found = re.sub(r"(?<![\w.)\]^-])-(?=\d)", "−", found)
    return Markup(found)  # noqa: S704 - escaped above


def closed(text: str) -> str:
    """Return a sentence with the full stop at its end, whether or not it came with one."""
    return text if text.removesuffix("</span>").endswith((".", "?", "!")) else text + "."  # + keeps markup what it is


def capital(text: str) -> str:
    """Return a sentence with its first letter in upper case, unless that is a symbol: d = 10."""
    return text if re.match(r"[A-Za-z]\b", text) and not text.startswith("a ") else text[:1].upper() + text[1:]


def headline(text: str) -> tuple[str, str]:
    """Return the first sentence of a text, or its part before a colon or semicolon, without a full stop; and the rest."""
    for end in re.finditer(r"(?<!al)\.\s+(?=[A-Z])|[:;]\s+", text):
        before = text[: end.start()]
        if (
            len(before) > SHORT
            and all(before.count(a) == before.count(b) for a, b in ("()", "[]"))
            and not before.count("$") % 2
        ):
            return before, text[end.end() :]
    return text.removesuffix("."), ""


def number(value: float, digits: int = 3, zeros: bool = False) -> str:
    """Return a number for people: significant digits, powers of ten raised, a minus that is one; zeros at its end or not."""
    if not math.isfinite(value):
        return "−∞" if value < 0 else "∞" if value > 0 else "not a number"
    form = f"#.{digits}g" if zeros and value else f".{digits}g"
    mantissa, _, power = f"{value:{form}}".partition("e")
    mantissa = mantissa.removesuffix(".")
    if power and 0 < int(power) < 6:
        return f"{float(f'{value:.{digits}g}'):.0f}"
    raised = f" × 10{str(int(power)).translate(_RAISED)}" if power else ""
    return mantissa.replace("-", "−") + raised


def greek(text: str) -> str:
    """Return a text with its spelled-out Greek letters as letters."""
    return re.sub(rf"\b({'|'.join(_LETTERS)})(?=\b|_)", lambda found: _LETTERS[found[1]], text)


def region(ends: Region) -> str:
    """Return in words where a number must lie."""
    low, high = _edge(ends.low), _edge(ends.high)
    if math.isinf(ends.high):
        return f"above {low}"
    return f"below {high}" if math.isinf(ends.low) else f"between {low} and {high}"


def _edge(value: float) -> str:
    """Return an edge of a region to three digits, or to four where three are another number: 1.025."""
    return number(value, next((digits for digits in (3, 4) if float(f"{value:.{digits}g}") == value), 4))
