"""Names of tests as people read them: settings that code lists side by side become a list in prose.

``m=2 d=8 k=2 share of the body`` reads "m = 2, d = 8, k = 2: share of the body". Stored numbers keep their names.
"""

import re

_SETTING = r"[A-Za-z][A-Za-z']* ?= ?[^\s,:;()=]+(?:,[^\s,:;()=]+)*"
_ONE = re.compile(_SETTING)
_LIST = re.compile(
    rf"(?:(?<![\w.])(?P<before>[\w.]+ ))?(?<![\w('])(?P<list>{_SETTING}(?: {_SETTING})*)"
    r"(?P<after> [\w|]+)?(?P<listed>,| \d)?"
)
# words that go on with what was said, before a list of settings and after one
_INTO = {
    "and", "are", "at", "by", "exponent", "for", "from", "in", "is", "less", "minus", "of", "on", "or", "over", "than",
    "to", "where", "with",
}  # fmt: skip
_ON = _INTO | {"extrapolated", "has"}


def worded(text: str) -> str:
    """Return a sentence or a name of a test with its settings listed: "d=10 bias=0.0 keys 2" as "d = 10, bias = 0, …"."""
    return re.sub(r"(?<=[a-z]{2})_(?=[a-z]{2})", " ", _LIST.sub(_listed, text))


def _listed(found: re.Match[str]) -> str:
    before, after, listed = (found[part] or "" for part in ("before", "after", "listed"))
    settings = [re.sub(" ?= ?", " = ", one).removesuffix(".0") for one in _ONE.findall(found["list"])]
    if len(settings) == 1 and " = " in found["list"]:  # as people write it
        return found[0]
    if before and before.strip() not in _INTO:
        before = f"{before.rstrip()}, "
    if after and after.strip() not in _ON:
        after = f"{',' if listed else ':'}{after}"
    return before + ", ".join(settings) + after + listed
