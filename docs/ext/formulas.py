"""Formulas of docstrings, which are written to be read as text, as TeX: ``sum_i p_i^2/sqrt(d)`` is set as a formula.

A formula is a line that is indented below a paragraph. What is said in words around it stays text; what cannot be read as a
formula is shown as it is written.
"""

import re

GREEK = frozenset(
    re.findall(
        r"\w+",
        "alpha beta gamma delta epsilon eta theta kappa lambda mu nu xi rho sigma tau phi chi omega "
        "Gamma Delta Theta Lambda Sigma Phi Omega",
    )
)
NAMED = frozenset(
    re.findall(r"\w+", "log exp tanh min max softmax tr Tr act score sig Var denoise relu error training excess")
)
SIGNS = {"<=": r"\le ", ">=": r"\ge ", "~": r"\sim ", "∝": r"\propto ", "~=": r"\approx "}
TOKEN = re.compile(r"\s+|[A-Za-zα-ωΑ-Ω]+|\d+(?:\.\d+)?|<=|>=|.")
PROSE = re.compile(r"(?:\b[a-z]{2,}\b[ ,:]+){4}")  # four words in a row: a sentence


def tex(line: str) -> str | None:
    """Return a formula as TeX, or None if the line is not one that can be set."""
    if PROSE.search(line) or any(line.count(a) != line.count(b) for a, b in ("()", "[]", "{}")):
        return None
    return Formula(line.strip().rstrip(".")).sequence()


class Formula:
    """A formula that is read from left to right, symbol by symbol."""

    def __init__(self, text: str):
        self.tokens = TOKEN.findall(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """Return a symbol that is still to be read, or nothing at the end."""
        return self.tokens[self.at + ahead] if 0 <= self.at + ahead < len(self.tokens) else ""

    def take(self) -> str:
        """Read one symbol."""
        self.at += 1
        return self.tokens[self.at - 1]

    def sequence(self, end: str = "") -> str:
        """Read up to the bracket that closes this part, or to the end."""
        parts = []
        while self.at < len(self.tokens) and self.peek() != end:
            parts.append(self.scripted())
        if end:
            self.take()
        return "".join(parts)

    def scripted(self) -> str:
        """Read a symbol with what stands below and above it."""
        base = self.symbol()
        below, above = [], []
        while self.peek() in ("_", "^", "'") or (base[-1:].isalpha() and re.fullmatch(r"\d", self.peek())):
            sign = self.take() if not self.peek().isdigit() else "_"
            if sign == "'":
                above.append(r"\prime")
            elif sign == "_" and self.peek() == "hat":
                self.take()
                base = rf"\hat{{{base.strip()}}}"
            else:
                (below if sign == "_" else above).append(self.script(sign))
        low = f"_{{{','.join(below)}}}" if below else ""
        high = f"^{{{' '.join(above)}}}" if above else ""
        return f"{base}{low}{high}{' ' if base.startswith(chr(92)) else ''}"

    def script(self, sign: str) -> str:  # noqa: PLR0911  # a rule a line
        """Read an index or a power: one symbol, or what is in brackets."""
        first = self.take()
        if first == "{":
            return self.sequence("}")
        if first == "(":
            inner = self.sequence(")")
            return f"({inner})" if re.fullmatch(r"[a-z](\+1)?", inner.strip()) else inner  # a layer, not a power
        if first == "-":
            return f"-{self.take()}"
        if sign == "^" and first == "T":
            return r"\top"
        if first.isalpha() and re.fullmatch(r"\d+", self.peek()):
            return first + self.take()
        if len(first) > 3 and first not in GREEK:
            return rf"\mathrm{{{first}}}"
        return rf"\{first}" if first in GREEK else first

    def symbol(self) -> str:  # noqa: PLR0911  # a rule a line
        """Read one symbol without its indices."""
        before, one = self.peek(-1), self.take()
        if one.isspace():
            return r"\qquad " if len(one) > 1 else " "
        if one == "sqrt" and self.peek() == "(":
            self.take()
            return rf"\sqrt{{{self.sequence(')')}}}"
        if one in "([":
            return one + self.sequence(")" if one == "(" else "]") + (")" if one == "(" else "]")
        if one == "<" and not self.peek().isspace():
            return r"\langle "
        if one == ">" and not before.isspace():
            return r"\rangle "
        if one == "." and before.strip() and self.peek().strip():
            return r"\cdot "
        if one == "-" and len(before) > 1 and before.isalpha() and len(self.peek()) > 1 and self.peek().isalpha():
            return r"\text{-}"
        return self.word(one) if one[0].isalpha() else SIGNS.get(one, one)

    def word(self, one: str) -> str:  # noqa: PLR0911  # a rule a line
        """Return a name as it is set: a Greek letter, a function, a letter, or words."""
        if one in GREEK:
            return rf"\{one}"
        if one in ("sum", "int"):
            return rf"\{one}"
        if one == "E":
            return r"\mathbb{E}"
        if one == "N" and self.peek() == "(":
            return r"\mathcal{N}"
        if one == "xt":
            return r"\tilde{x}"
        if one in NAMED:
            return rf"\operatorname{{{one}}}"
        if len(one) == 1 or one in ("dv", "dU", "dt"):
            return one
        beside = [self.peek(1), self.peek(-3)] if self.peek().isspace() or self.peek(-2).isspace() else []
        spoken = any(other.isalpha() and len(other) > 1 and other not in GREEK for other in beside)
        if spoken:
            return rf"\text{{ {one} }}"
        left = self.peek(-2).isspace() and self.peek(-3)[-1:].isalnum()
        right = self.peek().isspace() and self.peek(1)[:1].isalnum()
        return "\\," * left + rf"\mathrm{{{one}}}" + "\\," * right
