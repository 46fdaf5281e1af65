"""Lists ``references.bib`` on a page, and links the keys that docstrings cite to it."""

import re
from importlib import resources
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attlas.report.bibliography import arxiv, entries, fields

BIB = resources.files("attlas.claims").joinpath("references.bib")
ACCENTS = {"'": "\u0301", "`": "\u0300", '"': "\u0308", "^": "\u0302", "~": "\u0303"}


def plain(tex: str) -> str:
    """Return TeX as text: accents put on their letters, braces dropped, dashes joined."""
    text = re.sub(r"\{?\\(['`\"^~])\{?(\w)\}?\}?", lambda m: m[2] + ACCENTS[m[1]], tex)
    return re.sub(r"[{}]", "", text).replace("--", "\u2013")


def authors(field: str) -> str:
    """Return "Fu, Hengyu and Guo, Tianyu" as "Hengyu Fu, Tianyu Guo"."""
    return ", ".join(" ".join(reversed(name.split(", "))) for name in field.split(" and "))


def links(entry: str) -> list[tuple[str, str]]:
    """Return the text and the address of the DOI and of the arXiv number, where there is one."""
    found = []
    if doi := fields(entry).get("doi"):
        found.append((f"doi:{doi}", f"https://doi.org/{doi}"))
    if number := arxiv(entry):
        found.append((f"arXiv:{number}", f"https://arxiv.org/abs/{number}"))
    return found


class Bibliography(SphinxDirective):
    """Every entry: its key, as a target for references, and what a reader needs to find the paper."""

    def run(self) -> list[nodes.Node]:
        """Return a list of definitions, by key."""
        self.env.note_dependency(str(BIB))
        return [nodes.definition_list("", *[self.entry(*item) for item in sorted(entries().items())])]

    def entry(self, key: str, entry: str) -> nodes.definition_list_item:
        """Return one entry, and make its key known to ``:ref:``."""
        told = {name: plain(value) for name, value in fields(entry).items()}
        labels = self.env.get_domain("std").data
        labels["labels"][key] = (self.env.docname, key, key)
        labels["anonlabels"][key] = (self.env.docname, key)
        who = authors(told["author"])
        line = nodes.paragraph("", f"{who} ({told['year']}). ")
        if title := told.get("title"):
            line += [nodes.emphasis("", title), nodes.Text(". ")]
        where = [told.get("journal") or told.get("booktitle") or told.get("publisher")]
        where += [told.get("volume"), told.get("pages")]
        if any(where):
            line += nodes.Text(", ".join(filter(None, where)) + ". ")
        for text, address in links(entry):
            line += [nodes.reference("", text, refuri=address, internal=False), nodes.Text(" ")]
        term = nodes.term("", "", nodes.literal("", key), ids=[key], names=[key])
        return nodes.definition_list_item("", term, nodes.definition("", line))


def link_keys(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Turn every key that a docstring cites into a link to the page of references."""
    known = "|".join(app.env.temp_data.setdefault("attlas_keys", list(entries())))
    lines[:] = [re.sub(rf"\b({known})\b", r":ref:`\1`", line) for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive ``bibliography``."""
    app.add_directive("bibliography", Bibliography)
    app.connect("autodoc-process-docstring", link_keys, priority=900)  # after everything that reads docstrings as text
    return {"parallel_read_safe": True, "parallel_write_safe": True}
