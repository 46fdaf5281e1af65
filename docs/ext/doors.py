"""The doors in the documentation: their table and their place in the contents, read off `attlas.claims.doors()`."""

from importlib import resources
from pathlib import Path
from typing import Any

from bibliography import plain
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import attlas
from attlas.claims import Door, door, doors
from attlas.report.bibliography import entries, fields

HERE = Path(__file__).parents[1]


class Doors(SphinxDirective):
    """``{doors}`` shows the table of doors and puts their pages into the contents, under their titles."""

    def run(self) -> list[nodes.Node]:
        """Return the table and a hidden table of contents."""
        for key in doors():
            self.env.note_dependency(str(resources.files(f"attlas.claims.{key}").joinpath("__init__.py")))
        pages = [f"{one.title} <{one.key}>" for one in doors().values() if page(one)]
        contents = ["```{toctree}", ":hidden:", ":caption: Doors", "", *pages, "```"]
        found = nodes.Element()
        self.state.nested_parse(StringList([*table(), "", *contents], source=__name__), 0, found)
        return found.children


def table(folder: str = "") -> list[str]:
    """Return the doors as a table in Markdown, for a page from which those of the documentation are in `folder`."""
    rows = [f"| {named(one, folder)} | {one.question} | {papers(one)} |" for one in doors().values()]
    return ["| door | question | papers |", "|---|---|---|", *rows]


def named(one: Door, folder: str) -> str:
    """Return the title of a door with a link to its page, and the package of its mathematics, which may be its parent's."""
    title = f"[{one.title}]({folder}{one.key}.md)" if page(one) else one.title
    owner = one
    while owner.key not in attlas.__all__ and owner.parent:
        owner = door(owner.parent)
    return f"{title}, `attlas.{owner.key}`" if owner.key in attlas.__all__ else title


def page(one: Door) -> bool:
    """Return whether a door has a page."""
    return (HERE / f"{one.key}.md").exists()


def papers(one: Door) -> str:
    """Return the papers of a door as "Fu, Guo, Bai, Mei 2023; ..."."""
    told = [fields(entries()[key]) for key in one.papers]
    return "; ".join(f"{surnames(paper['author'])} {paper['year']}" for paper in told)


def surnames(authors: str) -> str:
    """Return "Fu, Hengyu and Guo, Tianyu" as "Fu, Guo"."""
    return ", ".join(plain(name).partition(",")[0] for name in authors.split(" and "))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive ``doors``."""
    app.add_directive("doors", Doors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
