"""The gallery: every script of ``examples/`` is run at its small size, and becomes a page, a notebook and a thumbnail.

The page shows the text and the code of its cells (`scripts`) and what each of them printed; the figure is what the script
calls ``figure``. Pages are written into ``docs/gallery`` before they are read, as those of the reference are.
"""

import contextlib
import importlib.util
import io
import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from rooms import write_all
from scripts import ORDER, Example, examples, notebook, run
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from attlas.claims import door, doors
from attlas.report.svg import DARK

PAGES = "gallery"  # a folder of the documentation


def drawn(figure: Any, name: str) -> dict[str, str]:
    """Return a figure as SVG on light and on dark paper: the same drawing, its colours exchanged."""
    import matplotlib

    said = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(said, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    light = said.getvalue()
    # what is not given a colour is black in SVG, so that letters are given theirs at the root
    dark = re.sub(r"#[0-9a-f]{6}\b", lambda found: DARK.get(found[0], found[0]), light)
    dark = re.sub(r"<svg ", f'<svg fill="{DARK["#000000"]}" ', dark, count=1)
    return {"light": light, "dark": dark}


def page(example: Example, printed: list[str] | None) -> str:
    """Return the page of an example; without output where it was not run."""
    key = example.door
    lines = [f"# {example.title}", "", example.introduction, ""]
    if printed:
        for paper in ("light", "dark"):
            lines += [
                f"```{{image}} {example.name}-{paper}.svg",
                f":alt: {alt(example)}",
                f":class: only-{paper} figure",
                "```",
                "",
            ]
    for i, one in enumerate(example.cells):
        lines += [one.text, ""] if i else []
        lines += ["```python", one.code, "```", ""] if one.code else []
        if printed and printed[i].strip():
            lines += ["```{code-block} text", ":class: output", "", printed[i].rstrip(), "```", ""]
    lines += ["## This example", ""]
    lines += [f"- {{download}}`{example.name}.py <../../examples/{example.name}.py>`, the script"]
    lines += [f"- {{download}}`{example.name}.ipynb`, the same as a notebook, without outputs"]
    if printed and "quick" in example.cells[0].code:
        lines += [f"- What is shown here was computed at small size: `python {example.name}.py --quick`"]
    lines += [f"- The door it belongs to: [{door(key).title}](../{key}.md)"] if key else []
    return "\n".join(lines) + "\n"


def alt(example: Example) -> str:
    """Return what the figure of an example shows, for those who cannot see it."""
    return f"{example.title.rstrip('?')}: the figure that the script below draws"


def write(app: Sphinx) -> None:
    """Run every example and write its page, its notebook and its figures."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    wanted = {}
    for example in examples():
        printed = None
        if not needs(example):
            with plt.rc_context():
                printed, space = run(example)
                figures = drawn(space["figure"], example.name)
                plt.close("all")
            wanted |= {f"{example.name}-{paper}.svg": text for paper, text in figures.items()}
        wanted[f"{example.name}.md"] = page(example, printed)
        wanted[f"{example.name}.ipynb"] = notebook(example)
    write_all(Path(app.srcdir) / PAGES, wanted)


def needs(example: Example) -> str | None:
    """Return a package that an example imports and that is not installed."""
    code = "\n".join(one.code for one in example.cells)
    named = re.findall(r"(?m)^\s*(?:import|from) (\w+)", code)
    return next((name for name in named if importlib.util.find_spec(name) is None), None)


class FirstResult(SphinxDirective):
    """``{first_result}`` shows a few lines of code and what they print when the page is built."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the code and its output."""
        code = "\n".join(self.content)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(code, self.env.docname, "exec"), {})  # noqa: S102  # our own page
        return [
            nodes.literal_block(code, code, language="python"),
            nodes.literal_block(
                said.getvalue().rstrip(), said.getvalue().rstrip(), language="text", classes=["output"]
            ),
        ]


class Gallery(SphinxDirective):
    """``{gallery}`` shows all examples as thumbnails under their doors; ``{gallery} aim`` those of one door."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the thumbnails, and where all are shown a hidden table of contents."""
        known = {one.name: one for one in examples() if not needs(one)}
        if self.arguments:
            return [self.grid([one for one in known.values() if one.door == self.arguments[0]])]
        contents = ["```{toctree}", ":hidden:", "", *(f"{PAGES}/{one.name}" for one in examples()), "```"]
        table = nodes.Element()
        self.state.nested_parse(StringList(contents, source=__name__), 0, table)
        found = list(table.children)
        for key in (key for key in doors() if key in ORDER):
            own = [one for one in known.values() if one.door == key]
            title = door(key).title
            section = nodes.section(
                "", nodes.title("", title), self.grid(own), ids=[f"door-{key}"], names=[f"door-{key}"]
            )
            found.append(section)
        return found

    def grid(self, shown: list[Example]) -> nodes.Node:
        """Return thumbnails side by side."""
        grid = nodes.container(classes=["gallery"])
        for one in shown:
            title = nodes.inline("", one.title, classes=["card-title"])
            link = linked(self.env, f"{PAGES}/{one.name}", [*thumbnails(self.env, one.name), title])
            grid += nodes.paragraph("", "", link)
        return grid


def thumbnails(env: BuildEnvironment, name: str) -> list[nodes.Node]:
    """Return the pictures of an example, of which the theme shows one; the text beside them says what they are."""
    folder = os.path.relpath(PAGES, Path(env.docname).parent)
    papers = ("light", "dark")
    return [
        nodes.image(uri=f"{folder}/{name}-{one}.svg", alt="", classes=[f"only-{one}"], loading="lazy") for one in papers
    ]


def linked(env: BuildEnvironment, page: str, children: list[nodes.Node]) -> nodes.reference:
    """Return a link to a page, around whatever it is given."""
    address = env.app.builder.get_relative_uri(env.docname, page)
    return nodes.reference("", "", nodes.inline("", "", *children, classes=["card"]), refuri=address, internal=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages when a build begins, and register the directive ``gallery``."""
    app.connect("builder-inited", write)
    app.add_directive("gallery", Gallery)
    app.add_directive("first_result", FirstResult)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
