"""The doors in the documentation: their table and their place in the contents, read off `attlas.claims.doors()`."""

from importlib import resources
from pathlib import Path
from typing import Any

from bibliography import plain
from docutils import nodes
from docutils.statemachine import StringList
from gallery import linked, thumbnails
from scripts import ORDER
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import attlas
from attlas.claims import Door, door, doors
from attlas.report.bibliography import entries, fields

HERE = Path(__file__).parents[1]


class Doors(SphinxDirective):
    """``{doors}`` shows a card for every door, with a picture, and puts their pages into the contents."""

    def run(self) -> list[nodes.Node]:
        """Return the cards and a hidden table of contents."""
        for key in doors():
            self.env.note_dependency(str(resources.files(f"attlas.claims.{key}").joinpath("__init__.py")))
        pages = [f"{one.title} <{one.key}>" for one in doors().values() if page(one)]
        contents = ["```{toctree}", ":hidden:", ":caption: Doors", "", *pages, "```"]
        found = nodes.Element()
        self.state.nested_parse(StringList(contents, source=__name__), 0, found)
        return [nodes.container("", *map(self.card, doors().values()), classes=["gallery"]), *found.children]

    def card(self, one: Door) -> nodes.Node:
        """Return the picture of a door, its title, its question and its papers."""
        title: nodes.Node = nodes.inline("", one.title, classes=["card-title"])
        pictures = [picture for name in ORDER.get(one.key, ())[:1] for picture in thumbnails(self.env, name)]
        named = linked(self.env, one.key, [*pictures, title]) if page(one) else title
        source = [nodes.literal("", f"attlas.{owner}"), nodes.Text(", ")] if (owner := package(one)) else []
        about = nodes.paragraph("", "", *source, nodes.Text(papers(one)), classes=["papers"])
        told = [nodes.paragraph("", one.question), about]
        return nodes.container("", nodes.paragraph("", "", named), *told, classes=["door"])


def table(folder: str = "") -> list[str]:
    """Return the doors as a table in Markdown, for a page from which those of the documentation are in `folder`."""
    rows = [f"| {named(one, folder)} | {one.question} | {papers(one)} |" for one in doors().values()]
    return ["| door | question | papers |", "|---|---|---|", *rows]


def named(one: Door, folder: str) -> str:
    """Return the title of a door with a link to its page, and the package of its mathematics."""
    title = f"[{one.title}]({folder}{one.key}.md)" if page(one) else one.title
    return f"{title}, `attlas.{owner}`" if (owner := package(one)) else title


def package(one: Door) -> str:
    """Return the name of the package of a door's mathematics, which may be its parent's; nothing if it has none."""
    while one.key not in attlas.__all__ and one.parent:
        one = door(one.parent)
    return one.key if one.key in attlas.__all__ else ""


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
