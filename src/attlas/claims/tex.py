r"""Formulas inside sentences, between dollar signs as in TeX, for where no formula can be set: terminals, plain files.

``$\alpha > (2\rho - \rho^2)/(T^2 + T - 2)$`` reads "alpha > (2 rho - rho^2)/(T^2 + T - 2)" there.
"""

import re

FORMULA = re.compile(r"\$(?!\s)([^$]+?)(?<!\s)\$(?!\d)")  # as pandoc reads it: "between $5 and $6" holds none
_WORDS = {
    "infty": "infinity", "varphi": "phi", "varepsilon": "epsilon", "ell": "l", "top": "T", "in": "in",
    "langle": "<", "rangle": ">", "lVert": "||", "rVert": "||", "Vert": "||", "lvert": "|", "rvert": "|", "vert": "|",
    "cdot": " * ", "times": " x ", "odot": " * ", "pm": "+-", "mid": "|", "ldots": "...", "dots": "...", "cdots": "...",
    "colon": ":", "prime": "'", "star": "*", "prod": "product", "int": "integral",
}  # fmt: skip
_RELATIONS = {
    "le": "<=", "leq": "<=", "ge": ">=", "geq": ">=", "ne": "!=", "neq": "!=", "to": "->", "rightarrow": "->",
    "mapsto": "->",
    "approx": "~", "sim": "~", "simeq": "~", "propto": "~", "ll": "<<", "gg": ">>", "equiv": "==", "lt": "<",
    "gt": ">",
}  # fmt: skip
_OPENING = ("langle", "lVert", "lvert")
_ACCENTS = ("hat", "tilde", "bar", "widehat", "widetilde", "overline")
_SILENT = (
    "left",
    "right",
    "big",
    "Big",
    "bigl",
    "bigr",
    "Bigl",
    "Bigr",
    "displaystyle",
    "textstyle",
    "limits",
    "nolimits",
)
_NAMED = ("operatorname", "text", "mathrm", "mathbf", "mathsf", "mathit", "mathcal", "mathbb", "textrm")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[A-Za-z]|\d+(?:\.\d+)?|[{}^_]|\s+|.", re.DOTALL)


def plain(text: str) -> str:
    """Return a sentence with the formulas between its dollar signs as people type them."""
    return FORMULA.sub(lambda found: typed(found[1]), text)


def typed(tex: str) -> str:
    """Return a formula of TeX on one line, in letters of a keyboard; of what it does not know, the name stays."""
    return _tidy(_read(_TOKEN.findall(tex)))


def _read(tokens: list[str]) -> str:
    """Return the text of tokens, which are used up."""
    found = ""
    while tokens:
        token = tokens.pop(0)
        if token in ("^", "_"):
            found = found.rstrip() + token + _bracketed(_argument(tokens), token)
        else:
            found = _joined(found, _one(token, tokens))
    return found


def _one(token: str, tokens: list[str]) -> str:  # noqa: PLR0911  # one answer for each kind of token
    """Return the text of a token with the arguments that it takes from those that follow."""
    if token.startswith("{"):
        return _read(_group(tokens))
    name = token[1:]
    if not token.startswith("\\"):
        return token if not token.isspace() else " "
    if name in _SILENT:
        if tokens and tokens[0] == ".":  # \right. closes with nothing
            tokens.pop(0)
        return ""
    if name in _NAMED:
        return _argument(tokens, spaced=True)
    if name in _ACCENTS:
        return f"{_argument(tokens)}_{name.removeprefix('wide').replace('overline', 'bar')}"
    if name in ("frac", "tfrac", "dfrac"):
        over, under = _argument(tokens), _argument(tokens)
        return f"{_bracketed(over)}/{_bracketed(under)}"
    if name == "sqrt":
        return f"sqrt({_tidy(_argument(tokens))})"
    if name in _RELATIONS:
        return f" {_RELATIONS[name]} "
    if not name.isalpha():
        return name if name in "%&_#${}" else "||" if name == "|" else " "
    if name in _OPENING and tokens and tokens[0].isspace():
        tokens.pop(0)
    return _WORDS.get(name, "" if name in ("quad", "qquad") else name) or " "


def _argument(tokens: list[str], spaced: bool = False) -> str:
    while tokens and tokens[0].isspace():
        tokens.pop(0)
    if not tokens:
        return ""
    if tokens[0] != "{":
        return _one(tokens.pop(0), tokens)
    tokens.pop(0)
    inside = _group(tokens)
    return "".join(inside) if spaced else _read(inside)


def _group(tokens: list[str]) -> list[str]:
    """Return the tokens up to the bracket that closes, and use them up with it."""
    depth, inside = 1, []
    while tokens:
        token = tokens.pop(0)
        depth += {"{": 1, "}": -1}.get(token, 0)
        if not depth:
            break
        inside.append(token)
    return inside


def _bracketed(text: str, after: str = "/") -> str:
    """Return a part in brackets, unless it is one letter, word or number; a power may be negative."""
    text = _tidy(text) if after == "/" else text.strip().replace(" ", "")
    sign = "-?" if after == "^" else ""
    whole = re.fullmatch(rf"{sign}(\d+(\.\d+)?|[A-Za-z]\w*|[A-Za-z]+\^\w+|\*|'|\w+\([^()]*\))", text)
    return text if whole or (after == "_" and text.isalnum()) else f"({text})"


def _joined(before: str, after: str) -> str:
    """Return two parts beside each other, a space between where they would read as one word: 2 rho, rho d."""
    word = (len(after) > 1 and after[0].isalpha()) or re.search(
        r"(?:^|[^A-Za-z_^])[A-Za-z]{2,}(?:\^\w+)?$|\^\w+$", before
    )
    apart = word and before and (before[-1].isalnum() or before[-1] in ")'") and after[:1].isalnum()
    return f"{before} {after}" if apart else before + after


def _tidy(text: str) -> str:
    """Return a formula with spaces about relations, sums and differences; a sign at the beginning stays with its number."""
    text = re.sub(r"\s*(?<![<>!=-])(<=|>=|!=|->|==|<<|>>|\+-|=)\s*", r" \1 ", text)
    text = re.sub(r"(?<=[\w)\]'|])\s*([+-])\s*(?=[\w(\[|\\])", _spaced, text)
    text = re.sub(r"(?<=[\w)\]])\s*([<>~])\s*(?=[\w(-])(?![^<>]*>)", r" \1 ", text)
    return re.sub(r" {2,}", " ", re.sub(r"\s*([,;])\s*", r"\1 ", text)).strip()


def _spaced(found: re.Match[str]) -> str:
    """Return a plus or minus between spaces, but not within a power such as 1e-3 or d^-1."""
    return found[0] if re.search(r"\d[eE]$|\^$", found.string[: found.start()]) else f" {found[1]} "
