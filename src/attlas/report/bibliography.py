"""Reads ``references.bib``: its entries as they stand, their fields, and where a paper can be found."""

import re
from importlib import resources


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
