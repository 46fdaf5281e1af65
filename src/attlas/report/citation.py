"""How a claim itself is cited: what was claimed, by which version, on which results."""

import hashlib
from collections.abc import Iterable

from attlas import __version__
from attlas.claims.tex import FORMULA
from attlas.lab import Judged
from attlas.report.typeset import headline
from attlas.store import Record

_ESCAPED = str.maketrans(
    {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "^": r"\^{}", "~": r"\~{}", "<": "$<$", ">": "$>$"}
    | {"\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "≤": r"$\le$", "≥": r"$\ge$"}
)


def citation(entry: Judged, tier: str, seed: int, sweep: str = "") -> str:
    """Return a BibTeX entry for a claim and the results behind its verdict; those of a sweep have settings of its own."""
    claim = entry.claim
    key = "attlas-" + claim.id.replace(".", "-")
    title = _tex(headline(claim.statement)[0])
    own = f", {_tex(sweep)}" if sweep else ""
    return (
        f"@misc{{{key},\n"
        f"  title        = {{{{{title}}}}},\n"  # two pairs, or BibTeX changes capitals, those of formulas too
        "  author       = {{The attlas authors}},\n"
        f"  howpublished = {{attlas {__version__}, claim {claim.id}, version {claim.version}{own}}},\n"
        f"  note         = {{{tier} tier, run {seed}: {entry.status}; {len(entry.records)} results,\n"
        f"                  SHA-256 {digest(entry.records)}}}\n"
        "}"
    )


def digest(records: Iterable[Record]) -> str:
    """Return the SHA-256 over what was computed, and at which settings; the order and the time it took do not matter."""
    lines = sorted(f"{record.key} {record.digest}\n" for record in records)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _tex(text: str) -> str:
    """Return a sentence that TeX reads as it is meant; its formulas, between dollar signs, are TeX already."""
    parts = FORMULA.split(text)  # prose and formulas in turn
    return "".join(f"${part}$" if i % 2 else _prose(part) for i, part in enumerate(parts))


def _prose(text: str) -> str:
    return text.replace("<=", "≤").replace(">=", "≥").translate(_ESCAPED)
