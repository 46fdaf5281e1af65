"""Reads ``references.bib``: its entries as they stand, their fields, and papers as people name them."""

import re
import unicodedata
from functools import cache
from importlib import resources

from markupsafe import Markup, escape

_ACCENTS = {"'": "\u0301", "`": "\u0300", '"': "\u0308", "^": "\u0302", "~": "\u0303"}


@cache
def entries() -> dict[str, str]:
    """Return every entry of the bibliography as it stands, by key."""
    text = resources.files("attlas.claims").joinpath("references.bib").read_text(encoding="utf-8")
    return {found[1]: found[0].strip() for found in re.finditer(r"@\w+\{(\w+),.*?\n\}", text, flags=re.DOTALL)}


def fields(entry: str) -> dict[str, str]:
    """Return the fields of an entry, in TeX."""
    return dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", entry, re.MULTILINE))


def arxiv(entry: str) -> str:
    """Return the number on arXiv, or nothing."""
    found = re.search(r"eprint\s*=\s*\{([\d.]+)\}|arXiv:(\d{4}\.\d{4,5})", entry)
    return (found[1] or found[2]) if found else ""


def address(entry: str) -> str:
    """Return where a paper can be read: on arXiv, or by its DOI, or nothing."""
    if number := arxiv(entry):
        return f"https://arxiv.org/abs/{number}"
    doi = fields(entry).get("doi", "")
    return f"https://doi.org/{doi}" if doi else ""


@cache
def papers() -> dict[str, str]:
    """Return every paper as people name it, "Chen and Li 2024", by its key; letters tell apart those of one name."""
    plain = {key: _people(entry) for key, entry in entries().items()}
    alike = {name: [key for key, other in plain.items() if other == name] for name in plain.values()}
    return {
        key: f"{name}{chr(ord('a') + alike[name].index(key))}" if len(alike[name]) > 1 else name
        for key, name in plain.items()
    }


def _people(entry: str) -> str:
    told = fields(entry)
    names = [_surname(name) for name in told.get("author", "").split(" and ")]
    people = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{people} {told.get('year', '')}".strip()


def named(source: str) -> list[str]:
    """Return the keys of the bibliography in a claim's source, in their order."""
    return [key for key in dict.fromkeys(re.findall(r"\b[a-z]+\d{4}[a-z]+\b", source)) if key in entries()]


def cited(source: str) -> Markup:
    """Return a claim's source with its papers named and linked instead of their keys."""
    first = "" if any(source.startswith(key) for key in named(source)) else source[:1]
    text = str(escape(first.upper() + source[len(first) :]))
    for key in named(source):
        place, name = address(entries()[key]), escape(papers()[key])
        linked = Markup('<a href="{}">{}</a>').format(place, name) if place else name
        text = re.sub(rf"\b{key}\b", lambda _, linked=linked: str(linked), text)  # type: ignore[misc]
    return Markup(text)  # noqa: S704 - escaped above


def _surname(name: str) -> str:
    """Return the last name of an author who stands as "Last, First" or "First Last", its accents of TeX as letters."""
    last = name.split(",", maxsplit=1)[0] if "," in name else name.rsplit(" ", maxsplit=1)[-1]
    last = re.sub(r"\{?\\(['`\"^~])\{?(\w)\}?\}?", lambda found: found[2] + _ACCENTS[found[1]], last)
    return unicodedata.normalize("NFC", last.replace("{", "").replace("}", "")).strip()
